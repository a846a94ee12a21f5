//! The persistent pool of URLs, as the crawler has it and on fjall: `journal ENGINE STEP DIR`.
//!
//! `write` makes the same changes with either engine: 1,000 commits, each of 2,000 new URLs of
//! 100,000 hosts and 1,800 that are done, with the texts of the done ones read back before, and a
//! sync after every 30. `recover` opens what is there and makes the queues: eight bytes a URL, by
//! host. The journal is the crawler's own source; it is rewritten when it is twice as long as what
//! still counts, as in a crawl.

// The sources of the journal, linked here, name these.
extern crate self as arose_dedup;
#[path = "../../../crates/arose-dedup/src/disk.rs"]
pub mod disk;
#[allow(dead_code)]
#[path = "../../../crates/arose-crawl/src/error.rs"]
mod error;
#[allow(dead_code)]
mod journal;
#[allow(dead_code)]
#[path = "../../../crates/arose-crawl/src/order.rs"]
mod order;
pub mod index {
    pub type Error = std::io::Error;
}

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arose::mix::mix;
use journal::{Draft, Event, Journal, Kind, Queued};
use rustix::time::{ClockId, clock_gettime};

const N_COMMITS: u64 = 1000;
const N_NEW: u64 = 2000;
const N_DONE: usize = 1800;
const N_HOSTS: u64 = 100_000;
const SYNC_EVERY: u64 = 30;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engine, step, folder] = arguments.as_slice() else {
        anyhow::bail!("usage: journal journal|fjall write|recover DIR");
    };
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    let (cpu, wall, written) = (cpu_time(), Instant::now(), written_bytes());
    let n_urls = match (engine.as_str(), step.as_str()) {
        ("journal", "write") => write_journal(folder)?,
        ("journal", "recover") => recover_journal(folder)?,
        ("fjall", "write") => write_fjall(folder)?,
        ("fjall", "recover") => recover_fjall(folder)?,
        _ => anyhow::bail!("unknown engine or step"),
    };
    println!(
        "{engine} {step}: {:.2} s of CPU time, {:.2} s, {} MB written, {} MB on disk, {n_urls} URLs, peak {} MiB",
        (cpu_time() - cpu).as_secs_f64(),
        wall.elapsed().as_secs_f64(),
        (written_bytes() - written) / 1_000_000,
        folder_bytes(folder) / 1_000_000,
        peak_mib()
    );
    Ok(())
}

fn rest(n: u64) -> String {
    format!("/folder{}/page-{n}.html?session={:x}", n % 100, mix(!n) >> 40)
}

fn host_of(n: u64) -> u32 {
    (mix(n) % N_HOSTS) as u32
}

fn queued(n: u64, rest: &str) -> Queued<'_> {
    Queued {
        host: host_of(n),
        depth: (n % 7) as u32,
        weight: order::Weight::default(),
        class: 0,
        is_last: false,
        n_redirects: 0,
        kind: Kind::Page,
        rest,
    }
}

fn write_journal(folder: &Path) -> anyhow::Result<u64> {
    let mut journal = Journal::create(&folder.join("journal"))?;
    let mut draft = Draft::new(journal.next_batch());
    for host in 0..N_HOSTS {
        draft.push(Event::Host(&format!("http://host{host}.example")));
    }
    let mut queue: VecDeque<u64> = VecDeque::new();
    let (mut buffer, pool) = (Vec::new(), journal.pool());
    let mut n_in_file = 0;
    for commit in 0..N_COMMITS {
        for n in commit * N_NEW..(commit + 1) * N_NEW {
            let rest = rest(n);
            queue.push_back(draft.push(Event::Url(queued(n, &rest))));
        }
        n_in_file += N_NEW;
        for place in queue.drain(..N_DONE) {
            let host = match draft.read(place) {
                Some(queued) => queued.host,
                None => pool.read(place, &mut buffer)?.host,
            };
            draft.push(Event::Done { host, place });
        }
        let batch = draft.take();
        journal.append(&batch, &[extent(commit)])?;
        draft.note_written(batch.end());
        if commit % SYNC_EVERY == 0 {
            journal.sync()?;
        }
        if journal.n_bytes() > 64 << 20 && n_in_file > 2 * queue.len() as u64 {
            journal.sync()?;
            let path = journal.path().to_owned();
            let successor = journal.old(0)?.rewrite(&path, &AtomicBool::new(false))?;
            if let Some(successor) = successor {
                journal.give_way(successor)?;
            }
            n_in_file = queue.len() as u64;
        }
    }
    journal.sync()?;
    Ok(queue.len() as u64)
}

