//! Matches the ratings of an earlier run with the pairs of the current one.
//!
//! *Question.* The pairs of a directory were rated, and then the run was repeated: with more input,
//! in another order, with other settings. Documents have other ordinals, and some pairs no longer
//! exist. Which ratings still apply?
//!
//! *Idea.* A rating is about two texts. Look for a pair of the run whose documents have the digests
//! noted with the rating, in either order. Of several (exact duplicates have the same digest), take
//! one whose documents have the noted IDs, then the noted ordinals, then the first. Lines without
//! digests, from earlier versions, are matched by IDs alone. A matched rating takes ordinals,
//! scores and sites from the run, so that it is in the right row of every table. An unmatched
//! rating is about texts that have changed or no longer exist, or that the run does not list as a
//! pair. It stays in the file, is counted, and says nothing about this run.
//!
//! *Cost.* One pass over the documents and one over the pairs; memory for the documents with a
//! noted digest or ID. *Error.* Texts with the same words have the same digest and get the same
//! rating.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::{Rating, Sites};
use crate::results::{Error, Pair, documents, pairs};

/// The result of matching.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Matched {
    /// Lines about pairs of this run, in their order, with the data of this run.
    pub(super) lines: Vec<Rating>,
    /// Number of valid ratings of other pairs.
    pub(super) n_elsewhere: u64,
}

/// Matches lines with the tables of a run.
pub(super) fn match_run(lines: Vec<Rating>, folder: &Path) -> Result<Matched, Error> {
    if lines.is_empty() {
        return Ok(Matched::default());
    }
    let known = RatedDocuments::read(&lines, &folder.join("documents.parquet"))?;
    let found = known.find(&lines, &folder.join("pairs.parquet"))?;
    let mut matched = Matched::default();
    let mut elsewhere: BTreeMap<(Note<'_>, &str), bool> = BTreeMap::new();
    for line in &lines {
        match found.get(&Note::of(line)) {
            Some(candidate) => matched.lines.push(candidate.rename(line, &known)),
            None => {
                let is_standing = line.verdict.is_some();
                elsewhere.insert((Note::of(line), &line.rater), is_standing);
            }
        }
    }
    let standing = elsewhere.values().filter(|is_standing| **is_standing);
    matched.n_elsewhere = standing.count() as u64;
    Ok(matched)
}

/// A pair as noted in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Note<'a> {
    docs: (u64, u64),
    ids: (&'a str, &'a str),
    digests: (&'a str, &'a str),
}

impl<'a> Note<'a> {
    fn of(line: &'a Rating) -> Self {
        Self {
            docs: (line.a, line.b),
            ids: (&line.id_a, &line.id_b),
            digests: (&line.digest_a, &line.digest_b),
        }
    }

    /// Returns the keys by which its documents are recognized, the smaller first: their order does
    /// not matter.
    fn keys(&self) -> (Key, Key) {
        let (a, b) = match self.digests {
            ("", _) | (_, "") => (Key::id(self.ids.0), Key::id(self.ids.1)),
            (a, b) => (Key::digest(a), Key::digest(b)),
        };
        in_order(a, b)
    }

    /// Returns which other data are as noted: the IDs, and the ordinals.
    fn closeness(&self, pair: &Pair, [a, b]: [&Document; 2]) -> (bool, bool) {
        let ids = [(&*a.id, &*b.id), (&*b.id, &*a.id)];
        (ids.contains(&self.ids), self.docs == (pair.a, pair.b))
    }
}

/// The key by which a document is recognized.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Digest(String),
    Id(String),
}

impl Key {
    fn digest(digest: &str) -> Self {
        Self::Digest(digest.to_owned())
    }

    fn id(id: &str) -> Self {
        Self::Id(id.to_owned())
    }
}

fn in_order(a: Key, b: Key) -> (Key, Key) {
    if a <= b { (a, b) } else { (b, a) }
}

/// A document that may have been rated.
struct Document {
    id: String,
    digest: String,
    site: Option<String>,
}

/// Returns the documents that may have been rated, by ordinal.
struct RatedDocuments(HashMap<u64, Document>);

impl RatedDocuments {
    fn read(lines: &[Rating], path: &Path) -> Result<Self, Error> {
        let mut wanted = HashSet::new();
        for line in lines {
            let (a, b) = Note::of(line).keys();
            wanted.extend([a, b]);
        }
        let mut known = HashMap::new();
        documents::for_each(path, |doc, detail| {
            let keys = [Key::digest(&detail.digest), Key::id(&detail.id)];
            if keys.iter().any(|key| wanted.contains(key)) {
                let document = Document {
                    site: detail.url.as_deref().and_then(documents::site_of),
                    id: detail.id,
                    digest: detail.digest,
                };
                known.insert(doc, document);
            }
            Ok::<_, Error>(())
        })?;
        Ok(Self(known))
    }

