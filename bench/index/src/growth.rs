//! The growth of an index, and the time of its queries.

use std::path::Path;
use std::time::Instant;

use arose_dedup::index::Index;

use crate::documents::{name, settings, sketch};
use crate::meter::{Meter, folder_bytes, peak_mib, quantile, thread_nanos};

/// Number of documents inserted at a time.
const GROUP: u64 = 1000;

/// Inserts documents into a new index and prints the cost after every two million.
pub(crate) fn insert(folder: &Path, n_docs: u64) -> anyhow::Result<()> {
    let index = Index::create(folder, settings())?;
    let generator = time_generator(n_docs.min(200_000));
    println!("generator: {generator:.2} us a document, taken off below");
    println!("documents   cpu s  wall s  docs/cpu s  runs  bytes/doc  peak MiB");
    let meter = Meter::start();
    for start in (0..n_docs).step_by(GROUP as usize) {
        let numbers = start..(start + GROUP).min(n_docs);
        let documents: Vec<_> = numbers.map(|i| (name(i), sketch(i))).collect();
        let borrowed: Vec<_> = documents.iter().map(|(n, s)| (n.as_str(), s)).collect();
        index.insert_all(&borrowed)?;
        let done = start + GROUP;
        if done % 2_000_000 == 0 || done >= n_docs {
            index.commit()?;
            report(&index, folder, &meter, generator)?;
        }
    }
    index.wait_for_merging()?;
    println!("merging done");
    report(&index, folder, &meter, generator)
}

fn report(index: &Index, folder: &Path, meter: &Meter, generator: f64) -> anyhow::Result<()> {
    let status = index.status()?;
    let n_docs = status.n_docs as f64;
    let (cpu, wall) = meter.seconds();
    let (cpu, wall) = (
        cpu - generator * n_docs / 1e6,
        wall - generator * n_docs / 1e6,
    );
    println!(
        "{n_docs:>9} {cpu:>7.1} {wall:>7.1} {:>11.0} {:>5} {:>10.1} {:>9}",
        n_docs / cpu,
        status.n_runs,
        folder_bytes(folder) as f64 / n_docs,
        peak_mib()
    );
    Ok(())
}

/// Microseconds to generate one document.
fn time_generator(n: u64) -> f64 {
    let meter = Meter::start();
    let mut sum = 0;
    for i in 0..n {
        sum ^= sketch(i).words[11] ^ name(i).len() as u64;
    }
    std::hint::black_box(sum);
    meter.seconds().0 * 1e6 / n as f64
}

/// Queries documents that are not in the index, and some that are.
pub(crate) fn query(folder: &Path, n_queries: u64) -> anyhow::Result<()> {
    let meter = Meter::start();
    let index = Index::open(folder)?;
    let (cpu, wall) = meter.seconds();
    println!(
        "opened in {wall:.2} s, {cpu:.2} s of processor, peak {} MiB",
        peak_mib()
    );
    let n_docs = index.status()?.n_docs;
    for (what, start, expected) in [
        ("unseen, warming up", n_docs + 1_000_000_000, 0),
        ("unseen", n_docs + 2_000_000_000, 0),
        ("seen", 0, 1),
    ] {
        let mut cpu_nanos = Vec::new();
        let mut wall_nanos = Vec::new();
        for i in 0..n_queries {
            let number = match expected {
                0 => start + i,
                _ => (i * 7919) % n_docs,
            };
            let query = sketch(number);
            let (cpu, wall) = (thread_nanos(), Instant::now());
            let found = index.query(&query)?;
            wall_nanos.push(wall.elapsed().as_nanos() as u64);
            cpu_nanos.push(thread_nanos() - cpu);
            anyhow::ensure!(found.len() == expected, "{what}: {found:?}");
        }
        cpu_nanos.sort_unstable();
        wall_nanos.sort_unstable();
        let us = |sorted: &[u64], share| quantile(sorted, share) as f64 / 1000.0;
        println!(
            "{what}: cpu median {:.1} us, 99 % {:.1} us; wall median {:.1} us, 99 % {:.1} us",
            us(&cpu_nanos, 0.5),
            us(&cpu_nanos, 0.99),
            us(&wall_nanos, 0.5),
            us(&wall_nanos, 0.99)
        );
    }
    println!("peak {} MiB", peak_mib());
    Ok(())
}
