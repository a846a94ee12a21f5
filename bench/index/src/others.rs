//! Comparison with gaoya, an index in memory: inserts MinHash sketches and queries edited ones.
//!
//! Both get the same 84 MinHash values. The index stores six super-shingles of fourteen values and
//! finds two that match. gaoya stores four bands of seventeen and finds one that matches, which has
//! the same recall, 0.88, at the similarity 0.95 of the queries. Time is CPU time of insertions and
//! queries together; the index writes to disk in the meantime. `others.py` does the same with
//! datasketch.

use std::path::Path;

use arose::digest::Digest;
use arose::feature::Features;
use arose::mix::SplitMix;
use arose::rule::Criterion;
use arose_dedup::index::{FeatureKeys, Index, Kind, Settings, Sketch};
use gaoya::minhash::MinHashIndex;

use crate::documents::name;
use crate::meter::Meter;

const N_SAMPLES: usize = 84;
const RESEMBLANCE: f64 = 0.95;
/// Number of documents inserted at a time.
pub(crate) const GROUP: usize = 1000;

pub(crate) fn run(folder: &Path, n_docs: u64) -> anyhow::Result<()> {
    let mut random = SplitMix::new(5);
    let signatures: Vec<Vec<u32>> = (0..n_docs).map(|_| signature(&mut random)).collect();
    let edited: Vec<Vec<u32>> = signatures.iter().map(|s| edit(s, &mut random)).collect();
    gaoya(&signatures, &edited);
    arose(folder, &signatures, &edited)
}

fn signature(random: &mut SplitMix) -> Vec<u32> {
    (0..N_SAMPLES).map(|_| random.next_u64() as u32).collect()
}

/// A sketch in which each value has changed with probability 0.05.
fn edit(signature: &[u32], random: &mut SplitMix) -> Vec<u32> {
    let mut sample = |&sample: &u32| match random.next_f64() < RESEMBLANCE {
        true => sample,
        false => random.next_u64() as u32,
    };
    signature.iter().map(&mut sample).collect()
}

pub(crate) fn report(engine: &str, inserted: f64, meter: &Meter, n_found: usize, n_docs: usize) {
    let (cpu, _) = meter.seconds();
    let us = |seconds: f64| seconds * 1e6 / n_docs as f64;
    println!(
        "{engine}: {:.2} us a document, {:.2} of them insertion; recall {:.4}",
        us(cpu),
        us(inserted),
        n_found as f64 / n_docs as f64
    );
}

fn gaoya(signatures: &[Vec<u32>], edited: &[Vec<u32>]) {
    // It takes no more values than its bands have.
    let [signatures, edited] = [signatures, edited].map(|all| {
        let cut = all.iter().map(|signature| signature[..4 * 17].to_vec());
        cut.collect::<Vec<_>>()
    });
    let n_docs = signatures.len();
    let meter = Meter::start();
    // The bands decide; the threshold on the estimate must not reject anything.
    let mut index: MinHashIndex<u32, u64> = MinHashIndex::new(4, 17, 0.5);
    for (id, signature) in (0..).zip(signatures) {
        index.insert(id, signature);
    }
    let (inserted, _) = meter.seconds();
    let found = (0..)
        .zip(&edited)
        .filter(|(id, query)| index.query(query).contains(id));
    report("gaoya", inserted, &meter, found.count(), n_docs);
}

fn arose(folder: &Path, signatures: &[Vec<u32>], edited: &[Vec<u32>]) -> anyhow::Result<()> {
    let settings = Settings {
        kind: rule_b(),
        ..Settings::default()
    };
    let index = Index::create(folder, settings)?;
    let meter = Meter::start();
    for (group, start) in signatures.chunks(GROUP).zip((0..).step_by(GROUP)) {
        let documents = group.iter().zip(start..).map(|(signature, id)| {
            let sketch = sketch(id, signature)?;
            Ok((name(id), sketch))
        });
        let documents: Vec<(String, Sketch)> = documents.collect::<Result<_, arose::Error>>()?;
        let borrowed: Vec<_> = documents.iter().map(|(n, s)| (n.as_str(), s)).collect();
        index.insert_all(&borrowed)?;
    }
    index.wait_for_merging()?;
    let (inserted, _) = meter.seconds();
    let mut n_found = 0;
    for (id, query) in edited.iter().enumerate() {
        let found = index.query(&sketch(u64::MAX - id as u64, query)?)?;
        n_found += usize::from(found.iter().any(|found| found.name == name(id as u64)));
    }
    report("arose", inserted, &meter, n_found, signatures.len());
    Ok(())
}

/// Two of six super-shingles, each in a table of its own.
pub(crate) const fn rule_b() -> Kind {
    Kind::Compact {
        criterion: Criterion::PUBLISHED_B,
        keys: FeatureKeys::Tables,
    }
}

fn sketch(id: u64, signature: &[u32]) -> Result<Sketch, arose::Error> {
    let mut words = Features::SIX_BY_FOURTEEN.of(signature)?;
    words.extend([0; 6]);
    Ok(Sketch {
        digest: Digest(id.into()),
        site: None,
        is_short: false,
        words,
        pairs: None,
    })
}
