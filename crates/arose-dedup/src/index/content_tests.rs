//! Tests indexes of the policy `content`: scores by the definition, sites that become known,
//! restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;

use arose::content::{CONTENT, Content as Text, NEARLY_EQUAL, SAME, shingler};
use arose::mix::{SplitMix, mix};
use arose::rule::{Criterion, Remove, Rule};
use arose::testing::content_score;
use arose::token::Tokenizer;

use super::state::MAX_JUDGED;
use super::*;
use crate::config::Config;
use crate::stage::weigher::Weigher;

fn settings(remove: Remove) -> Settings {
    Settings {
        kind: Kind::Content { remove },
        ..Settings::default()
    }
}

fn create(folder: &Path, remove: Remove) -> Index {
    drop(Index::create(folder, settings(remove)).unwrap());
    reopen(folder)
}

/// Options with so few documents in memory that sorted runs are written.
fn reopen(folder: &Path) -> Index {
    let options = Options {
        recent_docs: NonZeroU32::new(60).unwrap(),
        ..Options::default()
    };
    Index::open_with(folder, options).unwrap()
}

/// Words that differ for each seed.
fn prose(seed: u64, n: usize) -> String {
    let mut random = SplitMix::new(seed);
    let words = (0..n).map(|_| format!("w{:x}", mix(seed << 20 | random.below(1 << 12))));
    words.collect::<Vec<_>>().join(" ")
}

struct TestPage {
    url: String,
    host: String,
    text: String,
}

fn page(host: &str, name: impl std::fmt::Display, text: String) -> TestPage {
    TestPage {
        url: format!("http://{host}/{name}"),
        host: host.to_owned(),
        text,
    }
}

impl TestPage {
    fn sketch(&self, index: &Index) -> Sketch {
        let sketcher = Sketcher::new(index.settings());
        let sketch = sketcher.sketch(&self.text, Some(&self.host));
        sketch.of_page(&self.url)
    }

    fn shingles(&self) -> Vec<u64> {
        let mut shingles = Vec::new();
        let tokens = Tokenizer::default().tokens(&self.text);
        shingler().shingles_into(&tokens.fingerprints, &mut shingles);
        shingles
    }
}

/// Pages of three sites, each with a frame of its own. Some pages are versions of others.
fn pages(n: u64) -> Vec<TestPage> {
    let mut random = SplitMix::new(24);
    let mut pages: Vec<TestPage> = Vec::new();
    for number in 0..n {
        let site = random.below(3);
        let frame = prose(1000 + site, 60);
        let mut own = match random.below(2) {
            0 => prose(random.below(n / 6), 90),
            _ => prose(5000 + number, 90),
        };
        for _ in 0..random.below(4) {
            own = own.replacen(&format!(" w{}", random.below(10)), " other", 1);
        }
        let cut = own.len() - random.below(own.len() as u64 / 8) as usize;
        let text = format!("{frame} {}", &own[..own.floor_char_boundary(cut)]);
        pages.push(page(&format!("site{site}.example"), number, text));
    }
    pages
}

/// The pages that contain each word pair of each site.
type Known = BTreeMap<(String, u64), BTreeSet<String>>;

/// A page by the definition, weighed by the pages of its site seen so far.
fn weighed(page: &TestPage, known: &Known) -> Text {
    let shingles = page.shingles();
    let weigher = Weigher::online();
    let mut weights = Vec::new();
    weigher.weigh(&shingles, &mut weights, |shingle| {
        let pages = known.get(&(page.host.clone(), shingle));
        pages.map_or(0, |pages| {
            pages.iter().filter(|url| **url != page.url).count() as u64
        })
    });
    Text::of_weights(&shingles, &weights)
}

