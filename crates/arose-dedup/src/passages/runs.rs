//! Third stage: runs of joined windows at each place.
//!
//! The anchors of a part are grouped into classes, windows of unsettled classes are counted, and
//! every member of a class gets the runs of its class.

use std::path::Path;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::anchors::{Anchors, Search};
use super::classes::{self, CLASSES, Class, MEMBERS};
use super::groups::Group;
use super::parts::{ByDocument, Parts};
use super::place_set::PlaceSet;
use super::text::{TextReader, Texts};
use super::windows::{self, RepeatedWindow};
use crate::column::Scan;
use crate::sorter::Sorted;
use crate::{Error, Progress};

/// Runs, in parts by document.
pub(crate) const RUNS: &str = "runs";

/// How far back to look for another occurrence of a passage.
pub(crate) const LOOK_BACK: usize = 8;

/// Joined windows in a document, sorted by place.
///
/// In periodic text, a run is repeated many times at the same distance. All repetitions are one
/// record, so that such text needs no more records than other text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Run {
    pub(crate) doc: u32,
    /// The first window.
    pub(crate) start: u32,
    pub(crate) n_windows: u32,
    /// The number of repetitions, and the number of tokens from one to the next.
    pub(crate) times: u16,
    pub(crate) step: u16,
    /// The first place of the first window.
    pub(crate) first_doc: u32,
    pub(crate) first_token: u32,
    /// The number of places of each window.
    pub(crate) count: u64,
    /// The hash of the set of places of the first window.
    pub(crate) set: u64,
}

impl Run {
    /// Returns whether the windows of this run and those of the next one occur at the same places,
    /// shifted.
    pub(crate) fn is_joined(&self, next: &Self) -> bool {
        self.start + self.n_windows == next.start
            && PlaceSet(self.set).shifted(self.n_windows).0 == next.set
    }
}

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Runs {
    /// Number of anchors that share their hash or are tied.
    pub(crate) n_shared: u64,
    /// Number of window records.
    pub(crate) n_windows: u64,
    pub(crate) n_runs: u64,
    pub(crate) n_parts: u64,
}

pub(crate) fn run(
    texts: &Texts,
    anchors: &Path,
    found: &Anchors,
    search: &Search,
    folder: &Path,
    progress: &Progress,
) -> Result<Runs, Error> {
    progress.expect(found.n_anchors);
    let n_parts = found.n_parts;
    let mut out = RunParts {
        parts: Parts::create(&folder.join(RUNS), n_parts)?,
        by_document: ByDocument::new(texts.docs()?.left(), n_parts),
        reader: texts.reader()?,
        found: Runs {
            n_parts,
            ..Runs::default()
        },
    };
    for part in 0..n_parts {
        out.found.n_shared += classes::run(anchors, part, search, folder)?;
        let (repeated, n_windows) = windows::run(&out.reader, search, folder)?;
        out.found.n_windows += n_windows;
        out.part(repeated, search, folder)?;
        let n_done = |part: u64| found.n_anchors * part / n_parts;
        progress.advance(n_done(part + 1) - n_done(part))?;
    }
    out.found.n_runs = out.parts.finish()?;
    Ok(out.found)
}

struct RunParts {
    parts: Parts<Run>,
    by_document: ByDocument,
    reader: TextReader,
    found: Runs,
}

impl RunParts {
    /// Gives every member of a class the runs of its class.
    fn part(
        &mut self,
        mut repeated: Sorted<RepeatedWindow>,
        search: &Search,
        folder: &Path,
    ) -> Result<(), Error> {
        let mut members = Scan::<[u32; 2]>::open(&folder.join(MEMBERS))?;
        let mut classes = Scan::<Class>::open(&folder.join(CLASSES))?;
        let mut next = repeated.next()?;
        let mut number = 0;
        let mut group = Group::new(search.n_tokens);
        let mut runs = Vec::new();
        while let Some(class) = classes.next()? {
            runs.clear();
            if class.n_classes > 1 {
                group.read(class, &mut classes, &self.reader)?;
                for index in 0..group.classes.len() {
                    group.runs(index, &mut runs);
                    self.push(&group.classes[index], &runs, &mut members)?;
                }
                number += class.n_classes;
                continue;
            }
            // A settled class of one was taken for repeated, and is not.
            if class.is_settled() && class.n_members > 1 {
                runs.push(settled(&class));
            }
            while let Some(window) = next.filter(|window| window.class() == number) {
                join(&mut runs, &window);
                next = repeated.next()?;
            }
            gather(&mut runs);
            self.push(&class, &runs, &mut members)?;
            number += 1;
        }
        Ok(())
    }

