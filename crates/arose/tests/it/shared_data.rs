//! Published collections with known similarities or human judgements.
//!
//! They lie beside the repository; where they do not, each test says that it is skipped.
//!
//! Their lists were made with the tokens of the pattern `[^\W_]+` on lower-cased text
//! ([`pattern_tokens`]). Ours differ from those in the forms that `differences_of_the_tokenisers`
//! lists, so exact values are checked with theirs and the effect of ours is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;

use arose::candidates::common_values;
use arose::cluster::Components;
use arose::exact::similar_to;
use arose::shingle::{ShingleSet, Shingler, containment, jaccard};
use arose::sketch::{BottomS, NarrowMinHash, OnePermutation, Sketcher};
use arose::token::{Tokenizer, fingerprint};
use arose::{DocId, Threshold};
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use serde_json::Value;

use crate::statistics::{check_within, mean_and_error};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

/// The rows of a compressed file of JSON Lines; none where there is no such file.
fn rows(name: &str) -> Option<Vec<Value>> {
    let path = Path::new(DATA).join(name);
    if !path.exists() {
        println!("skipped: no {name} beside the repository");
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "the test owns its input")]
    let file = std::fs::File::open(path).unwrap();
    let bytes = zstd::decode_all(file).unwrap();
    let lines = bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    Some(
        lines
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect(),
    )
}

fn text<'row>(row: &'row Value, key: &str) -> &'row str {
    row[key].as_str().unwrap()
}

fn shingler(w: usize) -> Shingler {
    Shingler::new(w.try_into().unwrap())
}

/// The words of `[^\W_]+` after lower-casing: letters and numbers of any kind, no marks.
fn pattern_words(text: &str) -> Vec<String> {
    let letters_and_numbers = GeneralCategoryGroup::Letter.union(GeneralCategoryGroup::Number);
    let categories = CodePointMapData::<GeneralCategory>::new();
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !letters_and_numbers.contains(categories.get(c)));
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn pattern_tokens(text: &str) -> Vec<u64> {
    let words = pattern_words(text);
    words
        .iter()
        .map(|word| fingerprint(word.as_bytes()))
        .collect()
}

fn our_tokens(text: &str) -> Vec<u64> {
    Tokenizer::default().tokens(text).fingerprints
}

/// A pair by the positions of its texts, the smaller first.
type Places = (usize, usize);

/// The listed pairs with their values.
fn listed(name: &str, ids: &BTreeMap<String, usize>) -> BTreeMap<Places, Value> {
    let places = |row: &Value| {
        let [a, b] = ["a", "b"].map(|key| ids[text(row, key)]);
        (a.min(b), a.max(b))
    };
    let rows = rows(name).expect("the list lies beside the texts");
    rows.into_iter().map(|row| (places(&row), row)).collect()
}

/// The exact similarity of all pairs that reach `threshold`, by counting common shingles.
///
/// A table of who has which shingle is read once per text, so no pair is stored but those wanted:
/// brute force over 1,565 texts would compare 1.2 million pairs of sets.
fn similar(sets: &[ShingleSet], threshold: f64) -> BTreeMap<Places, f64> {
    let common = n_common_of_pairs(sets).into_iter();
    let similarities = common.map(|((a, b), n)| {
        let n_union = sets[a].len() + sets[b].len() - n;
        ((a, b), n as f64 / n_union as f64)
    });
    similarities.filter(|(_, s)| *s >= threshold).collect()
}

/// The number of common shingles of every pair that has some.
fn n_common_of_pairs(sets: &[ShingleSet]) -> Vec<(Places, usize)> {
    let mut table: Vec<(u64, usize)> = Vec::new();
    for (place, set) in sets.iter().enumerate() {
        table.extend(set.as_slice().iter().map(|&shingle| (shingle, place)));
    }
    table.sort_unstable();
    let mut holders = vec![Vec::new(); sets.len()];
    for run in table
        .chunk_by(|x, y| x.0 == y.0)
        .filter(|run| run.len() > 1)
    {
        for (i, &(_, place)) in run.iter().enumerate() {
            holders[place].push(&run[i + 1..]);
        }
    }
    let mut found = Vec::new();
    for (place, runs) in holders.iter().enumerate() {
        let mut n_common = vec![0; sets.len()];
        runs.iter()
            .flat_map(|run| run.iter())
            .for_each(|&(_, other)| n_common[other] += 1);
        let pairs = n_common.iter().enumerate().filter(|(_, n)| **n > 0);
        found.extend(pairs.map(|(other, &n)| ((place, other), n)));
    }
    found
}

