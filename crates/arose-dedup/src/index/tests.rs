//! Tests of complete indexes: comparison with brute force, restarts, damage.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::Path;

use arose::DocId;
use arose::digest::Digest;
use arose::feature::b_sim;
use arose::mix::SplitMix;
use arose::rule::{Criterion, Evidence, Rule, ShortPolicy, SiteRelation, decide};
use arose::shingle::ShingleLength;
use arose::simhash::Fingerprint;
use arose::slot_index::SlotIndex;
use proptest::prelude::*;

use super::folder::LOCK;
use super::*;
use crate::config::Config;

fn options(recent_docs: u32) -> Options {
    let recent_docs = NonZeroU32::new(recent_docs).unwrap();
    // Some files are cached in memory and some are not.
    let cache_bytes = 5_000;
    Options {
        recent_docs,
        cache_bytes,
        ..Options::default()
    }
}

fn full(n_samples: u16, min_agreeing: u16) -> Kind {
    Kind::Full {
        n_samples: NonZeroU16::new(n_samples).unwrap(),
        min_agreeing: NonZeroU16::new(min_agreeing).unwrap(),
    }
}

fn kinds() -> Vec<Kind> {
    let compact = [
        (Criterion::PUBLISHED_B, FeatureKeys::Tables),
        (Criterion::PUBLISHED_B, FeatureKeys::Mega),
        (Criterion::B { min_features: 4 }, FeatureKeys::Tables),
        (Criterion::PUBLISHED_C, FeatureKeys::Tables),
        (Criterion::C { min_bits: 365 }, FeatureKeys::Tables),
        (Criterion::PUBLISHED_COMBINED, FeatureKeys::Mega),
        (Criterion::SITE, FeatureKeys::Tables),
        (Criterion::SITE_UNION, FeatureKeys::Mega),
    ];
    let compact = compact.map(|(criterion, keys)| Kind::Compact { criterion, keys });
    let others = [Kind::Exact, full(12, 8), full(12, 12), full(12, 1)];
    compact.into_iter().chain(others).collect()
}

fn settings(kind: Kind) -> Settings {
    Settings {
        kind,
        ..Settings::default()
    }
}

/// Super-shingles and simhashes, for which queries give the same results as comparing every
/// document.
fn site_settings() -> Settings {
    let config = Config::default();
    Settings {
        shingle: ShingleLength::uniform(Criterion::SITE.default_w()),
        ..settings(Kind::of(Criterion::SITE, config.recall))
    }
}

/// A sketch from one of a few families. Members of a family often share digest, super-shingles and
/// most bits.
fn sketch(settings: &Settings, seed: u64) -> Sketch {
    let mut random = SplitMix::new(seed);
    let family = random.below(3);
    let mut parent = SplitMix::new(family);
    let n_words = settings.n_words();
    let mut words: Vec<u64> = (0..n_words).map(|_| parent.next_u64()).collect();
    let n_features = if n_words == 12 { 6 } else { n_words };
    for word in &mut words[..n_features] {
        *word = match random.below(3) {
            0 => random.next_u64(),
            _ => *word,
        };
    }
    for _ in 0..random.below(40) {
        let bit = random.below(384) as usize;
        if let Some(word) = words.get_mut(6 + bit / 64) {
            *word ^= u64::from(n_words == 12) << (bit % 64);
        }
    }
    if random.below(10) == 0 {
        words.clear();
    }
    Sketch {
        digest: Digest((u128::from(random.below(12)) << 64) | u128::from(family)),
        site: NonZeroU32::new(random.below(3) as u32).map(SiteTag),
        is_short: random.below(6) == 0,
        words,
        pairs: None,
    }
}

