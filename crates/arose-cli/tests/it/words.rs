//! Text for people: no forbidden phrases, and no broken links.

use std::fs;
use std::path::{Path, PathBuf};

/// Phrases that are hard to understand, with replacements.
const PHRASES: [(&str, &str); 148] = [
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
    ("keeps what was seen", "index"),
    ("tells what is much like", "look up duplicates"),
    ("reads documents out of", "extracts documents from"),
    ("the rule that fires", "the rule that matches"),
    ("with the truth", "with the ground truth"),
    ("if it is not there", "if missing"),
    ("the least jaccard", "minimum Jaccard"),
    ("scripts without blanks", "scripts written without spaces"),
    ("pairs are checked against", "how to verify pairs"),
    ("of a group stays", "is kept"),
    ("may make duplicates of", "how to match"),
    ("selects the permutations", "seed of the permutations"),
    ("memory to stay under", "memory limit"),
    ("knows by its own rule", "already in this index"),
    ("begins anew", "starts over"),
    ("of a web page is taken", "extracted"),
    ("before the usual guesses", "tried before the default names"),
    ("needed to leave loopback", "required beyond loopback"),
    ("asks private", "allows private"),
    ("may be given several times", "repeatable"),
    ("and does nothing", "and exits"),
    ("is asked once a day", "gets one request per day"),
    ("how many times its size", "maximum expansion factor"),
    ("what visitors must know", "access token"),
    ("draws the pairs", "seed of the sample"),
    ("results to pass over", "results to skip"),
    ("what there is then", "the responses received"),
    ("writes every question", "log of queries"),
    ("takes every answer", "reads all responses"),
    ("squares is made small", "least squares"),
    ("goes on from here", "run the same command to resume"),
    ("ask for less recall", "lower --recall"),
    ("no file or folder", "no such file or directory"),
    ("entries are sound", "no damage in"),
    ("crawl to go on with", "crawl to resume"),
    ("the same command goes on", "run the same command to resume"),
    ("what is left must wait", "the remaining hosts must wait"),
    ("what is in flight", "open requests"),
    ("once more to stop", "again to stop"),
    ("name the one given", "pass the directory given"),
    ("can be reached by others", "other machines can reach"),
    ("name a contact", "set --contact"),
    ("fewer or other words may", "try fewer or different words"),
    ("how to ask", "query syntax"),
    ("an answer takes", "response time"),
    ("take back the last", "undo"),
    ("made a mistake over", "failed to handle"),
    ("this takes too long", "timed out"),
    ("wants what judges", "to match the judges"),
    ("so that rivals", "other tools"),
    ("what a run is told", "settings of a run"),
    ("for those who wait", "progress"),
    ("what did not become one", "skipped records"),
    ("how many of what", "counters"),
    ("asks an index", "queries an index"),
    ("to look at everything", "web pages for"),
    ("whoever reads our", "the reader"),
    ("whoever asks", "clients"),
    ("came twice", "overlap of samples"),
    ("being alike", "similarity"),
    ("two are not alike", "upper bound on the similarity"),
    ("known to be alike", "given duplicate pairs"),
    ("that pairs tie", "cluster"),
    ("directly or through others", "cluster"),
    (
        "only people can say how right",
        "only people can say how accurate",
    ),
    ("would have been asked", "would have been requested"),
    ("has all that happened", "makes all changes"),
    ("if it is time to and", "if it is due and"),
    ("files as it gives", "files as the system allows"),
    ("is no fault of", "is not an error of"),
    ("leaves a host alone", "gives up a host"),
    ("the process holds", "memory of the process"),
    ("processor time", "CPU time"),
    ("that is all there is", "nothing else"),
    ("unless told", "default"),
    ("lies about", "gives wrong"),
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

/// A line without its indentation and the marks of a comment, in lower case.
fn bare(line: &str) -> String {
    let line = line.trim();
    let marks = ["//!", "///", "//", "#", ">", "-"];
    let bare = marks.iter().find_map(|mark| line.strip_prefix(mark));
    bare.unwrap_or(line)
        .trim_end_matches('\\')
        .trim()
        .to_lowercase()
}

/// The forbidden phrases of a text, also those that continue on the next line: the number of the
/// line, the phrase and its replacement.
fn forbidden(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let mut joined = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for line in text.lines().map(bare) {
        starts.push(joined.len());
        joined += &line;
        // Phrases do not extend over paragraphs.
        joined.push(if line.is_empty() { '\n' } else { ' ' });
    }
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    let mut found = Vec::new();
    for (phrase, instead) in PHRASES {
        for (at, _) in joined.match_indices(phrase) {
            let before = joined[..at].chars().next_back();
            let after = joined[at + phrase.len()..].chars().next();
            if !is_letter(before) && !is_letter(after) {
                let number = starts.partition_point(|&start| start <= at);
                found.push((number, phrase, instead));
            }
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn issue_32_phrases_are_found_across_lines() {
    let text =
        "    /// Copies of a page, in 1\n    /// groups.\n\n    // Drawn\n    // by lottery\n";
    assert_eq!(forbidden(text), [(1, "in 1 groups", "in 1 cluster")]);
    assert_eq!(
        forbidden("standby lot\n\nby\nlot"),
        [(3, "by lot", "random sample")]
    );
}

#[test]
fn issue_32_phrases_that_must_not_be_used() {
    let mut found = Vec::new();
    for (path, text) in texts() {
        // These files list them.
        if path.ends_with("tests/it/words.rs") || path.ends_with("docs/glossary.md") {
            continue;
        }
        for (line, phrase, instead) in forbidden(&text) {
            let path = path.display();
            found.push(format!("{path}:{line}: {phrase:?}; write {instead:?}"));
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
