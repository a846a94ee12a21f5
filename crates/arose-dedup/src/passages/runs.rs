//! Fifth stage: runs of joined windows at each place.

use std::path::Path;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::anchors::Search;
use super::classes::{CLASSES, Class, MEMBERS, SAME_AFTER, SAME_BEFORE, SETTLED};
use super::windows::{RESULTS, Repeated};
use crate::column::Scan;
use crate::sorter::Sorter;
use crate::{Error, Progress};

/// Runs by place.
pub(crate) const RUNS: &str = "runs";

/// Joined windows in a document, sorted by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Run {
    pub(crate) doc: u32,
    /// The first window.
    pub(crate) start: u32,
    pub(crate) n_windows: u32,
    /// [`SAME_BEFORE`] of the first window, [`SAME_AFTER`] of the last.
    pub(crate) flags: u32,
    /// The first place of the first window.
    pub(crate) first_doc: u32,
    pub(crate) first_token: u32,
    /// The number of places of each window.
    pub(crate) count: u64,
}

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Runs {
    pub(crate) n_runs: u64,
}

/// Gives every member of a class the runs of its class.
pub(crate) fn run(
    [classes, windows]: [&Path; 2],
    search: &Search,
    folder: &Path,
    progress: &Progress,
) -> Result<Runs, Error> {
    let mut members = Scan::<[u32; 2]>::open(&classes.join(MEMBERS))?;
    let mut classes = Scan::<Class>::open(&classes.join(CLASSES))?;
    let mut results = Scan::<Repeated>::open(&windows.join(RESULTS))?;
    let mut result = results.next()?;
    let mut sorter = Sorter::<Run>::new(&folder.join("sort"), search.allowance);
    progress.expect(members.left());
    let mut number = 0;
    let mut runs = Vec::new();
    while let Some(class) = classes.next()? {
        runs.clear();
        if class.flags & SETTLED != 0 {
            runs.push(settled(&class));
        }
        while let Some(repeated) = result.filter(|result| result.class == number) {
            join(&mut runs, &repeated);
            result = results.next()?;
        }
        for _ in 0..class.n_members {
            let [doc, first] = members.next()?.expect("as many members as classes say");
            for run in &runs {
                let start = first + run.start;
                sorter.push(Run { doc, start, ..*run })?;
            }
        }
        progress.advance(class.n_members)?;
        number += 1;
    }
    let n_runs = sorter.write(&folder.join(RUNS))?;
    Ok(Runs { n_runs })
}

/// The one run of a settled class; starts are relative to the first window.
fn settled(class: &Class) -> Run {
    Run {
        doc: 0,
        start: 0,
        n_windows: class.n_windows,
        flags: class.flags & (SAME_BEFORE | SAME_AFTER),
        first_doc: class.doc,
        first_token: class.first,
        count: class.n_members,
    }
}

/// Adds a window to the last run if they are joined.
fn join(runs: &mut Vec<Run>, window: &Repeated) {
    match runs.last_mut() {
        Some(last) if is_joined(last, window.offset, window.flags) => {
            last.n_windows += 1;
            last.flags = last.flags & SAME_BEFORE | window.flags & SAME_AFTER;
        }
        _ => runs.push(Run {
            doc: 0,
            start: window.offset,
            n_windows: 1,
            flags: window.flags,
            first_doc: window.doc,
            first_token: window.token,
            count: window.count,
        }),
    }
}

/// Whether the windows of a run and the one at `start` occur at the same places, shifted.
pub(crate) fn is_joined(before: &Run, start: u32, flags: u32) -> bool {
    before.start + before.n_windows == start
        && before.flags & SAME_AFTER != 0
        && flags & SAME_BEFORE != 0
}
