use super::*;
use Verdict::{Correct, Incorrect, Undecided};
use arose::token::Tokens;
use std::fs;

struct Files {
    folder: tempfile::TempDir,
    config: LabelledConfig,
}

/// Labelled pairs in these lines, read with the defaults.
fn files(labelled: &str) -> Files {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labelled.jsonl");
    fs::write(&path, labelled).unwrap();
    let config = LabelledConfig {
        labelled: path,
        documents: None,
        fields: Fields::default(),
        labels: Labels::default(),
        pairing: Pairing::Listed,
        mode: html::Mode::Henzinger,
    };
    Files { folder, config }
}

impl Files {
    fn documents(mut self, lines: &str) -> Self {
        let path = self.folder.path().join("documents.jsonl");
        fs::write(&path, lines).unwrap();
        self.config.documents = Some(path);
        self
    }

    fn grouped(mut self, pairing: Pairing, group: &str) -> Self {
        self.config.pairing = pairing;
        self.config.fields.prefer("group", group).unwrap();
        self
    }

    #[track_caller]
    fn verdicts(&self) -> Vec<(String, String, Verdict)> {
        let labelled = read(&self.config).unwrap();
        let id = |place: usize| labelled.documents[place].id.clone();
        let pairs = labelled.pairs.iter();
        pairs
            .map(|pair| (id(pair.a), id(pair.b), pair.verdict))
            .collect()
    }

    #[track_caller]
    fn check(&self, expected: &[(&str, &str, Verdict)]) {
        let owned = |&(a, b, verdict): &(&str, &str, _)| (a.to_owned(), b.to_owned(), verdict);
        assert_eq!(
            self.verdicts(),
            expected.iter().map(owned).collect::<Vec<_>>()
        );
    }

