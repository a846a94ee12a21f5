//! Cluster sizes, the largest clusters and sites, from `documents.parquet`.
//!
//! The table may have ten million rows, so columns are streamed and only aggregates are stored. It
//! is read twice: first to find the relevant rows ([`Census`]), then to read them
//! ([`closer_look`]). Memory: four bytes per document for the sizes of clusters, and the shown
//! rows.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::Array;

use super::Error;
use super::lot::Lot;
use super::sites::{Candidates, Tallies, Tally};
use crate::results::Counts;
use crate::results::documents::site_of;
use crate::results::table::{Batch, scan};

/// Maximum number of clusters shown.
const MAX_CLUSTERS: usize = 10;

/// Maximum number of members shown of each, besides the kept one.
const MAX_MEMBERS: usize = 5;

/// Maximum number of sites shown.
const MAX_SITES: usize = 20;

/// The first pass: sizes of clusters, and sites with dropped documents.
#[derive(Debug, Default)]
pub(super) struct Census {
    n_kept: u64,
    n_exact: u64,
    /// By the kept document of the cluster; 0 for dropped documents.
    sizes: Vec<u32>,
    n_rows: u64,
    sites: Candidates,
}

impl Census {
    /// Reads the table and checks that it agrees with the summary.
    pub(super) fn take(path: &Path, counts: &Counts) -> Result<Self, Error> {
        if counts.read > u64::from(u32::MAX) {
            return Err(Error::damaged(
                path,
                "the summary counts too many documents",
            ));
        }
        let mut census = Self {
            sizes: vec![0; counts.read as usize],
            ..Self::default()
        };
        let columns = ["doc", "cluster", "kept", "kept_doc", "rule", "url"];
        scan(path, &columns, |batch| census.add(batch, path))?;
        let found = (census.n_rows, census.n_kept, census.n_exact);
        match found == (counts.read, counts.kept, counts.dropped_exact) {
            true => Ok(census),
            false => Err(Error::damaged(
                path,
                "its rows are not those of the summary",
            )),
        }
    }

    fn add(&mut self, batch: &Batch<'_>, path: &Path) -> Result<(), Error> {
        let (docs, clusters) = (batch.u64s("doc")?, batch.u64s("cluster")?);
        let (kept, rules) = (batch.bools("kept")?, batch.strings("rule")?);
        let (kept_docs, urls) = (batch.u64s("kept_doc")?, batch.strings("url")?);
        for i in 0..batch.n_rows() {
            let doc = docs.value(i);
            if doc != self.n_rows {
                return Err(Error::damaged(path, format!("bad row of document {doc}")));
            }
            self.n_rows += 1;
            let cluster = clusters.value(i);
            let missing = || Error::damaged(path, format!("document {cluster} is missing"));
            *self.sizes.get_mut(cluster as usize).ok_or_else(missing)? += 1;
            if kept.value(i) {
                self.n_kept += 1;
                continue;
            }
            // A document that was dropped for none in the table is already in an index.
            let is_exact = rules.is_valid(i) && rules.value(i) == "exact";
            self.n_exact += u64::from(is_exact && kept_docs.is_valid(i));
            let url = urls.is_valid(i).then(|| urls.value(i));
            if let Some(site) = url.and_then(site_of) {
                self.sites.add(site);
            }
        }
        Ok(())
    }

    /// Returns the number of clusters of each size from two documents.
    pub(super) fn cluster_sizes(&self) -> BTreeMap<u32, u64> {
        let mut counts = BTreeMap::new();
        for &size in self.sizes.iter().filter(|&&size| size > 1) {
            *counts.entry(size).or_default() += 1;
        }
        counts
    }

    /// Returns the largest clusters of at least two documents, largest first.
    fn largest(&self) -> Vec<(u64, u32)> {
        let mut largest: Vec<(u64, u32)> = Vec::new();
        for (cluster, &size) in (0..).zip(&self.sizes) {
            let place = largest.partition_point(|&(_, held)| held >= size);
            if size > 1 && place < MAX_CLUSTERS {
                largest.truncate(MAX_CLUSTERS - 1);
                largest.insert(place, (cluster, size));
            }
        }
        largest
    }
}

/// A cluster to be shown.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) size: u32,
    /// The kept document.
    pub(super) kept: Option<u64>,
    /// Some of the others.
    pub(super) members: Lot<u64>,
}

/// The results of the second pass.
#[derive(Debug)]
pub(super) struct CloserLook {
    /// The largest clusters, largest first.
    pub(super) clusters: Vec<Cluster>,
    /// The sites with the most dropped documents, in descending order.
    pub(super) sites: Vec<(String, Tally)>,
}

/// The second pass: members of the largest clusters, and exact counts of sites.
pub(super) fn closer_look(path: &Path, census: Census, seed: u64) -> Result<CloserLook, Error> {
    let largest = census.largest();
    let mut clusters: BTreeMap<u64, Cluster> = largest
        .iter()
        .map(|&(cluster, size)| (cluster, Cluster::new(size, seed)))
        .collect();
    let mut sites = census.sites.into_tallies();
    scan(path, &["doc", "cluster", "kept", "url"], |batch| {
        let (docs, ordinals) = (batch.u64s("doc")?, batch.u64s("cluster")?);
        let kept = batch.bools("kept")?;
        for i in 0..batch.n_rows() {
            if let Some(cluster) = clusters.get_mut(&ordinals.value(i)) {
                cluster.add(docs.value(i), kept.value(i).then_some(Kept));
            }
        }
        tally_sites(batch, &mut sites)
    })?;
    let in_order = largest
        .iter()
        .filter_map(|(cluster, _)| clusters.remove(cluster));
    Ok(CloserLook {
        clusters: in_order.collect(),
        sites: sites.largest(MAX_SITES),
    })
}

/// Marks a kept document.
struct Kept;

impl Cluster {
    fn new(size: u32, seed: u64) -> Self {
        Self {
            size,
            kept: None,
            members: Lot::new(seed, MAX_MEMBERS),
        }
    }

    /// Adds a document whose kept document is known.
    pub(super) fn named(kept: u64, size: u32, seed: u64) -> Self {
        Self {
            kept: Some(kept),
            ..Self::new(size, seed)
        }
    }

    fn add(&mut self, doc: u64, kept: Option<Kept>) {
        match kept {
            Some(Kept) if self.kept.is_none() => self.kept = Some(doc),
            _ => self.members.draw(doc, || doc),
        }
    }
}

fn tally_sites(batch: &Batch<'_>, sites: &mut Tallies) -> Result<(), Error> {
    if sites.is_empty() {
        return Ok(());
    }
    let (kept, urls) = (batch.bools("kept")?, batch.strings("url")?);
    for i in (0..batch.n_rows()).filter(|&i| urls.is_valid(i)) {
        if let Some(site) = site_of(urls.value(i)) {
            sites.add(&site, u64::from(!kept.value(i)));
        }
    }
    Ok(())
}