    fn push(
        &mut self,
        class: &Class,
        runs: &[Run],
        members: &mut Scan<[u32; 2]>,
    ) -> Result<(), Error> {
        for _ in 0..class.n_members {
            let [doc, first] = members.next()?.expect("as many members as classes say");
            let part = self.by_document.part(doc);
            for run in runs {
                let start = first + run.start;
                self.parts.push(part, &Run { doc, start, ..*run })?;
            }
        }
        Ok(())
    }
}

/// Returns the one run of a settled class. Starts are relative to the first window.
fn settled(class: &Class) -> Run {
    Run {
        doc: 0,
        start: 0,
        n_windows: class.n_windows,
        times: 1,
        step: 0,
        first_doc: class.doc,
        first_token: class.first,
        count: class.n_members,
        set: class.set,
    }
}

/// Adds a window to the last run if they are joined.
fn join(runs: &mut Vec<Run>, window: &RepeatedWindow) {
    let one = Run {
        doc: 0,
        start: window.offset(),
        n_windows: 1,
        times: 1,
        step: 0,
        first_doc: window.doc,
        first_token: window.token,
        count: window.count,
        set: window.set,
    };
    match runs.last_mut().filter(|last| last.is_joined(&one)) {
        Some(last) => last.n_windows += 1,
        None => runs.push(one),
    }
}

/// Combines runs of the same windows at equal distances into one record.
///
/// The first run and the last one are not changed, since they may be joined with windows of the
/// preceding and following anchors.
fn gather(runs: &mut Vec<Run>) {
    let Some(last) = runs.pop_if(|last| last.start > 0) else {
        return;
    };
    let n_first = 1.min(runs.len());
    let mut n_gathered = n_first;
    for i in n_first..runs.len() {
        let run = runs[i];
        let open = &mut runs[1..n_gathered];
        let same = open.iter_mut().rev().take(LOOK_BACK).find(|open| {
            (open.first_doc, open.first_token, open.n_windows)
                == (run.first_doc, run.first_token, run.n_windows)
        });
        let distance = |open: &Run| (run.start - open.start) as u16;
        match same {
            Some(open) if open.times == 1 => {
                open.step = distance(open);
                open.times = 2;
            }
            Some(open)
                if u32::from(distance(open)) == u32::from(open.step) * u32::from(open.times) =>
            {
                open.times += 1;
            }
            _ => {
                runs[n_gathered] = run;
                n_gathered += 1;
            }
        }
    }
    runs.truncate(n_gathered);
    runs.push(last);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts of windows, each with a letter that identifies its passage.
    fn runs(passages: &str) -> Vec<Run> {
        let letters = passages.bytes().zip(0..);
        let run = |(letter, start)| Run {
            doc: 0,
            start,
            n_windows: 1,
            times: 1,
            step: 0,
            first_doc: 0,
            first_token: u32::from(letter),
            count: 2,
            set: 0,
        };
        letters.map(run).collect()
    }

    #[track_caller]
    fn check(passages: &str, expected: &[(u32, u16, u16)]) {
        let mut runs = runs(passages);
        gather(&mut runs);
        let found: Vec<_> = runs.iter().map(|r| (r.start, r.times, r.step)).collect();
        assert_eq!(found, expected, "{passages}");
    }

    #[test]
    fn equal_distances_make_one_record() {
        check("", &[]);
        check("a", &[(0, 1, 0)]);
        check("aa", &[(0, 1, 0), (1, 1, 0)]);
        check("aaaaaa", &[(0, 1, 0), (1, 4, 1), (5, 1, 0)]);
        check("abababab", &[(0, 1, 0), (1, 3, 2), (2, 3, 2), (7, 1, 0)]);
        check(
            "xaabaay",
            &[(0, 1, 0), (1, 2, 1), (3, 1, 0), (4, 2, 1), (6, 1, 0)],
        );
    }
}
