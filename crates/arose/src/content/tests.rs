use super::plain::{Point, chain_plain, matches_plain, score_plain};
use super::*;
use crate::shingle::jaccard;
use crate::token::Tokenizer;
use proptest::prelude::*;

/// The shingles of some tokens.
fn cut(tokens: &[u64]) -> Vec<u64> {
    shingler().shingles_plain(tokens)
}

fn of_tokens(tokens: &[u64]) -> Content {
    Content::new(&cut(tokens))
}

fn content(text: &str) -> Content {
    of_tokens(&Tokenizer::default().tokens(text).fingerprints)
}

fn score(a: &Content, b: &Content) -> Score {
    Scorer::default().score(a, b)
}

/// Checks the chain and the unweighted score of two texts, in both directions and with both
/// implementations.
#[track_caller]
fn check(a: &str, b: &str, n_chain: usize, u: f64) {
    let (a, b) = (content(a), content(b));
    for (a, b) in [(&a, &b), (&b, &a)] {
        let found = score(a, b);
        assert_eq!((found.n_chain, found.u), (n_chain, u));
        assert_eq!(found.s, u, "without sites both forms are one");
        assert_eq!(found, score_plain(a, b));
    }
}

#[test]
fn oracles() {
    let (u, rose) = (4.0 / 7.0, "a rose is a rose is a rose");
    check(rose, "a rose is a rose", 4, u);
    check(
        "Once upon a midnight dreary, while I pondered",
        "Once upon a time, while I pondered",
        4,
        u,
    );
    check("a b c d e f", "d e f a b c", 2, 0.4);
    check(rose, rose, 7, 1.0);
}

/// Four of six pairs of words are common; two of them are in the same order.
#[test]
fn order_counts() {
    let sets = ["a b c d e f", "d e f a b c"].map(|text| {
        let tokens = Tokenizer::default().tokens(text);
        shingler().set(&tokens.fingerprints)
    });
    assert_eq!(jaccard(&sets[0], &sets[1]), Some(4.0 / 6.0));
}

#[test]
fn short_and_empty_texts() {
    check("", "", 0, 0.0);
    check("", "a rose", 0, 0.0);
    check("rose", "rose", 1, 1.0);
    check("rose", "thorn", 0, 0.0);
    check("rose", "rose rose", 0, 0.0);
    check("rose rose", "rose rose", 1, 1.0);
    assert!(content("").is_empty());
    assert_eq!(content("").own(), 0.0);
    assert_eq!(score(&content(""), &content("")).level(), Level::Distinct);
}

/// Words `from..to`.
fn words(from: u64, to: u64) -> Vec<u64> {
    (from..to).map(crate::mix::mix).collect()
}

/// A block of new text as long as the text halves u: 99 of 199 pairs are left, one fewer if the
/// block separates two words.
#[test]
fn fresh_text_halves_u() {
    let text = words(0, 100);
    let (begin, end) = text.split_at(50);
    let fresh = words(1000, 1100);
    for (longer, n_chain) in [
        ([&text[..], &fresh].concat(), 99),
        ([&fresh[..], &text].concat(), 99),
        ([begin, &fresh, end].concat(), 98),
    ] {
        let found = score(&of_tokens(&text), &of_tokens(&longer));
        assert_eq!(found.n_chain, n_chain);
        assert_eq!(found.u, n_chain as f64 / 199.0);
    }
}

/// Two blocks change places: the pairs of the larger one remain, whichever it is.
#[test]
fn a_moved_block_costs_the_smaller_block() {
    let text = words(0, 100);
    for n_first in [1, 30, 49, 51, 70, 99] {
        let (first, second) = text.split_at(n_first);
        let moved = [second, first].concat();
        let found = score(&of_tokens(&text), &of_tokens(&moved));
        let larger = n_first.max(100 - n_first);
        assert_eq!(found.n_chain, larger - 1, "{n_first}");
    }
}

/// Pages of one site: a frame that 100 other pages have, and text that none has.
fn page(frame: &[u64], own: &[u64]) -> Content {
    let (begin, end) = frame.split_at(frame.len() / 2);
    let frames = [cut(begin), cut(end)].concat();
    let tokens = [begin, own, end].concat();
    let n_others = |shingle| 100 * u64::from(frames.contains(&shingle));
    Content::of_site(&cut(&tokens), n_others)
}

/// Two products of one shop: the template raises the unweighted score, but not the weighted one.
#[test]
fn one_template_is_alike() {
    let frame = words(0, 400);
    let (a, b) = (
        page(&frame, &words(1000, 1020)),
        page(&frame, &words(2000, 2020)),
    );
    let found = score(&a, &b);
    assert!(found.u > 0.94, "{found:?}");
    assert!(found.s < 0.05, "{found:?}");
    assert!(a.own() > 20.0 && a.own() < 22.0, "{}", a.own());
    assert_eq!(found.level(), Level::Alike);
}

