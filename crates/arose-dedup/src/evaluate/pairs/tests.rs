use super::*;
use crate::evaluate::difference::{Difference, KindedTokens};
use crate::evaluate::labelled::{self, Fields, LabelledDocument, LabelledPair, Labels, Pairing};
use Verdict::{Correct, Incorrect, Undecided};
use arose::digest::Digest;
use arose::exact::similar_pairs;
use arose::token::Tokenizer;
use std::path::Path;

const W: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Words `from..to`, spelled as numbers.
fn document(id: &str, from: u32, to: u32) -> LabelledDocument {
    let words: Vec<String> = (from..to).map(|word| word.to_string()).collect();
    let text = words.join(" ");
    LabelledDocument {
        id: id.to_owned(),
        url: Some(format!("http://www.{id}.org/")),
        content: KindedTokens::of(&Tokenizer::default(), &text),
        digest: Digest::of_text(&text),
    }
}

fn pair(a: usize, b: usize, verdict: Verdict) -> LabelledPair {
    let jaccard = None;
    LabelledPair {
        a,
        b,
        verdict,
        jaccard,
    }
}

fn config(thresholds: &[f64]) -> PairsConfig {
    PairsConfig {
        w: W,
        thresholds: thresholds
            .iter()
            .map(|&t| Threshold::new(t).unwrap())
            .collect(),
        short: ShortPolicy::ExactOnly,
    }
}

/// Three documents of 100, 90 and 10 words. The first two are similar.
fn labelled() -> LabelledPairs {
    LabelledPairs {
        documents: vec![
            document("x", 0, 100),
            document("y", 10, 100),
            document("z", 500, 510),
        ],
        pairs: vec![
            pair(0, 1, Correct),
            pair(0, 2, Incorrect),
            pair(1, 2, Undecided),
        ],
    }
}

#[test]
fn each_policy_decides_each_pair() {
    let study = study(&labelled(), &config(&[0.8, 0.9, 0.95]));
    assert_eq!(
        study.all,
        Tally {
            correct: 1,
            incorrect: 1,
            undecided: 1
        }
    );
    let accepted = |name: &str, at: Option<f64>| {
        let is_it = |row: &&PolicyRow| row.name == name && row.threshold.map(Threshold::get) == at;
        study.policies.iter().find(is_it).unwrap().score.accepted
    };
    let one = Tally {
        correct: 1,
        incorrect: 0,
        undecided: 0,
    };
    // 89 shingles of 99 in both.
    assert_eq!(accepted("jaccard", Some(0.8)), one);
    assert_eq!(accepted("jaccard", Some(0.9)), Tally::default());
    assert_eq!(accepted("jaccard", Some(0.95)), Tally::default());
    assert_eq!(study.policies.len(), 11);
    // 89 word pairs of 99 in the same order: less than 0.9.
    for sites in ["", "-no-sites"] {
        assert_eq!(accepted(&format!("same{sites}"), None), Tally::default());
        assert_eq!(accepted(&format!("content{sites}"), None), one);
    }
    let jaccard = &study.measures[0];
    assert_eq!((jaccard.name, jaccard.auc), ("jaccard", Some(1.0)));
    assert_eq!(jaccard.best.unwrap().threshold, 89.0 / 99.0);
    let containment = &study.measures[2];
    assert_eq!(containment.best.unwrap().threshold, 1.0);
}

/// The same words in another order are duplicates between sites, where bits decide alone, but not
/// on one site.
#[test]
fn the_site_policy_sees_the_sites() {
    let mut labelled = labelled();
    labelled.documents = vec![document("x", 0, 500), document("y", 0, 500)];
    labelled.documents[1].content.tokens.fingerprints.reverse();
    labelled.documents[1].digest = Digest::of_text("499 to 0");
    labelled.pairs = vec![pair(0, 1, Correct)];
    let n_accepted = |labelled: &LabelledPairs| {
        let study = study(labelled, &config(&[]));
        let n_pairs = |tallies: &[Tally]| -> u64 { tallies.iter().map(Tally::total).sum() };
        assert_eq!((n_pairs(&study.by_b_sim), n_pairs(&study.by_c_sim)), (0, 1));
        let row = study.policies.iter().find(|row| row.name == "site");
        row.unwrap().score.accepted.total()
    };
    assert_eq!(n_accepted(&labelled), 1);
    labelled.documents[1].url = labelled.documents[0].url.clone();
    assert_eq!(n_accepted(&labelled), 0);
}

