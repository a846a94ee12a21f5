//! Comparison with gaoya, starting from texts: the cost for a program that queries each of its
//! documents.
//!
//! Both get the same texts. Each is inserted, then each is queried with one word in two hundred
//! changed, so that the similarity is about 0.95. The index has policy b as in `others.rs`. The
//! sketches of gaoya are as long as its four bands of seventeen, over windows of five words
//! separated by spaces, the cheapest way to compute them. Time is CPU time of the whole process.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use arose::mix::SplitMix;
use arose::shingle::ShingleLength;
use arose_corpus::{Config, Item, read};
use arose_dedup::index::{Index, Settings, Sketcher};
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32};
use gaoya::text::whitespace_split;

use crate::documents::name;
use crate::meter::Meter;
use crate::others::{GROUP, report, rule_b};

/// Number of words in a shingle.
const W: NonZeroUsize = NonZeroUsize::new(5).expect("five is not zero");
/// One word in this many differs in the query.
const WORDS_PER_EDIT: u64 = 200;

pub(crate) fn run(folder: &Path, corpus: PathBuf, n_docs: usize) -> anyhow::Result<()> {
    let documents = read(&[corpus], Config::default())?.filter_map(|item| match item {
        Item::Document(document) => Some(document.text),
        _ => None,
    });
    let texts: Vec<String> = documents.take(n_docs).collect();
    ensure!(!texts.is_empty(), "the corpus holds no documents");
    let mut random = SplitMix::new(7);
    let edited: Vec<String> = texts.iter().map(|text| edit(text, &mut random)).collect();
    gaoya(&texts, &edited);
    arose(folder, &texts, &edited)
}

fn edit(text: &str, random: &mut SplitMix) -> String {
    let mut word = |word: &str| match random.below(WORDS_PER_EDIT) {
        0 => format!("w{:x}", random.next_u64()),
        _ => word.to_owned(),
    };
    let words: Vec<String> = text.split_whitespace().map(&mut word).collect();
    words.join(" ")
}

fn gaoya(texts: &[String], edited: &[String]) {
    let meter = Meter::start();
    let hasher = MinHasher32::new(4 * 17);
    let signature = |text: &String| {
        let text = text.to_lowercase();
        let words: Vec<&str> = whitespace_split(&text).collect();
        hasher.create_signature(words.windows(W.get()))
    };
    let mut index: MinHashIndex<u32, u64> = MinHashIndex::new(4, 17, 0.5);
    for (id, text) in (0..).zip(texts) {
        index.insert(id, signature(text));
    }
    let (inserted, _) = meter.seconds();
    let found = (0..)
        .zip(edited)
        .filter(|(id, text)| index.query(&signature(text)).contains(id));
    report("gaoya", inserted, &meter, found.count(), texts.len());
}

fn arose(folder: &Path, texts: &[String], edited: &[String]) -> anyhow::Result<()> {
    let settings = Settings {
        kind: rule_b(),
        shingle: ShingleLength::uniform(W),
        ..Settings::default()
    };
    let index = Index::create(folder, settings)?;
    let sketcher = Sketcher::new(&settings);
    let meter = Meter::start();
    for (group, start) in texts.chunks(GROUP).zip((0..).step_by(GROUP)) {
        let documents = group.iter().zip(start..);
        let documents: Vec<_> = documents
            .map(|(text, id)| (name(id), sketcher.sketch(text, None)))
            .collect();
        let borrowed: Vec<_> = documents.iter().map(|(n, s)| (n.as_str(), s)).collect();
        index.insert_all(&borrowed)?;
    }
    index.wait_for_merging()?;
    let (inserted, _) = meter.seconds();
    let mut n_found = 0;
    for (id, text) in edited.iter().enumerate() {
        let found = index.query(&sketcher.sketch(text, None))?;
        n_found += usize::from(found.iter().any(|found| found.name == name(id as u64)));
    }
    report("arose", inserted, &meter, n_found, texts.len());
    Ok(())
}