/// Two versions of one article with different sidebars: the other way round.
#[test]
fn one_article_in_two_frames_is_the_same() {
    let article = words(0, 100);
    let (a, b) = (
        page(&words(1000, 1100), &article),
        page(&words(2000, 2100), &article),
    );
    let found = score(&a, &b);
    assert!(found.u < 0.55, "{found:?}");
    // Two pairs of words at the seams of each page are its own.
    assert!((found.s - 99.0 / 101.1).abs() < 0.002, "{found:?}");
    assert_eq!(found.level(), Level::Same);
}

/// A page without own text is the same as another only if it is nearly equal.
#[test]
fn pages_without_own_text() {
    let frame = words(0, 300);
    let (a, b) = (page(&frame, &[]), page(&frame, &words(500, 502)));
    assert!(a.own() < MIN_OWN && b.own() < MIN_OWN);
    assert_eq!(score(&a, &b).level(), Level::Same, "u is 297 of 301");
    let c = page(&frame[..280], &words(500, 502));
    let found = score(&a, &c);
    assert!(found.u < NEARLY_EQUAL && found.u >= ALIKE, "{found:?}");
    assert_eq!(found.level(), Level::Alike);
}

#[test]
fn levels() {
    let level_of =
        |s: f64, u: f64, own: [f64; 2], n_chain: usize| Score { s, u, own, n_chain }.level();
    let level = |s, u, own| level_of(s, u, own, 5);
    assert_eq!(level_of(0.0, 1.0, [4.0; 2], 4), Level::Alike);
    let own = [5.0, 5.0];
    for (s, u, own, expected) in [
        (0.9, 0.0, own, Level::Same),
        (0.899, 0.969, own, Level::Content),
        (0.75, 0.0, own, Level::Content),
        (0.749, 0.75, own, Level::Alike),
        (0.749, 0.749, own, Level::Distinct),
        (0.0, 0.97, own, Level::Same),
        (1.0, 0.96, [4.999, 5.0], Level::Alike),
        (1.0, 0.74, [5.0, 4.999], Level::Distinct),
        (1.0, 0.97, [0.0, 0.0], Level::Same),
    ] {
        assert_eq!(level(s, u, own), expected, "{s} {u} {own:?}");
    }
    let names = [Level::Same, Level::Content, Level::Alike, Level::Distinct].map(Level::as_str);
    assert_eq!(names, ["same", "content", "alike", "distinct"]);
}

#[test]
fn weights_fall_with_the_square() {
    for (n_others, expected) in [(0, 1.0), (1, 1.0), (3, 1.0), (6, 0.25), (30, 0.01)] {
        assert!((weight(n_others) - expected).abs() < 1e-15, "{n_others}");
    }
    assert!(weight(u64::MAX) >= 0.0);
    let mut asked = Vec::new();
    let text = Tokenizer::default().tokens("a rose is a rose is a rose");
    let content = Content::of_site(&cut(&text.fingerprints), |shingle| {
        asked.push(shingle);
        6
    });
    assert_eq!((asked.len(), content.own()), (3, 7.0 * 0.25));
    assert_eq!(content.weights(), [0.25; 7]);
}

/// The weight of the elements in both texts, each as often as in the text that has fewer of it,
/// divided by the weight of the elements in either.
fn bag_jaccard(a: &Content, b: &Content) -> f64 {
    let common: f64 = matches_plain(a, b)
        .iter()
        .map(|point| a.weights()[point.i as usize])
        .sum();
    common / (a.own() + b.own() - common)
}

/// The longest chain by trying all sets of matches.
fn longest_by_force(points: &[Point]) -> usize {
    let is_chain = |set: &u32| {
        let chosen: Vec<&Point> = (0..points.len())
            .filter(|place| set >> place & 1 == 1)
            .map(|place| &points[place])
            .collect();
        chosen
            .windows(2)
            .all(|pair| pair[0].i < pair[1].i && pair[0].j < pair[1].j)
    };
    let sets = (0..1_u32 << points.len()).filter(is_chain);
    sets.map(|set| set.count_ones() as usize).max().unwrap_or(0)
}

/// Texts of few words, so that pairs of words repeat and there are many longest chains.
fn texts(n: usize) -> impl Strategy<Value = [Vec<u64>; 2]> {
    let text = move || prop::collection::vec(0..5_u64, 0..n);
    [text(), text()]
}

/// A text and an edited copy: common text, then a little text that differs.
fn versions() -> impl Strategy<Value = [Vec<u64>; 2]> {
    let text = prop::collection::vec(0..40_u64, 1..80);
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..60_u64), 0..8);
    (text, edits).prop_map(|(text, edits)| {
        let mut other = text.clone();
        for (place, word) in edits {
            other[place.index(text.len())] = word;
        }
        [text, other]
    })
}