/// The counted pairs of every `step`-th text are those of brute force.
fn check_against_brute_force(sets: &[ShingleSet], found: &BTreeMap<Places, f64>, step: usize) {
    let threshold = Threshold::new(0.1).unwrap();
    for place in (0..sets.len()).step_by(step) {
        let brute_force = similar_to(&sets[place], &sets[place + 1..], threshold);
        let counted = found.range((place, 0)..(place + 1, 0));
        let counted: Vec<_> = counted.map(|(&(_, other), &s)| (other, s)).collect();
        let expected = brute_force
            .iter()
            .map(|scored| (place + 1 + scored.doc.0 as usize, scored.similarity));
        assert_eq!(counted, expected.collect::<Vec<_>>());
    }
}

/// The pairs found are those listed, and each value agrees to the digits printed.
#[track_caller]
fn check_listed(found: &BTreeMap<Places, f64>, listed: &BTreeMap<Places, Value>, digit: f64) {
    assert!(
        found.keys().eq(listed.keys()),
        "{} found, {} listed",
        found.len(),
        listed.len()
    );
    for (similarity, row) in found.values().zip(listed.values()) {
        let value = row["jaccard"].as_f64().unwrap();
        assert!(
            (similarity - value).abs() <= 0.501 * digit,
            "{similarity} {row}"
        );
    }
}

/// How many pairs are in only one list, or have values that differ by more than a thousandth.
fn n_different(theirs: &BTreeMap<Places, f64>, ours: &BTreeMap<Places, f64>) -> [usize; 2] {
    let alone = |a: &BTreeMap<Places, f64>, b: &BTreeMap<Places, f64>| {
        a.keys().filter(|places| !b.contains_key(places)).count()
    };
    let differs = |(places, value): &(&Places, &f64)| {
        ours.get(places)
            .is_some_and(|other| (other - *value).abs() > 1e-3)
    };
    [
        alone(theirs, ours) + alone(ours, theirs),
        theirs.iter().filter(differs).count(),
    ]
}

struct Collection {
    texts: Vec<String>,
    ids: BTreeMap<String, usize>,
}

impl Collection {
    fn open(name: &str, id: impl Fn(&Value) -> String) -> Option<Self> {
        let rows = rows(name)?;
        Some(Self {
            texts: rows
                .iter()
                .map(|row| text(row, "text").to_owned())
                .collect(),
            ids: rows.iter().map(id).zip(0..).collect(),
        })
    }

    fn licenses() -> Option<Self> {
        Self::open("neardup-licenses/licenses.jsonl.zst", |row| {
            text(row, "id").to_owned()
        })
    }

    fn revisions() -> Option<Self> {
        let id = |row: &Value| format!("{}#{}", text(row, "doc"), row["rev"]);
        Self::open("neardup-pep-revisions/revisions.jsonl.zst", id)
    }

    fn sets(&self, tokens: impl Fn(&str) -> Vec<u64>) -> Vec<ShingleSet> {
        let shingler = shingler(5);
        self.texts
            .iter()
            .map(|text| shingler.set(&tokens(text)))
            .collect()
    }
}