#[test]
fn agreement_is_that_of_brute_force() {
    let mut labelled = labelled();
    labelled.documents.push(document("v", 0, 95));
    let at = [0.3, 0.8, 0.9];
    assert_eq!(agreement(&labelled, &config(&at)), None);
    let sets: Vec<ShingleSet> = labelled
        .documents
        .iter()
        .map(|document| Shingler::new(W).set(&document.content.tokens.fingerprints))
        .collect();
    // The list has one correct pair, one wrong pair, and lacks a third.
    labelled.pairs[0].jaccard = Some(89.0 / 99.0);
    labelled.pairs[1].jaccard = Some(0.85);
    let found = agreement(&labelled, &config(&at)).unwrap();
    assert_eq!((found.n_listed, found.max_difference), (2, 0.85));
    assert_eq!(found.n_differ, [1, 1, 1]);
    assert_eq!(
        found.worst,
        Some(("x".to_owned(), "z".to_owned(), 0.85, 0.0))
    );
    for row in found.at {
        let n_ours = similar_pairs(&sets, row.threshold).len() as u64;
        let n_listed =
            u64::from(row.threshold.get() <= 0.85) + u64::from(row.threshold.get() < 0.899);
        assert_eq!((row.n_ours, row.n_listed), (n_ours, n_listed), "{row:?}");
        assert_eq!(
            row.n_both,
            u64::from(row.threshold.get() < 0.899),
            "{row:?}"
        );
    }
}

/// A text that another contains is as similar to it as their sizes allow, and is not skipped.
#[test]
fn agreement_sees_contained_texts() {
    let mut labelled = labelled();
    labelled.pairs[0].jaccard = Some(89.0 / 99.0);
    let found = agreement(&labelled, &config(&[89.0 / 99.0])).unwrap();
    assert_eq!((found.at[0].n_ours, found.at[0].n_both), (1, 1));
}

/// The directory of labelled pairs next to the repository; none if it does not exist.
fn shared(labelled: &str, documents: Option<&str>) -> Option<LabelledPairs> {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    if !data.join(labelled).exists() {
        println!("skipped: no {labelled} beside the repository");
        return None;
    }
    let config = labelled::LabelledConfig {
        labelled: data.join(labelled),
        documents: documents.map(|name| data.join(name)),
        fields: Fields::default(),
        labels: Labels::default(),
        pairing: Pairing::Listed,
        mode: arose_corpus::html::Mode::Henzinger,
    };
    Some(labelled::read(&config).unwrap())
}

/// The numbers in `docs/evaluation.md` for pages labelled by people.
#[test]
fn judged_pages_as_documented() {
    let Some(labelled) = shared("neardup-gov-pairs/pairs.jsonl.zst", None) else {
        return;
    };
    let mut config = config(&[0.5, 0.8]);
    config.w = 5.try_into().unwrap();
    let study = study(&labelled, &config);
    let f1 = |row: usize| (1e4 * study.policies[row].score.f1().unwrap()).round() / 1e4;
    assert_eq!([f1(0), f1(1)], [0.8933, 0.6789]);
    let jaccard = &study.measures[0];
    let best = jaccard.best.unwrap();
    assert!((jaccard.auc.unwrap() - 0.942).abs() < 1e-3);
    assert!(
        best.score.f1().unwrap() > 0.90 && (0.45..0.5).contains(&best.threshold),
        "{best:?}"
    );
}