/// The number of times that a site repeats a shingle: arbitrary, but the same for the same shingle.
fn repeats(shingle: u64) -> u64 {
    crate::mix::mix(shingle) % 12
}

proptest! {
    /// The optimized version equals the reference implementation to the last bit, and both are
    /// symmetric.
    #[test]
    fn scorer_equals_the_definition(
        pair in prop_oneof![texts(60), versions()],
        has_sites: bool,
    ) {
        let [a, b] = pair.map(|tokens| match has_sites {
            true => Content::of_site(&cut(&tokens), repeats),
            false => of_tokens(&tokens),
        });
        let mut scorer = Scorer::default();
        let expected = chain_plain(&a, &b);
        prop_assert_eq!(scorer.chain(&a, &b), &expected[..]);
        let mirrored: Vec<(u32, u32)> = expected.iter().map(|&(i, j)| (j, i)).collect();
        prop_assert_eq!(scorer.chain(&b, &a), &mirrored[..]);
        let found = scorer.score(&a, &b);
        prop_assert_eq!(found, score_plain(&a, &b));
        let back = scorer.score(&b, &a);
        prop_assert_eq!((found.s, found.u, found.n_chain), (back.s, back.u, back.n_chain));
        prop_assert_eq!(found.level(), back.level());
    }

    /// Chains ascend, match equal shingles, and none is longer.
    #[test]
    fn chains_are_longest(pair in texts(13)) {
        let [a, b] = pair.map(|tokens| of_tokens(&tokens));
        let points = matches_plain(&a, &b);
        let chain = chain_plain(&a, &b);
        prop_assert!(chain.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
        prop_assert!(
            chain.iter().all(|&(i, j)| points.iter().any(|point| (point.i, point.j) == (i, j)))
        );
        prop_assert_eq!(chain.len(), longest_by_force(&points));
    }

    /// Scores lie in 0..=1, a text has the score 1 with itself, and a score bounds the weighted bag
    /// Jaccard similarity from below.
    #[test]
    fn bounds(pair in prop_oneof![texts(60), versions()]) {
        let [a, b] = pair.map(|tokens| Content::of_site(&cut(&tokens), repeats));
        let found = score(&a, &b);
        prop_assert!((0.0..=1.0).contains(&found.s) && (0.0..=1.0).contains(&found.u));
        for text in [&a, &b] {
            let own = score(text, text);
            let expected = f64::from(u8::from(!text.is_empty()));
            prop_assert_eq!((own.u, own.s), (expected, expected));
        }
        if !a.is_empty() && !b.is_empty() {
            prop_assert!(bag_jaccard(&a, &b) >= bag_bound(found.s) - 1e-12);
            let chain_bag = found.n_chain as f64 / (a.len() + b.len() - found.n_chain) as f64;
            prop_assert!(chain_bag >= bag_bound(found.u) - 1e-12);
        }
    }

    /// With weights of 1 both scores are equal, and all text is own text if its site repeats none
    /// of it.
    #[test]
    fn weights_of_one(pair in versions()) {
        let [a, b] = pair.map(|tokens| of_tokens(&tokens));
        let found = score(&a, &b);
        prop_assert!((found.s - found.u).abs() < 1e-12);
        prop_assert_eq!(a.own(), a.len() as f64);
    }

    /// Elements in text order are those of the content, and nothing of earlier texts is left in the
    /// table.
    #[test]
    fn elements_are_those_of_the_content(texts in prop::collection::vec(texts(40), 1..5)) {
        let (mut numbered, mut elements) = (Numbered::default(), Vec::new());
        for tokens in texts.iter().flatten() {
            let shingles = cut(tokens);
            numbered.elements_into(&shingles, &mut elements);
            let content = Content::new(&shingles);
            let mut expected: Vec<u64> = content.elements().map(|(element, _)| element).collect();
            let first = elements.first();
            prop_assert_eq!(first, shingles.first());
            expected.sort_unstable();
            let mut sorted = elements.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, expected);
        }
    }

    /// Sorting by buckets equals sorting, even if all shingles are in one bucket.
    #[test]
    fn shingles_are_sorted(
        shingles in prop::collection::vec(prop_oneof![any::<u64>(), 0..20_u64], 0..200)
    ) {
        let mut expected: Vec<(u64, u32)> = shingles.iter().copied().zip(0..).collect();
        expected.sort_unstable();
        let (sorted, positions) = sort(&shingles);
        prop_assert_eq!(sorted.into_iter().zip(positions).collect::<Vec<_>>(), expected);
    }
}