fn extent(commit: u64) -> Event<'static> {
    Event::Archive {
        file: 1,
        bytes: commit << 20,
        index_bytes: commit << 10,
    }
}

fn recover_journal(folder: &Path) -> anyhow::Result<u64> {
    let mut hosts: Vec<Vec<u64>> = Vec::new();
    Journal::open(&folder.join("journal"), |frame| {
        for (event, place) in &frame.events {
            match *event {
                Event::Host(_) => hosts.push(Vec::new()),
                Event::Url(queued) => hosts[queued.host as usize].push(*place),
                Event::Done { host, place } => {
                    let queue = &mut hosts[host as usize];
                    if let Ok(at) = queue.binary_search(&place) {
                        queue.remove(at);
                    }
                }
                _ => {}
            }
        }
        Ok(true)
    })?;
    Ok(hosts.iter().map(|queue| queue.len() as u64).sum())
}

/// Host and number of a URL, which orders the queue of a host.
fn key(host: u32, n: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&host.to_be_bytes());
    key[4..].copy_from_slice(&n.to_be_bytes());
    key
}

fn write_fjall(folder: &Path) -> anyhow::Result<u64> {
    let database = fjall::Database::builder(folder).open()?;
    let urls = database.keyspace("urls", fjall::KeyspaceCreateOptions::default)?;
    let state = database.keyspace("state", fjall::KeyspaceCreateOptions::default)?;
    let mut batch = database.batch();
    for host in 0..N_HOSTS {
        let origin = format!("http://host{host}.example");
        batch.insert(&state, (host as u32).to_be_bytes(), origin);
    }
    batch.commit()?;
    let mut queue: VecDeque<u64> = VecDeque::new();
    for commit in 0..N_COMMITS {
        let mut batch = database.batch();
        for n in commit * N_NEW..(commit + 1) * N_NEW {
            let mut value = vec![(n % 7) as u8, (n % 7) as u8, 0];
            value.extend_from_slice(rest(n).as_bytes());
            batch.insert(&urls, key(host_of(n), n), value);
            queue.push_back(n);
        }
        for n in queue.drain(..N_DONE.min(queue.len())) {
            let key = key(host_of(n), n);
            // Those of this commit are not there yet.
            let is_there = n < commit * N_NEW;
            anyhow::ensure!(!is_there || urls.get(key)?.is_some());
            batch.remove(&urls, key);
        }
        batch.insert(&state, "archive", (commit << 20).to_be_bytes());
        batch.commit()?;
        if commit % SYNC_EVERY == 0 {
            database.persist(fjall::PersistMode::SyncData)?;
        }
    }
    database.persist(fjall::PersistMode::SyncAll)?;
    Ok(queue.len() as u64)
}

fn recover_fjall(folder: &Path) -> anyhow::Result<u64> {
    let database = fjall::Database::builder(folder).open()?;
    let urls = database.keyspace("urls", fjall::KeyspaceCreateOptions::default)?;
    let mut hosts: HashMap<u32, Vec<u64>> = HashMap::new();
    for entry in urls.iter() {
        let key = entry.key()?;
        let (host, n) = key.split_at(4);
        let host = u32::from_be_bytes(host.try_into()?);
        hosts.entry(host).or_default().push(u64::from_be_bytes(n.try_into()?));
    }
    Ok(hosts.values().map(|queue| queue.len() as u64).sum())
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Bytes that this process handed to the system.
fn written_bytes() -> u64 {
    number_in("/proc/self/io", "wchar:")
}

fn peak_mib() -> u64 {
    number_in("/proc/self/status", "VmHWM:") / 1024
}

fn number_in(path: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0)
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
