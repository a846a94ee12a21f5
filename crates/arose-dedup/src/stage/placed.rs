//! Pairs in an order in which the documents they need are in memory together.
//!
//! Documents with a pair are assigned to blocks, component by component, and pairs are sorted by
//! the blocks of their two documents. So similar documents are in memory together, and a component
//! larger than a block is read once per pair of its blocks.
//!
//! Components and blocks take eight bytes per document with a pair. If they do not fit into a
//! quarter of the memory, blocks follow the order of the documents, and the pairs of one document
//! are processed together.

use std::path::Path;

use arose::DocId;
use arose::cluster::Components;
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use crate::Error;
use crate::column::Scan;
use crate::config::Config;
use crate::lookup::{Chosen, Flags};
use crate::record::{CandidateKey, Ordinal};
use crate::sorter::{Sorted, Sorter};

/// Pairs in a batch.
const BATCH_PAIRS: usize = 1 << 18;

/// A pair under the blocks of its documents and its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Placed {
    blocks: [u32; 2],
    pub(crate) component: Ordinal,
    pub(crate) a: Ordinal,
    pub(crate) b: Ordinal,
}

impl Placed {
    pub(crate) fn pair(&self) -> CandidateKey {
        CandidateKey {
            a: self.a,
            b: self.b,
        }
    }
}

/// Returns the documents that are in one of the pairs in a file, of `n_docs` documents.
pub(crate) fn chosen(pairs: &Path, n_docs: usize) -> Result<Chosen, Error> {
    let mut scan = Scan::<CandidateKey>::open(pairs)?;
    let mut has_pair = Flags::new(n_docs);
    while let Some(CandidateKey { a, b }) = scan.next()? {
        has_pair.set(a as usize);
        has_pair.set(b as usize);
    }
    Ok(Chosen::new(has_pair))
}

/// Pairs that are not yet in batches.
pub(crate) struct Queue {
    sorted: Sorted<Placed>,
    /// A pair that was read but is not yet in a batch.
    head: Option<Placed>,
}

impl Queue {
    /// Sorts the pairs in a file so that those that need the same documents are adjacent. `weights`
    /// gives the weights of the chosen documents in order. A block weighs at most `max_weight`,
    /// unless a single document weighs more.
    pub(crate) fn new(
        pairs: &Path,
        chosen: &Chosen,
        weights: impl FnMut(Ordinal) -> Result<u32, Error>,
        max_weight: u64,
        config: &Config,
        folder: &Path,
    ) -> Result<Self, Error> {
        let room = BlockRoom::new(max_weight);
        let places = match u64::from(chosen.len()) * PLACE_BYTES <= config.part(4) {
            true => Places::near(pairs, chosen, weights, room, config, folder)?,
            false => Places::in_order(chosen, weights, room)?,
        };
        let mut sorter = Sorter::new(&folder.join("placed"), config.part(4));
        let mut scan = Scan::<CandidateKey>::open(pairs)?;
        while let Some(pair) = scan.next()? {
            sorter.push(places.of(pair, chosen)?)?;
        }
        Ok(Self {
            sorted: sorter.finish()?,
            head: None,
        })
    }

    /// Processes all pairs, several batches at a time on all threads. `take` gets the results in
    /// order.
    pub(crate) fn judge<R: Send>(
        mut self,
        judge: impl Fn(&[Placed]) -> Result<R, Error> + Sync,
        mut take: impl FnMut(&[Placed], R) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let n_batches = 2 * rayon::current_num_threads();
        loop {
            let mut batches = Vec::with_capacity(n_batches);
            while batches.len() < n_batches {
                let batch = self.next_batch()?;
                if batch.is_empty() {
                    break;
                }
                batches.push(batch);
            }
            if batches.is_empty() {
                return Ok(());
            }
            let results: Vec<_> = batches.par_iter().map(|batch| judge(batch)).collect();
            for (batch, result) in batches.iter().zip(results) {
                take(batch, result?)?;
            }
        }
    }

    /// Returns the next pairs that are in the same two blocks.
    fn next_batch(&mut self) -> Result<Vec<Placed>, Error> {
        let mut batch: Vec<Placed> = self.head.take().into_iter().collect();
        while let Some(next) = self.sorted.next()? {
            let is_other = batch
                .first()
                .is_some_and(|first| first.blocks != next.blocks);
            if is_other || batch.len() == BATCH_PAIRS {
                self.head = Some(next);
                break;
            }
            batch.push(next);
        }
        Ok(batch)
    }
}

