use super::*;
use crate::evaluate::run::host;
use arose::digest::Digest;
use arose::exact::pairs_where;
use arose::token::Tokenizer;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

fn mixed(n_documents: u32) -> Plan {
    Plan::new(PlantConfig {
        n_documents,
        n_sites: 20,
        seed: 7,
        median_words: 60,
        w: 5.try_into().unwrap(),
        recipe: Recipe::Mixed,
    })
    .unwrap()
}

fn acceptance(n_sites: u32) -> Plan {
    Plan::new(PlantConfig {
        n_documents: 50 * n_sites,
        n_sites,
        seed: 2006,
        median_words: 1,
        w: 8.try_into().unwrap(),
        recipe: Recipe::Acceptance,
    })
    .unwrap()
}

fn pages(plan: &Plan) -> Vec<Page> {
    (0..plan.config().n_documents)
        .map(|position| plan.page(position))
        .collect()
}

fn truth(plan: &Plan) -> Vec<TruePair> {
    (0..plan.n_families())
        .flat_map(|index| plan.truth(index))
        .collect()
}

fn sites(pages: &[Page], pair: &TruePair) -> [String; 2] {
    [pair.a, pair.b].map(|page| host(&pages[page as usize].url).unwrap().to_owned())
}

/// The ground truth equals the result of brute force on the texts. Pairs that it does not list
/// share almost nothing.
#[track_caller]
fn check_against_brute_force(plan: &Plan) {
    let shingler = Shingler::new(plan.config().w);
    let sets: Vec<ShingleSet> = pages(plan)
        .iter()
        .map(|page| shingler.set(&Tokenizer::default().tokens(&page.text).fingerprints))
        .collect();
    let listed = truth(plan);
    let mut by_pages: BTreeMap<(u64, u64), f64> = listed
        .iter()
        .map(|pair| ((u64::from(pair.a), u64::from(pair.b)), pair.jaccard))
        .collect();
    assert_eq!(by_pages.len(), listed.len(), "no pair twice");
    for pair in pairs_where(sets.len(), |i, j| jaccard(&sets[i], &sets[j])) {
        let expected = by_pages.remove(&(pair.a.0, pair.b.0));
        assert_eq!(pair.similarity, expected.unwrap_or(pair.similarity));
        assert!(expected.is_some() || pair.similarity < 0.02, "{pair:?}");
    }
    assert_eq!(by_pages, BTreeMap::new());
}

#[test]
fn mixed_truth_is_that_of_brute_force() {
    check_against_brute_force(&mixed(700));
}

#[test]
fn acceptance_truth_is_that_of_brute_force() {
    check_against_brute_force(&acceptance(4));
}

/// The guarantees of each kind.
#[test]
fn kinds_are_what_they_say() {
    let plan = mixed(3000);
    let pages = pages(&plan);
    let mut seen = BTreeSet::new();
    for pair in truth(&plan) {
        seen.insert(pair.kind);
        let [a, b] = sites(&pages, &pair);
        let [text_a, text_b] = [pair.a, pair.b].map(|page| pages[page as usize].text.as_str());
        match pair.kind {
            FamilyKind::Exact => assert_eq!(pair.jaccard, 1.0),
            FamilyKind::Template | FamilyKind::Stamp => assert!(a == b && pair.jaccard < 1.0),
            FamilyKind::Session => {
                assert!(a == b && pair.jaccard < 1.0);
                let [a, b] = [pair.a, pair.b].map(|page| pages[page as usize].url.as_str());
                assert!(a.contains("/S-") && b.contains("/S-") && a != b);
            }
            FamilyKind::Mirror => assert!(pair.jaccard < 1.0),
            FamilyKind::Truncation => {
                assert!(text_a.starts_with(text_b) || text_b.starts_with(text_a));
            }
            FamilyKind::Extension | FamilyKind::Block | FamilyKind::Scatter => {
                assert!(pair.jaccard > 0.0)
            }
            FamilyKind::Unique | FamilyKind::Table => panic!("no pairs of these here"),
        }
    }
    assert_eq!(seen.len(), 9, "{seen:?}");
    let urls: BTreeSet<&str> = pages.iter().map(|page| page.url.as_str()).collect();
    assert_eq!(urls.len(), pages.len());
    let cross = truth(&plan)
        .into_iter()
        .filter(|pair| pair.kind == FamilyKind::Mirror);
    let n_cross = cross
        .clone()
        .filter(|pair| sites(&pages, pair)[0] != sites(&pages, pair)[1]);
    assert!(n_cross.count() as f64 > 0.9 * cross.count() as f64);
}

/// `P(size > n) = n^(-4/3)` for families with more than one page, within four standard errors.
/// Three of ten families are such.
#[test]
fn sizes_follow_pareto() {
    let plan = mixed(60_000);
    let sizes = (0..plan.n_families() - 1).map(|index| plan.family(index));
    let sizes: Vec<u32> = sizes
        .filter(|&(kind, _)| kind != FamilyKind::Unique)
        .map(|(_, size)| size)
        .collect();
    let check = |name: &str, n: usize, of: usize, expected: f64| {
        let error = (expected * (1.0 - expected) / of as f64).sqrt();
        let share = n as f64 / of as f64;
        assert!(
            (share - expected).abs() <= 4.0 * error,
            "{name}: {share}, expected {expected}"
        );
    };
    check("families", sizes.len(), plan.n_families() as usize, 0.3);
    for n in [2, 5, 10, 30] {
        let n_larger = sizes.iter().filter(|&&size| size > n).count();
        let expected = f64::from(n).powf(-4.0 / 3.0);
        check(&n.to_string(), n_larger, sizes.len(), expected);
    }
    assert_eq!(
        (sizes.iter().min(), sizes.iter().max()),
        (Some(&2), Some(&50))
    );
}

