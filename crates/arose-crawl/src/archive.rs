//! The web archive of a crawl: WARC files with every response, and CDXJ files that locate each
//! record.
//!
//! Every response is a record of a WARC file (ISO 28500, version 1.1). Each record is a separate
//! gzip member, so that it can be read alone, and a CDXJ line has its position. A page with the
//! same payload as another is a *revisit* record of the standard profile
//! `identical-payload-digest`: it has the head of the response and refers to the record with the
//! body. A near duplicate is stored completely, with the page that it resembles and the rule that
//! matched. If the settings drop its body, it is a revisit record of the profile
//! [`arose_corpus::NEAR_DUPLICATE`], which no other software can replay.
//!
//! Files only grow. The journal says how many bytes of the last file are valid; after a crash the
//! rest is cut off. When a file is full, the next one is started. Each file begins with a
//! `warcinfo` record that says which program wrote it and with which settings. Every other record
//! refers to that record.
//!
//! Records are compressed where pages are read ([`Packer`], on any thread) and written here in
//! order.

mod names;
mod pack;
mod record;
mod scan;
mod surt;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use arose_corpus::time;
use arose_dedup::disk;

use crate::error::{Context, Error};
use crate::journal::Event;
use crate::pages::Position;
use crate::settings::Settings;
pub(crate) use names::{cdxj_path, files, index_files, warc_path};
pub(crate) use pack::Packer;
pub(crate) use record::{Note, Packed, Record, SKETCH, bare_media_type, payload_digest};
use record::{digest, record_id};
pub(crate) use scan::{
    FileScan, Heads, Stored, bears_out, mend_index, name_in_line, place_of_line, read_at,
};

/// Number of bytes collected before a write.
const BUFFER: usize = 1 << 20;

/// The archive, open for appending.
#[derive(Debug)]
pub(crate) struct ArchiveWriter {
    folder: PathBuf,
    config: ArchiveConfig,
    /// Number of the file being written, and its name without the ending.
    pub(crate) file: u64,
    stem: String,
    /// The lines that every record of the file begins with.
    lines: Vec<u8>,
    /// Buffer for the record being appended.
    sealed: Vec<u8>,
    records: Growing,
    index: Growing,
    /// Full files that may not be on the disk yet.
    closed: Vec<Growing>,
    /// Extents of the files that became full since the last flush.
    full: Vec<Extent>,
    /// Whether there are new file names that may not be on the disk yet.
    has_new_names: bool,
}

/// The settings of archives.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveConfig {
    max_file: u64,
    prefix: String,
    /// The fields of a `warcinfo` record.
    info: String,
}

impl ArchiveConfig {
    /// Takes the settings of archives from the settings of a crawl.
    ///
    /// # Errors
    ///
    /// If the prefix cannot be part of a file name that every tool accepts.
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let prefix = &settings.archive.prefix;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if prefix.is_empty() || prefix.len() > 100 || !prefix.chars().all(is_plain) {
            let message = format!(
                "archive.prefix must be 1 to 100 letters, digits, `.`, `_` and `-`, not `{prefix}`"
            );
            return Err(Error::Settings(message));
        }
        let agent = &settings.agent;
        let operator = match agent.operator.as_str() {
            "" => &agent.contact,
            operator => operator,
        };
        let (software, user_agent) = (env!("CARGO_PKG_VERSION"), settings.user_agent());
        let fields = [
            ("software", format!("arose/{software}")),
            ("format", "WARC File Format 1.1".to_owned()),
            ("conformsTo", CONFORMS_TO.to_owned()),
            ("operator", operator.to_owned()),
            ("http-header-user-agent", user_agent),
            ("robots", "obey".to_owned()),
            ("settings", settings.to_json()),
        ];
        let fields = fields.iter().filter(|(_, value)| !value.is_empty());
        let lines = fields.map(|(name, value)| {
            let value = value.replace(char::is_control, " ");
            format!("{name}: {value}\r\n")
        });
        Ok(Self {
            max_file: settings.archive.max_file,
            prefix: prefix.clone(),
            info: lines.collect(),
        })
    }
}

const CONFORMS_TO: &str =
    "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/";

/// One of the two archives of a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Pages,
    Robots,
}

/// The valid part of an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) file: u64,
    pub(crate) bytes: u64,
    pub(crate) index_bytes: u64,
}