/// Bytes per chosen document of [`Places::Near`].
const PLACE_BYTES: u64 = 8;

/// The blocks of documents, and which pairs are processed together.
enum Places {
    /// Documents connected by pairs are neighbours: a block for each chosen document.
    Near {
        components: Components,
        blocks: Vec<u32>,
    },
    /// In the order of the documents, if there is no memory for more: the first document of each
    /// block. Pairs with the same first document are processed together, so a document is read more
    /// often.
    InOrder { starts: Vec<Ordinal> },
}

/// Returns the component of a document.
fn component(components: &Components, chosen: &Chosen, doc: Ordinal) -> Result<Ordinal, Error> {
    let place = DocId(chosen.place(doc) as u64);
    Ok(components.find(place)?.0 as Ordinal)
}

impl Places {
    fn near(
        pairs: &Path,
        chosen: &Chosen,
        mut weights: impl FnMut(Ordinal) -> Result<u32, Error>,
        mut room: BlockRoom,
        config: &Config,
        folder: &Path,
    ) -> Result<Self, Error> {
        let components = Components::new(chosen.len() as usize)?;
        let mut scan = Scan::<CandidateKey>::open(pairs)?;
        while let Some(CandidateKey { a, b }) = scan.next()? {
            let [a, b] = [a, b].map(|doc| DocId(chosen.place(doc) as u64));
            components.union(a, b)?;
        }
        let mut members = Sorter::new(&folder.join("members"), config.part(8));
        for (place, doc) in (0..).zip(chosen.iter()) {
            let component = components.find(DocId(u64::from(place)))?.0 as Ordinal;
            members.push([component, place, weights(doc)?])?;
        }
        let mut members = members.finish()?;
        let mut blocks = vec![0; chosen.len() as usize];
        while let Some([_, place, weight]) = members.next()? {
            blocks[place as usize] = room.block_of(weight);
        }
        Ok(Self::Near { components, blocks })
    }

    fn in_order(
        chosen: &Chosen,
        mut weights: impl FnMut(Ordinal) -> Result<u32, Error>,
        mut room: BlockRoom,
    ) -> Result<Self, Error> {
        let mut starts = vec![0];
        for doc in chosen.iter() {
            if room.block_of(weights(doc)?) as usize == starts.len() {
                starts.push(doc);
            }
        }
        Ok(Self::InOrder { starts })
    }

    fn of(&self, CandidateKey { a, b }: CandidateKey, chosen: &Chosen) -> Result<Placed, Error> {
        let (blocks, component) = match self {
            Self::Near { components, blocks } => {
                let places = [a, b].map(|doc| blocks[chosen.place(doc)]);
                (places, component(components, chosen, a)?)
            }
            Self::InOrder { starts } => {
                let block = |doc| starts.partition_point(|start| *start <= doc) as u32 - 1;
                ([block(a), block(b)], a)
            }
        };
        Ok(Placed {
            blocks,
            component,
            a,
            b,
        })
    }
}

/// Assigns documents to blocks, one after the other.
struct BlockRoom {
    max_weight: u64,
    weight: u64,
    block: u32,
}

impl BlockRoom {
    fn new(max_weight: u64) -> Self {
        Self {
            max_weight,
            weight: 0,
            block: 0,
        }
    }

    /// Returns the block of the next document.
    fn block_of(&mut self, weight: u32) -> u32 {
        self.weight += u64::from(weight);
        if self.weight > self.max_weight {
            // A document larger than a block has a block to itself.
            self.block += u32::from(self.weight > u64::from(weight));
            self.weight = weight.into();
        }
        self.block
    }
}

/// The documents of these pairs, each once.
pub(crate) fn members(pairs: &[Placed]) -> Vec<Ordinal> {
    let mut members: Vec<Ordinal> = pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
    members.sort_unstable();
    members.dedup();
    members
}

/// Returns the positions of the documents of a pair among the members.
pub(crate) fn places(members: &[Ordinal], pair: &Placed) -> [usize; 2] {
    [pair.a, pair.b].map(|doc| {
        let place = members.binary_search(&doc);
        place.expect("members hold both of a pair")
    })
}
