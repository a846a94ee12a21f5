use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::mix::SplitMix;

/// The definitions as published.
mod brute {
    use super::*;

    pub(super) fn top_gram(text: &str, n: usize) -> f64 {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut counts: BTreeMap<String, (u64, usize)> = BTreeMap::new();
        for (at, gram) in words.windows(n).enumerate() {
            counts.entry(gram.join(" ")).or_insert((0, at)).0 += 1;
        }
        let most = counts
            .iter()
            .max_by_key(|(_, (n, at))| (*n, usize::MAX - at));
        let n_chars = text.chars().count().max(1) as f64;
        most.map_or(0.0, |(gram, (n, _))| {
            gram.chars().count() as f64 * *n as f64 / n_chars
        })
    }

    pub(super) fn dup_grams(text: &str, n: usize) -> f64 {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut seen = BTreeSet::new();
        let (mut at, mut chars) = (0, 0);
        while at + n <= words.len() {
            let gram = &words[at..at + n];
            if seen.insert(gram) {
                at += 1;
            } else {
                chars += gram.iter().map(|word| word.chars().count()).sum::<usize>();
                at += n;
            }
        }
        chars as f64 / text.chars().count().max(1) as f64
    }

    pub(super) fn dup_lines(text: &str) -> (f64, f64) {
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect();
        let mut seen = BTreeSet::new();
        let dups = lines.iter().filter(|line| !seen.insert(**line));
        let dups: Vec<usize> = dups.map(|line| line.chars().count()).collect();
        let n_chars = text.chars().count().max(1) as f64;
        let share = dups.len() as f64 / lines.len().max(1) as f64;
        (share, dups.iter().sum::<usize>() as f64 / n_chars)
    }
}

fn signals(text: &str) -> Signals {
    Analyzer::default().signals(text)
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

#[test]
fn rules_have_distinct_names_and_a_bit_each() {
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), N_RULES);
    for rule in &RULES {
        let prefix = format!("{}_", rule.family.as_str());
        assert!(rule.name.starts_with(&prefix), "{}", rule.name);
        assert_eq!(Selection::named(rule.name).unwrap().names(), rule.name);
    }
    let all = Family::ALL.map(|family| Selection::named(family.as_str()).unwrap());
    let bits: u32 = all.iter().map(|family| family.0.count_ones()).sum();
    assert_eq!(bits as usize, N_RULES);
    assert_eq!(Selection::named("gopher_word"), None);
    assert_eq!(Selection::named(""), None);
}

/// A text that passes all rules, and one change for each rule that makes it fail this one.
#[test]
fn each_rule_rejects_what_it_is_for() {
    let words = |seed: u64, n: usize| {
        let mut random = SplitMix::new(seed);
        let word = |random: &mut SplitMix| {
            let letters = (0..5).map(|_| char::from(b'a' + random.below(26) as u8));
            letters.collect::<String>()
        };
        let words: Vec<String> = (0..n).map(|_| word(&mut random)).collect();
        words.join(" ")
    };
    let line = |seed| format!("the {} of {}.\n", words(seed, 9), words(seed + 100, 9));
    let good: String = (0..12).map(line).collect();
    assert_eq!(Selection::failed(&signals(&good)).names(), "");
    let many = |piece: &str, n: usize| format!("{good}{}", piece.repeat(n));
    let cases = [
        ("gopher_words", words(1, 49)),
        ("gopher_mean_word", "ab c ".repeat(200)),
        ("gopher_mean_word", "abcdefghijklm ".repeat(200)),
        ("gopher_hashes", many("#", 40)),
        ("gopher_ellipses", many("...", 40)),
        (
            "gopher_bullets",
            good.replace('\n', "\n- ").replace("the ", "- the "),
        ),
        ("gopher_ellipsis_lines", good.replace(".\n", "…\n")),
        ("gopher_alphabetic", many(" 12 34 56", 40)),
        ("gopher_stop_words", words(3, 300)),
        ("gopher_dup_lines", many("same line\n", 9)),
        ("gopher_dup_line_chars", many(&line(1), 6)),
        ("gopher_dup_paragraphs", many("\n\nsame\n\n", 9)),
        (
            "gopher_dup_paragraph_chars",
            many(&format!("\n\n{}\n\n", line(50)), 6),
        ),
        ("gopher_top_2_gram", many("big sale ", 100)),
        ("gopher_top_3_gram", many("big sale now ", 100)),
        ("gopher_top_4_gram", many("big sale now here ", 100)),
        ("gopher_dup_5_grams", many(&line(1), 5)),
        ("gopher_dup_10_grams", many(&line(1), 5)),
        ("c4_sentences", good.replace('.', "")),
        ("c4_sentences", good.replace('.', "[3] javascript.")),
        ("c4_braces", format!("{good}fn main() {{")),
        ("c4_lorem_ipsum", format!("{good}Lorem Ipsum dolor")),
        ("fineweb_punctuation", good.replace('.', ";")),
        ("fineweb_short_lines", good.replace(' ', ".\n")),
        ("fineweb_dup_chars", many(&line(1), 1)),
        ("fineweb_newlines", good.replace(' ', "\n")),
    ];
    for (name, text) in cases {
        let failed = Selection::failed(&signals(&text));
        let has = failed.rules().any(|rule| rule.name == name);
        assert!(has, "{name} not among {}: {text:.200}", failed.names());
    }
}

