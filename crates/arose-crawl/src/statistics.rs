//! Crawl statistics over time, in `statistics.jsonl`.
//!
//! *Question.* Counters show the current state of a crawl. How did it get there? This should be
//! visible even after days, and also for a crawl that was killed. *Idea.* A file gets a line, a
//! JSON object, every [`EVERY`]; `docs/formats.md` has its fields. A file of [`MAX_LINES`] lines
//! loses every second one, and the interval between lines doubles. So it never exceeds some
//! megabytes and always covers the whole crawl. Nothing depends on it: a partial line is cut off at
//! the next start. The loop writes the lines ([`Statistics`]), and the thread that writes files
//! appends them ([`StatisticsFile`]).
//!
//! Times continue from the end of the previous run; the pause between two runs does not count.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::counters::{Counter, Counters};
use crate::crawl::{Freshness, Snapshot, Topic};
use crate::error::{Context, Error};
use crate::frontier::{SiteQuality, SiteStanding, Standing};
use crate::journal::HostId;

/// The file in the directory of a crawl.
pub(crate) const FILE: &str = "statistics.jsonl";

/// Initial interval between two lines.
const EVERY: Duration = Duration::from_secs(1);
const MAX_LINES: usize = 2000;
/// Maximum number of statuses in a line, the most frequent ones.
const MAX_STATUSES: usize = 32;

/// Decides when a line is written.
#[derive(Debug)]
pub(crate) struct Statistics {
    n_lines: usize,
    every: Duration,
    /// Time of the previous runs.
    before: f64,
    written: Option<Duration>,
}

/// The file, open for appending.
#[derive(Debug)]
pub(crate) struct StatisticsFile {
    path: PathBuf,
    file: File,
}

/// A line to be appended.
#[derive(Debug)]
pub(crate) struct NextLine {
    /// Whether every second line is removed before that.
    thins: bool,
    text: String,
}

/// Whether a line is the last one of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    Next,
    Last,
}

impl Statistics {
    /// Opens the file of a directory, or creates it.
    pub(crate) fn open(folder: &Path) -> Result<(Self, StatisticsFile), Error> {
        let path = folder.join(FILE);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            read => read.context("reading", &path)?,
        };
        let end = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        let whole = &text[..end];
        let n_lines = memchr::memchr_iter(b'\n', whole).count();
        let last = whole.split(|&byte| byte == b'\n').rev().nth(1);
        let before = last.and_then(seconds_of).unwrap_or(0.0);
        let file = append(&path)?;
        file.set_len(end as u64).context("cutting", &path)?;
        let every = Duration::try_from_secs_f64(before / n_lines.max(1) as f64);
        let statistics = Self {
            n_lines,
            every: every.unwrap_or(EVERY).max(EVERY),
            before,
            written: None,
        };
        Ok((statistics, StatisticsFile { path, file }))
    }

    /// Returns a line if it is time to write one, and the last one in any case.
    pub(crate) fn next_line(
        &mut self,
        line: LineKind,
        snapshot: &Snapshot,
        slowest: &[(&str, f64)],
    ) -> Option<NextLine> {
        let now = snapshot.elapsed;
        let is_due = self
            .written
            .is_none_or(|written| now >= written + self.every);
        if !is_due && line == LineKind::Next {
            return None;
        }
        self.written = Some(now);
        let thins = self.n_lines >= MAX_LINES;
        if thins {
            self.n_lines = self.n_lines.div_ceil(2);
            self.every *= 2;
        }
        self.n_lines += 1;
        let text = text(line, self.before + now.as_secs_f64(), snapshot, slowest);
        Some(NextLine { thins, text })
    }
}

impl StatisticsFile {
    /// Appends a line.
    pub(crate) fn append(&mut self, line: &NextLine) -> Result<(), Error> {
        if line.thins {
            self.thin()?;
        }
        let written = self.file.write_all(line.text.as_bytes());
        written.context("writing", &self.path)
    }

    /// Removes every second line.
    fn thin(&mut self) -> Result<(), Error> {
        let text = std::fs::read(&self.path).context("reading", &self.path)?;
        let lines = text.split_inclusive(|&byte| byte == b'\n');
        let kept: Vec<&[u8]> = lines.step_by(2).collect();
        let new = self.path.with_extension("new");
        std::fs::write(&new, kept.concat()).context("writing", &new)?;
        std::fs::rename(&new, &self.path).context("replacing", &self.path)?;
        self.file = append(&self.path)?;
        Ok(())
    }
}

fn append(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).open(path);
    file.context("opening", path)
}

/// Returns the seconds that a line begins with.
fn seconds_of(line: &[u8]) -> Option<f64> {
    let line = std::str::from_utf8(line).ok()?;
    let (seconds, _) = line.strip_prefix(START)?.split_once(',')?;
    seconds
        .parse()
        .ok()
        .filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
}

