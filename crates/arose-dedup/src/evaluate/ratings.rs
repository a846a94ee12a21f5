//! Ratings of sampled pairs of a run: storage and tables.
//!
//! *Question.* What is the precision of a run on this very corpus, by similarity range, on the same
//! site and between sites, and do the raters agree?
//!
//! *Idea.* Raters sort sampled pairs into [`Verdict`]s. Every rating is a line of `ratings.jsonl`
//! in the directory of the run, with the scores of the pair at that time. A line is appended and
//! synced to disk before the rater sees the next pair, and no line is ever changed. The last rating
//! of a pair by a rater counts, and a rater can withdraw it with another line. A pair rated by
//! several people counts once, with the rating of the majority; a tie is undecided. [`Tables`] are
//! those of Henzinger 2006: shares of the ratings by B-sim and C-sim, on the same site and between
//! sites, with Wilson's intervals, and Cohen's kappa between raters.
//!
//! *Repeated runs.* A line notes what identifies the two documents, so that it finds its pair again
//! when the run is repeated in the directory; see [`Ratings::of_run`].
//!
//! *Error.* Pairs are sampled range by range, once by B-sim and once by C-sim, so a rated pair
//! represents only the range it was sampled from, which its line notes. Shares of all pairs, and of
//! those on the same site or between sites, are weighted by the number of pairs that the run has
//! found in each range ([`weighted()`]). They come from the sample with more ratings, and the
//! samples are never mixed. Lines without a sample count as ratings but estimate nothing.
//!
//! *Damage.* A last line truncated by a crash is skipped, and the next rating starts a new line.
//! Any other malformed line is an error that names it.

mod agreement;
mod matching;
mod population;
mod weighted;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use arose::judgement::{Tally, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Error;
use crate::disk::sync_folder;
pub use agreement::Agreement;
use agreement::raters;
pub use population::{Level, Population, SitesOf};
pub use weighted::{WeightedShare, weighted};

/// Maximum length of the name of a rater, in characters.
pub const MAX_RATER: usize = 40;

/// The relation of the sites of two documents, by their URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sites {
    /// One site.
    Same,
    /// Two sites.
    Different,
    /// A document has no URL.
    Unknown,
}

impl Sites {
    /// Returns the relation of two sites.
    #[must_use]
    pub fn of(a: Option<&str>, b: Option<&str>) -> Self {
        match (a, b) {
            (Some(a), Some(b)) if a == b => Self::Same,
            (Some(_), Some(_)) => Self::Different,
            _ => Self::Unknown,
        }
    }
}

/// The score by whose ranges a sample of pairs was drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// B-sim.
    #[default]
    B,
    /// C-sim.
    C,
}

impl By {
    /// Returns the sample of a name; any other name is the sample by B-sim.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name {
            "c" => Self::C,
            _ => Self::B,
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::B => "b",
            Self::C => "c",
        }
    }
}

/// One line: the rating of a pair by a rater.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// Seconds since 1970.
    pub time: u64,
    /// The rater.
    pub rater: String,
    /// The ordinal of the first document.
    pub a: u64,
    /// The ordinal of the second.
    pub b: u64,
    /// The ID of the first document.
    pub id_a: String,
    /// The ID of the second.
    pub id_b: String,
    /// The content digest of the first document, in hexadecimal; empty in old files.
    #[serde(default)]
    pub digest_a: String,
    /// The content digest of the second.
    #[serde(default)]
    pub digest_b: String,
    /// The pair's Jaccard similarity.
    pub jaccard: Option<f64>,
    /// Common super-shingles.
    pub b_sim: Option<u32>,
    /// Matching simhash bits.
    pub c_sim: Option<u32>,
    /// Whether the documents are on one site.
    pub sites: Sites,
    /// The sample to which it belongs; none in old files.
    #[serde(default)]
    pub drawn_by: Option<By>,
    /// The similarity range from which it was sampled; none in old files.
    #[serde(default)]
    pub range: Option<String>,
    /// The rating; none withdraws the previous one.
    #[serde(with = "verdict_name")]
    pub verdict: Option<Verdict>,
}