/// 819 licences: every pair at 0.1 or above, its value, the sizes of the sets and of what they
/// share, and the counts and components at the thresholds of the collection's description.
#[test]
fn licenses_have_the_listed_similarities() {
    let Some(licenses) = Collection::licenses() else {
        return;
    };
    let sets = licenses.sets(pattern_tokens);
    let listed = listed("neardup-licenses/exact_pairs_w5.jsonl.zst", &licenses.ids);
    assert_eq!((sets.len(), listed.len()), (819, 8879));
    let found = similar(&sets, 0.1);
    check_listed(&found, &listed, 1e-6);
    for (&(a, b), row) in &listed {
        let counts = [sets[a].n_common(&sets[b]), sets[a].len(), sets[b].len()];
        assert_eq!(
            counts.map(Value::from),
            ["common", "na", "nb"].map(|key| row[key].clone())
        );
    }
    check_against_brute_force(&sets, &found, 40);
    for (threshold, n_pairs) in [(0.5, 1287), (0.8, 405), (0.9, 180), (0.99, 117)] {
        assert_eq!(found.values().filter(|&&s| s >= threshold).count(), n_pairs);
    }
    let mut sizes = component_sizes(sets.len(), found.iter().filter(|(_, s)| **s >= 0.5));
    sizes.retain(|&size| size > 1);
    assert_eq!((sizes.len(), sizes.iter().max()), (97, Some(&42)));
}

/// The same pairs by the table of common values that batch clustering makes.
#[test]
fn common_values_of_licenses_are_their_similarities() {
    let Some(licenses) = Collection::licenses() else {
        return;
    };
    let sets = licenses.sets(pattern_tokens);
    let entries = sets.iter().zip(0..).flat_map(|(set, id)| {
        set.as_slice()
            .iter()
            .map(move |&shingle| (shingle, DocId(id)))
    });
    let counted = common_values(entries.collect(), sets.len());
    assert_eq!(counted.ignored, []);
    let similar_pairs = counted.similar(Threshold::new(0.1).unwrap());
    let counted: BTreeMap<Places, f64> = similar_pairs
        .map(|count| {
            (
                (count.pair.a.0 as usize, count.pair.b.0 as usize),
                count.jaccard(),
            )
        })
        .collect();
    assert_eq!(counted, similar(&sets, 0.1));
}

fn component_sizes<'pair>(
    n_docs: usize,
    pairs: impl Iterator<Item = (&'pair Places, &'pair f64)>,
) -> Vec<usize> {
    let components = Components::new(n_docs).unwrap();
    for (&(a, b), _) in pairs {
        components.union(DocId(a as u64), DocId(b as u64)).unwrap();
    }
    let mut labels: Vec<DocId> = components.labels().collect();
    labels.sort_unstable();
    labels.chunk_by(|x, y| x == y).map(<[DocId]>::len).collect()
}

/// 1,565 revisions: every pair at 0.2 or above with its value, and the quartiles of the similarity
/// of two revisions of one document.
#[test]
fn revisions_have_the_listed_similarities() {
    let Some(revisions) = Collection::revisions() else {
        return;
    };
    let sets = revisions.sets(pattern_tokens);
    let listed = listed(
        "neardup-pep-revisions/exact_pairs_w5.jsonl.zst",
        &revisions.ids,
    );
    assert_eq!((sets.len(), listed.len()), (1565, 2842));
    let mut found = similar(&sets, 0.1);
    check_against_brute_force(&sets, &found, 150);
    found.retain(|_, similarity| *similarity >= 0.2);
    check_listed(&found, &listed, 1e-5);
}

/// Where our tokens and theirs part: marks continue a word instead of separating; simple case
/// folding goes beyond lower-casing; fractions and other numbers that are no digits separate; Han
/// and Hiragana are cut into characters. All else, the underscore included, is cut alike.
#[test]
fn differences_of_the_tokenisers() {
    let check = |text: &str, theirs: &[&str], ours: &[&str]| {
        let mut words = Vec::new();
        Tokenizer::default().for_each(text, |word| words.push(word.to_owned()));
        assert_eq!(pattern_words(text), theirs);
        assert_eq!(words, ours);
    };
    check("Z\u{336}a", &["z", "a"], &["z\u{336}a"]);
    check("5 \u{B5}s", &["5", "\u{B5}s"], &["5", "\u{3BC}s"]);
    check("1½ x²", &["1½", "x²"], &["1", "x"]);
    check(
        "木兰许可证",
        &["木兰许可证"],
        &["木", "兰", "许", "可", "证"],
    );
    check(
        "snake_case, O'Hara",
        &["snake", "case", "o", "hara"],
        &["snake", "case", "o", "hara"],
    );
}