/// The result of the specification for two sketches, from the definitions of the algorithms alone.
fn rule_by_definition(settings: &Settings, a: &Sketch, b: &Sketch) -> Option<Rule> {
    let both = !a.words.is_empty() && !b.words.is_empty();
    let bits = |sketch: &Sketch| Fingerprint::<6>(sketch.words[6..12].try_into().unwrap());
    let is_compact = both && matches!(settings.kind, Kind::Compact { .. });
    let is_full = both && matches!(settings.kind, Kind::Full { .. });
    let evidence = Evidence {
        site: match (a.site, b.site) {
            (Some(x), Some(y)) if x == y => SiteRelation::Same,
            (Some(_), Some(_)) => SiteRelation::Different,
            _ => SiteRelation::Unknown,
        },
        b_sim: if is_compact {
            b_sim(&a.words[..6], &b.words[..6]) as u32
        } else {
            0
        },
        c_sim: if is_compact {
            bits(a).c_sim(&bits(b))
        } else {
            0
        },
        jaccard: is_full.then(|| b_sim(&a.words, &b.words) as f64 / a.words.len() as f64),
        level: None,
        same_content: a.digest == b.digest,
        either_short: a.is_short || b.is_short,
    };
    decide(&settings.policy(), &evidence)
}

type Model = BTreeMap<String, Sketch>;

fn brute_force(settings: &Settings, model: &Model, query: &Sketch) -> Vec<(String, Rule)> {
    let rules = model.iter().filter_map(|(name, stored)| {
        let rule = rule_by_definition(settings, query, stored)?;
        Some((name.clone(), rule))
    });
    rules.collect()
}

fn sorted(matches: Vec<Match>) -> Vec<(String, Rule)> {
    let mut found: Vec<(String, Rule)> = matches
        .into_iter()
        .map(|found| (found.name, found.rule))
        .collect();
    found.sort();
    found
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u8, u64),
    InsertAll(Vec<(u8, u64)>),
    QueryOrInsert(u8, u64),
    Replace(u8, u64),
    Remove(u8),
    Query(u64),
    Reopen,
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let (name, seed) = (0..24_u8, 0..200_u64);
    prop_oneof![
        8 => (name.clone(), seed.clone()).prop_map(|(name, seed)| Step::Insert(name, seed)),
        2 => prop::collection::vec((name.clone(), seed.clone()), 0..6).prop_map(Step::InsertAll),
        3 => (name.clone(), seed.clone()).prop_map(|(name, seed)| Step::QueryOrInsert(name, seed)),
        3 => (name.clone(), seed.clone()).prop_map(|(name, seed)| Step::Replace(name, seed)),
        4 => name.prop_map(Step::Remove),
        6 => seed.prop_map(Step::Query),
        1 => Just(Step::Reopen),
        1 => Just(Step::Compact),
    ]
}

/// Applies the same operations to index and model and compares the results.
fn apply(index: Index, folder: &Path, model: &mut Model, step: Step) -> Index {
    let settings = *index.settings();
    let sketch = |seed| sketch(&settings, seed);
    match step {
        Step::Insert(name, seed) => {
            let name = name.to_string();
            let inserted = index.insert(&name, &sketch(seed));
            assert_eq!(inserted.is_err(), model.contains_key(&name));
            model.entry(name).or_insert_with(|| sketch(seed));
        }
        Step::InsertAll(documents) => {
            let documents: Vec<(String, Sketch)> = documents
                .into_iter()
                .map(|(name, seed)| (name.to_string(), sketch(seed)))
                .collect();
            let borrowed: Vec<(&str, &Sketch)> = documents
                .iter()
                .map(|(name, sketch)| (name.as_str(), sketch))
                .collect();
            let names: BTreeSet<&str> = borrowed.iter().map(|document| document.0).collect();
            let is_new = names.len() == borrowed.len()
                && names.iter().all(|&name| !model.contains_key(name));
            assert_eq!(index.insert_all(&borrowed).is_ok(), is_new);
            if is_new {
                model.extend(documents);
            }
        }
        Step::QueryOrInsert(name, seed) => {
            let (name, sketch) = (name.to_string(), sketch(seed));
            let expected = brute_force(&settings, model, &sketch);
            match index.query_or_insert(&name, &sketch) {
                Ok(Seen::Known(found)) => assert_eq!(sorted(found), expected),
                Ok(Seen::New) => {
                    assert_eq!(expected, []);
                    assert!(model.insert(name, sketch).is_none());
                }
                Err(Error::Exists { .. }) => assert!(model.contains_key(&name)),
                Err(error) => panic!("{error}"),
            }
        }
        Step::Replace(name, seed) => {
            let (name, sketch) = (name.to_string(), sketch(seed));
            let was_there = index.replace(&name, &sketch).unwrap();
            assert_eq!(was_there, model.insert(name, sketch).is_some());
        }
        Step::Remove(name) => {
            let name = name.to_string();
            assert_eq!(index.remove(&name).unwrap(), model.remove(&name).is_some());
        }
        Step::Query(seed) => {
            let found = index.query(&sketch(seed)).unwrap();
            assert_eq!(found, index.scan(&sketch(seed)).unwrap());
            assert_eq!(sorted(found), brute_force(&settings, model, &sketch(seed)));
        }
        Step::Reopen => {
            drop(index);
            return Index::open_with(folder, options(1)).unwrap();
        }
        Step::Compact => {
            index.compact().unwrap();
            assert_eq!(index.status().unwrap().n_dead, 0);
        }
    }
    assert_eq!(index.status().unwrap().n_docs, model.len() as u64);
    index
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Every kind, with sorted runs of one document, so that merging is almost constant.
    #[test]
    fn answers_are_those_of_brute_force(steps in prop::collection::vec(step(), 1..80)) {
        for kind in kinds() {
            let folder = tempfile::tempdir().unwrap();
            drop(Index::create(folder.path(), settings(kind)).unwrap());
            let mut index = Index::open_with(folder.path(), options(1)).unwrap();
            let mut model = Model::new();
            for step in steps.clone() {
                index = apply(index, folder.path(), &mut model, step);
            }
            let n_docs = index.status().unwrap().n_docs;
            for (name, sketch) in &model {
                prop_assert_eq!(index.sketch(name).unwrap(), Some(sketch.clone()));
            }
            prop_assert_eq!(n_docs, model.len() as u64);
            index.wait_for_merging().unwrap();
            index.verify().unwrap();
        }
    }
}