    /// Returns the pair of the run for each note.
    fn find<'a>(
        &self,
        lines: &'a [Rating],
        path: &Path,
    ) -> Result<BTreeMap<Note<'a>, Candidate>, Error> {
        let mut wanted: HashMap<(Key, Key), BTreeSet<Note<'a>>> = HashMap::new();
        for note in lines.iter().map(Note::of) {
            wanted.entry(note.keys()).or_default().insert(note);
        }
        let mut found: BTreeMap<Note<'a>, Candidate> = BTreeMap::new();
        pairs::for_each(path, |pair| {
            let (Some(a), Some(b)) = (self.0.get(&pair.a), self.0.get(&pair.b)) else {
                return Ok(());
            };
            let by_digest = in_order(Key::digest(&a.digest), Key::digest(&b.digest));
            let by_id = in_order(Key::id(&a.id), Key::id(&b.id));
            let notes = [by_digest, by_id].into_iter();
            for note in notes.filter_map(|key| wanted.get(&key)).flatten() {
                let closeness = note.closeness(&pair, [a, b]);
                let held = found.get(note).map(|candidate| candidate.closeness);
                if held.is_none_or(|held| held < closeness) {
                    let pair = pair.clone();
                    found.insert(*note, Candidate { pair, closeness });
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn sites(&self, pair: &Pair) -> Sites {
        let site = |doc: u64| self.0.get(&doc)?.site.as_deref();
        Sites::of(site(pair.a), site(pair.b))
    }
}

/// A pair of the run.
struct Candidate {
    pair: Pair,
    closeness: (bool, bool),
}

impl Candidate {
    /// Creates a line about this pair.
    fn rename(&self, line: &Rating, known: &RatedDocuments) -> Rating {
        let pair = &self.pair;
        let text = |doc: u64, of: fn(&Document) -> &String| {
            known.0.get(&doc).map(of).cloned().unwrap_or_default()
        };
        Rating {
            a: pair.a,
            b: pair.b,
            id_a: text(pair.a, |document| &document.id),
            id_b: text(pair.b, |document| &document.id),
            digest_a: text(pair.a, |document| &document.digest),
            digest_b: text(pair.b, |document| &document.digest),
            jaccard: pair.jaccard,
            b_sim: pair.b_sim,
            c_sim: pair.c_sim,
            sites: known.sites(pair),
            time: line.time,
            rater: line.rater.clone(),
            drawn_by: line.drawn_by,
            range: line.range.clone(),
            verdict: line.verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::ratings::{Population, Ratings};
    use crate::{Config, ListedPairs, Progress, Start};
    use arose::judgement::Verdict;
    use arose::rule::Criterion;
    use std::fs;

    /// A page: its ID and its text.
    type Page = (&'static str, String);

    /// Six pages that differ in a word, two of which have the same text.
    fn pages() -> Vec<Page> {
        let prose: String = (0..150).map(|i| format!("word{} ", i * 7 % 97)).collect();
        let names = ["p0", "p1", "p2", "p3", "p4", "p5"];
        let page = |(i, id)| (id, format!("{prose}number {}", i / 5 * 3 + i));
        let mut pages: Vec<Page> = names.into_iter().enumerate().map(page).collect();
        pages[3].1 = pages[2].1.clone();
        pages
    }

    /// Writes the directory again from these pages.
    fn run(folder: &Path, pages: &[Page]) {
        let input = folder.join("pages.jsonl");
        let line = |(id, text): &Page| {
            let url = format!("https://{id}.example.org/");
            format!(
                "{}\n",
                serde_json::json!({ "id": id, "url": url, "text": text })
            )
        };
        fs::write(&input, pages.iter().map(line).collect::<String>()).unwrap();
        let config = Config {
            pairs: ListedPairs::All,
            ..Config::of(Criterion::jaccard())
        };
        let progress = Progress::default();
        crate::run(
            &[input],
            &config,
            &folder.join("out"),
            Start::Anew,
            &progress,
        )
        .unwrap();
    }

    /// Rates every pair of the run: correct if `p0` is in it.
    fn rate_all(out: &Path) {
        let ratings = Ratings::of_run(out).unwrap();
        let mut documents = BTreeMap::new();
        documents::for_each(&out.join("documents.parquet"), |doc, detail| {
            documents.insert(doc, detail);
            Ok::<_, Error>(())
        })
        .unwrap();
        pairs::for_each(&out.join("pairs.parquet"), |pair| {
            let [a, b] = [&documents[&pair.a], &documents[&pair.b]];
            let is_correct = a.id == "p0" || b.id == "p0";
            let rating = Rating {
                time: 1,
                rater: "x".to_owned(),
                a: pair.a,
                b: pair.b,
                id_a: a.id.clone(),
                id_b: b.id.clone(),
                digest_a: a.digest.clone(),
                digest_b: b.digest.clone(),
                jaccard: pair.jaccard,
                b_sim: pair.b_sim,
                c_sim: pair.c_sim,
                sites: Sites::Different,
                drawn_by: None,
                range: None,
                verdict: Some([Verdict::Incorrect, Verdict::Correct][usize::from(is_correct)]),
            };
            ratings.append(rating).unwrap();
            Ok(())
        })
        .unwrap();
    }

    /// The IDs of the pairs rated correct, the number of pairs rated otherwise, and of unmatched
    /// ratings.
    fn said(out: &Path) -> (BTreeSet<(String, String)>, u64, u64) {
        let ratings = Ratings::of_run(out).unwrap();
        let tables = ratings.tables(&Population::of_run(out).unwrap());
        let lines = ratings.lines().into_iter();
        let correct = lines.filter(|line| line.verdict == Some(Verdict::Correct));
        let ids = correct.map(|line| match line.id_a < line.id_b {
            true => (line.id_a, line.id_b),
            false => (line.id_b, line.id_a),
        });
        (ids.collect(), tables.all.incorrect, tables.n_elsewhere)
    }

    #[test]
    fn other_ordinals_and_the_same_texts() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        run(folder.path(), &pages());
        rate_all(&out);
        let before = said(&out);
        assert!(
            before.0.len() >= 4 && before.1 >= 4 && before.2 == 0,
            "{before:?}"
        );
        let written = fs::read(out.join("ratings.jsonl")).unwrap();
        let mut turned = pages();
        turned.reverse();
        turned.insert(0, ("new", "something else altogether".to_owned()));
        run(folder.path(), &turned);
        assert_eq!(said(&out), before);
        let docs = |out: &Path| -> BTreeSet<(u64, u64)> {
            let lines = Ratings::of_run(out).unwrap().lines();
            lines.iter().map(|line| (line.a, line.b)).collect()
        };
        assert!(
            docs(&out).iter().all(|&(a, b)| 0 < a && a < b),
            "{:?}",
            docs(&out)
        );
        assert_eq!(fs::read(out.join("ratings.jsonl")).unwrap(), written);
    }

    #[test]
    fn what_is_no_pair_any_more_is_counted_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        run(folder.path(), &pages());
        rate_all(&out);
        let before = said(&out);
        let mut changed = pages();
        changed[0].1 = "roses are red and this is another page by now".to_owned();
        run(folder.path(), &changed);
        let n_correct = before.0.len() as u64;
        assert_eq!(said(&out), (BTreeSet::new(), before.1, n_correct));
        // Withdrawing one of them with its old data leaves one fewer.
        let text = fs::read_to_string(out.join("ratings.jsonl")).unwrap();
        let line = text
            .lines()
            .find(|line| line.contains("\"correct\""))
            .unwrap();
        let undone = line.replace("\"correct\"", "null");
        fs::write(out.join("ratings.jsonl"), format!("{text}{undone}\n")).unwrap();
        assert_eq!(said(&out).2, n_correct - 1);
        // When the texts return, so do the ratings.
        fs::write(out.join("ratings.jsonl"), text).unwrap();
        run(folder.path(), &pages());
        assert_eq!(said(&out), before);
    }

    #[test]
    fn old_lines_are_known_by_their_ids() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        run(folder.path(), &pages());
        rate_all(&out);
        let before = said(&out);
        let text = fs::read_to_string(out.join("ratings.jsonl")).unwrap();
        let without = text.lines().map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            for field in ["digest_a", "digest_b"] {
                line.as_object_mut().unwrap().remove(field).unwrap();
            }
            format!("{line}\n")
        });
        fs::write(out.join("ratings.jsonl"), without.collect::<String>()).unwrap();
        let mut turned = pages();
        turned.reverse();
        run(folder.path(), &turned);
        assert_eq!(said(&out), before);
    }
}