/// The scores are those of the definition: of complete texts, with the weights that each page had
/// when it was inserted. Two hashes of 16 bits may agree by chance, which adds one match.
#[test]
fn issue_24_an_index_scores_as_the_definition() {
    let folder = tempfile::tempdir().unwrap();
    let index = create(folder.path(), Remove::Content);
    let mut known = Known::new();
    let mut texts: Vec<Text> = Vec::new();
    let (mut n_same, mut n_content, mut n_other) = (0, 0, 0);
    for (number, page) in pages(90).iter().enumerate() {
        let text = weighed(page, &known);
        let found = index.scan(&page.sketch(&index)).unwrap();
        for (other, before) in texts.iter().enumerate() {
            let score = content_score(&text, before);
            let found = found.iter().find(|found| found.name == other.to_string());
            let limits = [(score.s, SAME), (score.s, CONTENT), (score.u, NEARLY_EQUAL)];
            if limits
                .iter()
                .any(|(score, limit)| (score - limit).abs() < 0.02)
            {
                continue;
            }
            assert_eq!(
                found
                    .map(|found| found.rule)
                    .filter(|rule| *rule != Rule::Exact),
                Rule::of_level(score.level()).filter(|_| score.u < 1.0),
                "{number} {other} {score:?}"
            );
            match found.map(|found| (found.rule, found.content.unwrap())) {
                Some((rule, found)) => {
                    assert!(
                        (found.weighted - score.s).abs() < 0.02,
                        "{found:?} {score:?}"
                    );
                    assert!(
                        (found.unweighted - score.u).abs() < 0.02,
                        "{found:?} {score:?}"
                    );
                    n_same += u32::from(rule == Rule::Same);
                    n_content += u32::from(rule == Rule::Content);
                }
                None => n_other += 1,
            }
        }
        index
            .insert(&number.to_string(), &page.sketch(&index))
            .unwrap();
        for shingle in page.shingles() {
            let key = (page.host.clone(), shingle);
            known.entry(key).or_default().insert(page.url.clone());
        }
        texts.push(text);
    }
    assert!(
        n_same >= 5 && n_content >= 5 && n_other > 500,
        "{n_same} {n_content} {n_other}"
    );
}

/// Pages of one template are duplicates until the template is known. The same content in two frames
/// is found, and the match reports the number of pages on which it is based.
#[test]
fn issue_24_a_template_becomes_known() {
    let folder = tempfile::tempdir().unwrap();
    let index = create(folder.path(), Remove::Same);
    let frames = [prose(1, 400), prose(2, 400)];
    let product = |site: usize, number: u64| {
        let text = format!("{} {}", frames[site], prose(100 + number, 30));
        page(&format!("shop{site}.example"), number, text)
    };
    let mut known_as = Vec::new();
    for number in 0..60 {
        for site in [0, 1] {
            let page = product(site, number + 100 * site as u64);
            let seen = index.query_or_insert(&page.url, &page.sketch(&index));
            if let Seen::Known(found) = seen.unwrap() {
                assert_eq!(found[0].content.unwrap().n_site_pages, number);
                known_as.push(number);
            }
        }
    }
    let n_late = known_as.iter().filter(|number| **number >= 9).count();
    assert!(known_as.contains(&1), "{known_as:?}");
    assert_eq!(n_late, 0, "{known_as:?}");
    // The same product in the frame of the other shop: the frames have almost no weight.
    let copies = (48..60).filter(|&number| {
        let found = index.query(&product(1, number).sketch(&index)).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|found| (&*found.name, found.rule))
            .collect();
        let original = format!("http://shop0.example/{number}");
        assert!(
            found.is_empty() || found == [(&*original, Rule::Same)],
            "{found:?}"
        );
        !found.is_empty()
    });
    // Half of the word pairs are stored, about fifteen of them own text, so scores near 0.9 vary.
    assert!(copies.count() >= 6);
    // A page that is seen again is not another page of its site.
    let again = product(0, 59);
    for _ in 0..3 {
        let sketch = again.sketch(&index);
        let Seen::Known(found) = index.query_or_insert("another name", &sketch).unwrap() else {
            panic!("it is in the index");
        };
        assert_eq!(found[0].content.unwrap().n_site_pages, 60);
    }
}

/// All documents found for all pages.
fn answers(index: &Index, pages: &[TestPage]) -> Vec<Vec<Match>> {
    let ask = |page: &TestPage| index.query(&page.sketch(index)).unwrap();
    pages.iter().map(ask).collect()
}

/// The counts of sites survive restarts and compaction, including those of duplicates. A reader
/// sees them too.
#[test]
fn issue_24_counts_survive() {
    let folder = tempfile::tempdir().unwrap();
    let index = create(folder.path(), Remove::Content);
    let pages = pages(400);
    for page in &pages {
        index
            .query_or_insert(&page.url, &page.sketch(&index))
            .unwrap();
    }
    let expected = answers(&index, &pages);
    let n_found: usize = expected.iter().map(Vec::len).sum();
    assert!(n_found > pages.len(), "all find themselves or another");
    drop(index);
    let index = reopen(folder.path());
    assert_eq!(answers(&index, &pages), expected);
    let reader = Reader::open(folder.path()).unwrap();
    let sketch = pages[7].sketch(&index);
    assert_eq!(
        reader.query(&sketch).unwrap(),
        index.query(&sketch).unwrap()
    );
    index.compact().unwrap();
    assert_eq!(answers(&index, &pages), expected);
    assert!(index.verify().unwrap().n_files > 4);
    drop(index);
    let index = reopen(folder.path());
    assert_eq!(answers(&index, &pages), expected);
    assert!(index.remove(&pages[0].url).unwrap());
    index
        .replace(&pages[1].url, &pages[2].sketch(&index))
        .unwrap();
    drop(index);
    reopen(folder.path()).verify().unwrap();
}