impl Extent {
    /// Returns the event of the journal with this extent.
    pub(crate) fn event(self) -> Event<'static> {
        Event::Archive {
            file: self.file,
            bytes: self.bytes,
            index_bytes: self.index_bytes,
        }
    }

    /// Returns the extent that an event of the journal gives for an archive.
    pub(crate) fn of(event: &Event<'_>) -> Option<(Self, Part)> {
        let (file, bytes, index_bytes, part) = match *event {
            Event::Archive {
                file,
                bytes,
                index_bytes,
            } => (file, bytes, index_bytes, Part::Pages),
            Event::RobotsArchive {
                file,
                bytes,
                index_bytes,
            } => (file, bytes, index_bytes, Part::Robots),
            _ => return None,
        };
        let extent = Self {
            file,
            bytes,
            index_bytes,
        };
        Some((extent, part))
    }

    /// Returns the event of the journal with this extent of the archive of robots.txt files.
    pub(crate) fn robots_event(self) -> Event<'static> {
        Event::RobotsArchive {
            file: self.file,
            bytes: self.bytes,
            index_bytes: self.index_bytes,
        }
    }
}

impl ArchiveWriter {
    /// Opens the archive, cuts off everything after `extent` and removes later files. Changes
    /// nothing if the archive is shorter than that. `date` is the current time, in seconds since
    /// 1970.
    pub(crate) fn open(
        folder: &Path,
        extent: Extent,
        config: ArchiveConfig,
        date: i64,
    ) -> Result<Self, Error> {
        check(folder, extent)?;
        disk::create_folder(folder).context("creating", folder)?;
        remove_after(folder, extent.file)?;
        let stem = names::stem_of(folder, extent.file)?;
        let stem = stem.unwrap_or_else(|| names::stem(&config.prefix, date, extent.file));
        let records = names::records_of(folder, &stem);
        let index = names::index_of(folder, &stem);
        let mut archive = Self {
            folder: folder.to_owned(),
            config,
            file: extent.file,
            records: Growing::open(&records, extent.bytes)?,
            index: Growing::open(&index, extent.index_bytes)?,
            stem,
            lines: Vec::new(),
            sealed: Vec::new(),
            closed: Vec::new(),
            full: Vec::new(),
            has_new_names: true,
        };
        match extent.bytes {
            0 => archive.begin(date)?,
            _ => archive.belong_to(&scan::first_id(&records)?),
        }
        Ok(archive)
    }

    /// Appends a compressed record and its line of the index. Returns its position.
    pub(crate) fn append(&mut self, record: &Packed, date: i64) -> Result<Position, Error> {
        if self.records.end() >= self.config.max_file {
            self.next_file(date)?;
        }
        let position = Position {
            file: u32::try_from(self.file).unwrap_or(u32::MAX),
            offset: self.records.end(),
        };
        if let (Some(line), Some(member)) = (&record.line, record.members.first()) {
            let length = member.len(&self.lines) as u64;
            let place = place_of(length, self.records.end(), &self.stem);
            self.index.push(line.as_bytes())?;
            self.index.push(place.as_bytes())?;
        }
        self.sealed.clear();
        for member in &record.members {
            member.seal(&self.lines, &mut self.sealed);
        }
        self.records.push(&self.sealed)?;
        Ok(position)
    }

    /// Returns its directory.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes all appended records to the files and returns the extent of the archive.
    pub(crate) fn flush(&mut self) -> Result<Extent, Error> {
        self.records.write()?;
        self.index.write()?;
        Ok(Extent {
            file: self.file,
            bytes: self.records.end(),
            index_bytes: self.index.end(),
        })
    }

    /// Continues with the next file. The full one is closed when it is on the disk.
    fn next_file(&mut self, date: i64) -> Result<(), Error> {
        let extent = self.flush()?;
        self.full.push(extent);
        self.file += 1;
        self.stem = names::stem(&self.config.prefix, date, self.file);
        let records = Growing::open(&names::records_of(&self.folder, &self.stem), 0)?;
        let index = Growing::open(&names::index_of(&self.folder, &self.stem), 0)?;
        self.closed
            .push(std::mem::replace(&mut self.records, records));
        self.closed.push(std::mem::replace(&mut self.index, index));
        self.has_new_names = true;
        self.begin(date)
    }

