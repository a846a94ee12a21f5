//! Bookmarks: positions in a corpus from which another process can resume reading.
//!
//! A bookmark records the number of inputs before it and its position in the next one. Where
//! possible, reading starts at the position itself: in an uncompressed file by a seek, in a
//! compressed file at the member that contains it, where the bytes before it are decoded again.
//! Records before the bookmark are neither parsed nor delivered again.

use serde::{Deserialize, Serialize};

use crate::document::{Counts, Position};
use crate::pipeline::open::Open;

/// A position between two records of a corpus, and the counts up to it.
///
/// It is valid in another process and with any number of threads, as long as inputs, settings and
/// files are the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Bookmark {
    pub(crate) start: Start,
    pub(crate) counts: Counts,
}

/// A position between two records of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Start {
    /// Number of inputs before the current one.
    pub(crate) n_inputs: u64,
    /// The position in the input; its start if none.
    pub(crate) within: Option<Within>,
}

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Within {
    pub(crate) position: Position,
    /// Bytes of output before it, or number of row groups.
    pub(crate) index: u64,
    /// The state of the cutter.
    pub(crate) state: CutterState,
}

/// State of a cutter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum CutterState {
    /// No state.
    #[default]
    None,
    /// Abandoned rows: their number of bytes, and where they ended.
    Rows { given_up: u64, given_up_to: u64 },
    /// Whether an array is open, and the indentation of the line.
    Values {
        is_in_array: bool,
        indent: Option<Vec<u8>>,
    },
}

impl Open {
    /// The start of the next task, in the input with this number; none if it cannot be determined.
    pub(crate) fn start(&mut self, n_inputs: u64) -> Option<Start> {
        let within = match self {
            // At most one item is left.
            Open::Whole(_) | Open::Skipped(_) => None,
            _ => Some(self.within()?),
        };
        Some(Start { n_inputs, within })
    }

    fn within(&mut self) -> Option<Within> {
        let (stream, state) = match self {
            Open::Lines(cutter) => (cutter.stream().1, CutterState::None),
            Open::Records(cutter) => (cutter.stream().1, CutterState::None),
            Open::Values(cutter) => {
                let state = cutter.state();
                (cutter.stream().1, state)
            }
            Open::Rows(cutter) => {
                let state = cutter.state()?;
                (cutter.stream().1, state)
            }
            Open::Table(table) => return Some(table.within()),
            Open::Whole(_) | Open::Skipped(_) => return None,
        };
        Some(Within {
            position: stream.place()?,
            index: stream.index(),
            state,
        })
    }

    /// Moves to a position of this input. Returns whether it was reached.
    pub(crate) fn go_on(&mut self, within: &Within) -> bool {
        let stream = match self {
            Open::Lines(cutter) => cutter.stream().1,
            Open::Records(cutter) => cutter.stream().1,
            Open::Values(cutter) => {
                cutter.set_state(&within.state);
                cutter.stream().1
            }
            Open::Rows(cutter) => {
                cutter.set_state(&within.state);
                cutter.stream().1
            }
            Open::Table(table) => return table.go_on(within),
            Open::Whole(_) | Open::Skipped(_) => return false,
        };
        stream.go_on(within.position, within.index)
    }
}

