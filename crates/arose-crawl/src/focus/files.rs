//! The files of a focused crawl: data about queued URLs, and the state of the models.
//!
//! `focus.links` has a slot of [`SLOT`] bytes with a checksum for each queued URL. Changed slots
//! are written at each commit, before the journal. `focus.state` contains the link model, the
//! harvest and the state of the scorer. It is replaced every 30 seconds and at the end of a run.
//! Changes of the model in between are appended to `focus.changes` at each commit: records of a
//! length, the number of the state to which they apply, the changes, and a checksum. After a crash
//! these files may be slightly ahead of or behind the journal. This affects priorities, but never
//! which pages are fetched.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use arose::digest::digest64;
use arose::focus::{LINK_BYTES, Link, LinkModel};
use arose_dedup::disk;
use serde::{Deserialize, Serialize};

use super::{Harvest, QueuedLink};
use crate::error::{Context, Error};

const LINKS: &str = "focus.links";
const STATE: &str = "focus.state";
const CHANGES: &str = "focus.changes";

/// The first bytes of the state.
const MAGIC: &[u8] = b"arose-focus 1\n";

/// Size of a slot in bytes: the key, the mass, a mark, the link, and a checksum at the end.
pub(super) const SLOT: usize = 128;
const CHECKED: usize = SLOT - 4;
const LINK_AT: usize = 21;
const _: () = assert!(LINK_AT + LINK_BYTES <= CHECKED);

/// Changes since the last commit.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(super) slots: Vec<(u32, [u8; SLOT])>,
    pub(super) state: Option<Vec<u8>>,
    /// Changes of the model since the last state, if there is no new state.
    pub(super) model: Option<Vec<u8>>,
}

impl Changes {
    /// Returns the approximate size of the changes in memory.
    pub(crate) fn n_bytes(&self) -> usize {
        let states = self.state.iter().chain(&self.model);
        self.slots.len() * (SLOT + 4) + states.map(Vec::len).sum::<usize>()
    }
}

/// The files, open for writing.
#[derive(Debug)]
pub(crate) struct FocusFiles {
    links: disk::File,
    path: PathBuf,
    state: PathBuf,
    changes: disk::File,
    changes_path: PathBuf,
    /// The end of the changes.
    n_bytes: std::cell::Cell<u64>,
}

/// The contents of the files.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) waiting: HashMap<u128, QueuedLink>,
    pub(super) n_slots: u32,
    pub(super) model: Option<LinkModel>,
    pub(super) head: Head,
}

/// The contents of the state except the model.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Head {
    /// The topic.
    pub(super) topic: String,
    /// The number of the state.
    #[serde(default)]
    pub(super) number: u64,
    pub(super) harvest: Harvest,
    /// The state that the scorer has learned.
    pub(super) learned: Vec<u64>,
}

/// Refuses to resume a crawl that has a topic without one, or the other way round: the priorities
/// of queued URLs would have another meaning.
///
/// # Errors
///
/// If that is the case.
pub(crate) fn check(folder: &Path, is_on: bool, is_crawl: bool) -> Result<(), Error> {
    let was_on = folder.join(STATE).exists();
    let message = match (is_crawl, was_on, is_on) {
        (true, false, true) => "was started without a topic; start another crawl for it",
        (true, true, false) => "was started with a topic; resume it with `focus` or `--topic`",
        _ => return Ok(()),
    };
    let message = format!("the crawl in `{}` {message}", folder.display());
    Err(Error::Settings(message))
}

impl FocusFiles {
    /// Opens the files of a crawl, or creates them. Data of another topic is ignored.
    pub(super) fn open(folder: &Path, topic: &str) -> Result<(Self, Kept), Error> {
        let (path, state) = (folder.join(LINKS), folder.join(STATE));
        let links = disk::File::open_or_create(&path).context("opening", &path)?;
        let changes_path = folder.join(CHANGES);
        let changes =
            disk::File::open_or_create(&changes_path).context("opening", &changes_path)?;
        let files = Self {
            links,
            path,
            state,
            changes,
            changes_path,
            n_bytes: std::cell::Cell::new(0),
        };
        let mut kept = Kept::default();
        let read = files.read_state()?;
        let is_new = read.is_none();
        if let Some((head, mut model)) = read.filter(|(head, _)| head.topic == topic) {
            files.read_changes(head.number, &mut model)?;
            (kept.head, kept.model) = (head, Some(model));
            files.read_links(&mut kept)?;
        } else {
            files.links.set_len(0).context("cutting", &files.path)?;
            files.forget_changes()?;
        }
        kept.head.topic = topic.to_owned();
        if is_new {
            let bytes = state_bytes(&kept.head, &LinkModel::new());
            disk::replace(&files.state, &bytes).context("writing", &files.state)?;
        }
        Ok((files, kept))
    }