/// 2,000 sketches of 200 MinHash values at all distances, compared with counting over all of them.
#[test]
fn full_sketches_find_what_counting_finds() {
    let mut random = SplitMix::new(160);
    let mut known: Vec<Vec<u64>> = Vec::new();
    for id in 0..2000_u64 {
        let mut words: Vec<u64> = (0..200).map(|_| random.below(1000)).collect();
        if id % 4 > 0 {
            let share = random.next_f64().sqrt();
            let parent = &known[random.below(id) as usize];
            for (word, &of_parent) in words.iter_mut().zip(parent) {
                if random.next_f64() < share {
                    *word = of_parent;
                }
            }
        }
        known.push(words);
    }
    let mut oracle = SlotIndex::new(200).unwrap();
    for (id, words) in known.iter().enumerate() {
        oracle.insert(DocId(id as u64), words).unwrap();
    }
    for m in [1, 40, 160, 200] {
        check_full(&known, &oracle, m, &mut random);
    }
}

fn check_full(known: &[Vec<u64>], oracle: &SlotIndex, m: u16, random: &mut SplitMix) {
    let folder = tempfile::tempdir().unwrap();
    drop(Index::create(folder.path(), settings(full(200, m))).unwrap());
    let index = Index::open_with(folder.path(), options(100)).unwrap();
    let sketch = |id: u64| Sketch {
        digest: Digest(id.into()),
        site: None,
        is_short: false,
        words: known[id as usize].clone(),
        pairs: None,
    };
    let documents: Vec<(String, Sketch)> =
        (0..2000).map(|id| (id.to_string(), sketch(id))).collect();
    for (name, sketch) in &documents {
        index.insert(name, sketch).unwrap();
    }
    for _ in 0..20 {
        let id = random.below(2000);
        let found: Vec<(u64, f64)> = index
            .query(&sketch(id))
            .unwrap()
            .into_iter()
            .map(|found| (found.name.parse().unwrap(), found.evidence.jaccard.unwrap()))
            .collect();
        let expected = oracle.scan(&known[id as usize], m.into()).unwrap();
        let expected: Vec<(u64, f64)> = expected
            .into_iter()
            .map(|found| (found.doc.0, found.n_agreeing as f64 / 200.0))
            .collect();
        assert_eq!(found, expected, "m = {m}");
    }
}

