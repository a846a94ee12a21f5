//! Worked examples of the definitions: occurrences, counts, longest shared runs, remaining text.

use std::ops::Range;

use super::*;
use crate::token::Tokenizer;

const R: &str = "a rose is a rose is a rose";

struct TestCorpus {
    texts: Vec<String>,
    docs: Vec<Vec<u64>>,
}

impl TestCorpus {
    fn new(texts: &[&str]) -> Self {
        let tokens = |text: &&str| Tokenizer::default().tokens(text).fingerprints;
        Self {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            docs: texts.iter().map(tokens).collect(),
        }
    }

    fn occurrences(&self, n_tokens: usize, scope: Scope) -> Vec<Vec<Occurrence>> {
        search::brute_force(&self.docs, n_tokens, 2, scope).collect()
    }

    /// Occurrences as `[start,end)xcount`, with documents separated by `; `.
    fn shown(&self, n_tokens: usize) -> String {
        let shown = |found: Vec<Occurrence>| {
            let one = |o: &Occurrence| format!("[{},{})x{}", o.start, o.end, o.count);
            found.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        let all = self.occurrences(n_tokens, Scope::Any).into_iter();
        all.map(shown).collect::<Vec<_>>().join("; ")
    }

    /// The remaining part of each text, with documents separated by `; `.
    fn left(&self, n_tokens: usize, scope: Scope, removal: Removal) -> String {
        let all = self.occurrences(n_tokens, scope).into_iter().enumerate();
        let left = all.map(|(doc, found)| {
            let gone = Occurrence::removed(doc as u32, &found, scope, removal);
            let text = &self.texts[doc];
            let mut starts = Vec::new();
            Tokenizer::default().for_each_place(text, |_, place| starts.push(place.start));
            let left = Cells::new(text, starts).without(text, &gone, "");
            left.trim_end().to_owned()
        });
        left.collect::<Vec<_>>().join("; ")
    }

    /// The longest run of a document that also occurs at another place, at least `n_tokens` long.
    fn longest(&self, doc: usize, n_tokens: usize) -> usize {
        let text = &self.docs[doc];
        let mut longest = 0;
        for (other, tokens) in self.docs.iter().enumerate() {
            for i in 0..text.len() {
                for j in (0..tokens.len()).filter(|&j| other != doc || j != i) {
                    let pairs = text[i..].iter().zip(&tokens[j..]);
                    longest = longest.max(pairs.take_while(|(a, b)| a == b).count());
                }
            }
        }
        if longest >= n_tokens { longest } else { 0 }
    }
}

/// Checks occurrences, and the remaining text after `later`, `whole-first` and `all`.
#[track_caller]
fn check(texts: &[&str], n_tokens: usize, occurrences: &str, left: [&str; 3]) {
    let corpus = TestCorpus::new(texts);
    assert_eq!(corpus.shown(n_tokens), occurrences);
    let removals = [Removal::Later, Removal::WholeFirst, Removal::All];
    assert_eq!(
        removals.map(|removal| corpus.left(n_tokens, Scope::Any, removal)),
        left
    );
}

#[test]
fn a_rose_is_a_rose_is_a_rose() {
    let one = "[0,2)x3 [2,3)x2 [3,5)x3 [5,6)x2 [6,8)x3";
    check(&[R], 1, one, ["a rose is", "a rose is", ""]);
    let two = "[0,2)x3 [1,4)x2 [3,5)x3 [4,7)x2 [6,8)x3";
    check(&[R], 2, two, ["a rose is", "a rose is a", ""]);
    for n_tokens in 3..=5 {
        let left = ["a rose is", "a rose is a rose", ""];
        check(&[R], n_tokens, "[0,5)x2 [3,8)x2", left);
    }
    check(&[R], 6, "", [R, R, R]);
    for n_tokens in 1..=5 {
        assert_eq!(TestCorpus::new(&[R]).longest(0, n_tokens), 5);
    }
    assert_eq!(TestCorpus::new(&[R]).longest(0, 6), 0);
}

#[test]
fn one_token_repeated() {
    let text = "x x x x x x x";
    let occurrences = "[0,3)x5 [1,4)x5 [2,5)x5 [3,6)x5 [4,7)x5";
    check(&[text], 3, occurrences, ["x", "x x x", ""]);
    let corpus = TestCorpus::new(&[text]);
    assert!(
        corpus.occurrences(3, Scope::Any)[0]
            .iter()
            .all(|one| one.first.token == 0)
    );
    assert_eq!(corpus.longest(0, 3), 6);
}

#[test]
fn a_moved_passage() {
    let (a, b) = ("e a b c d f g h", "e f a b c d g h");
    let left = [
        "e a b c d f g h; e f g h",
        "e a b c d f g h; e f g h",
        "e f g h; e f g h",
    ];
    check(&[a, b], 4, "[1,5)x2; [2,6)x2", left);
}

#[test]
fn a_passage_in_a_passage() {
    let texts = ["p q r s t u v w", "1 p q r s t u v w 2", "3 r s t u 4"];
    let occurrences = "[0,4)x2 [2,6)x3 [4,8)x2; [1,5)x2 [3,7)x3 [5,9)x2; [1,5)x3";
    let kept = "p q r s t u v w; 1 2; 3 4";
    check(&texts, 3, occurrences, [kept, kept, "; 1 2; 3 4"]);
    let corpus = TestCorpus::new(&texts);
    assert_eq!([0, 1, 2].map(|doc| corpus.longest(doc, 3)), [8, 8, 4]);
}

#[test]
fn overlapping_passages() {
    check(
        &["a b c d e", "c d e f g", "b c d e f"],
        3,
        "[1,4)x2 [2,5)x3; [0,3)x3 [1,4)x2; [0,3)x2 [1,4)x3 [2,5)x2",
        ["a b c d e; f g; ", "a b c d e; d e f g; ", "a; g; "],
    );
    check(
        &["a b c d", "a b c d e f", "c d e f g"],
        3,
        "[0,4)x2; [0,4)x2 [2,6)x2; [0,4)x2",
        ["a b c d; e f; g", "a b c d; c d e f; g", "; ; g"],
    );
}

#[test]
fn versions_of_a_text() {
    let texts = [
        "a b c d e f g h i j",
        "a b c x e f g h i j",
        "a b c x e f g y i j",
    ];
    let occurrences = "[0,3)x3 [4,7)x3 [5,10)x2; [0,3)x3 [1,6)x2 [4,7)x3 [5,10)x2; \
                       [0,3)x3 [1,6)x2 [4,7)x3";
    let first = texts[0];
    check(
        &texts,
        3,
        occurrences,
        [
            &format!("{first}; x; y i j"),
            &format!("{first}; b c x e f; y i j"),
            "d; ; y i j",
        ],
    );
    let corpus = TestCorpus::new(&texts);
    assert_eq!([0, 1, 2].map(|doc| corpus.longest(doc, 3)), [6, 7, 7]);
}

#[test]
fn runs_of_equal_tokens() {
    let spelled = |runs: &[(&str, usize)]| {
        let words = runs.iter().flat_map(|(word, n)| vec![*word; *n]);
        words.collect::<Vec<_>>().join(" ")
    };
    let a = spelled(&[("a", 12), ("b", 3), ("c", 5)]);
    let b = spelled(&[("a", 12), ("c", 5)]);
    let corpus = TestCorpus::new(&[&a, &b]);
    let found = corpus.occurrences(3, Scope::Any).concat();
    let counts = |count| found.iter().filter(|one| one.count == count).count();
    assert_eq!((counts(20), counts(6), found.len()), (20, 6, 26));
    let left = |removal| corpus.left(3, Scope::Any, removal);
    assert_eq!(left(Removal::Later), "a b b b c; ");
    assert_eq!(left(Removal::WholeFirst), "a a a b b b c c c; ");
    assert_eq!(left(Removal::All), "b b b; ");
}

#[test]
fn scripts_without_spaces() {
    let texts = ["春眠不覚暁処処聞啼鳥", "夜来風雨声春眠不覚暁"];
    let kept = "春眠不覚暁処処聞啼鳥; 夜来風雨声";
    check(
        &texts,
        5,
        "[0,5)x2; [5,10)x2",
        [kept, kept, "処処聞啼鳥; 夜来風雨声"],
    );
}

#[test]
fn scopes() {
    let corpus = TestCorpus::new(&[R, "is a rose is"]);
    let found = corpus.occurrences(3, Scope::Any);
    // "a rose is" and "is a rose" occur three times, "rose is a" twice.
    let counts: Vec<u64> = found[0].iter().map(|one| one.count).collect();
    assert_eq!(counts, [3, 2, 3, 3, 2, 3]);
    assert_eq!(
        found[1].iter().map(|one| one.count).collect::<Vec<_>>(),
        [3, 3]
    );
    let left = |scope| corpus.left(3, scope, Removal::Later);
    assert_eq!(left(Scope::Any), "a rose is; ");
    assert_eq!(left(Scope::Across), format!("{R}; "));
    assert_eq!(left(Scope::Within), "a rose is; is a rose is");
}

/// Checks units instead of tokens, compared by their text.
#[track_caller]
fn check_units(texts: &[&str], unit: Unit, span: usize, occurrences: &str, left: &str) {
    let ranges: Vec<Vec<Range<usize>>> = texts.iter().map(|text| units(text, unit)).collect();
    let digest = |text: &str| crate::digest::Digest::of_text(text).0 as u64;
    let all = texts.iter().zip(&ranges);
    let docs = all.map(|(text, units)| {
        units
            .iter()
            .map(|unit| digest(&text[unit.clone()]))
            .collect()
    });
    let corpus = TestCorpus {
        texts: Vec::new(),
        docs: docs.collect(),
    };
    assert_eq!(corpus.shown(span), occurrences);
    let found = corpus.occurrences(span, Scope::Any);
    let kept = texts.iter().zip(&ranges).zip(found).enumerate();
    let kept = kept.map(|(doc, ((text, units), found))| {
        let gone = Occurrence::removed(doc as u32, &found, Scope::Any, Removal::Later);
        let cells = Cells::new(text, units.iter().map(|unit| unit.start));
        cells.without(text, &gone, "").trim().to_owned()
    });
    assert_eq!(kept.collect::<Vec<_>>().join("; "), left);
}

#[test]
fn repeated_lines_and_sentences() {
    check_units(
        &[
            "Home\nAbout\nA rose\nContact\n",
            "Home\nAbout\nAnother\nContact\n",
        ],
        Unit::Line,
        1,
        "[0,2)x2 [3,4)x2; [0,2)x2 [3,4)x2",
        "Home\nAbout\nA rose\nContact; Another",
    );
    check_units(
        &["Aa. Bb. Cc. Dd.", "Xx. Aa. Bb. Cc. Yy.", "Aa. Bb."],
        Unit::Sentence,
        3,
        "[0,3)x2; [1,4)x2; ",
        "Aa. Bb. Cc. Dd.; Xx. Yy.; Aa. Bb.",
    );
}

#[test]
fn lengths_are_checked() {
    assert_eq!(gram_length(50), 25);
    assert_eq!(gram_length(13), 7);
    assert!(check_length("min", 0).is_err());
    assert!(check_length("min", 65_536).is_ok());
    assert!(check_length("min", 65_537).is_err());
}