#[test]
fn citations_do_not_hide_the_end_of_a_sentence() {
    for text in [
        "One two three.[3]",
        "One two three.[12][edit]",
        "One two three. [citation needed]",
    ] {
        assert_eq!(signals(text).sentences, 1, "{text}");
    }
    assert_eq!(signals("One two three [more]").sentences, 0);
    assert_eq!(signals("He said \"yes.\" Then he left! Why?").sentences, 3);
}

#[test]
fn hostile_texts_have_values() {
    let long = "x".repeat(100_000);
    for text in [
        "",
        " ",
        "\n\n\n",
        "\r\n",
        "a",
        "ｘ",
        "\u{0}",
        &long,
        &"\n".repeat(1000),
    ] {
        let signals = signals(text);
        for rule in &RULES {
            assert!(
                rule.value(&signals).is_finite(),
                "{} of {text:.20}",
                rule.name
            );
        }
        let q = weight(&signals.repetition, &Facts::default());
        assert_eq!(q, 1.0, "{text:.20}");
    }
}

#[test]
fn odd_facts_have_weights() {
    let text = signals("a few words").repetition;
    for odd in [f64::NAN, f64::INFINITY, -1.0, 0.0, 2.0] {
        let facts = Facts {
            ratio: Some(odd),
            title_words: u32::MAX,
            anchor: odd,
            hidden: odd,
            n_links: u32::MAX,
        };
        let q = weight(&text, &facts);
        assert!((LEAST..=1.0).contains(&q), "{odd}: {q}");
    }
}

/// Texts of few words: the reuse of words detects them without compression.
#[test]
fn stuffed_texts_reuse_words() {
    for n_distinct in [5, 20, 50] {
        let mut random = SplitMix::new(n_distinct);
        let draws: Vec<String> = (0..500)
            .map(|_| format!("word{}", random.below(n_distinct)))
            .collect();
        let text = signals(&draws.join(" ")).repetition;
        assert!(is_near(text.reuse, 500.0 / n_distinct as f64), "{text:?}");
        assert!(weight(&text, &Facts::default()) <= 0.2);
    }
}

/// Twice the text takes about twice the slots; so do words that are all distinct, or all the same.
#[test]
fn tables_stay_in_proportion() {
    let mut analyzer = Analyzer::default();
    for n in [1_000, 2_000, 100_000] {
        let distinct: String = (0..n).map(|i| format!("{i} ")).collect();
        assert_eq!(analyzer.repetition(&distinct).reuse, 1.0);
        let same = "same ".repeat(n);
        let reuse = analyzer.repetition(&same).reuse;
        assert_eq!(reuse, 1000.0);
    }
}

proptest! {
    #[test]
    fn grams_and_lines_equal_brute_force(text in "(rose|is|a|ü|x|\\.| |  |\n|\n\n){0,120}") {
        let found = signals(&text);
        for (i, share) in found.top_grams.iter().enumerate() {
            prop_assert!(is_near(*share, brute::top_gram(&text, i + 2)), "{} {:?}", i + 2, found);
        }
        for (i, share) in found.dup_grams.iter().enumerate() {
            prop_assert!(is_near(*share, brute::dup_grams(&text, i + 5)), "{} {:?}", i + 5, found);
        }
        let (lines, chars) = brute::dup_lines(&text);
        prop_assert!(is_near(found.dup_lines, lines));
        prop_assert!(is_near(found.repetition.dup_line_chars, chars));
        prop_assert_eq!(found.repetition, Analyzer::default().repetition(&text));
        prop_assert!(is_near(found.repetition.dup_5_grams, found.dup_grams[0]));
    }

    /// A reused analyzer gives the same results.
    #[test]
    fn nothing_is_left_over(texts in prop::collection::vec("(rose |is |a |\n){0,60}", 1..5)) {
        let mut analyzer = Analyzer::default();
        for text in &texts {
            prop_assert_eq!(analyzer.signals(text), signals(text));
        }
    }

    #[test]
    fn steps_fall_from_one_to_a_tenth(x in 0.0..10.0_f64, y in 0.0..10.0_f64) {
        let (x, y) = (x.min(y), x.max(y));
        prop_assert!(step(x, 2.0) >= step(y, 2.0));
        prop_assert!((LEAST..=1.0).contains(&step(x, 2.0)));
    }
}