/// Ratings by their names in files.
mod verdict_name {
    use arose::judgement::Verdict;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        verdict: &Option<Verdict>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        verdict.map(Verdict::as_str).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Verdict>, D::Error> {
        let name: Option<String> = Option::deserialize(deserializer)?;
        name.map(|name| name.parse())
            .transpose()
            .map_err(D::Error::custom)
    }
}

/// The ratings of a run, and the file that contains them.
#[derive(Debug)]
pub struct Ratings {
    path: PathBuf,
    /// Also guards the file: a line is appended to both or to neither.
    lines: Mutex<Vec<Rating>>,
    /// Number of valid ratings of pairs that the run does not list.
    n_elsewhere: u64,
}

impl Ratings {
    /// Reads `ratings.jsonl` in the directory of a run, if it exists, and matches its lines with
    /// the pairs of the run. Lines from before the run was repeated may be about pairs with other
    /// ordinals, or about pairs that it does not list. The latter stay in the file and are counted.
    ///
    /// # Errors
    ///
    /// If a file of the directory cannot be read, or a complete line is malformed.
    pub fn of_run(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("ratings.jsonl");
        let matched = matching::match_run(read(&path)?, folder)?;
        Ok(Self {
            path,
            lines: Mutex::new(matched.lines),
            n_elsewhere: matched.n_elsewhere,
        })
    }

    /// Returns the tables of the ratings.
    #[must_use]
    pub fn tables(&self, population: &Population) -> Tables {
        Tables {
            n_elsewhere: self.n_elsewhere,
            ..Tables::new(&self.lines(), population)
        }
    }

    /// Returns all lines about pairs of the run so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Rating> {
        self.lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Appends a line. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// If the file cannot be written. The rating is then not recorded.
    pub fn append(&self, rating: Rating) -> Result<(), Error> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = serde_json::to_string(&rating).expect("a rating is plain data");
        append_line(&self.path, &line).map_err(Error::io("write", &self.path))?;
        lines.push(rating);
        Ok(())
    }
}

/// Appends a line to a file and syncs it to disk.
fn append_line(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    let n_bytes = file.metadata()?.len();
    // Ends a line that is partial after a crash, so that this one is complete.
    let start = if n_bytes > 0 && last_byte(&mut file, n_bytes)? != b'\n' {
        "\n"
    } else {
        ""
    };
    file.write_all(format!("{start}{line}\n").as_bytes())?;
    file.sync_data()?;
    // The first line creates the file, whose name must be durable as well.
    match (n_bytes, path.parent()) {
        (0, Some(folder)) if folder.as_os_str().is_empty() => sync_folder(Path::new(".")),
        (0, Some(folder)) => sync_folder(folder),
        _ => Ok(()),
    }
}

fn last_byte(file: &mut File, n_bytes: u64) -> std::io::Result<u8> {
    use std::io::{Seek, SeekFrom};
    let mut byte = [0];
    file.seek(SeekFrom::Start(n_bytes - 1))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Returns the lines of a file; none if it does not exist.
fn read(path: &Path) -> Result<Vec<Rating>, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    let mut ratings = Vec::new();
    let mut torn: Option<(u64, String)> = None;
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(rating) => ratings.push(rating),
            // A partial line is the beginning of one, so its end is missing.
            Err(error) if error.is_eof() => {}
            Err(error) => torn = torn.or(Some((number, error.to_string()))),
        }
    }
    match torn {
        None => Ok(ratings),
        Some((line, flaw)) => Err(Error::Line {
            path: path.to_owned(),
            line,
            flaw: format!("not a rating: {flaw}; correct or remove the line"),
        }),
    }
}

/// The two documents of a pair.
pub type PairKey = (u64, u64);