/// Serializes paths as text, whatever their bytes.
pub(crate) mod path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Path>, D::Error> {
        let bytes = Vec::deserialize(deserializer)?;
        Ok(PathBuf::from(OsString::from_vec(bytes)).into())
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::io::Write as _;
    use std::num::NonZeroUsize;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::config::Config;
    use crate::document::Item;
    use crate::{read, read_from_bookmark};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    /// Files of every kind, some of them damaged.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        let mut lines = String::new();
        for i in 0..300 {
            match i % 7 {
                3 => writeln!(lines, "not an object {i}"),
                5 => writeln!(lines),
                n => writeln!(lines, "{{\"text\": \"{}\"}}", "word ".repeat(n * 3)),
            }
            .unwrap();
        }
        write("a.jsonl", lines.as_bytes());
        write("b.jsonl.gz", &gzip(lines.as_bytes()));
        let members: Vec<u8> = lines
            .split_inclusive('\n')
            .flat_map(|line| gzip(line.as_bytes()))
            .collect();
        write("c.jsonl.gz", &members);
        let mut broken = members.clone();
        let middle = broken.len() / 2;
        broken[middle..middle + 20].fill(7);
        write("d.jsonl.gz", &broken);
        write(
            "e.jsonl.zst",
            &zstd::encode_all(lines.as_bytes(), 1).unwrap(),
        );
        let mut rows = "id,text\n".to_owned();
        let mut values = "[".to_owned();
        for i in 0..200 {
            let quote = if i % 50 == 20 { "\"" } else { "" };
            writeln!(rows, "{i},{quote}row {i} of many words").unwrap();
            writeln!(values, "  {{\n  \"text\": \"value {i}\"\n  }},").unwrap();
        }
        write("f.csv", rows.as_bytes());
        write("g.json", values.as_bytes());
        for i in 0..40 {
            write(
                &format!("h{i:02}.txt"),
                format!("the text of {i}").as_bytes(),
            );
        }
        write("i.unknown", b"\x00\x01");
        let mut archive = Vec::new();
        for i in 0..100 {
            let body = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\npage {i}");
            let record = format!(
                "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://h/{i}\r\n\
                 WARC-Record-ID: <urn:uuid:{i}>\r\nContent-Type: application/http;msgtype=response\r\n\
                 Content-Length: {}\r\n\r\n{body}\r\n\r\n",
                body.len()
            );
            archive.extend(gzip(record.as_bytes()));
        }
        write("j.warc.gz", &archive);
        write("k.warc.gz", &archive[..archive.len() - 30]);
        folder
    }

    fn config(threads: usize) -> Config {
        Config {
            threads: NonZeroUsize::new(threads).unwrap(),
            // A small block size gives many tasks.
            block_bytes: NonZeroUsize::new(700).unwrap(),
            ..Config::default()
        }
    }

    /// Reads until the next bookmark after `n` items, or to the end if there is none.
    fn stretch(inputs: &[PathBuf], from: &Bookmark, n: usize, threads: usize) -> Stretch {
        let mut documents = read_from_bookmark(inputs, config(threads), from, |item| item).unwrap();
        let mut items = Vec::new();
        loop {
            if items.len() >= n
                && let Some(bookmark) = documents.bookmark()
            {
                return (items, Ok(bookmark));
            }
            match documents.next() {
                Some(item) => items.push(item),
                None => return (items, Err(documents.counts().clone())),
            }
        }
    }

    type Stretch = (Vec<Item>, Result<Bookmark, Counts>);

    /// Nothing is lost or delivered twice, for any number of threads and any point of interruption.
    #[test]
    fn reading_goes_on_at_bookmarks() {
        let folder = folder();
        let inputs = [folder.path().to_owned()];
        let mut whole = read(&inputs, config(2)).unwrap();
        let expected: Vec<Item> = whole.by_ref().collect();
        assert!(expected.len() > 1500, "{}", expected.len());
        for (n, threads) in [(1, 1), (1, 3), (50, 2), (400, 4)] {
            let mut items = Vec::new();
            let mut bookmark = Bookmark::default();
            let mut n_bookmarks = 0;
            let counts = loop {
                // The bookmark in its serialized form.
                let text = serde_json::to_string(&bookmark).unwrap();
                bookmark = serde_json::from_str(&text).unwrap();
                let (more, next) = stretch(&inputs, &bookmark, n, threads);
                items.extend(more);
                n_bookmarks += 1;
                match next {
                    Ok(next) => bookmark = next,
                    Err(counts) => break counts,
                }
            };
            assert_eq!(items.len(), expected.len(), "{n}");
            for (item, expected) in items.iter().zip(&expected) {
                assert_eq!(item, expected);
            }
            assert_eq!(&counts, whole.counts());
            assert!(n_bookmarks > 200 / n, "{n_bookmarks} for {n}");
        }
    }

    #[test]
    fn paths_of_any_bytes_are_kept() {
        use std::os::unix::ffi::OsStrExt as _;
        let source = Path::new(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        let mut counts = Counts::default();
        let place = crate::format::row::RecordPlace::new(&source.into(), Position::default());
        counts.add(&place.lost_file(crate::Reason::Truncated, "cut"));
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(serde_json::from_str::<Counts>(&text).unwrap(), counts);
    }
}