const START: &str = "{\"seconds\": ";

/// Writes a line. Host names are normalized and need no escapes.
fn text(line: LineKind, seconds: f64, snapshot: &Snapshot, slowest: &[(&str, f64)]) -> String {
    let mut text = format!("{START}{seconds:.3}");
    let mut number = |name: &str, value: u64| {
        let _ = write!(text, ", \"{name}\": {value}");
    };
    for counter in Counter::ALL {
        number(counter.as_str(), snapshot.counters.get(counter));
    }
    number("queue", snapshot.n_queued);
    number("hosts", snapshot.n_hosts);
    number("in_flight", snapshot.n_in_flight as u64);
    number("memory", snapshot.memory);
    let n_short = snapshot.turns.up_to().find(|(ms, _)| *ms == 20);
    number("turns", snapshot.turns.n());
    number(
        "turns_over_20_ms",
        snapshot.turns.n() - n_short.map_or(0, |(_, n)| n),
    );
    number(
        "longest_turn_ms",
        snapshot.turns.longest().as_millis() as u64,
    );
    number("paused", u64::from(snapshot.is_paused));
    let mut statuses: Vec<(u16, u64)> = snapshot.counters.statuses().collect();
    statuses.sort_by_key(|&(status, n)| (std::cmp::Reverse(n), status));
    statuses.truncate(MAX_STATUSES);
    statuses.sort_unstable();
    let statuses = statuses
        .iter()
        .map(|(status, n)| format!("\"{status}\": {n}"));
    let slowest = slowest
        .iter()
        .map(|(host, ms)| format!("[\"{host}\", {ms:.1}]"));
    let _ = write!(
        text,
        ", \"statuses\": {{{}}}, \"slowest\": [{}]",
        statuses.collect::<Vec<_>>().join(", "),
        slowest.collect::<Vec<_>>().join(", "),
    );
    let site = |site: &SiteStanding| {
        let (trust, share, n_pages) = (site.trust, site.share, site.n_pages);
        format!("[\"{}\", {trust:.6}, {share:.6}, {n_pages}]", site.name)
    };
    let sites: Vec<String> = snapshot.sites.iter().map(site).collect();
    let poor = |site: &SiteQuality| {
        let (n_low, n_pages, is_bad) = (site.n_low, site.n_pages, site.is_bad);
        format!("[\"{}\", {n_low}, {n_pages}, {is_bad}]", site.name)
    };
    let poor: Vec<String> = snapshot.poor_sites.iter().map(poor).collect();
    let next = |next: &Standing| {
        let url = serde_json::to_string(&next.url).unwrap_or_else(|_| "\"\"".to_owned());
        format!("[{url}, {:.4}, {:.6}]", next.mass, next.site.share)
    };
    let next: Vec<String> = snapshot.next.iter().map(next).collect();
    let _ = write!(
        text,
        ", \"pages_for_trust\": {:.0}, \"sites\": [{}], \"poor_sites\": [{}], \"next\": [{}]",
        snapshot.pages_for_trust,
        sites.join(", "),
        poor.join(", "),
        next.join(", "),
    );
    push_rules(&mut text, snapshot);
    if let Some(freshness) = &snapshot.freshness {
        push_freshness(&mut text, freshness);
    }
    if let Some(topic) = &snapshot.topic {
        push_topic(&mut text, topic);
    }
    text.push_str(match line {
        LineKind::Next => "}\n",
        LineKind::Last => ", \"is_done\": true}\n",
    });
    text
}

/// Appends the state of a crawl with a topic.
fn push_topic(text: &mut String, topic: &Topic) {
    let short = |number: f32| (f64::from(number) * 1e4).round() / 1e4;
    let words = |words: &[(String, f32)]| -> Vec<(String, f64)> {
        let words = words.iter().cloned();
        words.map(|(word, weight)| (word, short(weight))).collect()
    };
    let page = |(url, score, predicted): &(String, f32, f32)| {
        (url.clone(), short(*score), short(*predicted))
    };
    let numbers = serde_json::json!({
        "harvest": topic.harvest.iter().map(|&rate| short(rate)).collect::<Vec<_>>(),
        "best_words": words(&topic.best_words),
        "worst_words": words(&topic.worst_words),
        "worst_pages": topic.worst_pages.iter().map(page).collect::<Vec<_>>(),
    });
    let _ = write!(text, ", \"topic\": {numbers}");
}

