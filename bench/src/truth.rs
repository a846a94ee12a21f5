//! The exact join: every pair of documents with at least a given similarity.
//!
//! *Question.* Which pairs should a tool have found?
//!
//! *Idea.* Comparing all pairs is quadratic. But sort the shingles of every document by one order,
//! rare ones first: if `|A ∩ B| / |A ∪ B| >= t`, then `A` shares at least `t |A|` shingles with
//! `B`, and likewise `B` with `A`. So the first shared shingle is among the first `|A| - ceil(t
//! |A|) + 1` of `A` and among as many of `B`, and an index of these *prefixes* finds every such
//! pair. The smaller document has at least `t` times the shingles of the larger. The remaining
//! pairs are compared shingle by shingle.
//!
//! *Paper.* Chaudhuri, Ganti & Kaushik 2006; Bayardo, Ma & Srikant 2007.
//!
//! *Cost.* Memory: 8 bytes per shingle, and an index of the prefixes without shingles that occur
//! once. Time is linear except for the candidates, each of which is a merge of two sets. *Error.*
//! Only collisions of fingerprints.
//!
//! *Not for* low thresholds on large corpora: below 0.5 the prefixes are most of the documents.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::Context;
use arose::mix::mix;
use arose::shingle::{ShingleSet, Shingler, jaccard};
use arose::token::Tokenizer;
use arose_corpus::{Config, Item};

/// Writes `id, id, similarity` for all pairs of `input` that reach `threshold`, in input order.
pub fn run(input: &Path, threshold: f64, w: NonZeroUsize, output: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        threshold > 0.0 && threshold <= 1.0,
        "threshold {threshold} is not above 0 and at most 1"
    );
    let documents = read(input, w)?;
    let pairs = join(&documents, threshold);
    let file = File::create(output).with_context(|| format!("writing {}", output.display()))?;
    let mut lines = BufWriter::new(file);
    for &(a, b, similarity) in &pairs {
        let (a, b) = (&documents[a].name, &documents[b].name);
        writeln!(lines, "{a}\t{b}\t{similarity}")?;
    }
    lines.flush()?;
    println!("{} documents, {} pairs", documents.len(), pairs.len());
    Ok(())
}

struct Document {
    name: String,
    shingles: ShingleSet,
}

fn read(input: &Path, w: NonZeroUsize) -> anyhow::Result<Vec<Document>> {
    let (tokenizer, shingler) = (Tokenizer::default(), Shingler::new(w));
    let document = move |item| match item {
        Item::Document(document) => Some(Document {
            name: document.name(),
            shingles: shingler.set(&tokenizer.tokens(&document.text).fingerprints),
        }),
        Item::Skipped(_) => None,
    };
    let documents = arose_corpus::read_map(&[input.to_owned()], Config::default(), document)?;
    Ok(documents.flatten().collect())
}

/// Returns the pairs by position in `documents`, the smaller position first, ascending.
fn join(documents: &[Document], threshold: f64) -> Vec<(usize, usize, f64)> {
    let frequencies = Frequencies::of(documents);
    let sizes: Vec<usize> = documents.iter().map(|d| d.shingles.len()).collect();
    let mut by_size: Vec<usize> = (0..documents.len()).filter(|&d| sizes[d] > 0).collect();
    by_size.sort_by_key(|&d| sizes[d]);
    let mut index: HashMap<u64, Vec<usize>> = HashMap::new();
    // The last document with which each one was compared, so that no pair is compared twice.
    let mut compared_with = vec![usize::MAX; documents.len()];
    let mut pairs = Vec::new();
    for &a in &by_size {
        let least = least_shared(sizes[a], threshold);
        for shingle in frequencies.prefix(&documents[a].shingles, sizes[a] - least + 1) {
            let others = index.entry(shingle).or_default();
            // Those seen so far are no larger, and the largest of them are last.
            for &b in others.iter().rev().take_while(|&&b| sizes[b] >= least) {
                if std::mem::replace(&mut compared_with[b], a) == a {
                    continue;
                }
                let similarity = jaccard(&documents[a].shingles, &documents[b].shingles);
                if let Some(similarity) = similarity.filter(|&s| s >= threshold) {
                    pairs.push((a.min(b), a.max(b), similarity));
                }
            }
            others.push(a);
        }
    }
    pairs.sort_by_key(|&(a, b, _)| (a, b));
    pairs
}

/// Returns the minimum number of its `size` shingles that a document shares with a similar one, and
/// the minimum size of those that are not larger.
fn least_shared(size: usize, threshold: f64) -> usize {
    // Rounding may raise a product that is an integer; an additional candidate does no harm.
    let least = (threshold * size as f64 - 1e-9).ceil() as usize;
    least.clamp(1, size)
}

/// Number of documents that contain a shingle, or more if shingles share a counter.
///
/// It only orders shingles, and any order is correct if it is the same for all documents.
struct Frequencies {
    counters: Vec<u32>,
}

const COUNTER_BITS: u32 = 25;

impl Frequencies {
    fn of(documents: &[Document]) -> Self {
        let mut counters = vec![0_u32; 1 << COUNTER_BITS];
        for document in documents {
            for &shingle in document.shingles.as_slice() {
                let counter = &mut counters[Self::place(shingle)];
                *counter = counter.saturating_add(1);
            }
        }
        Self { counters }
    }

    fn place(shingle: u64) -> usize {
        (mix(shingle) >> (u64::BITS - COUNTER_BITS)) as usize
    }

    fn of_shingle(&self, shingle: u64) -> u32 {
        self.counters[Self::place(shingle)]
    }

    /// Returns the `n` rarest shingles, except those in one document only.
    fn prefix(&self, set: &ShingleSet, n: usize) -> Vec<u64> {
        let mut keyed: Vec<(u32, u64)> = set
            .as_slice()
            .iter()
            .map(|&shingle| (self.of_shingle(shingle), shingle))
            .collect();
        if n < keyed.len() {
            keyed.select_nth_unstable(n);
            keyed.truncate(n);
        }
        keyed.retain(|&(frequency, _)| frequency > 1);
        keyed.into_iter().map(|(_, shingle)| shingle).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents of 1 to 40 of 60 shingles, so that many pairs are on both sides of a threshold.
    fn documents() -> Vec<Document> {
        let document = |number: u64| {
            let n_shingles = 1 + mix(number) % 40;
            let shingles = (0..n_shingles).map(|i| mix(number * 7 + i) % 60).collect();
            Document {
                name: number.to_string(),
                shingles: ShingleSet::from_occurrences(shingles),
            }
        };
        (0..300).map(document).collect()
    }

    #[track_caller]
    fn check(threshold: f64) {
        let documents = documents();
        let mut expected = Vec::new();
        for a in 0..documents.len() {
            for b in a + 1..documents.len() {
                let similarity = jaccard(&documents[a].shingles, &documents[b].shingles);
                let similarity = similarity.expect("no set is empty");
                if similarity >= threshold {
                    expected.push((a, b, similarity));
                }
            }
        }
        assert!(!expected.is_empty());
        assert_eq!(join(&documents, threshold), expected);
    }

    #[test]
    fn finds_what_all_pairs_find() {
        for threshold in [0.2, 0.25, 0.3, 0.5] {
            check(threshold);
        }
    }

    #[test]
    fn least_shared_is_whole_at_whole_products() {
        assert_eq!(least_shared(10, 0.8), 8);
        assert_eq!(least_shared(10, 0.81), 9);
        assert_eq!(least_shared(3, 1.0), 3);
        assert_eq!(least_shared(1, 0.1), 1);
    }
}
