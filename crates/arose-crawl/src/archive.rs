//! The repository: what was fetched, as a web archive.
//!
//! Every response is a record of a WARC file (ISO 28500, version 1.1), a gzip member of its own, so
//! that it can be read alone; a CDXJ line beside it says where. A page with the same payload as
//! another is a *revisit* record of the standard profile `identical-payload-digest`: the head of
//! the response and the record that has the body. A near duplicate is stored whole, with what it
//! resembles and by which rule. If the settings drop its body, it is a revisit record of the
//! profile [`arose_corpus::NEAR_DUPLICATE`], which no other software can replay.
//!
//! Files only grow. How much of the last one counts is written in the journal; the rest, after a
//! crash, is cut off. A full file is followed by the next. Each begins with a `warcinfo` record
//! that says who made it and with which settings, and every other record names that one.
//!
//! Records are packed where pages are read ([`Packer`], on any thread) and written here in order.

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
pub(crate) use record::{Note, Packed, Record, bare_media_type, payload_digest};
use record::{digest, record_id};
pub(crate) use scan::{
    FileScan, Stored, bears_out, mend_index, name_in_line, place_of_line, read_at,
};

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

/// The archive, open for appending.
#[derive(Debug)]
pub(crate) struct Archive {
    folder: PathBuf,
    config: Config,
    /// Number of the file being written, and its name without the ending.
    pub(crate) file: u64,
    stem: String,
    /// The lines that every record of the file begins with.
    lines: Vec<u8>,
    /// Scratch for the record being appended.
    sealed: Vec<u8>,
    records: Growing,
    index: Growing,
    /// Files that are full and may not be on the disk yet.
    closed: Vec<Growing>,
    /// How far files go that became full since the last flush.
    full: Vec<Extent>,
    /// Whether there are names that may not be on the disk yet.
    has_new_names: bool,
}

/// What the settings say of archives.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    max_file: u64,
    prefix: String,
    /// What a `warcinfo` record holds.
    info: String,
}

impl Config {
    /// What these settings say.
    ///
    /// # Errors
    ///
    /// If the prefix cannot stand in a file name that every tool takes.
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

/// Which archive of a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Pages,
    Robots,
}

/// How far an archive is valid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) file: u64,
    pub(crate) bytes: u64,
    pub(crate) index_bytes: u64,
}

impl Extent {
    /// As the journal has it.
    pub(crate) fn event(self) -> Event<'static> {
        Event::Archive {
            file: self.file,
            bytes: self.bytes,
            index_bytes: self.index_bytes,
        }
    }

    /// What an event of the journal says of an archive.
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

    /// As the journal has it for robots.txt files.
    pub(crate) fn robots_event(self) -> Event<'static> {
        Event::RobotsArchive {
            file: self.file,
            bytes: self.bytes,
            index_bytes: self.index_bytes,
        }
    }
}

impl Archive {
    /// Opens the archive and cuts off what lies behind `extent`; files after it are removed.
    /// Nothing is changed if less than that is there. `date` is now, in seconds since 1970.
    pub(crate) fn open(
        folder: &Path,
        extent: Extent,
        config: Config,
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

    /// Appends a packed record and the line that says where it is.
    /// Returns where that is.
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

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Hands all that was appended to the system; returns how far the archive goes.
    pub(crate) fn flush(&mut self) -> Result<Extent, Error> {
        self.records.write()?;
        self.index.write()?;
        Ok(Extent {
            file: self.file,
            bytes: self.records.end(),
            index_bytes: self.index.end(),
        })
    }

    /// Goes on with another file. The full one is closed when it is on the disk.
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

    /// How far files go that became full since this was asked last.
    pub(crate) fn take_full(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.full)
    }

    /// Returns when all that was handed over is on the disk.
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

    /// Writes the record that each file begins with.
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

    /// Has records name a `warcinfo` record.
    fn belong_to(&mut self, id: &str) {
        let line = format!("WARC-Warcinfo-ID: <{id}>\r\n");
        self.lines = [VERSION, line.as_bytes()].concat();
    }
}

/// The line that every record begins with.
const VERSION: &[u8] = b"WARC/1.1\r\n";

/// Removes the files that follow a number. They are gone when this returns, so that no file has the
/// number of another.
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

/// The end of a line of the index.
fn place_of(length: u64, offset: u64, stem: &str) -> String {
    let name = serde_json::Value::from(format!("{stem}.warc.gz"));
    format!("\"length\": \"{length}\", \"offset\": \"{offset}\", \"filename\": {name}}}\n")
}

/// Whether at least so much of an archive is there.
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

/// A file that is written at its end, in large pieces.
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

    /// If that fails, what is pending stays so, and may be written again.
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