    /// Returns the extents of the files that became full since the last call.
    pub(crate) fn take_full(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.full)
    }

    /// Returns when all written bytes are on the disk.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.closed.iter().try_for_each(Growing::sync)?;
        self.closed.clear();
        self.records.sync()?;
        self.index.sync()?;
        if self.has_new_names {
            disk::sync_folder(&self.folder).context("writing", &self.folder)?;
            self.has_new_names = false;
        }
        Ok(())
    }

    /// Writes the first record of a file.
    fn begin(&mut self, date: i64) -> Result<(), Error> {
        let name = format!("{}.warc.gz", self.stem);
        let info = self.config.info.as_bytes();
        // Two crawls may begin in the same second with the same settings.
        let id = record_id(name.as_bytes(), RandomState::new().build_hasher().finish());
        let head = format!(
            "WARC-Type: warcinfo\r\nWARC-Record-ID: <{id}>\r\nWARC-Date: {}\r\n\
             WARC-Filename: {name}\r\nWARC-Block-Digest: {}\r\n\
             Content-Type: application/warc-fields\r\nContent-Length: {}\r\n\r\n",
            time::format(date),
            digest(&[info]),
            info.len()
        );
        let member = Packer::new(6).pack(&[head.as_bytes(), info, b"\r\n\r\n"]);
        self.sealed.clear();
        member.seal(VERSION, &mut self.sealed);
        self.belong_to(&id);
        self.records.push(&self.sealed)
    }

    /// Makes records refer to a `warcinfo` record.
    fn belong_to(&mut self, id: &str) {
        let line = format!("WARC-Warcinfo-ID: <{id}>\r\n");
        self.lines = [VERSION, line.as_bytes()].concat();
    }
}

/// Returns the line that every record begins with.
const VERSION: &[u8] = b"WARC/1.1\r\n";

/// Removes the files with higher numbers. They are gone when this returns, so that no file reuses
/// the number of another.
fn remove_after(folder: &Path, number: u64) -> Result<(), Error> {
    let later = files(folder)?.into_iter().chain(index_files(folder)?);
    let later: Vec<(u64, PathBuf)> = later.filter(|(other, _)| *other > number).collect();
    for (_, path) in &later {
        disk::remove(path).context("removing", path)?;
    }
    match later.is_empty() {
        true => Ok(()),
        false => disk::sync_folder(folder).context("writing", folder),
    }
}

/// Returns the end of a line of the index.
fn place_of(length: u64, offset: u64, stem: &str) -> String {
    let name = serde_json::Value::from(format!("{stem}.warc.gz"));
    format!("\"length\": \"{length}\", \"offset\": \"{offset}\", \"filename\": {name}}}\n")
}

/// Whether the files of an archive have at least this extent.
pub(crate) fn check(folder: &Path, extent: Extent) -> Result<(), Error> {
    let (records, index) = (
        warc_path(folder, extent.file)?,
        cdxj_path(folder, extent.file)?,
    );
    for (path, n_bytes) in [(records, extent.bytes), (index, extent.index_bytes)] {
        let length = match path.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            metadata => metadata.context("reading", &path)?.len(),
        };
        if length < n_bytes {
            let what = "it is shorter than the journal says";
            return Err(Error::damaged_at(&path, length, what));
        }
    }
    Ok(())
}

/// A file that is appended to in large pieces.
#[derive(Debug)]
struct Growing {
    path: PathBuf,
    file: disk::File,
    written: u64,
    pending: Vec<u8>,
}

impl Growing {
    fn open(path: &Path, valid: u64) -> Result<Self, Error> {
        let file = disk::File::open_or_create(path).context("opening", path)?;
        let length = file.as_file().metadata().context("reading", path)?.len();
        if length > valid {
            let cut = file.set_len(valid).and_then(|()| file.sync());
            cut.context("cutting", path)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            written: valid,
            pending: Vec::new(),
        })
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= BUFFER {
            self.write()?;
        }
        Ok(())
    }

    /// Writes pending bytes. On failure, they stay pending and can be written again.
    fn write(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all_at(&self.pending, self.written);
        written.context("writing", &self.path)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    fn end(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    fn sync(&self) -> Result<(), Error> {
        self.file.sync().context("writing", &self.path)
    }
}

#[cfg(test)]
mod tests;