/// Returns the state of the topic of the crawl in a directory, from the last line; `None` if it has
/// no topic.
pub(crate) fn topic(folder: &Path, counters: &Counters) -> Option<Topic> {
    let line = last_line(folder)?;
    let topic = line.get("topic")?;
    let list = |name: &str| topic.get(name).cloned().unwrap_or_default();
    Some(Topic {
        n_pages: counters.get(Counter::Scored),
        n_fitting: counters.get(Counter::OnTopic),
        harvest: serde_json::from_value(list("harvest")).unwrap_or_default(),
        best_words: serde_json::from_value(list("best_words")).unwrap_or_default(),
        worst_words: serde_json::from_value(list("worst_words")).unwrap_or_default(),
        worst_pages: serde_json::from_value(list("worst_pages")).unwrap_or_default(),
    })
}

/// Appends the estimates of the freshness of pages. The last class of each kind has no bound.
fn push_freshness(text: &mut String, freshness: &Freshness) {
    let bound = |bound: f64| match bound.is_finite() {
        true => bound.to_string(),
        false => "null".to_owned(),
    };
    let by_age = freshness.by_age.iter();
    let by_age = by_age.map(|(days, n, fresh)| format!("[{}, {n}, {fresh:.4}]", bound(*days)));
    let by_rate = freshness.by_rate.iter();
    let by_rate = by_rate.map(|(rate, n)| format!("[{}, {n}]", bound(*rate)));
    let sites = freshness.sites.iter();
    let sites =
        sites.map(|(name, n, fresh, rate)| format!("[\"{name}\", {n}, {fresh:.4}, {rate:.6}]"));
    let _ = write!(
        text,
        ", \"revisited_pages\": {}, \"fresh\": {:.4}, \"fresh_by_age\": [{}], \
         \"pages_by_rate\": [{}], \"fresh_sites\": [{}]",
        freshness.n_pages,
        freshness.fresh,
        by_age.collect::<Vec<_>>().join(", "),
        by_rate.collect::<Vec<_>>().join(", "),
        sites.collect::<Vec<_>>().join(", "),
    );
}

/// Appends the URL rules that matter most.
fn push_rules(text: &mut String, snapshot: &Snapshot) {
    let rows = snapshot.url_rules.iter().map(|rule| {
        let row = serde_json::json!([
            rule.scope,
            rule.rule.to_string(),
            rule.state.as_str(),
            rule.n_same,
            rule.n_different,
            rule.n_probes,
            rule.n_deferred,
            rule.n_audited,
        ]);
        row.to_string()
    });
    let rows: Vec<String> = rows.collect();
    let (n_deferred, n_active) = (snapshot.n_deferred, snapshot.n_active_rules);
    let _ = write!(
        text,
        ", \"deferred\": {n_deferred}, \"active_rules\": {n_active}, \"url_rules\": [{}]",
        rows.join(", ")
    );
}

/// Returns the sites with the most pages of low quality, from the last line; `None` if it is
/// missing.
pub(crate) fn poor_sites(folder: &Path) -> Vec<SiteQuality> {
    let line = last_line(folder);
    let site = |site: &serde_json::Value| {
        Some(SiteQuality {
            name: site.get(0)?.as_str()?.to_owned(),
            n_low: site.get(1)?.as_u64()?,
            n_pages: site.get(2)?.as_u64()?,
            is_bad: site.get(3)?.as_bool()?,
        })
    };
    let sites = line
        .as_ref()
        .and_then(|line| line.get("poor_sites")?.as_array());
    sites.into_iter().flatten().filter_map(site).collect()
}

/// Returns the last line of the file of a directory.
fn last_line(folder: &Path) -> Option<serde_json::Value> {
    let text = std::fs::read(folder.join(FILE)).ok()?;
    let line = text
        .split(|&byte| byte == b'\n')
        .rfind(|line| !line.is_empty());
    line.and_then(|line| serde_json::from_slice(line).ok())
}

/// The hosts that take longest to respond: a short list, so that no time has to be kept for others.
#[derive(Debug, Default)]
pub(crate) struct Slowest {
    rows: Vec<(HostId, Box<str>, f64)>,
}

/// Number of hosts in the list.
const N_SLOWEST: usize = 12;

impl Slowest {
    /// Records how long a response took. The time of a host in the list moves by a quarter of the
    /// difference.
    pub(crate) fn note(&mut self, host: HostId, name: &str, took: Duration) {
        let ms = took.as_secs_f64() * 1000.0;
        if let Some((_, _, mean)) = self.rows.iter_mut().find(|row| row.0 == host) {
            *mean += (ms - *mean) / 4.0;
        } else if self.rows.len() < N_SLOWEST {
            self.rows.push((host, name.into(), ms));
        } else if let Some(least) = self.rows.iter_mut().min_by(|a, b| a.2.total_cmp(&b.2))
            && least.2 < ms
        {
            *least = (host, name.into(), ms);
        }
    }

