//! The manifest: the list of the files that make up an index at this moment.
//!
//! The manifest is replaced as a whole, by renaming. Files that it does not list are not part of
//! the index. So a change of many files is atomic, for readers and for a process that dies.

use std::path::Path;

use super::Error;
use super::file::{Content, NumberReader, read_sealed, sync_folder, write_sealed};
use super::settings::Settings;

/// The files of an index.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Manifest {
    pub(super) settings: Settings,
    /// The next unused file number.
    pub(super) next_number: u64,
    /// The log, with all changes that are in no other file.
    pub(super) log: u64,
    /// Removed rows, if there are any.
    pub(super) dead: Option<Part>,
    /// Counts of text that sites repeat, if the policy is `content` and something was counted.
    pub(super) counts: Option<Part>,
    /// Files of records, in the order of their rows.
    pub(super) records: Vec<Part>,
    /// Sorted runs, in the order of their rows.
    pub(super) runs: Vec<Part>,
}

/// A sealed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) number: u64,
    /// The checksum of its content, so that no other file can replace it.
    pub(super) check: u64,
}

impl Manifest {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            next_number: 1,
            log: 0,
            dead: None,
            counts: None,
            records: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Returns a number for a new file.
    pub(super) fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Replaces the previous manifest by this one.
    ///
    /// From then on, the files that it lists are the index, in any case. The caller keeps them and
    /// adopts the new manifest. It then [syncs](sync_folder) the directory, and only then removes
    /// the files that only the previous manifest listed. If syncing fails, either manifest may be
    /// there after a power failure, and the files of both exist.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        let mut body = Vec::new();
        self.settings.encode(&mut body);
        let dead = self.dead.as_slice();
        body.extend(self.next_number.to_le_bytes());
        body.extend(self.log.to_le_bytes());
        let mut lists = vec![dead, &self.records, &self.runs];
        // Manifests of other policies keep the format from before this policy was added.
        if self.settings.is_content() {
            lists.push(self.counts.as_slice());
        }
        for parts in lists {
            body.extend((parts.len() as u32).to_le_bytes());
            for part in parts {
                body.extend(part.number.to_le_bytes());
                body.extend(part.check.to_le_bytes());
            }
        }
        // The names of the files must be on disk before a manifest that lists them.
        sync_folder(folder)?;
        write_sealed(Content::Manifest, &Content::Manifest.path(folder, 0), &body).map(drop)
    }

    /// Reads the manifest of a directory.
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let path = Content::Manifest.path(folder, 0);
        if !path.exists() {
            return Err(Error::NoIndex {
                path: folder.to_owned(),
            });
        }
        let (body, _) = read_sealed(Content::Manifest, &path)?;
        let mut fields = NumberReader::new(&body, &path);
        let settings = Settings::decode(&mut fields)?;
        let manifest = Self {
            settings,
            next_number: fields.u64()?,
            log: fields.u64()?,
            dead: parts(&mut fields)?.pop(),
            records: parts(&mut fields)?,
            runs: parts(&mut fields)?,
            counts: match settings.is_content() {
                true => parts(&mut fields)?.pop(),
                false => None,
            },
        };
        fields.end()?;
        Ok(manifest)
    }

    /// Whether a file of that content and number is part of the index.
    pub(super) fn names(&self, content: Content, number: u64) -> bool {
        let among = |parts: &[Part]| parts.iter().any(|part| part.number == number);
        match content {
            Content::Manifest => true,
            Content::Log => self.log == number,
            Content::Records => among(&self.records),
            Content::Run => among(&self.runs),
            Content::Dead => among(self.dead.as_slice()),
            Content::SiteCounts => among(self.counts.as_slice()),
        }
    }
}

fn parts(fields: &mut NumberReader<'_>) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::new();
    for _ in 0..fields.u32()? {
        parts.push(Part {
            number: fields.u64()?,
            check: fields.u64()?,
        });
    }
    Ok(parts)
}
