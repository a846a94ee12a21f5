//! A crawl after power failures.
//!
//! A crawl of a simulated web in virtual time is recorded, change by change of its files. The
//! possible results of a power failure are generated from the changes up to some point: unsynced
//! writes that are dropped, partial or out of order, and names that never reached the disk. The
//! crawl is restarted from there, often to be cut off again, and must end with each page in the
//! archive exactly once.
//!
//! There are three kinds of points. A missing sync shows where the next part of the crawl has just
//! been synced and nothing else has. So for each part ([`PARTS`]), some points right after its
//! syncs are taken, and everything unsynced is lost there. A part that is trusted beyond the
//! journal shows where the journal alone is behind. So some points are taken where the archive has
//! just been synced, which happens before the journal, and only the journal loses anything there.
//! The other points are random. `AROSE_CRASH_POINTS` sets their number; the default is for daily
//! use.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use arose::mix::SplitMix;
use arose_crawl::connect::{Connect, Stream, Waiting};
use arose_crawl::counters::Counter;
use arose_crawl::fingerprint::Fingerprint;
use arose_crawl::resolve::NameServers;
use arose_crawl::seen::{self, Entry, Seen};
use arose_crawl::{Control, Crawl, End, Seams, Settings, archives, index_lines, is_crawl, status};
use arose_dedup::disk::{DiskChange, Recording};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep};

const N_HOSTS: u8 = 6;
const N_PAGES: u32 = 40;
const N_COPIES: u32 = 10;

/// Hosts `10.0.0.N` with pages that link to the next two and to pages that all hosts share.
#[derive(Clone)]
struct Web;

impl Connect for Web {
    fn connect(&self, address: SocketAddr) -> Waiting<'_, std::io::Result<Box<dyn Stream>>> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let IpAddr::V4(ip) = address.ip() else {
            unreachable!("all hosts are numbers")
        };
        tokio::task::spawn_local(async move {
            // The connection has ended, whatever the reason.
            let _ = serve(ip.octets()[3], theirs).await;
        });
        Box::pin(async move { Ok(Box::new(ours) as Box<dyn Stream>) })
    }
}

async fn serve(host: u8, mut stream: DuplexStream) -> std::io::Result<()> {
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await?);
        }
        let request = String::from_utf8_lossy(&request).into_owned();
        let target = request.split(' ').nth(1).unwrap_or_default();
        sleep(Duration::from_millis(20)).await;
        let (kind, body) = match target {
            "/robots.txt" => ("text/plain", String::new()),
            _ => ("text/html", page(host, target)),
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
    }
}

fn page(host: u8, target: &str) -> String {
    let number = |prefix: &str| target.strip_prefix(prefix)?.parse::<u32>().ok();
    let words = |seed: u64| {
        let mut random = SplitMix::new(seed);
        let words: Vec<String> = (0..50)
            .map(|_| format!("w{}", random.below(5000)))
            .collect();
        words.join(" ")
    };
    match (number("/p"), number("/copy")) {
        (Some(n), _) => {
            let next = (n + 1..N_PAGES.min(n + 3)).map(|n| format!("<a href=/p{n}>next</a>"));
            // Every second host has them in reverse order, so that copies come long after their
            // originals.
            let shared = match host % 2 {
                0 => n / 4,
                _ => N_COPIES - 1 - n / 4,
            };
            let copy = (n % 4 == 0).then(|| format!("<a href=/copy{shared}>copy</a>"));
            let links: Vec<String> = next.chain(copy).collect();
            let seed = u64::from(host) * 1000 + u64::from(n);
            format!("<p>{} {}", words(seed), links.join(" "))
        }
        (None, Some(n)) => format!("<p>{}", words(1_000_000 + u64::from(n))),
        (None, None) => "nothing".to_owned(),
    }
}

fn expected_urls() -> BTreeSet<String> {
    let pages = |host: u8| {
        let pages = (0..N_PAGES).map(move |n| format!("http://10.0.0.{host}/p{n}"));
        pages.chain((0..N_COPIES).map(move |n| format!("http://10.0.0.{host}/copy{n}")))
    };
    (0..N_HOSTS).flat_map(pages).collect()
}

