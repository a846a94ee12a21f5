//! Pairs of pages that are known to mislead one algorithm or the other.
//!
//! Each test states the scores of today and which rules accept the pair, and its documentation says
//! what a human judge would say (Henzinger 2006): *correct* if only a session, a time, a counter or
//! the address differs, *incorrect* if the main item does, *undecided* else. A change that moves a
//! score must be looked at here, whether or not it is for the better.
//!
//! The texts are seeded and have the skew of real ones: their most frequent word makes up an
//! eighth of the text. That matters to C, which counts: the same five words replaced move the
//! counts of a text of 500 words that repeats itself far less than of one that does not.

use arose::Threshold;
use arose::compare::{Comparison, Profiler};
use arose::filter::Filter;
use arose::mix::SplitMix;
use arose::rule::{Criterion, Policy, ShortPolicy, SiteRelation};
use arose::shingle::FEATURE_W;

/// `n` words out of 400 of unequal frequency.
fn prose(seed: u64, n: usize) -> Vec<String> {
    let mut random = SplitMix::new(seed);
    let mut word = || format!("word{}", (400.0 * random.next_f64().powi(3)) as u32);
    (0..n).map(|_| word()).collect()
}

/// `n` different words.
fn distinct_words(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("word{i}")).collect()
}

/// A copy of `text` with `words` in place of those from `position` on.
fn with(text: &[String], position: usize, words: &[&str]) -> Vec<String> {
    let mut copy = text.to_vec();
    for (place, word) in copy[position..].iter_mut().zip(words) {
        *place = (*word).to_owned();
    }
    copy
}

fn compare(a: &[String], b: &[String]) -> Comparison {
    let profiler = Profiler::new(FEATURE_W);
    let [a, b] = [a, b].map(|words| profiler.profile(&words.join(" ")));
    profiler.compare(&a, &b)
}

/// The criteria, each by a letter of its own: Jaccard at 0.9, B, C, their combination (&), and the
/// site policy on one site (S), between sites (X), between sites with the union (U), and without
/// sites (?).
fn accepted_by(comparison: &Comparison) -> String {
    let jaccard = Criterion::Jaccard(Threshold::new(0.9).unwrap());
    let cases = [
        ('J', jaccard, SiteRelation::Unknown),
        ('B', Criterion::PUBLISHED_B, SiteRelation::Unknown),
        ('C', Criterion::PUBLISHED_C, SiteRelation::Unknown),
        ('&', Criterion::PUBLISHED_COMBINED, SiteRelation::Unknown),
        ('S', Criterion::SITE, SiteRelation::Same),
        ('X', Criterion::SITE, SiteRelation::Different),
        ('U', Criterion::SITE_UNION, SiteRelation::Different),
        ('?', Criterion::SITE, SiteRelation::Unknown),
    ];
    let short = ShortPolicy::ExactOnly;
    let accepts = |&(_, criterion, site): &(char, Criterion, SiteRelation)| {
        comparison
            .rule(&Policy { criterion, short }, site)
            .is_some()
    };
    let letters = cases.iter().filter(|case| accepts(case)).map(|case| case.0);
    letters.collect()
}

#[track_caller]
fn check(comparison: &Comparison, jaccard: f64, (b_sim, c_sim): (u32, u32), letters: &str) {
    let exact = comparison.jaccard.unwrap();
    assert!((exact - jaccard).abs() < 5e-4, "jaccard {exact}");
    assert_eq!((comparison.b_sim, comparison.c_sim), (b_sim, Some(c_sim)));
    assert_eq!(accepted_by(comparison), letters);
}

/// (a) Two products in one shop template of 500 words, a name of 5 words replaced: *incorrect*, and
/// every rule is wrong. The name touches 12 of 493 shingles and a thousandth of the squared counts.
#[test]
fn product_name_in_a_template() {
    let template = prose(1, 500);
    let name = ["oak", "table", "model", "seven", "small"];
    let other = ["pine", "chair", "type", "three", "large"];
    let comparison = compare(&with(&template, 60, &name), &with(&template, 60, &other));
    check(&comparison, 0.9525, (4, 383), "JBC&SXU?");
}

/// (a) again, in a template that never repeats a word: C alone sees the difference, at a cosine of
/// 0.99. Its bar as a filter is lower, so the combination and the site policy are wrong on one
/// site.
#[test]
fn product_name_in_a_template_of_distinct_words() {
    let template = distinct_words(500);
    let other = ["pine", "chair", "type", "three", "large"];
    let comparison = compare(&template, &with(&template, 60, &other));
    check(&comparison, 0.9525, (3, 365), "JB&SU");
}

/// (b) One form of 300 words with other default values in 8 fields: *undecided*. C, to which a
/// value is one word among 300, takes the pages for copies, and so does the policy between sites.
/// Each value costs B eight shingles, so B and whatever asks B tell them apart.
#[test]
fn form_with_other_values() {
    let mut forms = [(); 2].map(|()| prose(2, 300));
    for (form, owner) in forms.iter_mut().zip(["smith", "jones"]) {
        for field in 0..8 {
            *form = with(form, 20 + 35 * field, &[&format!("{owner}{field}")]);
        }
    }
    let [a, b] = forms;
    check(&compare(&a, &b), 0.6415, (0, 377), "CXU");
}

/// (c) A page of 400 words that names its own address, 2 to 4 words of which differ: *correct*. C
/// is right each time. B is not about 4 words, being unlucky: at this similarity it accepts 84
/// pairs of 100. So the policy keeps that pair between sites and loses it on one.
#[test]
fn own_url() {
    let page = prose(3, 400);
    let urls = ["mirror beispiel org archive", "www example com news"];
    let cases = [
        (2, 0.9552, (3, 382), "JBC&SXU?"),
        (3, 0.9504, (2, 380), "JBC&SXU?"),
        (4, 0.9455, (1, 379), "JCXU"),
    ];
    for (n_differing, jaccard, scores, letters) in cases {
        let [a, b] = urls.map(|url| {
            let words: Vec<&str> = url.split(' ').take(n_differing).collect();
            with(&page, 20, &words)
        });
        check(&compare(&a, &b), jaccard, scores, letters);
    }
    assert!((Filter::TWO_OF_SIX.acceptance(0.9455) - 0.84).abs() < 5e-3);
}

/// (d) The same 30 sentences of 12 words in another order. A judge sees two texts; C cannot tell
/// them apart, which makes the policy wrong between sites. Every joint between sentences costs B
/// seven shingles, and B is right.
#[test]
fn shuffled_sentences() {
    let text = prose(4, 360);
    let mut sentences: Vec<&[String]> = text.chunks(12).collect();
    SplitMix::new(1).shuffle(&mut sentences);
    check(
        &compare(&text, &sentences.concat()),
        0.3050,
        (0, 384),
        "CXU",
    );
}

/// (e) The visitor counter of a page of 200 words has moved on: *correct*, and every rule is right.
#[test]
fn visitor_counter() {
    let page = prose(5, 200);
    let comparison = compare(&with(&page, 180, &["10482"]), &with(&page, 180, &["10483"]));
    check(&comparison, 0.9204, (3, 376), "JBC&SXU?");
}
