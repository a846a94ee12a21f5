//! Losses: the part of the input that should have become documents but did not.
//!
//! A damaged record loses only that record. A file that cannot be opened, is truncated or has no
//! text column loses an unknown amount, so it is reported by name as an *incomplete file*. A file
//! with only damaged records, such as JSON Lines without a text field, is also incomplete.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::document::{Item, Warning};

/// Maximum number of files in [`Losses::files`].
const MAX_FILES: usize = 1000;

/// How much of the input is missing, as stated by a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Loss {
    /// Nothing: the record is intact and not wanted, or was read with a defect.
    Nothing,
    /// One record.
    Record,
    /// A file, or an unknown part of it.
    File,
}

/// Input that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// The first 1,000 incomplete files in input order, each with its first file-level warning.
    pub files: Vec<Warning>,
    /// Number of incomplete files.
    pub n_files: u64,
    /// Number of damaged records that were skipped.
    pub n_records: u64,
    /// Files whose items are still arriving. In a total, this is only the last file.
    open: Vec<Stretch>,
}

/// The consecutive items of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stretch {
    #[serde(with = "crate::pipeline::bookmark::path")]
    source: Arc<Path>,
    /// Whether the file has a document or an intact record.
    is_readable: bool,
    damaged_record: Option<Warning>,
    lost: Option<Warning>,
}

impl Losses {
    /// Whether nothing is missing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_files == 0 && self.n_records == 0
    }

    pub(crate) fn add(&mut self, item: &Item) {
        let stretch = self.stretch(item.place().0);
        match item {
            Item::Skipped(warning) if warning.loss == Loss::File => {
                stretch.lost.get_or_insert_with(|| warning.clone());
            }
            Item::Skipped(warning) if warning.loss == Loss::Record => {
                stretch
                    .damaged_record
                    .get_or_insert_with(|| warning.clone());
                self.n_records += 1;
            }
            _ => stretch.is_readable = true,
        }
    }

    pub(crate) fn merge(&mut self, other: &Losses) {
        self.n_records += other.n_records;
        self.n_files += other.n_files;
        let room = MAX_FILES.saturating_sub(self.files.len());
        self.files.extend(other.files.iter().take(room).cloned());
        for other in &other.open {
            if !self
                .open
                .last()
                .is_some_and(|last| last.is_of(&other.source))
            {
                self.finish();
            }
            let stretch = self.stretch(&other.source);
            stretch.is_readable |= other.is_readable;
            let [lost, damaged] = [&other.lost, &other.damaged_record];
            stretch.lost = stretch.lost.take().or_else(|| lost.clone());
            stretch.damaged_record = stretch.damaged_record.take().or_else(|| damaged.clone());
        }
    }

    /// Decides about the files that are now complete.
    pub(crate) fn finish(&mut self) {
        for stretch in self.open.drain(..) {
            let lost = match stretch.is_readable {
                true => stretch.lost,
                false => stretch.lost.or(stretch.damaged_record),
            };
            let Some(mut warning) = lost else {
                continue;
            };
            warning.loss = Loss::File;
            self.n_files += 1;
            if self.files.len() < MAX_FILES {
                self.files.push(warning);
            }
        }
    }

    /// The stretch of `source`, which is the last one or a new one.
    fn stretch(&mut self, source: &Arc<Path>) -> &mut Stretch {
        if !self.open.last().is_some_and(|last| last.is_of(source)) {
            self.open.push(Stretch {
                source: Arc::clone(source),
                is_readable: false,
                damaged_record: None,
                lost: None,
            });
        }
        self.open.last_mut().expect("there is one by now")
    }
}

impl Stretch {
    fn is_of(&self, source: &Arc<Path>) -> bool {
        Arc::ptr_eq(&self.source, source) || self.source == *source
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Position, Reason};
    use crate::format::row::RecordPlace;

    fn item(source: &str, reason: Option<Reason>) -> Item {
        let place = RecordPlace::new(&Path::new(source).into(), Position::default());
        match reason {
            Some(reason) => place.skipped(reason, ""),
            None => {
                let digest = arose::digest::Digest::of_bytes(b"");
                Item::Document(Box::new(place.document(String::new(), digest)))
            }
        }
    }

    /// The same files are incomplete, however items are split into batches.
    #[track_caller]
    fn check(items: &[(&str, Option<Reason>)], files: &[&str], n_records: u64) {
        for n in 1..=items.len() {
            let mut total = Losses::default();
            for batch in items.chunks(n) {
                let mut losses = Losses::default();
                for (source, reason) in batch {
                    losses.add(&item(source, *reason));
                }
                total.merge(&losses);
            }
            total.finish();
            let named = total.files.iter().map(|warning| warning.source.to_str());
            assert_eq!(named.collect::<Option<Vec<_>>>().unwrap(), files, "{n}");
            assert_eq!(
                (total.n_files, total.n_records),
                (files.len() as u64, n_records)
            );
        }
    }

    #[test]
    fn damaged_records_are_counted_and_files_are_named() {
        let bad = Some(Reason::NotAnObject);
        let textless = Some(Reason::NoText);
        check(&[("a", None), ("a", bad), ("a", bad), ("b", None)], &[], 2);
        check(
            &[("a", bad), ("a", None), ("b", Some(Reason::Truncated))],
            &["b"],
            1,
        );
        check(
            &[
                ("a", Some(Reason::Truncated)),
                ("a", Some(Reason::Unreadable)),
            ],
            &["a"],
            0,
        );
        check(
            &[("a", textless), ("a", bad), ("b", textless), ("b", None)],
            &["a"],
            3,
        );
        check(&[("a", bad), ("a", Some(Reason::NullText))], &[], 1);
        check(
            &[("a", Some(Reason::MediaType)), ("b", Some(Reason::Empty))],
            &[],
            0,
        );
    }
}