/// Listed and computed similarities of licences agree, except for texts in Chinese, which are
/// tokenized differently.
#[test]
fn licences_as_listed() {
    let listed = "neardup-licenses/exact_pairs_w5.jsonl.zst";
    let Some(labelled) = shared(listed, Some("neardup-licenses/licenses.jsonl.zst")) else {
        return;
    };
    let mut config = config(&[0.5, 0.8, 0.9, 0.99]);
    config.w = 5.try_into().unwrap();
    let agreement = agreement(&labelled, &config).unwrap();
    assert_eq!((agreement.n_listed, agreement.n_differ), (8879, [1, 1, 1]));
    let rows: Vec<_> = agreement
        .at
        .iter()
        .map(|row| (row.n_listed, row.n_ours, row.n_both))
        .collect();
    let same = |n| (n, n, n);
    assert_eq!(rows, [same(1287), same(405), same(180), same(117)]);
}

/// Henzinger's comparison, computed by hand. x and its copy are B-similar and C-similar and have no
/// difference. y differs from x in the numbers at its beginning. z is unrelated.
#[test]
fn the_comparison_of_b_and_c() {
    let text = |begin: u32| -> String {
        let words = (0..400).map(|word| format!("word{word}a "));
        format!("{begin} {}", words.collect::<String>())
    };
    let document = |id: &str, text: &str| LabelledDocument {
        id: id.to_owned(),
        url: None,
        content: KindedTokens::of(&Tokenizer::default(), text),
        digest: Digest::of_text(text),
    };
    let labelled = LabelledPairs {
        documents: vec![
            document("x", &text(1)),
            document("copy", &text(1)),
            document("y", &text(2)),
            document("z", &(0..400).map(|n| format!("z{n} ")).collect::<String>()),
        ],
        pairs: vec![
            pair(0, 1, Correct),
            pair(0, 2, Undecided),
            pair(0, 3, Incorrect),
        ],
    };
    let study = study(&labelled, &config(&[]));
    let correlation = &study.correlation;
    assert_eq!(correlation.n_pairs(0), 1, "the stranger");
    // All super-shingles of the pair with another number match, and most bits.
    let c_sim = compare(&labelled, W)[1].comparison.c_sim.unwrap();
    assert!((360..384).contains(&c_sim), "{c_sim}");
    assert_eq!(correlation.n_pairs(6), 2);
    assert_eq!(
        correlation.mean_c_sim(6),
        Some(f64::from(384 + c_sim) / 2.0)
    );
    assert_eq!(correlation.n_b_similar(), 2);
    assert!(correlation.coefficient().unwrap() > 0.9, "{correlation:?}");
    let count = |difference: Difference| study.by_difference[difference as usize].total();
    assert_eq!(Difference::ALL.map(count), [1, 0, 0, 1, 0]);
    let numbers = study.by_difference[Difference::Numbers as usize];
    assert_eq!(numbers.undecided, 1);
    let mut measures = study.measures.iter();
    let measure = measures.find(|measure| measure.name == "c_shingles");
    assert_eq!(measure.unwrap().auc, Some(1.0));
}

/// C on shingles counts each changed token as often as shingles are long. One of 400 tokens changes
/// 2 of 399 shingles of 2, so fewer bits match than on tokens, and the order counts.
#[test]
fn c_on_shingles_feels_the_order() {
    let mut labelled = labelled();
    labelled.documents = vec![document("x", 0, 400), document("y", 0, 400)];
    labelled.documents[1].content.tokens.fingerprints.reverse();
    labelled.pairs = vec![pair(0, 1, Correct)];
    let compared = compare(&labelled, W);
    assert_eq!(compared[0].comparison.c_sim, Some(384));
    // Two sets of shingles without a common one agree in half of the bits, within four standard
    // deviations of 9.8.
    let c_shingles = compared[0].c_shingles.unwrap();
    assert!((153..231).contains(&c_shingles), "{c_shingles}");
}