/// Crawls to the end; `n_run` sets the date, so that no two runs share one.
fn crawl(folder: &Path, n_run: u64, variant: Variant) {
    let mut settings = Settings::default();
    settings.machine.threads = 0;
    settings.fetch.in_flight = 64;
    settings.stop.patience = 200.0;
    settings.budget.pages = 1000;
    settings.duplicates.stale_after = 0;
    settings.archive.max_file = 12_000;
    settings.archive.compact = variant.compact;
    settings.machine.seen_buffer = variant.seen_buffer;
    settings.machine.hosts_in_memory = 2;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let seeds = (0..N_HOSTS).map(|host| format!("http://10.0.0.{host}/p0"));
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let start = Instant::now();
        let began = Duration::from_secs(1_700_000_000 + n_run * 10_000);
        let seams = Seams {
            connector: Rc::new(Web),
            resolver: Rc::new(NameServers::new(&["127.0.0.1:53".parse().unwrap()]).unwrap()),
            clock: Box::new(move || began + start.elapsed()),
            priority: Box::new(|_, depth| depth),
            is_ours: Box::new(|_| true),
        };
        let mut crawl = Crawl::open(folder, settings, seams).unwrap();
        crawl.add_seeds(seeds).unwrap();
        let summary = crawl.run(&Control::default()).await.unwrap();
        assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    });
}

/// Checks that every record can be read and that the originals of duplicates exist. Returns the
/// number of duplicates.
#[track_caller]
pub(crate) fn check_references(folder: &Path) -> usize {
    let mut stored = BTreeSet::new();
    let mut referred = BTreeSet::new();
    for path in archives(folder).unwrap() {
        let bytes = std::fs::read(&path).unwrap();
        let mut text = Vec::new();
        flate2::read::MultiGzDecoder::new(bytes.as_slice())
            .read_to_end(&mut text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let text = String::from_utf8_lossy(&text).into_owned();
        for record in text.split("WARC/1.1\r\n").skip(1) {
            let field = |name: &str| {
                let line = record.lines().find(|line| line.starts_with(name));
                line.map(|line| line[name.len() + 2..].trim().to_owned())
            };
            let kind = field("WARC-Type").unwrap();
            if kind == "response" {
                stored.insert((field("WARC-Target-URI"), field("WARC-Date")));
            } else if kind == "revisit" {
                referred.insert((
                    field("WARC-Refers-To-Target-URI"),
                    field("WARC-Refers-To-Date"),
                ));
            }
        }
    }
    let missing: Vec<_> = referred.difference(&stored).collect();
    assert!(missing.is_empty(), "{missing:?}");
    referred.len()
}

/// Each page is in the archive once, the index has its position, and the originals of duplicates
/// exist.
#[track_caller]
fn check(folder: &Path) {
    assert_eq!(status(folder).unwrap().n_queued, 0);
    assert!(check_references(folder) > 0);
    let mut found: BTreeMap<String, u32> = BTreeMap::new();
    for line in index_lines(folder).unwrap() {
        let json = &line[line.find('{').unwrap()..];
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let text = |name: &str| json[name].as_str().unwrap().to_owned();
        let number = |name: &str| text(name).parse::<usize>().unwrap();
        let path = folder.join("archive").join(text("filename"));
        let bytes = std::fs::read(path).unwrap();
        let member = &bytes[number("offset")..][..number("length")];
        let mut record = String::new();
        let mut decoder = flate2::read::GzDecoder::new(member);
        decoder.read_to_string(&mut record).unwrap();
        assert!(record.contains(&format!("WARC-Target-URI: {}\r\n", text("url"))));
        *found.entry(text("url")).or_default() += 1;
    }
    assert_eq!(
        found.keys().cloned().collect::<BTreeSet<_>>(),
        expected_urls()
    );
    assert!(found.values().all(|&n| n == 1), "{found:?}");
}

/// Pages that hosts share are stored completely once: everything in the archive after a power
/// failure is in the index of contents too, unless more than was synced survived.
#[track_caller]
fn check_originals(folder: &Path) {
    let lines = index_lines(folder).unwrap();
    let is_whole = |line: &&String| !line.contains("\"warc/revisit\"");
    let copies = lines.iter().filter(|line| line.contains("/copy"));
    let n_whole = copies.filter(is_whole).count();
    assert_eq!(n_whole, N_COPIES as usize);
}

/// The contents of a disk: files by name, and directories.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    pub(crate) folders: BTreeSet<PathBuf>,
}

