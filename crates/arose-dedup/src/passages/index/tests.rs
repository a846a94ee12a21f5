//! Tests of an index of passages: comparison with brute force, and errors.

use super::*;
use arose::mix::SplitMix;
use arose::passage::Reference;
use arose::shingle::{DEFAULT_W, Shingler, containment};
use arose::token::Tokenizer;

fn add(index: &mut PassageIndex, folder: &Path, texts: &[String], first: usize) {
    let path = folder.join(format!("in{first}.jsonl"));
    let lines = texts.iter().enumerate().map(|(i, text)| {
        let id = format!("d{}", first + i);
        serde_json::json!({ "id": id, "text": text }).to_string() + "\n"
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
    let corpus = arose_corpus::Config::default();
    let added = index.add(&[path], &corpus, 1 << 20, &Progress::of_passages());
    assert_eq!(added.unwrap().n_docs(), texts.len() as u64);
}

/// In any order of additions, a query finds all runs that the texts share.
#[test]
fn issue_29_an_index_answers_as_brute_force_does_and_grows() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("index");
    let mut random = SplitMix::new(3);
    let mut text =
        |n: u64| -> String { (0..n).map(|_| format!("w{} ", random.below(6))).collect() };
    let mut all: Vec<String> = Vec::new();
    let mut index = PassageIndex::create(&place, 8).unwrap();
    let tokens = |text: &str| Tokenizer::default().tokens(text).fingerprints;
    for n_new in [5, 1, 1, 9, 2, 1] {
        let texts: Vec<String> = (0..n_new).map(|_| text(60)).collect();
        add(&mut index, folder.path(), &texts, all.len());
        all.extend(texts);
        let status = PassageIndex::status(&place).unwrap();
        assert_eq!(status.n_docs, all.len() as u64);
        assert!(status.n_segments <= 4, "{status:?}");
        let items: Vec<Vec<u64>> = all.iter().map(|text| tokens(text)).collect();
        let reference = Reference::new(items.iter().map(Vec::as_slice), 8);
        let reader = PassageReader::open(&place).unwrap();
        for question in [text(50), all[0].clone(), text(9)] {
            let question = tokens(&question);
            let answer = reader.query(&question).unwrap();
            assert!(answer.is_guaranteed && !answer.is_capped);
            let mut found: Vec<_> = answer
                .runs
                .iter()
                .map(|run| (run.name.clone(), run.doc_start, run.start, run.n_tokens))
                .collect();
            let mut expected: Vec<_> = reference
                .shared_runs(&question)
                .into_iter()
                .map(|run| {
                    let n = run.item_tokens.end - run.item_tokens.start;
                    (
                        format!("d{}", run.item),
                        run.item_tokens.start,
                        run.start,
                        n,
                    )
                })
                .collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected);
            let mut named: Vec<&str> = expected.iter().map(|(name, ..)| &**name).collect();
            named.dedup();
            assert_eq!(answer.documents.len(), named.len());
            let shingler = Shingler::new(DEFAULT_W);
            let own = shingler.set(&question);
            for document in &answer.documents {
                let number: usize = document.name[1..].parse().unwrap();
                let there = shingler.set(&items[number]);
                assert_eq!(Some(document.containment), containment(&own, &there));
                assert_eq!(Some(document.containment_there), containment(&there, &own));
            }
            let shares = answer.documents.iter().map(|document| document.containment);
            assert!(shares.is_sorted_by(|a, b| a >= b));
        }
    }
    // Fewer tokens than a window: the matches may be incomplete.
    let reader = PassageReader::open(&place).unwrap();
    let question = tokens(
        &all[3]
            .split(' ')
            .skip(10)
            .take(7)
            .collect::<Vec<_>>()
            .join(" "),
    );
    let answer = reader.query(&question).unwrap();
    assert!(!answer.is_guaranteed);
    assert!(answer.runs.iter().all(|run| run.n_tokens >= 4));
    // A second writer gets an error.
    assert!(matches!(
        PassageIndex::open(&place),
        Err(Error::Busy { .. })
    ));
    drop(index);
    // The remains of a killed process are invalid and are removed.
    fs::create_dir(place.join("segment-99")).unwrap();
    assert_eq!(
        PassageIndex::status(&place).unwrap().n_docs,
        all.len() as u64
    );
    drop(PassageIndex::open(&place).unwrap());
    assert!(!place.join("segment-99").exists());
}

#[test]
fn issue_29_no_index_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!is_index(folder.path()));
    let missing = PassageReader::open(folder.path());
    assert!(matches!(missing, Err(Error::NoPassages { .. })));
    for min in [0, 65_537] {
        let created = PassageIndex::create(&folder.path().join("new"), min);
        assert!(matches!(created, Err(Error::Setting(_))));
    }
    fs::write(folder.path().join("other"), "x").unwrap();
    let created = PassageIndex::create(folder.path(), 50);
    assert!(matches!(created, Err(Error::Foreign { .. })));
}