    /// Returns names of hosts and milliseconds, slowest first.
    pub(crate) fn rows(&self) -> Vec<(&str, f64)> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)));
        rows.into_iter().map(|row| (&*row.1, row.2)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(seconds: u64) -> Snapshot {
        let mut snapshot = Snapshot {
            elapsed: Duration::from_secs(seconds),
            n_queued: 7,
            ..Snapshot::default()
        };
        snapshot.counters.add(Counter::Pages, seconds);
        snapshot.counters.count_status(200);
        snapshot
    }

    /// Writes a line as a crawl does.
    fn write(
        (statistics, file): &mut (Statistics, StatisticsFile),
        line: LineKind,
        snapshot: &Snapshot,
    ) {
        let slowest = [("h.org", 12.34)];
        if let Some(line) = statistics.next_line(line, snapshot, &slowest) {
            file.append(&line).unwrap();
        }
    }

    fn lines(folder: &Path) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn lines_are_objects_and_the_last_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut statistics = Statistics::open(folder.path()).unwrap();
        write(&mut statistics, LineKind::Next, &snapshot(1));
        write(&mut statistics, LineKind::Next, &snapshot(1));
        write(&mut statistics, LineKind::Last, &snapshot(1));
        let lines = lines(folder.path());
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["pages"], 1);
        assert_eq!(lines[0]["queue"], 7);
        assert_eq!(lines[0]["statuses"]["200"], 1);
        assert_eq!(lines[0]["slowest"][0][0], "h.org");
        assert_eq!(lines[0].get("is_done"), None);
        assert_eq!(lines[1]["is_done"], true);
    }

    #[test]
    fn what_is_believed_of_pages() {
        let folder = tempfile::tempdir().unwrap();
        let mut statistics = Statistics::open(folder.path()).unwrap();
        let freshness = Freshness {
            n_pages: 9,
            fresh: 0.5,
            by_age: vec![(1.0, 4, 0.75), (f64::INFINITY, 5, 0.3)],
            by_rate: vec![(f64::INFINITY, 9)],
            sites: vec![("h.org".to_owned(), 9, 0.5, 0.01)],
        };
        let snapshot = Snapshot {
            freshness: Some(freshness),
            ..snapshot(1)
        };
        write(&mut statistics, LineKind::Next, &snapshot);
        let line = &lines(folder.path())[0];
        assert_eq!(
            (&line["fresh"], &line["revisited_pages"]),
            (&0.5.into(), &9.into())
        );
        assert_eq!(line["fresh_by_age"][0][1], 4);
        assert!(line["fresh_by_age"][1][0].is_null());
        assert_eq!(line["fresh_sites"][0][0], "h.org");
    }

    /// Time continues where it was, and a partial line after a crash is cut off.
    #[test]
    fn a_second_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut statistics = Statistics::open(folder.path()).unwrap();
        write(&mut statistics, LineKind::Next, &snapshot(5));
        std::fs::OpenOptions::new()
            .append(true)
            .open(folder.path().join(FILE))
            .and_then(|mut file| file.write_all(b"{\"seconds\": 9"))
            .unwrap();
        let mut statistics = Statistics::open(folder.path()).unwrap();
        write(&mut statistics, LineKind::Next, &snapshot(2));
        let seconds: Vec<f64> = lines(folder.path())
            .iter()
            .map(|line| line["seconds"].as_f64().unwrap())
            .collect();
        assert_eq!(seconds, [5.0, 7.0]);
    }

    #[test]
    fn the_file_is_bounded_and_covers_everything() {
        let folder = tempfile::tempdir().unwrap();
        let mut statistics = Statistics::open(folder.path()).unwrap();
        for second in 0..20_000 {
            write(&mut statistics, LineKind::Next, &snapshot(second));
        }
        let lines = lines(folder.path());
        assert!(
            (MAX_LINES / 2 - 1..=MAX_LINES).contains(&lines.len()),
            "{}",
            lines.len()
        );
        assert_eq!(lines[0]["seconds"], 0.0);
        assert!(lines.last().unwrap()["seconds"].as_f64().unwrap() > 19_900.0);
        let (opened, _) = Statistics::open(folder.path()).unwrap();
        assert_eq!(opened.n_lines, statistics.0.n_lines);
        assert!(opened.every >= Duration::from_secs(8), "{:?}", opened.every);
    }

    #[test]
    fn the_slowest_stay_and_recover() {
        let mut slowest = Slowest::default();
        for host in 0..100 {
            let name = format!("h{host}.org");
            slowest.note(host, &name, Duration::from_millis(u64::from(host)));
        }
        let rows = slowest.rows();
        assert_eq!((rows.len(), rows[0]), (N_SLOWEST, ("h99.org", 99.0)));
        for _ in 0..40 {
            slowest.note(99, "h99.org", Duration::from_millis(1));
        }
        assert_eq!(slowest.rows()[0], ("h98.org", 98.0));
        slowest.note(7, "h7.org", Duration::from_millis(50));
        assert!(slowest.rows().contains(&("h7.org", 50.0)));
    }
}