/// A small index with every kind of file: several sorted runs, records, removed rows, a log.
fn small_index(folder: &Path) -> Settings {
    let settings = site_settings();
    drop(Index::create(folder, settings).unwrap());
    let index = Index::open_with(folder, options(10)).unwrap();
    for seed in 0..38 {
        index
            .insert(&format!("doc {seed}"), &sketch(&settings, seed))
            .unwrap();
        if seed == 25 {
            assert!(index.remove("doc 7").unwrap());
        }
    }
    index.wait_for_merging().unwrap();
    settings
}

#[test]
fn a_flipped_bit_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    small_index(folder.path());
    verify(folder.path()).unwrap();
    let mut n_kinds = BTreeSet::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == LOCK {
            continue;
        }
        n_kinds.insert(name.split('-').next().unwrap().to_owned());
        let bytes = fs::read(&path).unwrap();
        for (i, place) in (0..bytes.len()).step_by(bytes.len() / 300 + 1).enumerate() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << (i % 8);
            fs::write(&path, &damaged).unwrap();
            let error = verify(folder.path()).expect_err(&format!("{name}, byte {place}"));
            assert!(
                error.to_string().contains(&name),
                "{name}, byte {place}: {error}"
            );
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(n_kinds.len(), 6, "{n_kinds:?}");
    verify(folder.path()).unwrap();
}

/// All files except the log have the length that they state. The file of committed lengths may be
/// missing.
#[test]
fn a_file_cut_short_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    small_index(folder.path());
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let bytes = fs::read(&path).unwrap();
        if name == LOCK || name == "committed" || name.starts_with("log") {
            continue;
        }
        for length in [0, 1, 15, 16, 40, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&path, &bytes[..length]).unwrap();
            let error = Index::open(folder.path()).expect_err(&name);
            assert!(
                error.to_string().contains(&name),
                "{name}, {length}: {error}"
            );
        }
        fs::write(&path, &bytes).unwrap();
    }
}

/// The log of a process that died may end anywhere. Complete frames count, and writing continues.
#[test]
fn a_log_cut_short_loses_only_its_last_frame() {
    let folder = tempfile::tempdir().unwrap();
    let settings = site_settings();
    let index = Index::create(folder.path(), settings).unwrap();
    let mut ends = Vec::new();
    for seed in 0..5 {
        index
            .insert(&seed.to_string(), &sketch(&settings, seed))
            .unwrap();
        ends.push(index.shared.write_log().unwrap().log.n_bytes as usize);
    }
    drop(index);
    let path = folder.path().join("log-000001");
    let bytes = fs::read(&path).unwrap();
    for length in 16..=bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let index = Index::open(folder.path()).unwrap();
        let n_whole = ends.iter().filter(|&&end| end <= length).count();
        assert_eq!(index.status().unwrap().n_docs, n_whole as u64);
        index.insert("after", &sketch(&settings, 9)).unwrap();
        drop(index);
        assert_eq!(
            Index::open(folder.path()).unwrap().status().unwrap().n_docs,
            n_whole as u64 + 1
        );
    }
}

/// A caller that stores the committed length of the log gets what a power failure left of the rest.
/// Damage before that length is still an error.
#[test]
fn a_torn_log_counts_up_to_the_first_torn_frame() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(full(6, 3));
    let index = Index::create(folder.path(), settings).unwrap();
    let insert = |index: &Index, n: u64| {
        let sketch = sketch(&settings, n * 1000);
        index.insert(&n.to_string(), &sketch).unwrap();
    };
    (0..4).for_each(|n| insert(&index, n));
    index.commit().unwrap();
    let committed = index.committed().unwrap();
    (4..8).for_each(|n| insert(&index, n));
    assert_eq!(index.next_row().unwrap(), 8);
    drop(index);
    let path = Content::Log.path(folder.path(), committed.log);
    let whole = fs::read(&path).unwrap();
    let frame = (whole.len() - committed.n_bytes as usize) / 4;
    let mut torn = whole.clone();
    torn[committed.n_bytes as usize + frame..][..frame].fill(0);
    fs::write(&path, &torn).unwrap();
    assert!(matches!(
        Index::open(folder.path()),
        Err(Error::Damaged { .. })
    ));
    let lenient = Options {
        committed: Some(committed),
        ..Options::default()
    };
    let index = Index::open_with(folder.path(), lenient).unwrap();
    assert_eq!(index.names_from(3).unwrap(), ["3", "4"]);
    drop(index);
    torn = whole;
    torn[committed.n_bytes as usize - 1] ^= 1;
    fs::write(&path, &torn).unwrap();
    let opened = Index::open_with(folder.path(), lenient);
    assert!(matches!(opened, Err(Error::Damaged { .. })));
}