/// The current rating of each pair by each rater.
#[must_use]
pub fn current<'a>(
    lines: impl IntoIterator<Item = &'a Rating>,
) -> BTreeMap<PairKey, BTreeMap<&'a str, &'a Rating>> {
    let mut pairs: BTreeMap<PairKey, BTreeMap<&'a str, &'a Rating>> = BTreeMap::new();
    for line in lines {
        let raters = pairs.entry((line.a, line.b)).or_default();
        match line.verdict {
            Some(_) => raters.insert(&line.rater, line),
            None => raters.remove(&*line.rater),
        };
    }
    pairs.retain(|_, raters| !raters.is_empty());
    pairs
}

/// Returns the rating of the majority; undecided if there is none.
fn verdict_of_most(ratings: &BTreeMap<&str, &Rating>) -> Option<Verdict> {
    let tally: Tally = ratings
        .values()
        .filter_map(|rating| rating.verdict)
        .collect();
    let most = Verdict::ALL
        .into_iter()
        .map(|verdict| tally.count(verdict))
        .max()?;
    let mut winners = Verdict::ALL
        .into_iter()
        .filter(|&verdict| tally.count(verdict) == most);
    match (winners.next(), winners.next()) {
        (Some(winner), None) => Some(winner),
        (Some(_), Some(_)) => Some(Verdict::Undecided),
        _ => None,
    }
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The common property of the pairs.
    pub name: String,
    /// Number of pairs that the run has found there, if known.
    pub n_found: Option<u64>,
    /// Counts of the ratings.
    pub tally: Tally,
    /// The share of each rating, in the order of [`Verdict::ALL`]; none if a similarity range has
    /// no rating.
    pub shares: [Option<WeightedShare>; 3],
}

impl Row {
    /// Creates a row of pairs that were drawn with the same probability.
    #[must_use]
    pub fn plain(name: String, n_found: Option<u64>, tally: Tally) -> Self {
        let shares = Verdict::ALL.map(|verdict| {
            Some(WeightedShare {
                value: tally.share(verdict)?,
                interval: tally.interval(verdict),
            })
        });
        Self {
            name,
            n_found,
            tally,
            shares,
        }
    }

    /// Creates a row of several ranges, each weighted by the pairs found in it.
    fn of_strata(name: &str, strata: &[(u64, Tally)]) -> Self {
        let shares = Verdict::ALL.map(|verdict| {
            let strata = strata.iter();
            weighted(strata.map(|(n, tally)| (*n, tally.count(verdict), tally.total())))
        });
        let mut tally = Tally::default();
        for (_, part) in strata {
            tally.correct += part.correct;
            tally.incorrect += part.incorrect;
            tally.undecided += part.undecided;
        }
        Self {
            name: name.to_owned(),
            n_found: Some(strata.iter().map(|(n, _)| n).sum()),
            tally,
            shares,
        }
    }
}

/// All tables of the ratings.
#[derive(Debug, Clone, PartialEq)]
pub struct Tables {
    /// Counts of all rated pairs.
    pub all: Tally,
    /// The sample from which the shares of all pairs and by site are estimated.
    pub sample: By,
    /// By B-sim, from the pairs sampled by it. The first row is all of them, weighted.
    pub by_b: Vec<Row>,
    /// By C-sim, likewise.
    pub by_c: Vec<Row>,
    /// All pairs, then by site: same, different, unknown; weighted.
    pub by_sites: Vec<Row>,
    /// Number of pairs that each rater has rated, by rating.
    pub raters: Vec<(String, Tally)>,
    /// Every two raters with pairs in common.
    pub agreements: Vec<Agreement>,
    /// Number of ratings of pairs that the run does not list, which are in no table.
    pub n_elsewhere: u64,
    /// Number of pairs whose ratings do not say from which sample they are.
    pub n_undrawn: u64,
}

/// Pairs with the rating of the majority.
type Judged<'a> = Vec<(&'a Rating, Verdict)>;