    #[track_caller]
    fn check_error(&self, part: &str) {
        let error = read(&self.config).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn pairs_with_their_texts() {
    let lines = r#"{"a":"x","b":"y","label":2,"text_a":"a rose","text_b":"a rose","url_a":"http://x.org/"}
{"a":"x","b":"z","label":0,"text_a":"a rose","text_b":"a thorn"}
{"a":"y","b":"z","label":"undecided","text_a":"a rose","text_b":"a thorn"}
"#;
    let files = files(lines);
    files.check(&[
        ("x", "y", Correct),
        ("x", "z", Incorrect),
        ("y", "z", Undecided),
    ]);
    let labelled = read(&files.config).unwrap();
    assert_eq!(labelled.documents.len(), 3);
    assert_eq!(labelled.documents[0].url.as_deref(), Some("http://x.org/"));
    assert_eq!(
        labelled.documents[0].content.tokens,
        labelled.documents[1].content.tokens
    );
}

#[test]
fn pairs_of_documents_by_coefficient() {
    let pairs = r#"{"a":"d#1","b":"d#2","jaccard":0.8}
{"id_a":"d#2","id_b":"d#1","similarity":0.79}"#;
    let documents = r#"{"doc":"d","rev":1,"text":"one"}
{"doc":"d","rev":2,"text":"two"}"#;
    let files = files(pairs).documents(documents);
    files.check(&[("d#1", "d#2", Correct), ("d#2", "d#1", Incorrect)]);
    let labelled = read(&files.config).unwrap();
    assert_eq!(labelled.pairs[1].jaccard, Some(0.79));
}

#[test]
fn groups_and_revisions() {
    let lines = r#"{"id":1,"page":"p","v":1,"text":"one"}
{"id":2,"page":"p","v":1,"text":"two"}
{"id":3,"page":"p","v":2,"text":"three"}
{"id":4,"page":"q","v":1,"text":"four"}"#;
    let mut files = files(lines).grouped(Pairing::Groups, "page");
    let by_group = [
        ("1", "2", Correct),
        ("1", "3", Correct),
        ("1", "4", Incorrect),
    ];
    let others = [
        ("2", "3", Correct),
        ("2", "4", Incorrect),
        ("3", "4", Incorrect),
    ];
    files.check(&[by_group, others].concat());
    files.config.fields.prefer("version", "v").unwrap();
    let verdicts: Vec<Verdict> = files.verdicts().into_iter().map(|pair| pair.2).collect();
    let expected = [
        Correct, Undecided, Incorrect, Undecided, Incorrect, Incorrect,
    ];
    assert_eq!(verdicts, expected);
}

#[test]
fn sources_and_what_became_of_them() {
    let lines = r#"{"file":"1","task":"a","category":"cut","text":"one"}
{"file":"2","task":"a","category":"orig","text":"two"}
{"file":"3","task":"b","category":"orig","text":"three"}
{"file":"4","task":"b","category":"non","text":"four"}"#;
    let mut files = files(lines).grouped(Pairing::Sources, "task");
    files.config.fields.prefer("label", "category").unwrap();
    files.config.labels.source = Some("orig".to_owned());
    files.check_error("unknown label `cut`");
    files.config.labels.duplicate = vec!["cut".to_owned()];
    files.check(&[("2", "1", Correct), ("3", "4", Incorrect)]);
    files.config.fields.prefer("group", "file").unwrap();
    files.check_error("`1` has no source in its group");
}

/// Words of links and images are among those of the page in one mode, and not in the other.
#[test]
fn pages_in_both_modes() {
    let page = r"<title>t</title><p>a <a href=/x>rose</a> <img src=i.png> is</p>";
    let lines = format!(r#"{{"id":1,"g":1,"html":"{page}"}}"#);
    let mut files = files(&lines).grouped(Pairing::Groups, "g");
    let henzinger = read(&files.config).unwrap().documents[0]
        .content
        .tokens
        .clone();
    files.config.mode = html::Mode::Content;
    let content = read(&files.config).unwrap().documents[0]
        .content
        .tokens
        .clone();
    assert!(
        henzinger.len() > content.len(),
        "{} {}",
        henzinger.len(),
        content.len()
    );
    let mut image = Tokens::default();
    image.push_image("i.png");
    assert!(henzinger.fingerprints.contains(&image.fingerprints[0]));
}

#[test]
fn labels() {
    let labels = Labels::default();
    for (label, expected) in [
        ("0", Incorrect),
        ("0.5", Incorrect),
        ("1", Correct),
        ("true", Correct),
        ("false", Incorrect),
        ("same", Correct),
        ("distinct", Incorrect),
        ("undecided", Undecided),
    ] {
        assert_eq!(labels.verdict(label), Ok(expected), "{label}");
    }
    assert!(labels.verdict("perhaps").is_err());
    let strict = Labels {
        duplicate: vec!["3".to_owned()],
        undecided: vec!["2".to_owned()],
        ..labels
    };
    let verdicts = ["1", "2", "3"].map(|label| strict.verdict(label).unwrap());
    assert_eq!(verdicts, [Incorrect, Undecided, Correct]);
    let generous = Labels {
        duplicate: vec!["undecided".to_owned()],
        ..strict
    };
    assert_eq!(generous.verdict("undecided"), Ok(Correct));
}

#[test]
fn what_is_wrong_is_named() {
    let pair = r#"{"a":"x","b":"y","label":1,"text_a":"a rose","text_b":"a rose"}"#;
    let other = r#"{"a":"x","b":"y","label":1,"text_a":"a thorn","text_b":"a rose"}"#;
    files(&format!("{pair}\n{other}")).check_error(":2: `x` is the ID of two texts");
    files(r#"{"id":"x","text":"a rose"}"#).check_error("a document, not a pair");
    files(r#"{"a":"x","b":"y","label":1}"#).check_error("with --documents-from");
    let pair = r#"{"a":"x","b":"y","jaccard":1.5}"#;
    let document = r#"{"id":"x","text":"a rose"}"#;
    files(pair)
        .documents(document)
        .check_error("no document has the ID `y`");
    let both = r#"{"id":"x","text":"a"}{"id":"y","text":"b"}"#.replace("}{", "}\n{");
    files(pair)
        .documents(&both)
        .check_error("`1.5` is not a similarity");
    let pair = r#"{"a":"x","b":"y"}"#;
    files(pair)
        .documents(&both)
        .check_error("no field for `label`");
    files("[]").check_error(":1: not a JSON object");
    assert!(Fields::default().prefer("colour", "red").is_err());
}