/// A changed file of counts is an error, during verification and on opening.
#[test]
fn issue_24_damaged_counts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let index = create(folder.path(), Remove::Same);
    for page in pages(30) {
        index.insert(&page.url, &page.sketch(&index)).unwrap();
    }
    index.compact().unwrap();
    drop(index);
    let files = std::fs::read_dir(folder.path()).unwrap();
    let mut paths = files.map(|entry| entry.unwrap().path());
    let path = paths
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("counts-")
        })
        .unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(verify(folder.path()), Err(Error::Damaged { .. })));
    assert!(matches!(
        Index::open(folder.path()),
        Err(Error::Damaged { .. })
    ));
}

/// Keys find the same documents as comparing every document; at the level `content`, nearly all.
#[test]
fn issue_24_keys_find_what_scanning_finds() {
    let folder = tempfile::tempdir().unwrap();
    let index = create(folder.path(), Remove::Content);
    let pages = pages(300);
    let sketches: Vec<Sketch> = pages.iter().map(|page| page.sketch(&index)).collect();
    let documents = pages.iter().zip(&sketches);
    let documents: Vec<_> = documents
        .map(|(page, sketch)| (&*page.url, sketch))
        .collect();
    index.insert_all(&documents).unwrap();
    let (mut n_found, mut n_there) = (0, 0);
    for sketch in &sketches {
        let found = index.query(sketch).unwrap();
        let there = index.scan(sketch).unwrap();
        assert!(found.iter().all(|found| there.contains(found)));
        n_found += found.len();
        n_there += there.len();
    }
    assert!(
        n_there > 400 && n_found as f64 >= 0.99 * n_there as f64,
        "{n_found} {n_there}"
    );
}

/// Thousands of pages of one template share keys. A query compares few of them, and finds the page
/// that is nearly the same.
#[test]
fn issue_24_a_query_compares_few_documents() {
    let folder = tempfile::tempdir().unwrap();
    let index = Index::create(folder.path(), settings(Remove::Same)).unwrap();
    let frame = prose(1, 400);
    let catalog = |number: u64| {
        let text = format!("{frame} {}", prose(10 + number, 16));
        page("shop.example", number, text)
    };
    let pages: Vec<TestPage> = (0..3000).map(catalog).collect();
    let sketches: Vec<Sketch> = pages.iter().map(|page| page.sketch(&index)).collect();
    let documents = pages.iter().zip(&sketches);
    let documents: Vec<_> = documents
        .map(|(page, sketch)| (&*page.url, sketch))
        .collect();
    index.insert_all(&documents).unwrap();
    let state = index.shared.read().unwrap();
    let mut keys = Vec::new();
    let kept = state.weigh(&sketches[2000]).unwrap().sketch;
    state.plan.sketch_keys(&kept, &mut keys);
    let likely = state.likely(&keys).unwrap();
    assert_eq!(likely.len(), MAX_JUDGED);
    assert!(likely.contains(&2000) && likely.is_sorted());
    let mut other = catalog(2000);
    other.text.push_str(" once more");
    let found = index.query(&other.sketch(&index)).unwrap();
    assert_eq!(found[0].name, "http://shop.example/2000");
}

/// A batch whose insertion was interrupted is added only once, whatever its weights were.
#[test]
fn issue_24_pending_documents_are_added_once() {
    let folder = tempfile::tempdir().unwrap();
    let index = create(&folder.path().join("index"), Remove::Same);
    let path = folder.path().join("pending");
    let mut pending = Pending::create(&path).unwrap();
    let pages = pages(20);
    let documents: Vec<(String, Sketch)> = pages
        .iter()
        .map(|page| (page.url.clone(), page.sketch(&index)))
        .collect();
    pending.push(&documents).unwrap();
    pending.finish().unwrap();
    for _ in 0..2 {
        index.add_pending(&path).unwrap();
        assert_eq!(index.status().unwrap().n_docs, 20);
    }
}

/// Sketches that are still to be weighed cannot be used with other indexes.
#[test]
fn issue_24_word_pairs_need_their_index() {
    let folder = tempfile::tempdir().unwrap();
    let [content, jaccard] = ["content", "jaccard"].map(|name| folder.path().join(name));
    let content = create(&content, Remove::Same);
    let settings = Settings::agreeing_with(&Config::of(Criterion::jaccard()));
    let jaccard = Index::create(&jaccard, settings).unwrap();
    let page = &pages(1)[0];
    assert!(jaccard.insert("page", &page.sketch(&content)).is_err());
    assert!(content.insert("page", &page.sketch(&jaccard)).is_err());
}
