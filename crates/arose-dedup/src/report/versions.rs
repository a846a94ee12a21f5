//! Groups of kept documents that are versions of the same content, under the policy `content`.
//!
//! Memory: four bytes per document for the sizes of groups, and the shown rows.

use std::collections::BTreeMap;
use std::path::Path;

use super::Error;
use super::documents::Cluster;
use crate::results::Summary;
use crate::results::table::scan;

/// Maximum number of groups shown.
const MAX_GROUPS: usize = 10;

const COLUMNS: [&str; 3] = ["doc", "kept", "group"];

/// Returns the largest groups of at least two kept documents, largest first. The document that
/// names a group is listed as its kept one. Empty unless the run grouped versions.
pub(super) fn largest_groups(path: &Path, summary: &Summary) -> Result<Vec<Cluster>, Error> {
    if summary.counts.versions == 0 {
        return Ok(Vec::new());
    }
    let mut sizes = vec![0_u32; usize::try_from(summary.counts.read).unwrap_or(0)];
    for_each_kept(path, |_, group| {
        if let Some(size) = sizes.get_mut(group as usize) {
            *size += 1;
        }
    })?;
    let mut largest: Vec<(u64, u32)> = (0..).zip(sizes).filter(|&(_, size)| size > 1).collect();
    largest.sort_by_key(|&(group, size)| (std::cmp::Reverse(size), group));
    largest.truncate(MAX_GROUPS);
    let seed = summary.seed();
    let groups = largest.iter();
    let mut groups: BTreeMap<u64, Cluster> = groups
        .map(|&(group, size)| (group, Cluster::named(group, size, seed)))
        .collect();
    for_each_kept(path, |doc, group| {
        let group = groups.get_mut(&group);
        if let Some(group) = group.filter(|group| group.kept != Some(doc)) {
            group.members.draw(doc, || doc);
        }
    })?;
    let in_order = largest.iter();
    Ok(in_order
        .filter_map(|(group, _)| groups.remove(group))
        .collect())
}

/// Calls `each` with every kept document and the one that names its group.
fn for_each_kept(path: &Path, mut each: impl FnMut(u64, u64)) -> Result<(), Error> {
    scan(path, &COLUMNS, |batch| {
        let (docs, groups) = (batch.u64s("doc")?, batch.u64s("group")?);
        let kept = batch.bools("kept")?;
        for i in (0..batch.n_rows()).filter(|&i| kept.value(i)) {
            each(docs.value(i), groups.value(i));
        }
        Ok(())
    })
}