    /// Returns the state; `None` if it is missing or damaged.
    fn read_state(&self) -> Result<Option<(Head, LinkModel)>, Error> {
        let bytes = match std::fs::read(&self.state) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.context("reading", &self.state)?,
        };
        Ok(parse_state(&bytes))
    }

    /// Applies the changes of the model since the state with this number, up to the first record
    /// that is damaged or truncated.
    fn read_changes(&self, number: u64, model: &mut LinkModel) -> Result<(), Error> {
        let path = &self.changes_path;
        let bytes = std::fs::read(path).context("reading", path)?;
        let mut rest = bytes.as_slice();
        while let Some((changes, after)) = parse_changes(rest, number) {
            if model.apply(changes).is_none() {
                break;
            }
            rest = after;
        }
        self.n_bytes.set((bytes.len() - rest.len()) as u64);
        Ok(())
    }

    fn forget_changes(&self) -> Result<(), Error> {
        self.n_bytes.set(0);
        let cut = self.changes.set_len(0);
        cut.context("cutting", &self.changes_path)
    }

    /// Reads the slots; damaged ones are free.
    fn read_links(&self, kept: &mut Kept) -> Result<(), Error> {
        let file = std::fs::File::open(&self.path).context("opening", &self.path)?;
        let mut reader = std::io::BufReader::with_capacity(1 << 20, file);
        let mut bytes = [0; SLOT];
        loop {
            match reader.read_exact(&mut bytes) {
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read.context("reading", &self.path)?,
            }
            if let Some((key, waiting)) = parse_slot(&bytes, kept.n_slots)
                && kept.waiting.len() < super::MAX_WAITING
            {
                kept.waiting.insert(key, waiting);
            }
            kept.n_slots += 1;
        }
    }

    /// Writes changes.
    pub(crate) fn write(&self, changes: &Changes) -> Result<(), Error> {
        for (slot, bytes) in &changes.slots {
            let at = u64::from(*slot) * SLOT as u64;
            self.links
                .write_all_at(bytes, at)
                .context("writing", &self.path)?;
        }
        if let Some(state) = &changes.state {
            disk::replace(&self.state, state).context("writing", &self.state)?;
            self.forget_changes()?;
        }
        if let Some(model) = &changes.model {
            let written = self.changes.write_all_at(model, self.n_bytes.get());
            written.context("writing", &self.changes_path)?;
            self.n_bytes.set(self.n_bytes.get() + model.len() as u64);
        }
        Ok(())
    }

    /// Returns when the slots are on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.links.sync().context("syncing", &self.path)?;
        self.changes.sync().context("syncing", &self.changes_path)
    }
}

/// Encodes the state as a file.
pub(super) fn state_bytes(head: &Head, model: &LinkModel) -> Vec<u8> {
    let head = serde_json::to_vec(head).unwrap_or_default();
    let mut bytes = MAGIC.to_vec();
    bytes.extend((head.len() as u64).to_le_bytes());
    bytes.extend(head);
    bytes.extend(model.to_bytes());
    bytes.extend(digest64(&bytes).to_le_bytes());
    bytes
}

/// Encodes the changes of a model since the state with this number, as a record.
pub(super) fn changes_bytes(number: u64, changes: &[u8]) -> Vec<u8> {
    let mut bytes = (changes.len() as u64).to_le_bytes().to_vec();
    bytes.extend(number.to_le_bytes());
    bytes.extend(changes);
    bytes.extend(digest64(&bytes).to_le_bytes());
    bytes
}

/// Returns the changes of the first record, if they belong to the state with this number, and the
/// remaining bytes.
fn parse_changes(bytes: &[u8], number: u64) -> Option<(&[u8], &[u8])> {
    let (length, _) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (record, rest) = bytes.split_at_checked(length.checked_add(16)?)?;
    let (digest, rest) = rest.split_first_chunk::<8>()?;
    let is_sound = digest64(record) == u64::from_le_bytes(*digest);
    let (of, changes) = record[8..].split_first_chunk::<8>()?;
    (is_sound && u64::from_le_bytes(*of) == number).then_some((changes, rest))
}

fn parse_state(bytes: &[u8]) -> Option<(Head, LinkModel)> {
    let (content, digest) = bytes.split_last_chunk::<8>()?;
    if digest64(content) != u64::from_le_bytes(*digest) {
        return None;
    }
    let (length, rest) = content.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (head, model) = rest.split_at_checked(length)?;
    Some((
        serde_json::from_slice(head).ok()?,
        LinkModel::from_bytes(model)?,
    ))
}

/// Encodes the slot of a queued URL.
pub(super) fn slot_bytes(key: u128, waiting: &QueuedLink) -> [u8; SLOT] {
    let mut bytes = Vec::with_capacity(SLOT);
    bytes.extend(key.to_le_bytes());
    bytes.extend(waiting.mass.to_le_bytes());
    bytes.push(u8::from(waiting.stays));
    waiting.link.write(&mut bytes);
    bytes.resize(CHECKED, 0);
    let digest = digest64(&bytes) as u32;
    bytes.extend(digest.to_le_bytes());
    let mut slot = [0; SLOT];
    slot.copy_from_slice(&bytes);
    slot
}

fn parse_slot(bytes: &[u8; SLOT], slot: u32) -> Option<(u128, QueuedLink)> {
    let (content, digest) = bytes.split_at(CHECKED);
    if (digest64(content) as u32).to_le_bytes() != digest {
        return None;
    }
    let key = u128::from_le_bytes(content.get(..16)?.try_into().ok()?);
    let mass = f32::from_le_bytes(content.get(16..20)?.try_into().ok()?);
    let waiting = QueuedLink {
        link: Link::read(content.get(LINK_AT..)?)?,
        mass,
        stays: content[20] == 1,
        slot,
    };
    mass.is_finite().then_some((key, waiting))
}
