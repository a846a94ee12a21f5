//! Pairs of documents that meet in small buckets, each tested once.
//!
//! All pairs of a small bucket are tested, and duplicates meet in most tables. So the pairs are
//! written down and sorted first: a pair is tested once however often it meets, and in an order in
//! which sketches need not be looked up one by one where they do not fit memory. Then a block of
//! sketches is in memory at a time. Pairs of two documents of the block are tested at once; for the
//! others the sketches after the block are read from the file in order, once per block.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::Error;
use crate::config::Config;
use crate::record::{Ordinal, PairKey};
use crate::scheme::Tables;
use crate::sorter::{Sorted, Sorter};
use crate::stage::sketches::{Block, Gathered};

/// Pairs that are tested together.
const BATCH: usize = 1 << 20;
/// Pairs that a thread takes at once.
const CHUNK: usize = 1 << 12;

/// Meetings on their way to the test.
pub(crate) struct Meetings {
    folder: PathBuf,
    sorter: Sorter<PairKey>,
    allowance: u64,
}

impl Meetings {
    pub(crate) fn new(folder: &Path, config: &Config) -> Self {
        let allowance = config.part(8);
        Self {
            sorter: Sorter::new(&folder.join("meetings"), allowance),
            folder: folder.to_owned(),
            allowance,
        }
    }

    pub(crate) fn extend(&mut self, pairs: &[PairKey]) -> Result<(), Error> {
        self.sorter.extend(pairs)
    }

    /// Tests every pair once; `take` gets those that pass.
    pub(crate) fn test<T: Tables>(
        self,
        tables: &T,
        sketches: &Gathered<T::Sketch>,
        mut take: impl FnMut(&[PairKey]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut pairs = Distinct {
            pairs: self.sorter.finish()?,
            next: None,
        };
        pairs.step()?;
        for number in 0..sketches.n_blocks() {
            if pairs.next.is_none() {
                break;
            }
            let block = sketches.block(number)?;
            let mut far = Sorter::new(&self.folder.join("far"), self.allowance);
            loop {
                let near = pairs.near(&block, &mut far)?;
                if near.is_empty() {
                    break;
                }
                take(&passing(tables, &block, &near))?;
            }
            test_far(tables, sketches, &block, far, &mut take)?;
        }
        Ok(())
    }
}

/// Sorted pairs without repetitions.
struct Distinct {
    pairs: Sorted<PairKey>,
    next: Option<PairKey>,
}

impl Distinct {
    fn step(&mut self) -> Result<(), Error> {
        let last = self.next;
        while self.next == last {
            self.next = self.pairs.next()?;
            if self.next.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// The next pairs of documents in a block; those with one document after it go to `far`.
    fn near<S: Clone>(
        &mut self,
        block: &Block<'_, S>,
        far: &mut Sorter<[Ordinal; 2]>,
    ) -> Result<Vec<PairKey>, Error> {
        let mut near = Vec::new();
        while let Some(pair) = self.next
            && block.contains(pair.a)
            && near.len() < BATCH
        {
            match block.contains(pair.b) {
                true => near.push(pair),
                false => far.push([pair.b, pair.a])?,
            }
            self.step()?;
        }
        Ok(near)
    }
}

/// The pairs of a block that pass the test, in order.
fn passing<T: Tables>(tables: &T, block: &Block<'_, T::Sketch>, pairs: &[PairKey]) -> Vec<PairKey> {
    let passes = |pair: &PairKey| tables.accepts(block.sketch(pair.a), block.sketch(pair.b));
    let chunks = pairs.par_chunks(CHUNK);
    let chunks = chunks.map(|chunk| {
        let chunk = chunk.iter().copied();
        chunk.filter(passes).collect::<Vec<_>>()
    });
    chunks.flatten().collect()
}

/// Tests documents of a block with later ones, whose sketches come in order.
fn test_far<T: Tables>(
    tables: &T,
    sketches: &Gathered<T::Sketch>,
    block: &Block<'_, T::Sketch>,
    far: Sorter<[Ordinal; 2]>,
    take: &mut impl FnMut(&[PairKey]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut far = far.finish()?;
    let mut next = far.next()?;
    let mut passing = Vec::new();
    let mut later = sketches.after(block)?;
    while let Some([b, _]) = next {
        let sketch = later.sketch(b)?;
        while let Some([same, a]) = next
            && same == b
        {
            if tables.accepts(block.sketch(a), &sketch) {
                passing.push(PairKey { a, b });
            }
            next = far.next()?;
        }
        take(&passing)?;
        passing.clear();
    }
    Ok(())
}