/// The same without such a caller: frames that the process committed are certain, and later frames
/// count up to the first one that is partial.
#[test]
fn issue_20_a_torn_uncommitted_frame_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::create(folder.path(), site_settings()).unwrap();
    let insert = |index: &Index, n: u64| {
        let sketch = sketch(&site_settings(), n * 1000);
        index.insert(&n.to_string(), &sketch).unwrap();
    };
    (0..4).for_each(|n| insert(&index, n));
    index.commit().unwrap();
    let n_certain = index.committed().unwrap().n_bytes as usize;
    let note = fs::read(folder.path().join("committed")).unwrap();
    (4..8).for_each(|n| insert(&index, n));
    drop(index);
    let path = folder.path().join("log-000001");
    let whole = fs::read(&path).unwrap();
    // After a normal close, all of it is certain.
    let tear = |at: usize| {
        let mut torn = whole.clone();
        torn[at] ^= 1;
        fs::write(&path, torn).unwrap();
    };
    tear(whole.len() - 1);
    assert!(matches!(
        Index::open(folder.path()),
        Err(Error::Damaged { .. })
    ));
    assert!(matches!(
        Reader::open(folder.path()),
        Err(Error::Damaged { .. })
    ));
    // As after a power failure: the note of the last commit is on disk, a later frame is not.
    fs::write(folder.path().join("committed"), &note).unwrap();
    tear(n_certain + 20);
    assert_eq!(Reader::open(folder.path()).unwrap().status().n_docs, 4);
    let index = Index::open(folder.path()).unwrap();
    assert_eq!(index.names_from(0).unwrap(), ["0", "1", "2", "3"]);
    insert(&index, 9);
    drop(index);
    verify(folder.path()).unwrap();
    fs::write(folder.path().join("committed"), &note).unwrap();
    tear(n_certain - 1);
    assert!(matches!(
        Index::open(folder.path()),
        Err(Error::Damaged { .. })
    ));
}

/// If a directory cannot be synced, all files that the manifest lists still exist.
#[test]
fn issue_20_a_failed_sync_removes_nothing_that_counts() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::create(folder.path(), site_settings()).unwrap();
    let sketches: Vec<Sketch> = (0..3).map(|n| sketch(&site_settings(), n * 1000)).collect();
    index.insert("0", &sketches[0]).unwrap();
    let shared = &index.shared;
    let mut writer = shared.write_log().unwrap();
    shared.flush(&mut writer).unwrap();
    // The manifest is in place, and then syncing fails.
    let manifest = Manifest::read(folder.path()).unwrap();
    let nowhere = folder.path().join("nowhere");
    assert!(sync_or_refuse(&nowhere, &mut writer).is_err());
    drop(writer);
    assert!(
        index.insert("1", &sketches[1]).is_err(),
        "it is not acknowledged"
    );
    for part in &manifest.runs {
        assert!(Content::Run.path(folder.path(), part.number).exists());
    }
    for part in &manifest.records {
        assert!(Content::Records.path(folder.path(), part.number).exists());
    }
    assert!(Content::Log.path(folder.path(), manifest.log).exists());
    drop(index);
    let index = Index::open(folder.path()).unwrap();
    assert_eq!(index.names_from(0).unwrap(), ["0"]);
    index.insert("1", &sketches[1]).unwrap();
}

