//! Compares quotations with those of brute force.

use std::sync::Arc;

use arose::mix::SplitMix;
use arose_search::{GoOn, Index, Quotations, Quoting};

use crate::support::{Page, dedup, indexed, write_pages};

fn ask(index: &Index, text: &str, quoting: &Quoting) -> Quotations {
    let go_on: GoOn = Arc::new(|| true);
    let found = index.quotations_while(text, quoting, &go_on);
    found.unwrap().unwrap()
}

/// Words over a small alphabet, with a stretch of `source` in the middle.
fn text(random: &mut SplitMix, n_words: u64, source: &[String]) -> Vec<String> {
    let word = |random: &mut SplitMix| format!("w{}", random.below(9));
    let mut words: Vec<String> = (0..n_words).map(|_| word(random)).collect();
    if !source.is_empty() && random.below(2) == 0 {
        let start = random.below(source.len() as u64) as usize;
        let n = random.below(12) as usize;
        let end = (start + n).min(source.len());
        words.extend_from_slice(&source[start..end]);
        words.extend((0..5).map(|_| word(random)));
    }
    words
}

/// The tokens of `text` in windows of `n` tokens that `other` also has, window by window.
fn shared(text: &[String], other: &[String], n: usize) -> usize {
    let mut is_shared = vec![false; text.len()];
    for (start, window) in text.windows(n).enumerate() {
        if other.windows(n).any(|theirs| theirs == window) {
            is_shared[start..start + n].fill(true);
        }
    }
    is_shared.into_iter().filter(|is| *is).count()
}

#[test]
fn issue_29_quotations_equal_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let mut random = SplitMix::new(29);
    let quoted = text(&mut random, 60, &[]);
    let texts: Vec<Vec<String>> = (0..60).map(|_| text(&mut random, 20, &quoted)).collect();
    let page = |words: &Vec<String>| Page {
        url: "https://x.org/".to_owned(),
        text: words.join(" "),
        ..Page::default()
    };
    write_pages(&input, &texts.iter().map(page).collect::<Vec<_>>());
    dedup(&input, &out);
    let index = indexed(&out);
    let whole = quoted.join(" ");
    let mut n_found = Vec::new();
    for min_tokens in [2, 3, 4, 5, 7, 8, 11] {
        let quoting = Quoting {
            min_tokens,
            except: Some(7),
            max_documents: usize::MAX,
        };
        let found = ask(&index, &whole, &quoting);
        let mut expected: Vec<(usize, u64)> = (0..)
            .zip(&texts)
            .map(|(doc, other)| (shared(&quoted, other, min_tokens), doc))
            .filter(|(n, doc)| *n > 0 && *doc != 7)
            .collect();
        expected.sort_by_key(|&(n, doc)| (std::cmp::Reverse(n), doc));
        let documents = found.documents.iter();
        let seen: Vec<(usize, u64)> = documents.map(|it| (it.n_tokens, it.doc)).collect();
        assert_eq!(seen, expected, "{min_tokens}");
        for document in &found.documents {
            let n: usize = document
                .passages
                .iter()
                .map(|bytes| whole[bytes.clone()].split(' ').count())
                .sum();
            assert_eq!(n, document.n_tokens);
        }
        n_found.push(seen.len());
    }
    assert!(
        n_found[0] > 50 && n_found[6] > 0 && n_found[6] < 20,
        "{n_found:?}"
    );
}

/// Documents that are not compared are counted, and a stopped search has no result.
#[test]
fn issue_29_quotations_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let page = |i: usize| Page {
        url: format!("https://x.org/{i}"),
        text: format!("number{i} a rose is a rose is a rose number{i}"),
        ..Page::default()
    };
    write_pages(&input, &(0..20).map(page).collect::<Vec<_>>());
    dedup(&input, &out);
    let index = indexed(&out);
    let quoting = Quoting {
        min_tokens: 5,
        except: None,
        max_documents: 8,
    };
    let found = ask(&index, "He said: a rose is a Rose, is a rose!", &quoting);
    assert_eq!((found.documents.len(), found.n_left_out), (8, 12));
    assert_eq!((found.n_tokens, found.documents[0].n_tokens), (10, 8));
    for text in ["", "a rose", "nothing of this is there at all"] {
        assert!(ask(&index, text, &quoting).documents.is_empty());
    }
    let never: GoOn = Arc::new(|| false);
    let stopped = index.quotations_while("a rose is a rose", &quoting, &never);
    assert_eq!(stopped.unwrap(), None);
    let long = "a ".repeat(1_000_001);
    assert!(index.quotations_while(&long, &quoting, &never).is_err());
}