/// How a power failure treats unsynced data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// All of it is lost.
    Everything,
    /// None of it is lost: only the process was killed.
    Nothing,
    /// A beginning of it survives, and part of one write.
    End,
    /// Any sectors of files, as of any time, and any names survive.
    Anything,
    /// All of one part of the crawl is lost, and nothing else.
    Only(&'static str),
}

impl Cut {
    /// Returns how it treats a file or directory below `root`.
    fn of(self, root: &Path, path: &Path) -> Self {
        match self {
            Self::Only(part) if is_part(root, path, part) => Self::Everything,
            Self::Only(_) => Self::Nothing,
            cut => cut,
        }
    }
}

/// Whether a file or directory belongs to a part of the crawl below `root`.
fn is_part(root: &Path, path: &Path, part: &str) -> bool {
    let below = path.strip_prefix(root).unwrap();
    below.to_string_lossy().starts_with(part)
}

pub(crate) const CUTS: [Cut; 4] = [Cut::Everything, Cut::Nothing, Cut::End, Cut::Anything];
const SECTOR: usize = 512;

/// A file being written.
#[derive(Debug, Default)]
struct Written {
    synced: Vec<u8>,
    /// Later writes and truncations.
    pending: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Bytes(u64, Box<[u8]>),
    Length(u64),
}

impl Piece {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Bytes(at, bytes) => {
                let end = *at as usize + bytes.len();
                content.resize(content.len().max(end), 0);
                content[*at as usize..end].copy_from_slice(bytes);
            }
            Self::Length(n_bytes) => content.resize(*n_bytes as usize, 0),
        }
    }
}

impl Written {
    fn sync(&mut self) {
        for piece in self.pending.drain(..) {
            piece.apply(&mut self.synced);
        }
    }

    /// Returns the rest of the file.
    fn survivor(&self, cut: Cut, random: &mut SplitMix) -> Vec<u8> {
        let n = self.pending.len() as u64;
        let mut content = self.synced.clone();
        match cut {
            Cut::Everything => {}
            Cut::Nothing | Cut::Only(_) => self
                .pending
                .iter()
                .for_each(|piece| piece.apply(&mut content)),
            Cut::End => {
                let n_whole = random.below(n + 1) as usize;
                for piece in &self.pending[..n_whole] {
                    piece.apply(&mut content);
                }
                if let Some(Piece::Bytes(at, bytes)) = self.pending.get(n_whole) {
                    let n_bytes = random.below(bytes.len() as u64 + 1) as usize;
                    Piece::Bytes(*at, bytes[..n_bytes].into()).apply(&mut content);
                }
            }
            Cut::Anything => return self.sectors(random),
        }
        content
    }

    /// Returns each sector as of a time of its own, and the length as of another.
    fn sectors(&self, random: &mut SplitMix) -> Vec<u8> {
        let n = self.pending.len() as u64;
        let mut now = self.synced.clone();
        let n_length = random.below(n + 1);
        let mut survivor: Vec<u8> = Vec::new();
        let mut times: Vec<u64> = Vec::new();
        let mut length = now.len();
        for time in 0..=n {
            if time > 0 {
                self.pending[time as usize - 1].apply(&mut now);
            }
            while times.len() * SECTOR < now.len() {
                times.push(random.below(n + 1));
            }
            survivor.resize(survivor.len().max(now.len()), 0);
            for (sector, _) in times.iter().enumerate().filter(|(_, at)| **at == time) {
                let range =
                    (sector * SECTOR).min(now.len())..(sector * SECTOR + SECTOR).min(now.len());
                survivor[range.clone()].copy_from_slice(&now[range]);
            }
            if time == n_length {
                length = now.len();
            }
        }
        survivor.resize(length, 0);
        survivor
    }
}