/// Those differences touch 26 of 2,384 texts and move the values of three pairs by more than a
/// thousandth: two licences in Chinese, and two pairs of revisions with fractions and marks.
#[test]
fn our_tokens_give_the_listed_similarities_but_for_three_pairs() {
    let both = [
        (Collection::licenses(), 0.1, [4, 0, 1]),
        (Collection::revisions(), 0.2, [22, 0, 2]),
    ];
    for (collection, threshold, expected) in both {
        let Some(collection) = collection else { return };
        let sets = [pattern_tokens, our_tokens].map(|tokens| collection.sets(tokens));
        let n_sets = sets[0].iter().zip(&sets[1]).filter(|(a, b)| a != b).count();
        let [theirs, ours] = sets.map(|sets| similar(&sets, threshold));
        let [n_in_one, n_moved] = n_different(&theirs, &ours);
        assert_eq!([n_sets, n_in_one, n_moved], expected);
    }
}

/// The mean error of an estimate over `pairs`, and the mean of its square over `variance`.
fn errors<S: Sketcher>(
    sketcher: &S,
    sets: &[ShingleSet],
    pairs: &BTreeMap<Places, f64>,
    variance: impl Fn(f64, f64) -> f64,
) -> [f64; 2] {
    let sketches: Vec<_> = sets
        .iter()
        .map(|set| sketcher.sketch(set.as_slice()))
        .collect();
    let mut sums = [0.0; 2];
    for (&(a, b), &exact) in pairs {
        let error = sketcher.estimate(&sketches[a], &sketches[b]).unwrap() - exact;
        let n_union = (sets[a].len() + sets[b].len()) as f64 / (1.0 + exact);
        sums[0] += error;
        sums[1] += error * error / variance(exact, n_union);
    }
    sums.map(|sum| sum / pairs.len() as f64)
}

/// Estimates of the similarity of real texts are unbiased and vary as theory says, with the mean
/// over 24 seeds within four standard errors; that of one permutation in bins is somewhere between
/// 0.85 of it for sets larger than the bins are many and 1.28 for smaller ones. The pairs of one
/// seed share sketches, so the error is that of the means of independent seeds.
#[test]
fn estimates_of_licenses_are_those_of_theory() {
    let Some(licenses) = Collection::licenses() else {
        return;
    };
    let sets = licenses.sets(our_tokens);
    let mut pairs = similar(&sets, 0.1);
    // Equal sets are estimated without error, as are unions of up to 84 by their 84 smallest.
    pairs.retain(|&(a, b), s| *s < 1.0 && sets[a].len().max(sets[b].len()) > 84);
    let t = 84.try_into().unwrap();
    let independent = |j: f64, _: f64| j * (1.0 - j) / 84.0;
    let sampled = |j: f64, n: f64| independent(j, n) * (n - 84.0) / (n - 1.0);
    let permutations = |seed| errors(&NarrowMinHash::new(t, seed), &sets, &pairs, independent);
    check_errors("84 permutations", permutations, 1.0..=1.0);
    let smallest = |seed| errors(&BottomS::new(t, seed), &sets, &pairs, sampled);
    check_errors("84 smallest", smallest, 1.0..=1.0);
    let bins = |seed| errors(&OnePermutation::new(t, seed), &sets, &pairs, independent);
    check_errors("84 bins", bins, 0.85..=1.28);
}

/// No bias, and a variance in `ratio` to what theory says.
#[track_caller]
fn check_errors(name: &str, errors: impl Fn(u64) -> [f64; 2], ratio: RangeInclusive<f64>) {
    let (biases, squares): (Vec<f64>, Vec<f64>) =
        (0..24).map(errors).map(<(f64, f64)>::from).unzip();
    let (bias, error) = mean_and_error(&biases);
    check_within(&format!("{name}, bias"), bias, 0.0, error);
    let (square, error) = mean_and_error(&squares);
    let nearest = square.clamp(*ratio.start(), *ratio.end());
    check_within(&format!("{name}, variance"), square, nearest, error);
}