fn judged<'a>(lines: impl IntoIterator<Item = &'a Rating>) -> Judged<'a> {
    let pairs = current(lines);
    let pairs = pairs.values();
    pairs
        .filter_map(|raters| Some((*raters.values().next()?, verdict_of_most(raters)?)))
        .collect()
}

impl Tables {
    /// Puts ratings into tables.
    #[must_use]
    pub fn new(lines: &[Rating], population: &Population) -> Self {
        let drawn = |by| judged(lines.iter().filter(move |line| line.drawn_by == Some(by)));
        let (drawn_by_b, drawn_by_c) = (drawn(By::B), drawn(By::C));
        let (sample, most) = match drawn_by_c.len() > drawn_by_b.len() {
            true => (By::C, &drawn_by_c),
            false => (By::B, &drawn_by_b),
        };
        let (raters, agreements) = raters(&current(lines));
        let undrawn = lines.iter().filter(|line| line.drawn_by.is_none());
        Self {
            all: tally(&judged(lines), |_| true),
            sample,
            by_b: rows(&drawn_by_b, By::B, population),
            by_c: rows(&drawn_by_c, By::C, population),
            by_sites: site_rows(most, sample, population),
            raters,
            agreements,
            n_elsewhere: 0,
            n_undrawn: judged(undrawn).len() as u64,
        }
    }

    /// Returns the share of correct pairs among all that the run has found, each similarity range
    /// weighted by its size. None until every range with pairs has a rated pair.
    #[must_use]
    pub fn precision(&self) -> Option<WeightedShare> {
        self.by_sites.first()?.shares[0]
    }

    /// Returns the tables as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows = |rows: &[Row]| -> Vec<Value> {
            let rows = rows.iter().map(
                |row| json!({ "name": row.name, "found": row.n_found, "rated": row_to_json(row) }),
            );
            rows.collect()
        };
        let raters = self.raters.iter().map(|(name, own)| {
            let row = Row::plain(String::new(), None, *own);
            json!({ "rater": name, "rated": row_to_json(&row) })
        });
        let agreements = self.agreements.iter().map(|agreement| {
            json!({
                "raters": [agreement.raters.0, agreement.raters.1],
                "pairs": agreement.n_pairs,
                "agreed": agreement.n_agreed,
                "kappa": agreement.kappa,
            })
        });
        let all = Row {
            tally: self.all,
            ..self
                .by_sites
                .first()
                .cloned()
                .unwrap_or_else(|| Row::plain(String::new(), None, self.all))
        };
        let precision = self.precision();
        json!({
            "all": row_to_json(&all),
            "precision": precision.map(|share| share.value),
            "precision_interval": precision.map(|share| [share.interval.low, share.interval.high]),
            "sample": self.sample.as_str(),
            "by_b_sim": rows(&self.by_b),
            "by_c_sim": rows(&self.by_c),
            "by_sites": rows(&self.by_sites),
            "raters": raters.collect::<Vec<_>>(),
            "agreement": agreements.collect::<Vec<_>>(),
            "elsewhere": self.n_elsewhere,
            "without_sample": self.n_undrawn,
        })
    }
}

fn row_to_json(row: &Row) -> Value {
    let share = |number: usize| {
        let share = row.shares[number];
        json!({
            "pairs": row.tally.count(Verdict::ALL[number]),
            "share": share.map(|share| share.value),
            "interval": share.map(|share| [share.interval.low, share.interval.high]),
        })
    };
    json!({
        "pairs": row.tally.total(),
        "correct": share(0),
        "incorrect": share(1),
        "undecided": share(2),
    })
}

fn tally(judged: &[(&Rating, Verdict)], belongs: impl Fn(&Rating) -> bool) -> Tally {
    let own = judged.iter().filter(|(rating, _)| belongs(rating));
    own.map(|(_, verdict)| *verdict).collect()
}