/// A change of the names in a directory.
#[derive(Debug, Clone)]
enum Naming {
    Folder(PathBuf),
    Link(PathBuf, u64),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Naming {
    fn path(&self) -> &Path {
        let (Self::Folder(path) | Self::Link(path, _) | Self::Rename(_, path) | Self::Remove(path)) =
            self;
        path
    }

    fn folder(&self) -> &Path {
        self.path().parent().unwrap()
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>, folders: &mut BTreeSet<PathBuf>) {
        match self {
            Self::Folder(path) => {
                folders.insert(path.clone());
            }
            Self::Link(path, file) => {
                names.insert(path.clone(), *file);
            }
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

/// Returns the disk that a power failure leaves after some changes.
pub(crate) fn survivors(
    base: &Disk,
    changes: &[DiskChange],
    cut: Cut,
    random: &mut SplitMix,
) -> Disk {
    let mut files: BTreeMap<u64, Written> = BTreeMap::new();
    let mut names: BTreeMap<PathBuf, u64> = BTreeMap::new();
    let mut folders = base.folders.clone();
    let mut pending: Vec<Naming> = Vec::new();
    // Files that existed before get numbers that no recording uses.
    for (number, (path, content)) in (1 << 40..).zip(&base.files) {
        names.insert(path.clone(), number);
        let synced = content.clone();
        files.insert(
            number,
            Written {
                synced,
                pending: Vec::new(),
            },
        );
    }
    let mut aliases: BTreeMap<u64, u64> = BTreeMap::new();
    let resolve =
        |aliases: &BTreeMap<u64, u64>, file: u64| aliases.get(&file).copied().unwrap_or(file);
    // Names as a program sees them, to distinguish existing files from new ones.
    let (mut seen_names, mut seen_folders) = (names.clone(), folders.clone());
    for change in changes {
        let naming = match change {
            DiskChange::Link { path, file } => match seen_names.get(path) {
                Some(&old) => {
                    aliases.insert(*file, old);
                    continue;
                }
                None => {
                    files.insert(*file, Written::default());
                    Naming::Link(path.clone(), *file)
                }
            },
            DiskChange::Write { file, at, bytes } => {
                let file = files.get_mut(&resolve(&aliases, *file)).unwrap();
                file.pending.push(Piece::Bytes(*at, bytes.clone()));
                continue;
            }
            DiskChange::Length { file, n_bytes } => {
                let file = files.get_mut(&resolve(&aliases, *file)).unwrap();
                file.pending.push(Piece::Length(*n_bytes));
                continue;
            }
            DiskChange::Sync { file } => {
                files.get_mut(&resolve(&aliases, *file)).unwrap().sync();
                continue;
            }
            DiskChange::SyncFolder { path } => {
                let (done, rest) = pending
                    .into_iter()
                    .partition(|naming| naming.folder() == path);
                let done: Vec<Naming> = done;
                done.iter()
                    .for_each(|naming| naming.apply(&mut names, &mut folders));
                pending = rest;
                continue;
            }
            DiskChange::Directory { path } => Naming::Folder(path.clone()),
            DiskChange::Rename { from, to } => Naming::Rename(from.clone(), to.clone()),
            DiskChange::Remove { path } => Naming::Remove(path.clone()),
        };
        naming.apply(&mut seen_names, &mut seen_folders);
        pending.push(naming);
    }
    let n_first = random.below(pending.len() as u64 + 1) as usize;
    let root = base.folders.first().unwrap();
    for (index, naming) in pending.iter().enumerate() {
        let survives = match cut.of(root, naming.path()) {
            Cut::Everything => false,
            Cut::Nothing | Cut::Only(_) => true,
            Cut::End => index < n_first,
            Cut::Anything => random.below(2) == 0,
        };
        if survives {
            naming.apply(&mut names, &mut folders);
        }
    }
    let mut disk = Disk {
        files: BTreeMap::new(),
        folders,
    };
    for (path, file) in names {
        if disk.folders.contains(path.parent().unwrap()) {
            let content = files[&file].survivor(cut.of(root, &path), random);
            disk.files.insert(path, content);
        }
    }
    disk
}

/// Writes the contents of a disk to a directory.
pub(crate) fn restore(disk: &Disk, root: &Path) {
    let _ = std::fs::remove_dir_all(root);
    std::fs::create_dir_all(root).unwrap();
    for folder in &disk.folders {
        std::fs::create_dir_all(folder).unwrap();
    }
    for (path, content) in &disk.files {
        std::fs::write(path, content).unwrap();
    }
}

fn n_points() -> u64 {
    let number = std::env::var("AROSE_CRASH_POINTS").ok();
    number.map_or(8, |number| number.parse().unwrap())
}

/// Settings that determine when data is written.
#[derive(Debug, Clone, Copy)]
struct Variant {
    compact: u64,
    seen_buffer: usize,
}

/// A journal that is rewritten all the time, and a seen set that writes a sorted run every few
/// seconds.
const VARIANTS: [Variant; 2] = [
    Variant {
        compact: 2000,
        seen_buffer: 1 << 18,
    },
    Variant {
        compact: 64 << 20,
        seen_buffer: 40,
    },
];

/// The parts of a crawl, by the names of their files and directories, and the number of points
/// taken after syncs of each.
const PARTS: [(&str, usize); 5] = [
    ("journal", 4),
    ("seen", 4),
    ("contents", 1),
    ("archive", 1),
    ("pages", 2),
];

/// Returns the numbers of changes after which this part had just been synced.
fn after_syncs(root: &Path, changes: &[DiskChange], part: &str) -> Vec<usize> {
    let mut paths: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let mut points = Vec::new();
    for (n, change) in (1..).zip(changes) {
        let synced = match change {
            DiskChange::Link { path, file } => {
                paths.insert(*file, path.clone());
                continue;
            }
            DiskChange::Sync { file } => &paths[file],
            DiskChange::SyncFolder { path } => path,
            _ => continue,
        };
        if is_part(root, synced, part) {
            points.push(n);
        }
    }
    points
}

/// Returns this many of them, evenly spread, including the last one.
fn spread(points: &[usize], n: usize) -> impl Iterator<Item = usize> + '_ {
    let n = n.min(points.len());
    (1..=n).map(move |k| points[points.len() * k / n - 1])
}

/// Returns the progress according to the journal on a disk, if there is one: pages, and queued
/// URLs. A power failure right after a sync must not lose any of that.
fn progress(root: &Path, disk: &Disk) -> Option<(u64, u64)> {
    restore(disk, root);
    is_crawl(root).then(|| {
        let status = status(root).unwrap();
        (status.counters.get(Counter::Pages), status.n_queued)
    })
}

thread_local! {
    /// Each run has dates of its own.
    static N_RUNS: Cell<u64> = const { Cell::new(0) };
}

/// Crawls from the contents of a disk and returns the changes.
fn recorded(root: &Path, disk: &Disk, variant: Variant) -> Vec<DiskChange> {
    restore(disk, root);
    let recording = Recording::start(root);
    let n_run = N_RUNS.replace(N_RUNS.get() + 1);
    crawl(root, n_run, variant);
    recording.changes()
}

#[test]
fn a_crawl_survives_power_cuts() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut random = SplitMix::new(7);
    let mut empty = Disk::default();
    empty.folders.insert(root.clone());
    let runs = VARIANTS.map(|variant| (variant, recorded(&root, &empty, variant)));
    check(&root);
    check_originals(&root);
    let mut n_done = 0;
    for (variant, changes) in &runs {
        for (part, n_points) in PARTS {
            let points = after_syncs(&root, changes, part);
            assert!(!points.is_empty(), "{part} is never synced");
            for at in spread(&points, n_points) {
                println!("{part}: after {at} of {} changes", changes.len());
                let disk = survivors(&empty, &changes[..at], Cut::Everything, &mut random);
                if part == "journal" {
                    let all = survivors(&empty, &changes[..at], Cut::Nothing, &mut random);
                    assert_eq!(progress(&root, &disk), progress(&root, &all));
                }
                recorded(&root, &disk, *variant);
                check(&root);
                check_originals(&root);
                n_done += 1;
            }
        }
        let points = after_syncs(&root, changes, "archive");
        for at in spread(&points, 3) {
            println!("the journal alone: after {at} of {} changes", changes.len());
            let cut = Cut::Only("journal");
            let disk = survivors(&empty, &changes[..at], cut, &mut random);
            recorded(&root, &disk, *variant);
            check(&root);
            n_done += 1;
        }
    }
    for n in 0..n_points() {
        let (variant, changes) = &runs[n as usize % 2];
        let cut = CUTS[n as usize / 2 % 4];
        let at = random.below(changes.len() as u64 + 1) as usize;
        let mut disk = survivors(&empty, &changes[..at], cut, &mut random);
        println!("point {n}: {cut:?} after {at} of {} changes", changes.len());
        // Every third crawl is cut off again while it recovers, right after its start or later.
        if n % 3 == 0 {
            let again = recorded(&root, &disk, *variant);
            let most = if n % 2 == 0 { 60 } else { again.len() as u64 };
            let at = random.below(most.min(again.len() as u64) + 1) as usize;
            let cut = CUTS[random.below(4) as usize];
            println!("  and {cut:?} after {at} of {} changes", again.len());
            disk = survivors(&disk, &again[..at], cut, &mut random);
            n_done += 1;
        }
        recorded(&root, &disk, *variant);
        check(&root);
        n_done += 1;
    }
    println!("{n_done} power cuts survived");
}

/// Returns the changes of a crawl that forgets to sync the files of a part after `from` changes.
fn without_syncs(root: &Path, changes: &[DiskChange], part: &str, from: usize) -> Vec<DiskChange> {
    let mut paths: BTreeMap<u64, PathBuf> = BTreeMap::new();
    let mut kept = Vec::new();
    for (n, change) in changes.iter().enumerate() {
        let is_skipped = match change {
            DiskChange::Link { path, file } => {
                paths.insert(*file, path.clone());
                false
            }
            DiskChange::Sync { file } => n >= from && is_part(root, &paths[file], part),
            _ => false,
        };
        if !is_skipped {
            kept.push(change.clone());
        }
    }
    kept
}

/// Whether a crawl from the result of a power failure ends incorrectly.
fn is_found(root: &Path, disk: &Disk, variant: Variant) -> bool {
    let checked = std::panic::catch_unwind(|| {
        recorded(root, disk, variant);
        check(root);
        check_originals(root);
    });
    checked.is_err()
}

/// An injected fault: a crawl that does not sync a part before the journal that refers to it does
/// not survive the power cuts of [`a_crawl_survives_power_cuts`]. The syncs are removed from the
/// recording, at the same points, so no crawl with the fault has to be built.
#[test]
fn issue_21_skipped_syncs_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut random = SplitMix::new(21);
    let mut empty = Disk::default();
    empty.folders.insert(root.clone());
    let variant = VARIANTS[0];
    let changes = recorded(&root, &empty, variant);
    let points = after_syncs(&root, &changes, "journal");
    for part in ["archive", "contents", "pages"] {
        let mut n_points = 0;
        let is_one_found = spread(&points, 4).any(|at| {
            n_points += 1;
            let faulty = without_syncs(&root, &changes[..at], part, 0);
            let disk = survivors(&empty, &faulty, Cut::Everything, &mut random);
            is_found(&root, &disk, variant)
        });
        println!("{part} not synced before the journal: found after {n_points} points");
        assert!(
            is_one_found,
            "{part} not synced before the journal: not found"
        );
    }
}

/// Another injected fault: the seen set writes a run with URLs that are in the journal, which was
/// synced once at the beginning and not before that run. Nothing but the journal loses anything.
#[test]
fn issue_21_a_journal_behind_the_seen_set_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut random = SplitMix::new(22);
    let mut empty = Disk::default();
    empty.folders.insert(root.clone());
    let variant = VARIANTS[1];
    let changes = recorded(&root, &empty, variant);
    let begun = after_syncs(&root, &changes, "journal")[0];
    let points = after_syncs(&root, &changes, "seen");
    let cut = Cut::Only("journal");
    let last = *points.last().unwrap();
    let disk = survivors(&empty, &changes[..last], cut, &mut random);
    assert!(!is_found(&root, &disk, variant));
    let is_one_found = spread(&points, 4).any(|at| {
        let faulty = without_syncs(&root, &changes[..at], "journal", begun);
        let disk = survivors(&empty, &faulty, cut, &mut random);
        is_found(&root, &disk, variant)
    });
    assert!(is_one_found, "a journal behind the seen set: not found");
}

