//! A file of documents to add to an index, so that an interrupted insertion can be repeated.
//!
//! A batch of documents is written to a file and forced to disk before the first of them is added.
//! If the process dies halfway, the whole file is added again, and documents already in the index
//! are skipped. So each document is in the index once. If a name belongs to another content, such
//! as an older version of the page, the document is added under its name and its digest. So no
//! version is lost, and repeating the insertion gives the same names.
//!
//! Under the policy `content`, the pages of all documents of a run are counted first, also of those
//! that are not added. So the weights of the added documents are those of the run. A page that was
//! counted before is not counted again.
//!
//! The file is a log of counts and insertions (`log.rs`). A removal at the end marks it as
//! complete.

use std::path::Path;

use super::log::{self, Frame, Log, LogChange};
use super::records::MAX_NAME;
use super::{Error, GROUP, Index, Sketch, own};

/// The row in the removal at the end, which no document has.
const END: u32 = u32::MAX;

/// A file of documents being written.
pub(crate) struct Pending {
    log: Log,
}

impl Pending {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let log = Log::create(path, 0)?;
        Ok(Self { log })
    }

    pub(crate) fn push(&mut self, documents: &[(String, Sketch)]) -> Result<(), Error> {
        // The word pairs of many documents may be too long for a frame.
        let has_pairs = documents.iter().any(|(_, sketch)| sketch.pairs.is_some());
        let n = if has_pairs { 1 } else { documents.len().max(1) };
        for documents in documents.chunks(n) {
            let mut frame = Frame::new();
            for (name, sketch) in documents {
                match name.len() {
                    ..=MAX_NAME => frame.insert(name, sketch),
                    _ => frame.insert(&with_digest(name, sketch), sketch),
                }
            }
            self.log.append(&frame)?;
        }
        Ok(())
    }

    /// Adds pages to be counted. They come before all documents.
    pub(crate) fn push_pages(&mut self, pages: &[(String, Sketch)]) -> Result<(), Error> {
        let mut frame = Frame::new();
        for (_, sketch) in pages {
            frame.count(&own::page_keys(sketch));
        }
        self.log.append(&frame)
    }

    /// Waits until everything is on disk.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        let mut frame = Frame::new();
        frame.remove(END);
        self.log.append(&frame)?;
        let synced = self.log.file.sync();
        synced.map_err(Error::io("write", &self.log.path))
    }
}

impl Index {
    /// Adds the documents of a file that are not in the index. Can be called any number of times.
    pub(crate) fn add_pending(&self, path: &Path) -> Result<(), Error> {
        let (mut group, mut pages) = (Vec::new(), Vec::new());
        let mut is_whole = false;
        log::replay(path, u64::MAX, |change| {
            match change {
                LogChange::Insert(name, sketch) => group.push((name, sketch)),
                LogChange::Remove(_) => is_whole = true,
                LogChange::Count(keys) => pages.push(keys),
            }
            if pages.len() == GROUP || !group.is_empty() || is_whole {
                self.shared.count_pages(&pages)?;
                pages.clear();
            }
            if group.len() == GROUP || is_whole {
                self.add_group(&group)?;
                group.clear();
            }
            Ok(())
        })?;
        match is_whole {
            true => Ok(()),
            false => Err(Error::damaged(path, "its end is missing")),
        }
    }

    fn add_group(&self, group: &[(String, Sketch)]) -> Result<(), Error> {
        let borrowed: Vec<_> = group
            .iter()
            .map(|(name, sketch)| (&**name, sketch))
            .collect();
        match self.insert_all(&borrowed) {
            Err(Error::Exists { .. }) => borrowed
                .iter()
                .try_for_each(|(name, sketch)| self.add_once(name, sketch)),
            added => added,
        }
    }

    fn add_once(&self, name: &str, sketch: &Sketch) -> Result<(), Error> {
        match self.insert(name, sketch) {
            Err(Error::Exists { .. }) => {}
            added => return added,
        }
        let is_same = |there: Sketch| match &sketch.pairs {
            // The stored sketch depends on the time of insertion.
            Some(_) => there.digest == sketch.digest,
            None => there == *sketch,
        };
        if self.sketch(name)?.is_some_and(is_same) {
            return Ok(());
        }
        match self.insert(&with_digest(name, sketch), sketch) {
            Err(Error::Exists { .. }) => Ok(()),
            added => added,
        }
    }
}

/// Returns a name that only this content has.
fn with_digest(name: &str, sketch: &Sketch) -> String {
    let suffix = format!(" {}", sketch.digest);
    let end = name.floor_char_boundary(MAX_NAME - suffix.len());
    format!("{}{suffix}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::index::{Settings, Sketcher};
    use arose::rule::Criterion;

    /// Documents added twice are in the index once; another version of a page gets a name of its
    /// own.
    #[test]
    fn adding_twice_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::agreeing_with(&Config::of(Criterion::jaccard()));
        let index = Index::create(&folder.path().join("index"), settings).unwrap();
        let sketcher = Sketcher::new(index.settings());
        let sketch = |text: &str| sketcher.sketch(text, None);
        index.insert("page", &sketch("the first version")).unwrap();
        let path = folder.path().join("pending");
        let mut pending = Pending::create(&path).unwrap();
        let second = sketch("the second version of it");
        let documents = [
            ("other".to_owned(), sketch("something else")),
            ("page".to_owned(), second.clone()),
            ("x".repeat(MAX_NAME + 1), sketch("a long name")),
        ];
        pending.push(&documents).unwrap();
        assert!(matches!(
            index.add_pending(&path),
            Err(Error::Damaged { .. })
        ));
        pending.finish().unwrap();
        for _ in 0..2 {
            index.add_pending(&path).unwrap();
            assert_eq!(index.status().unwrap().n_docs, 4);
        }
        let name = format!("page {}", second.digest);
        assert_eq!(index.sketch(&name).unwrap(), Some(second));
        assert_eq!(
            index.sketch("page").unwrap(),
            Some(sketch("the first version"))
        );
    }
}