/// The chance that a random positive scores above a random negative, ties counting half.
fn auc(positives: &[f64], negatives: &[f64]) -> f64 {
    let wins = positives.iter().flat_map(|p| {
        negatives.iter().map(move |n| match p.total_cmp(n) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        })
    });
    wins.sum::<f64>() / (positives.len() * negatives.len()) as f64
}

/// The best F1 over all thresholds.
fn best_f1(positives: &[f64], negatives: &[f64]) -> f64 {
    let at = |threshold: &f64| {
        let reach = |scores: &[f64]| scores.iter().filter(|score| *score >= threshold).count();
        let (hits, errors) = (reach(positives), reach(negatives));
        2.0 * hits as f64 / (positives.len() + hits + errors) as f64
    };
    positives.iter().map(at).fold(0.0, f64::max)
}

#[track_caller]
fn check_near(name: &str, value: f64, expected: f64) {
    println!("{name}: {value:.4}, expected {expected}");
    assert!(
        (value - expected).abs() <= 0.01,
        "{name}: {value}, expected {expected}"
    );
}

/// 118 pairs of government pages judged by people: similarity orders them as reported.
#[test]
fn resemblance_agrees_with_judges() {
    let Some(pairs) = rows("neardup-gov-pairs/pairs.jsonl.zst") else {
        return;
    };
    assert_eq!(pairs.len(), 118);
    for (w, expected_auc) in [(1, 0.872), (3, 0.937), (5, 0.942), (8, 0.947)] {
        let shingler = shingler(w);
        let score = |pair: &&Value| {
            let [a, b] = ["text_a", "text_b"].map(|key| shingler.set(&our_tokens(text(pair, key))));
            jaccard(&a, &b).unwrap()
        };
        let (same, different): (Vec<&Value>, Vec<&Value>) = pairs
            .iter()
            .partition(|pair| pair["label"].as_u64() >= Some(1));
        assert_eq!((same.len(), different.len()), (72, 46));
        let [same, different] =
            [same, different].map(|pairs| pairs.iter().map(score).collect::<Vec<_>>());
        check_near(
            &format!("AUC, w = {w}"),
            auc(&same, &different),
            expected_auc,
        );
        if w >= 5 {
            check_near("best F1", best_f1(&same, &different), 0.90);
        }
    }
}

/// 95 short answers: the more of the source was copied, the more of the answer it contains.
#[test]
fn containment_orders_degrees_of_copying() {
    let Some(answers) = rows("neardup-short-answers/answers.jsonl.zst") else {
        return;
    };
    for (w, expected_auc) in [(1, 0.974), (3, 0.963)] {
        let set = |row: &Value| shingler(w).set(&our_tokens(text(row, "text")));
        let sources: BTreeMap<&str, ShingleSet> = answers
            .iter()
            .filter(|row| row["category"] == "orig")
            .map(|row| (text(row, "task"), set(row)))
            .collect();
        let scores = |category: &str| -> Vec<f64> {
            let of_category = answers.iter().filter(|row| row["category"] == category);
            of_category
                .map(|row| containment(&set(row), &sources[text(row, "task")]).unwrap())
                .collect()
        };
        let [cut, light, heavy, non] = ["cut", "light", "heavy", "non"].map(scores);
        assert_eq!(
            [cut.len(), light.len(), heavy.len(), non.len()],
            [19, 19, 19, 38]
        );
        let means = [&cut, &light, &heavy, &non].map(|scores| mean_and_error(scores).0);
        println!("w = {w}: means {means:.3?}");
        assert!(means.is_sorted_by(|more, less| more > less), "{means:?}");
        let copied = [cut, light, heavy].concat();
        check_near(&format!("AUC, w = {w}"), auc(&copied, &non), expected_auc);
    }
}