/// The composition of the acceptance corpus, and the similarities by its formulas: an item of `d`
/// tokens in the middle of 493 shingles affects `d + 7` of them.
#[test]
fn acceptance_is_composed_as_specified() {
    let plan = acceptance(8);
    let pages = pages(&plan);
    let pairs = truth(&plan);
    let mut n_pairs = BTreeMap::new();
    for pair in &pairs {
        *n_pairs.entry(pair.kind).or_insert(0) += 1;
        let [a, b] = sites(&pages, pair);
        assert_eq!(a == b, pair.kind != FamilyKind::Mirror, "{pair:?}");
    }
    let expected = [
        (FamilyKind::Mirror, 8 * 5),
        (FamilyKind::Stamp, 8 * 5),
        (FamilyKind::Template, 8 * 190),
        (FamilyKind::Table, 8 * 10),
    ];
    assert_eq!(n_pairs, expected.into());
    let after = |n: f64, d: f64| (n - 7.0 - (d + 7.0)) / (n - 7.0 + (d + 7.0));
    let values = |kind: FamilyKind| -> BTreeSet<u64> {
        let own = pairs.iter().filter(|pair| pair.kind == kind);
        own.map(|pair| pair.jaccard.to_bits()).collect()
    };
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect();
    let templates = [100.0, 50.0, 25.0].map(|d| after(500.0, d));
    assert_eq!(values(FamilyKind::Template), bits(&templates));
    assert_eq!(values(FamilyKind::Stamp), bits(&[after(500.0, 3.0)]));
    let mirrors = [3.0, 4.0, 8.0].map(|d| after(2000.0, d));
    assert_eq!(values(FamilyKind::Mirror), bits(&mirrors));
    // Five shingles of the table in both, and the 100 that overlap each item separately.
    assert_eq!(
        values(FamilyKind::Table),
        bits(&[5.0 / (5.0 + 2.0 * 100.0)])
    );
}

/// Files generated by one version can be generated again by the next.
#[test]
fn the_corpus_never_changes() {
    let mixed = mixed(100).page(42);
    let acceptance = acceptance(2).page(42);
    let digest = |page: &Page| {
        let whole = format!("{} {} {}", page.id, page.url, page.text);
        let tokens = Tokenizer::default().tokens(&whole).fingerprints.into_iter();
        let bytes: Vec<u8> = tokens.flat_map(u64::to_le_bytes).collect();
        Digest::of_bytes(&bytes).to_string()
    };
    assert_eq!(
        [digest(&mixed), digest(&acceptance)],
        [
            "60eda0c4fa038eb3d7211283d43d408d",
            "36056215b53648975f8537057b6c4415"
        ]
    );
}

#[test]
fn files_are_complete_and_repeatable() {
    let plan = mixed(300);
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let written = folders
        .each_ref()
        .map(|folder| write(&plan, folder.path()).unwrap());
    assert_eq!(written[0], written[1]);
    let read =
        |folder: &tempfile::TempDir, name| fs::read_to_string(folder.path().join(name)).unwrap();
    for name in ["documents.jsonl", "truth.jsonl", "plant.json"] {
        assert_eq!(read(&folders[0], name), read(&folders[1], name));
    }
    let counted = [
        read(&folders[0], "documents.jsonl").lines().count() as u64,
        read(&folders[0], "truth.jsonl").lines().count() as u64,
        written[0].documents_by_kind.values().sum(),
        written[0].pairs_by_kind.values().sum(),
    ];
    assert_eq!(counted, [300, written[0].n_pairs, 300, written[0].n_pairs]);
    assert_eq!(fs::read_dir(folders[0].path()).unwrap().count(), 3);
    let error = write(&plan, folders[0].path()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("documents.jsonl: the file exists; choose another directory or remove it"),
        "{error}"
    );
}

#[test]
fn settings_that_make_no_corpus() {
    let good = *mixed(10).config();
    let bad = [
        PlantConfig {
            n_documents: 0,
            ..good
        },
        PlantConfig { n_sites: 0, ..good },
        PlantConfig {
            median_words: 0,
            ..good
        },
        PlantConfig {
            w: 101.try_into().unwrap(),
            ..good
        },
        PlantConfig {
            recipe: Recipe::Acceptance,
            ..good
        },
    ];
    assert!(bad.into_iter().all(|config| Plan::new(config).is_err()));
}

/// Any settings generate pages with words, and families that fill the corpus.
#[test]
fn odd_settings_make_pages() {
    for (n_documents, median_words, w) in [(1, 1, 1), (3, 1, 1), (200, 1, 5), (60, 3, 100)] {
        let w = std::num::NonZeroUsize::new(w).unwrap();
        let config = PlantConfig {
            n_documents,
            median_words,
            w,
            n_sites: 1,
            ..*mixed(1).config()
        };
        let plan = Plan::new(config).unwrap();
        let least = pages(&plan)
            .iter()
            .map(|page| page.text.split_whitespace().count())
            .min();
        assert!(least >= Some(2 * w.get()), "{config:?}: {least:?}");
        let n_pages: u32 = (0..plan.n_families())
            .map(|index| plan.family(index).1)
            .sum();
        assert_eq!(n_pages, n_documents);
        truth(&plan)
            .iter()
            .for_each(|pair| assert!(pair.a < pair.b && pair.b < n_documents));
    }
}