#[test]
fn newer_and_foreign_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    small_index(folder.path());
    let path = folder.path().join("manifest");
    let bytes = fs::read(&path).unwrap();
    let of_version = |version: u8| {
        let mut other = bytes.clone();
        other[10] = version;
        let check = arose::digest::digest64(&other[..12]) as u32;
        other[12..16].copy_from_slice(&check.to_le_bytes());
        fs::write(&path, &other).unwrap();
        Index::open(folder.path()).unwrap_err()
    };
    let error = of_version(1);
    assert!(matches!(&error, Error::Older { version: 1, .. }), "{error}");
    let error = of_version(3);
    assert!(matches!(&error, Error::Newer { version: 3, .. }), "{error}");
    assert!(error.to_string().contains("manifest"), "{error}");
    fs::write(&path, "{\"version\": 1}, and more than a few bytes").unwrap();
    let error = Index::open(folder.path()).unwrap_err();
    assert!(matches!(&error, Error::Foreign { .. }), "{error}");
    fs::write(&path, &bytes).unwrap();

    let other = tempfile::tempdir().unwrap();
    assert!(matches!(
        Index::open(other.path()),
        Err(Error::NoIndex { .. })
    ));
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
    assert!(matches!(
        Reader::open(&other.path().join("x")),
        Err(Error::NoIndex { .. })
    ));
    fs::write(other.path().join("notes.txt"), "mine").unwrap();
    let error = Index::create(other.path(), site_settings()).unwrap_err();
    assert!(matches!(error, Error::NotEmpty { .. }), "{error}");
}

/// A run of another index, intact in itself, does not replace a missing one.
#[test]
fn files_of_another_index_are_refused() {
    let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    small_index(one.path());
    drop(Index::create(two.path(), site_settings()).unwrap());
    let index = Index::open_with(two.path(), options(10)).unwrap();
    for seed in 50..88 {
        index
            .insert(&seed.to_string(), &sketch(&site_settings(), seed))
            .unwrap();
    }
    index.wait_for_merging().unwrap();
    drop(index);
    fs::copy(
        two.path().join("records-000002"),
        one.path().join("records-000002"),
    )
    .unwrap();
    let error = Index::open(one.path()).unwrap_err();
    assert!(error.to_string().contains("records-000002"), "{error}");
}

#[test]
fn one_writer_many_readers() {
    let folder = tempfile::tempdir().unwrap();
    let settings = small_index(folder.path());
    let index = Index::open(folder.path()).unwrap();
    assert!(matches!(
        Index::open(folder.path()),
        Err(Error::Locked { .. })
    ));
    let reader = Reader::open(folder.path()).unwrap();
    let query = sketch(&settings, 3);
    assert_eq!(reader.query(&query).unwrap(), index.query(&query).unwrap());
    // Later changes, even of the files, do not change what a reader sees.
    let before = reader.query(&query).unwrap();
    index.compact().unwrap();
    assert!(index.remove("doc 3").unwrap());
    assert_eq!(reader.query(&query).unwrap(), before);
    let after = Reader::open(folder.path()).unwrap().query(&query).unwrap();
    assert_eq!(after.len(), before.len() - 1);
}

/// Readers query while a writer replaces one document repeatedly: it is always found, and only
/// once.
#[test]
fn replacing_is_one_instant_to_readers() {
    let folder = tempfile::tempdir().unwrap();
    let settings = site_settings();
    drop(Index::create(folder.path(), settings).unwrap());
    let index = Index::open_with(folder.path(), options(50)).unwrap();
    let page = sketch(&settings, 2);
    index.insert("page", &page).unwrap();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let found = index.query(&page).unwrap();
                        let n = found.iter().filter(|found| found.name == "page").count();
                        assert_eq!(n, 1);
                    }
                })
            })
            .collect();
        while readers.iter().any(|reader| !reader.is_finished()) {
            assert!(index.replace("page", &page).unwrap());
        }
    });
    index.wait_for_merging().unwrap();
    index.verify().unwrap();
}

/// Of exact duplicates that arrive at the same time, exactly one is new.
#[test]
fn one_of_many_equals_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::create(folder.path(), site_settings()).unwrap();
    let page = sketch(index.settings(), 2);
    let n_new: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (index, page) = (&index, &page);
                scope.spawn(move || {
                    (0..50)
                        .filter(|i| {
                            let name = format!("{thread} {i}");
                            index.query_or_insert(&name, page).unwrap() == Seen::New
                        })
                        .count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(n_new, 1);
}

#[test]
fn refusals_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::create(folder.path(), site_settings()).unwrap();
    let page = sketch(index.settings(), 2);
    index.insert("page", &page).unwrap();
    let narrow = Sketch {
        words: vec![1, 2, 3],
        pairs: None,
        ..page.clone()
    };
    assert!(index.insert("narrow", &narrow).is_err());
    assert!(index.query(&narrow).is_err());
    assert!(index.replace("page", &narrow).is_err());
    assert!(index.insert(&"n".repeat(MAX_NAME + 1), &page).is_err());
    assert!(matches!(
        index.insert("page", &page),
        Err(Error::Exists { .. })
    ));
    assert!(!index.remove("nobody").unwrap());
    assert_eq!(index.status().unwrap().n_docs, 1);
    index.insert(&"n".repeat(MAX_NAME), &page).unwrap();
    index.insert("", &page).unwrap();
    index.compact().unwrap();
    assert_eq!(index.query(&page).unwrap().len(), 3);
    index.commit().unwrap();
}