/// Pairs of which the shorter text is contained in the longer at 0.5, 0.8, 0.9, 0.95 and 1.
fn contained_pairs(sets: &[ShingleSet]) -> [usize; 5] {
    let containments: Vec<f64> = n_common_of_pairs(sets)
        .into_iter()
        .map(|((a, b), n)| n as f64 / sets[a].len().min(sets[b].len()) as f64)
        .collect();
    [0.5, 0.8, 0.9, 0.95, 1.0].map(|least| containments.iter().filter(|&&c| c >= least).count())
}

/// 1,565 revisions: how many pairs are contained, and how many texts in a longer one.
#[test]
fn issue_29_revisions_contain_each_other() {
    let Some(revisions) = Collection::revisions() else {
        return;
    };
    for (w, expected, n_contained) in [
        (5, [2_810, 2_135, 1_732, 1_325, 22], 898),
        (8, [2_667, 1_984, 1_549, 1_100, 22], 836),
    ] {
        let texts = revisions.texts.iter();
        let sets: Vec<ShingleSet> = texts.map(|t| shingler(w).set(&our_tokens(t))).collect();
        assert_eq!(contained_pairs(&sets), expected, "w = {w}");
        let mut contained = BTreeSet::new();
        let mut n_unlike = 0;
        for ((a, b), n) in n_common_of_pairs(&sets) {
            let (short, long) = match sets[a].len() < sets[b].len() {
                true => (a, b),
                false => (b, a),
            };
            if n as f64 >= 0.9 * sets[short].len() as f64 {
                contained.insert(short);
                let n_union = sets[short].len() + sets[long].len() - n;
                n_unlike += usize::from((n as f64) < 0.8 * n_union as f64);
            }
        }
        assert_eq!(contained.len(), n_contained, "w = {w}");
        if w == 5 {
            assert_eq!(n_unlike, 255);
        }
    }
}

/// 100 short texts: contained pairs, and what of each answer its source contains, as shingles and
/// as windows of 8 tokens.
#[test]
fn issue_29_sources_contain_short_answers() {
    let Some(answers) = rows("neardup-short-answers/answers.jsonl.zst") else {
        return;
    };
    let tokens = |row: &Value| our_tokens(text(row, "text"));
    let sets: Vec<ShingleSet> = answers
        .iter()
        .map(|row| shingler(3).set(&tokens(row)))
        .collect();
    let [half, eighty, ninety, _, whole] = contained_pairs(&sets);
    assert_eq!([half, eighty, ninety, whole], [65, 23, 14, 0]);
    let sources: BTreeMap<&str, Vec<u64>> = answers
        .iter()
        .filter(|row| row["category"] == "orig")
        .map(|row| (text(row, "task"), tokens(row)))
        .collect();
    for (category, mean_contained, mean_share, n_any) in [
        ("cut", 0.651, 0.666, 17),
        ("light", 0.504, 0.434, 18),
        ("heavy", 0.301, 0.218, 16),
        ("non", 0.025, 0.001, 1),
    ] {
        let (mut contained, mut shares) = (Vec::new(), Vec::new());
        for row in answers.iter().filter(|row| row["category"] == category) {
            let (own, source) = (tokens(row), &sources[text(row, "task")]);
            let [a, b] = [&own, source].map(|tokens| shingler(3).set(tokens));
            contained.push(containment(&a, &b).unwrap());
            let windows: BTreeSet<&[u64]> = source.windows(8).collect();
            let mut is_shared = vec![false; own.len()];
            for (start, window) in own.windows(8).enumerate() {
                if windows.contains(window) {
                    is_shared[start..start + 8].fill(true);
                }
            }
            let n_shared = is_shared.iter().filter(|shared| **shared).count();
            shares.push(n_shared as f64 / own.len() as f64);
        }
        assert!(
            (mean_and_error(&contained).0 - mean_contained).abs() < 5.1e-4,
            "{category}"
        );
        assert!(
            (mean_and_error(&shares).0 - mean_share).abs() < 5.1e-4,
            "{category}"
        );
        assert_eq!(
            shares.iter().filter(|share| **share > 0.0).count(),
            n_any,
            "{category}"
        );
    }
}
