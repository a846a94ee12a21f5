//! Embedded stores as a basis for the index: the same entries, sorted by another program.
//!
//! An entry is a key of 12 bytes, prefix and row, without a value. Entries are inserted in batches
//! of 20,000. Then missing prefixes are looked up, like the keys of an unseen document. The sorted
//! runs of the index take the same number of entries from documents with twenty keys, and also
//! store the documents.

use std::path::Path;

use anyhow::Context;
use arose::mix::SplitMix;
use arose_dedup::index::Index;

use crate::documents::{name, settings, sketch};
use crate::meter::{Meter, folder_bytes, peak_mib};

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Engine {
    Fjall,
    Redb,
    Runs,
}

const BATCH: u64 = 20_000;
const N_QUERIES: u64 = 1_000_000;
/// Number of keys of a document.
const PER_DOCUMENT: u64 = 20;

pub(crate) fn run(engine: Engine, folder: &Path, n_keys: u64) -> anyhow::Result<()> {
    match engine {
        Engine::Fjall => fjall(folder, n_keys),
        Engine::Redb => redb(folder, n_keys),
        Engine::Runs => runs(folder, n_keys),
    }
}

fn entry(random: &mut SplitMix, number: u64) -> [u8; 12] {
    let mut entry = [0; 12];
    entry[..8].copy_from_slice(&random.next_u64().to_be_bytes());
    entry[8..].copy_from_slice(&(number as u32).to_be_bytes());
    entry
}

fn report(what: &str, folder: &Path, meter: &Meter, n: u64) {
    let (cpu, wall) = meter.seconds();
    println!(
        "{what}: {:.2} us a key of processor, {:.2} us on the wall, {:.1} bytes a key, peak {} MiB",
        cpu * 1e6 / n as f64,
        wall * 1e6 / n as f64,
        folder_bytes(folder) as f64 / n as f64,
        peak_mib()
    );
}

fn fjall(folder: &Path, n_keys: u64) -> anyhow::Result<()> {
    let database = fjall::Database::builder(folder).open()?;
    let keyspace = database.keyspace("entries", fjall::KeyspaceCreateOptions::default)?;
    let mut random = SplitMix::new(1);
    let meter = Meter::start();
    for start in (0..n_keys).step_by(BATCH as usize) {
        let mut batch = database.batch();
        for number in start..start + BATCH {
            batch.insert(&keyspace, entry(&mut random, number), []);
        }
        batch.commit()?;
    }
    database.persist(fjall::PersistMode::SyncAll)?;
    report("fjall, insert", folder, &meter, n_keys);
    let meter = Meter::start();
    for _ in 0..N_QUERIES {
        let prefix = random.next_u64().to_be_bytes();
        anyhow::ensure!(keyspace.prefix(prefix).next().is_none());
    }
    report("fjall, look up", folder, &meter, N_QUERIES);
    Ok(())
}

fn redb(folder: &Path, n_keys: u64) -> anyhow::Result<()> {
    use redb::ReadableDatabase;
    const TABLE: redb::TableDefinition<'_, [u8; 12], ()> = redb::TableDefinition::new("entries");
    std::fs::create_dir_all(folder)?;
    let database = redb::Database::create(folder.join("redb")).context("creating")?;
    let mut random = SplitMix::new(1);
    let meter = Meter::start();
    for start in (0..n_keys).step_by(BATCH as usize) {
        let batch = database.begin_write()?;
        {
            let mut table = batch.open_table(TABLE)?;
            for number in start..start + BATCH {
                table.insert(entry(&mut random, number), ())?;
            }
        }
        batch.commit()?;
    }
    report("redb, insert", folder, &meter, n_keys);
    let meter = Meter::start();
    let table = database.begin_read()?.open_table(TABLE)?;
    for _ in 0..N_QUERIES {
        let (mut from, mut to) = ([0; 12], [255; 12]);
        let prefix = random.next_u64().to_be_bytes();
        from[..8].copy_from_slice(&prefix);
        to[..8].copy_from_slice(&prefix);
        anyhow::ensure!(table.range(from..=to)?.next().is_none());
    }
    report("redb, look up", folder, &meter, N_QUERIES);
    Ok(())
}

fn runs(folder: &Path, n_keys: u64) -> anyhow::Result<()> {
    let index = Index::create(folder, settings())?;
    let n_docs = n_keys / PER_DOCUMENT;
    let meter = Meter::start();
    for start in (0..n_docs).step_by(1000) {
        let documents: Vec<_> = (start..start + 1000)
            .map(|i| (name(i), sketch(i)))
            .collect();
        let borrowed: Vec<_> = documents.iter().map(|(n, s)| (n.as_str(), s)).collect();
        index.insert_all(&borrowed)?;
    }
    index.commit()?;
    index.wait_for_merging()?;
    report("runs with records, insert", folder, &meter, n_keys);
    let meter = Meter::start();
    for i in 0..N_QUERIES / PER_DOCUMENT {
        let found = index.query(&sketch(n_docs + i))?;
        anyhow::ensure!(found.is_empty());
    }
    report("runs with records, look up", folder, &meter, N_QUERIES);
    Ok(())
}