/// Short documents are found only as exact duplicates, unless the settings say otherwise.
#[test]
fn short_documents() {
    for (short, n_found) in [(ShortPolicy::ExactOnly, 1), (ShortPolicy::LikeAny, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let kind = Kind::Compact {
            criterion: Criterion::PUBLISHED_B,
            keys: FeatureKeys::Tables,
        };
        let index = Index::create(
            folder.path(),
            Settings {
                short,
                ..settings(kind)
            },
        )
        .unwrap();
        let mut page = sketch(index.settings(), 2);
        page.is_short = true;
        page.words = (0..12).collect();
        index.insert("equal", &page).unwrap();
        page.digest = Digest(99);
        index.insert("alike", &page).unwrap();
        assert_eq!(index.query(&page).unwrap().len(), n_found);
    }
}

/// Copies the files of a format.
fn fixture(name: &str) -> tempfile::TempDir {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixtures.join(name)).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

/// Its digests are those of tokens and are no longer valid.
#[test]
fn format_1_is_refused() {
    let error = Index::open(fixture("index-1").path()).unwrap_err();
    assert!(matches!(&error, Error::Older { version: 1, .. }), "{error}");
    assert!(
        error.to_string().contains("create the index again"),
        "{error}"
    );
}

#[test]
fn format_2_is_read() {
    let folder = fixture("index-2");
    let index = Index::open(folder.path()).unwrap();
    let verified = index.verify().unwrap();
    assert_eq!(
        (verified.n_files, verified.n_records, verified.n_entries),
        (5, 5, 60)
    );
    let sketcher = Sketcher::new(index.settings());
    let found = index
        .query(&sketcher.sketch(&fixture_text(1), Some("example.org")))
        .unwrap();
    let found: Vec<(&str, Rule)> = found
        .iter()
        .map(|found| (found.name.as_str(), found.rule))
        .collect();
    assert_eq!(found, [("one", Rule::Exact), ("copy", Rule::Exact)]);
    assert_eq!(index.sketch("gone").unwrap(), None);
    assert!(index.sketch("short").unwrap().unwrap().is_short);
}

fn fixture_text(number: u64) -> String {
    let mut random = SplitMix::new(number);
    let words: Vec<String> = (0..60).map(|_| random.below(1000).to_string()).collect();
    words.join(" ")
}

/// How the fixture was created. Its files are not regenerated.
#[test]
fn format_2_is_written_as_ever() {
    let fixture = fixture("index-2");
    let folder = tempfile::tempdir().unwrap();
    write_fixture(folder.path());
    for name in [
        "manifest",
        "log-000005",
        "dead-000004",
        "records-000002",
        "run-000003",
    ] {
        let written = fs::read(folder.path().join(name)).unwrap();
        assert_eq!(
            written,
            fs::read(fixture.path().join(name)).unwrap(),
            "{name}"
        );
    }
}

fn write_fixture(folder: &Path) {
    drop(Index::create(folder, site_settings()).unwrap());
    let index = Index::open_with(folder, options(3)).unwrap();
    let sketcher = Sketcher::new(index.settings());
    let sketch = |number| sketcher.sketch(&fixture_text(number), Some("www.example.org"));
    index.insert("one", &sketch(1)).unwrap();
    index.insert("two", &sketch(2)).unwrap();
    index.insert("gone", &sketch(3)).unwrap();
    assert!(index.remove("gone").unwrap());
    index.insert("copy", &sketch(1)).unwrap();
    index
        .insert("short", &sketcher.sketch("a rose", None))
        .unwrap();
}