/// The seen set, opened up to a mark, contains everything that was committed and synced up to it
/// and nothing later, whatever a power failure left of sorted runs, log and manifest.
#[test]
fn the_seen_set_goes_no_further_than_its_mark() {
    check_marks(seen::Merges::Here);
}

#[test]
fn issue_22_nor_does_it_with_merges_aside() {
    check_marks(seen::Merges::Aside);
}

fn check_marks(merges: seen::Merges) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("seen");
    let mut empty = Disk::default();
    empty.folders.insert(root.clone());
    let config = seen::SeenConfig {
        buffer_keys: 60,
        merges,
        ..seen::SeenConfig::default()
    };
    let insert = |seen: &mut Seen, n: u64| {
        let url = format!("http://h/{n}");
        let fingerprint = Fingerprint {
            host: 1,
            rest: arose::digest::digest64(url.as_bytes()),
        };
        let entry = Entry {
            fingerprint,
            url: &url,
        };
        seen.insert(&[entry]).unwrap()[0]
    };
    let mut random = SplitMix::new(11);
    restore(&empty, &root);
    let recording = Recording::start(&root);
    // The numbers of changes after which each mark was synced, here and where the URLs are stored.
    let mut synced = vec![(0, 0, 0)];
    let mut seen = Seen::open(&root, config).unwrap();
    let mut stored = 0;
    for mark in 1..120 {
        (0..5).for_each(|n| {
            insert(&mut seen, mark * 5 + n);
        });
        if seen.is_full().unwrap() {
            stored = mark;
        }
        seen.commit_as(mark).unwrap();
        if random.below(7) == 0 {
            stored = mark;
            seen.sync().unwrap();
            synced.push((recording.n_changes(), mark, stored));
        } else {
            let last = synced.last().unwrap().1;
            synced.push((recording.n_changes(), last, stored));
        }
    }
    let changes = recording.changes();
    drop((seen, recording));
    for n in 0..8 * n_points().max(24) {
        let cut = CUTS[n as usize % 4];
        let at = random.below(changes.len() as u64 + 1) as usize;
        let disk = survivors(&empty, &changes[..at], cut, &mut random);
        restore(&disk, &root);
        let now = synced.partition_point(|(n_changes, ..)| *n_changes <= at);
        let (_, least, stored) = synced[now - 1];
        // A sorted run may be in progress, before which the store was synced.
        let stored = synced.get(now).map_or(stored, |next| next.2);
        let until = stored + random.below(3);
        let mut seen = Seen::open_until(&root, config, until).unwrap();
        let n_seen = seen.len();
        assert!(n_seen >= least * 5, "{n}: {n_seen} of {}", least * 5);
        assert!(n_seen <= until * 5, "{n}: {n_seen} beyond {until}");
        for number in 0..n_seen {
            let answer = insert(&mut seen, 5 + number);
            assert_eq!(answer, seen::Membership::Known, "{n}: {number}");
        }
    }
}
