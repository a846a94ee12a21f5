//! Text for people: no forbidden phrases, and no broken links.

use std::fs;
use std::path::{Path, PathBuf};

/// Phrases that are hard to understand, with replacements.
const PHRASES: [(&str, &str); 72] = [
    ("what they hold is no document", "they contain no document"),
    ("numbers that are none", "NaN"),
    ("a run with another inputs", "a run with other inputs"),
    ("in 1 groups", "in 1 cluster"),
    ("how a crawl does", "the state of a crawl"),
    ("is put by under", "is stored under"),
    ("as long as it does", "while it is large enough"),
    ("dropped, alike", "near duplicates"),
    ("dropped, equal", "exact duplicates"),
    ("dropped, held", "already in the index"),
    ("how right", "precision, recall"),
    ("engines that are none", "unknown engines"),
    ("believes engines", "trust result lists"),
    ("as if each were as likely", "uniform"),
    ("no cluster is like", "no clusters match"),
    ("by lot", "random sample"),
    ("gives free", "releases"),
    ("address of mail", "email address"),
    ("cannot be had", "is not available"),
    ("makes it anew", "rebuild"),
    ("is no folder", "is not a directory"),
    ("nobody has rated", "no ratings"),
    ("removed ones", "removed documents"),
    ("held by exactly", "in exactly"),
    ("cannot be trusted", "not reliable"),
    ("gave no answer", "did not respond"),
    ("is no kind", "is not a kind"),
    ("is no similarity", "is not a similarity"),
    ("name two lists", "pass at least two lists"),
    ("one a line", "one per line"),
    ("is at work in", "is using"),
    ("start anew", "start over"),
    ("drawn anew", "resampled"),
    ("what judges say", "labels"),
    ("judged pairs", "labelled or rated pairs"),
    ("gold set", "labelled pairs"),
    ("knocks at", "probes"),
    ("not for you", "access denied"),
    ("that went wrong", "internal error"),
    (
        "what no interval shows",
        "biases not covered by the intervals",
    ),
    ("too few to ask", "too few to query"),
    ("cannot be asked", "does not support"),
    ("more such lines follow", "further lines are only counted"),
    ("could not be answered", "are invalid"),
    ("two engines at least", "at least two search engines"),
    ("claims to hold", "claimed number"),
    ("leads nowhere in scope", "leads out of scope"),
    ("wants to be left alone", "requires a longer wait"),
    ("asks for too long", "requires too long"),
    ("what visits would buy", "the effect of more visits"),
    ("was begun with", "was started with"),
    ("what became of", "the result of"),
    ("what came of it", "the result"),
    ("what they cost", "their time and memory"),
    ("what a run found", "the results of a run"),
    ("that the index held", "already in the index"),
    (
        "what only one of the two",
        "text found in only one document",
    ),
    (
        "sites that lost most",
        "sites with the most dropped documents",
    ),
    ("before anything is told", "before figures are printed"),
    ("that lead on", "with further links"),
    ("a table to be", "a function that makes a table"),
    ("bad regular expression", "invalid regular expression"),
    ("is no journal", "is not a journal"),
    ("is no directory", "is not a directory"),
    ("has no fate", "has no decision"),
    ("nothing to be wrong about", "nothing to check"),
    ("tells what it cost", "measures its time and memory"),
    ("goes by the rows", "refers to rows"),
    ("fit memory", "fit in memory"),
    ("disappointing pages", "pages below their predicted score"),
    ("duplicates dropped", "duplicates found"),
    ("cannot write the answer", "cannot write the result"),
];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// Every file that people read: its path below the root, and its text.
fn texts() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut folders = vec![root.clone()];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            let is_own =
                !name.starts_with('.') && !["target", "work", "fixtures"].contains(&&*name);
            let kind = path.extension().unwrap_or_default().to_string_lossy();
            if path.is_dir() && is_own {
                folders.push(path);
            } else if ["md", "rs", "html", "py", "toml"].contains(&&*kind) {
                let text = fs::read_to_string(&path).unwrap();
                texts.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(texts.len() > 200, "the walk found too few files");
    texts
}

#[test]
fn issue_32_phrases_that_must_not_be_used() {
    let mut found = Vec::new();
    for (path, text) in texts() {
        // This file contains them all.
        if path.ends_with("tests/it/words.rs") {
            continue;
        }
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.to_lowercase();
            for (phrase, instead) in PHRASES {
                let is_whole =
                    |at: usize| !line[at + phrase.len()..].starts_with(char::is_alphabetic);
                if line.match_indices(phrase).any(|(at, _)| is_whole(at)) {
                    found.push(format!(
                        "{}:{number}: {phrase:?}; write {instead:?}",
                        path.display()
                    ));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The targets of links in Markdown, without those in code.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let is_quoted = line[..at].matches('`').count() % 2 == 1;
            if let Some(end) = rest.find(')').filter(|_| !is_quoted) {
                links.push(rest[..end].to_owned());
            }
        }
    }
    links
}

#[test]
fn issue_32_links_lead_somewhere() {
    let mut n_links = 0;
    let is_markdown = |path: &Path| path.extension().is_some_and(|kind| kind == "md");
    for (path, text) in texts().iter().filter(|(path, _)| is_markdown(path)) {
        for link in links(text) {
            let target = link.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            n_links += 1;
            let file = root().join(path).parent().unwrap().join(target);
            assert!(file.exists(), "{}: {link} leads nowhere", path.display());
        }
    }
    assert!(n_links > 20, "too few links were found");
}