fn level_of(by: By, rating: &Rating) -> Level {
    Level::of(by, rating.b_sim, rating.c_sim)
}

/// Returns all pairs of a sample, and each of its ranges.
fn rows(judged: &[(&Rating, Verdict)], by: By, population: &Population) -> Vec<Row> {
    let rated = judged.iter().map(|(rating, _)| level_of(by, rating));
    let levels: BTreeSet<Level> = population.levels(by).chain(rated).collect();
    let strata: Vec<(Level, Option<u64>, Tally)> = levels
        .into_iter()
        .map(|level| {
            let own = tally(judged, |rating| level_of(by, rating) == level);
            (level, population.count(by, level, |_| true), own)
        })
        .collect();
    let sizes = strata.iter();
    let sizes: Vec<(u64, Tally)> = sizes.map(|(_, n, own)| (n.unwrap_or(0), *own)).collect();
    let all = Row::of_strata("all", &sizes);
    let ranges = strata
        .into_iter()
        .map(|(level, n, own)| Row::plain(level.name(), n, own));
    std::iter::once(all).chain(ranges).collect()
}

/// Returns all pairs, and those of each relation of sites, estimated from one sample.
fn site_rows(judged: &[(&Rating, Verdict)], by: By, population: &Population) -> Vec<Row> {
    let levels: BTreeSet<Level> = population.levels(by).collect();
    let row = |name: &str, is_wanted: &dyn Fn(Sites) -> bool| {
        let strata = levels.iter().map(|&level| {
            let own = tally(judged, |rating| {
                level_of(by, rating) == level && is_wanted(rating.sites)
            });
            (population.count(by, level, is_wanted).unwrap_or(0), own)
        });
        Row::of_strata(name, &strata.collect::<Vec<_>>())
    };
    let mut rows = vec![
        row("all", &|_| true),
        row("same site", &|sites| sites == Sites::Same),
        row("different sites", &|sites| sites == Sites::Different),
    ];
    let unknown = row("site unknown", &|sites| sites == Sites::Unknown);
    if unknown.n_found.is_some_and(|n| n > 0) || unknown.tally.total() > 0 {
        rows.push(unknown);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Correct, Incorrect, Undecided};

    fn rating(rater: &str, a: u64, verdict: Option<Verdict>) -> Rating {
        Rating {
            time: 1,
            rater: rater.to_owned(),
            a,
            b: a + 1,
            id_a: "a".to_owned(),
            id_b: "b".to_owned(),
            digest_a: String::new(),
            digest_b: String::new(),
            jaccard: Some(0.9),
            b_sim: Some((a % 7) as u32),
            c_sim: Some(370 + a as u32),
            sites: if a.is_multiple_of(2) {
                Sites::Same
            } else {
                Sites::Different
            },
            drawn_by: Some(By::B),
            range: Some((a % 7).to_string()),
            verdict,
        }
    }

    fn unmatched(path: &Path) -> Result<Ratings, Error> {
        Ok(Ratings {
            path: path.to_owned(),
            lines: Mutex::new(read(path)?),
            n_elsewhere: 0,
        })
    }

    #[test]
    fn lines_survive_and_torn_ones_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ratings.jsonl");
        let ratings = unmatched(&path).unwrap();
        ratings.append(rating("x", 0, Some(Correct))).unwrap();
        ratings.append(rating("x", 0, None)).unwrap();
        let written = std::fs::read(&path).unwrap();
        // After a cut at any position, the lines before the cut are read, and the next one is
        // complete.
        for cut in 0..written.len() {
            std::fs::write(&path, &written[..cut]).unwrap();
            let ratings = unmatched(&path).unwrap();
            let n_whole = ratings.lines().len();
            ratings.append(rating("y", 3, Some(Undecided))).unwrap();
            let again = unmatched(&path).unwrap().lines();
            assert_eq!(again.len(), n_whole + 1, "{cut}");
            assert_eq!(again, ratings.lines());
        }
        std::fs::write(&path, "{\"time\": 1}\n").unwrap();
        let error = unmatched(&path).unwrap_err().to_string();
        assert!(error.contains("ratings.jsonl:1: not a rating"), "{error}");
    }

    #[test]
    fn the_last_word_counts_and_most_decide() {
        let lines = [
            rating("x", 0, Some(Incorrect)),
            rating("x", 0, Some(Correct)),
            rating("y", 0, Some(Correct)),
            rating("z", 0, Some(Incorrect)),
            rating("x", 1, Some(Correct)),
            rating("y", 1, Some(Incorrect)),
            rating("x", 2, Some(Correct)),
            rating("x", 2, None),
        ];
        let tables = Tables::new(&lines, &Population::default());
        let expected = Tally {
            correct: 1,
            incorrect: 0,
            undecided: 1,
        };
        assert_eq!(tables.all, expected);
        assert_eq!(tables.raters[0].1.total(), 2);
        let xy = &tables.agreements[0];
        assert_eq!((&*xy.raters.0, &*xy.raters.1), ("x", "y"));
        assert_eq!((xy.n_pairs, xy.n_agreed), (2, 1));
    }

    #[test]
    fn issue_23_ranges_and_their_weights() {
        let mut population = Population::default();
        (0..300).for_each(|_| population.add(Some(2), Some(371), Sites::Same));
        (0..100).for_each(|_| population.add(Some(3), Some(384), Sites::Different));
        let mut lines = vec![
            rating("x", 2, Some(Correct)),
            rating("x", 9, Some(Incorrect)),
            rating("x", 3, Some(Correct)),
        ];
        lines[1].sites = Sites::Same;
        let tables = Tables::new(&lines, &population);
        let names =
            |rows: &[Row]| -> Vec<String> { rows.iter().map(|row| row.name.clone()).collect() };
        assert_eq!(names(&tables.by_b), ["all", "2", "3"]);
        assert_eq!(names(&tables.by_c), ["all", "below 372", "381-384"]);
        // Half of three quarters and all of a quarter, not two of three.
        let precision = tables.precision().unwrap();
        assert_eq!(precision.value, 0.625);
        assert!(precision.interval.low < 0.4 && precision.interval.high > 0.8);
        assert_eq!(tables.by_b[0].shares[0], Some(precision));
        let by_site: Vec<Option<f64>> = tables
            .by_sites
            .iter()
            .map(|row| row.shares[0].map(|share| share.value))
            .collect();
        assert_eq!(by_site, [Some(0.625), Some(0.5), Some(1.0)]);
        assert_eq!(tables.by_sites[1].n_found, Some(300));
        // A range without a rating, and ratings of the other sample, estimate nothing.
        assert_eq!(Tables::new(&lines[..2], &population).precision(), None);
        lines[2].drawn_by = Some(By::C);
        assert_eq!(Tables::new(&lines, &population).precision(), None);
        lines[2].drawn_by = None;
        let undrawn = Tables::new(&lines, &population);
        assert_eq!((undrawn.n_undrawn, undrawn.all.total()), (1, 3));
    }

    /// The first rating creates the file, and its name is on disk when the rating is acknowledged.
    #[test]
    fn issue_23_the_first_rating_syncs_the_directory() {
        use crate::disk::{DiskChange, Recording};
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::start(folder.path());
        let ratings = unmatched(&folder.path().join("ratings.jsonl")).unwrap();
        ratings.append(rating("x", 0, Some(Correct))).unwrap();
        let syncs = |changes: &[DiskChange]| {
            let is_sync = |change: &&DiskChange| matches!(change, DiskChange::SyncFolder { .. });
            changes.iter().filter(is_sync).count()
        };
        assert_eq!(syncs(&recording.changes()), 1);
        ratings.append(rating("x", 1, Some(Correct))).unwrap();
        assert_eq!(syncs(&recording.changes()), 1);
    }
}
