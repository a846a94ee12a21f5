//! The record of a page, in 64 bytes, and the sketch of its last version, in 48.

use arose::freshness::{History, Stats};
use arose::simhash::Fingerprint384;

use crate::fingerprint::Fingerprint;
use crate::journal::Kind;

/// Bytes of a record.
pub(crate) const RECORD: usize = 64;

/// Bytes of a sketch.
pub(crate) const SKETCH: usize = 48;

/// Simhashes that agree in so many of 384 bits are of the same content: what differs is noise.
const ALIKE: u32 = 372;

/// Where a record of the archive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    /// The number of the file.
    pub(crate) file: u32,
    /// 48 bits.
    pub(crate) offset: u64,
}

/// What becomes of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// It is visited when it is due.
    #[default]
    Live,
    /// The last so many visits found nothing there.
    Missing(u8),
    /// Nothing was there three times.
    Gone,
    /// robots.txt or the settings do not allow it any more.
    Forbidden,
}

impl State {
    fn to_bits(self) -> u8 {
        match self {
            Self::Live => 0,
            Self::Missing(n) => n.clamp(1, 13),
            Self::Gone => 14,
            Self::Forbidden => 15,
        }
    }

    fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Live,
            14 => Self::Gone,
            15 => Self::Forbidden,
            n => Self::Missing(n),
        }
    }

    /// A name for machines.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Missing(_) => "missing",
            Self::Gone => "gone",
            Self::Forbidden => "forbidden",
        }
    }
}

/// What is known of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Record {
    pub(crate) fingerprint: Fingerprint,
    /// When it was visited last, what visits have told, and how important it is.
    pub(crate) stats: Stats,
    /// When it was fetched first and is to be visited next, in seconds since 1970.
    pub(crate) first: u32,
    pub(crate) due: u32,
    /// The last response that has its content, or says whose it is.
    pub(crate) position: Position,
    pub(crate) status: u16,
    /// Versions seen.
    pub(crate) n_versions: u16,
    pub(crate) kind: Kind,
    pub(crate) state: State,
    /// Links from a seed, as far as they fit.
    pub(crate) depth: u8,
    /// The digest of its content; 0 if it has none.
    pub(crate) digest: u64,
}

impl Record {
    /// As it stands in the file.
    pub(crate) fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let history = self.stats.history();
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&self.fingerprint.host.to_le_bytes());
        put(&self.fingerprint.rest.to_le_bytes());
        put(&self.stats.last.to_le_bytes());
        put(&history.unchanged.to_le_bytes());
        put(&history.changed.to_le_bytes());
        put(&((history.n_changes * 8.0).round() as u16).to_le_bytes());
        put(&weight(self.stats.importance()).to_le_bytes());
        put(&self.first.to_le_bytes());
        put(&self.due.to_le_bytes());
        put(&self.position.file.to_le_bytes());
        put(&self.position.offset.to_le_bytes()[..6]);
        put(&self.status.to_le_bytes());
        put(&self.n_versions.to_le_bytes());
        put(&[self.kind as u8 | self.state.to_bits() << 4, self.depth]);
        put(&self.digest.to_le_bytes());
        bytes
    }

    /// As it was written; none if it was not.
    pub(crate) fn from_bytes(bytes: &[u8; RECORD]) -> Option<Self> {
        let mut at = 0;
        let mut number = |n: usize| {
            let mut word = [0; 8];
            word[..n].copy_from_slice(&bytes[at..at + n]);
            at += n;
            u64::from_le_bytes(word)
        };
        let fingerprint = Fingerprint {
            host: number(8),
            rest: number(8),
        };
        let last = number(4) as u32;
        let history = History {
            unchanged: f32::from_bits(number(4) as u32),
            changed: f32::from_bits(number(4) as u32),
            n_changes: number(2) as f32 / 8.0,
        };
        let importance = importance(number(2) as u16);
        let (first, due) = (number(4) as u32, number(4) as u32);
        let position = Position {
            file: number(4) as u32,
            offset: number(6),
        };
        let (status, n_versions) = (number(2) as u16, number(2) as u16);
        let flags = number(1) as u8;
        let record = Self {
            fingerprint,
            stats: Stats::new(last, importance).with_history(history),
            first,
            due,
            position,
            status,
            n_versions,
            kind: *Kind::ALL.get(usize::from(flags & 15))?,
            state: State::from_bits(flags >> 4),
            depth: number(1) as u8,
            digest: number(8),
        };
        // No page was ever fetched in 1970: what was never written is zeros.
        let is_written = last > 0 && history.unchanged >= 0.0 && history.changed >= 0.0;
        is_written.then_some(record)
    }
}

/// Importance as [`Stats`] keeps it: logarithms to the base 2 with 10 digits behind the point.
pub(super) fn weight(importance: f64) -> u16 {
    (importance.log2() * 1024.0 + 32_768.0).round() as u16
}

pub(super) fn importance(weight: u16) -> f64 {
    ((f64::from(weight) - 32_768.0) / 1024.0).exp2()
}

/// A sketch of the last version of a page: all zeros if it has no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sketch(pub(crate) [u64; 6]);

impl Sketch {
    pub(crate) fn of(simhash: Option<Fingerprint384>) -> Self {
        Self(simhash.map_or([0; 6], |simhash| simhash.0))
    }

    /// Whether two texts differ in noise only, such as dates and counters.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        let n_different: u32 = pairs.map(|(a, b)| (a ^ b).count_ones()).sum();
        let is_empty = |sketch: &Self| sketch.0 == [0; 6];
        !is_empty(self) && !is_empty(other) && 384 - n_different >= ALIKE
    }

    pub(crate) fn to_bytes(self) -> [u8; SKETCH] {
        let mut bytes = [0; SKETCH];
        for (part, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; SKETCH]) -> Self {
        let mut words = [0; 6];
        for (word, part) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*part);
        }
        Self(words)
    }
}

/// All that is kept of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slot {
    pub(crate) record: Record,
    pub(crate) sketch: Sketch,
}

impl Slot {
    /// As an event of the journal has it.
    pub(crate) fn to_bytes(self) -> [u8; RECORD + SKETCH] {
        let mut bytes = [0; RECORD + SKETCH];
        bytes[..RECORD].copy_from_slice(&self.record.to_bytes());
        bytes[RECORD..].copy_from_slice(&self.sketch.to_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (record, sketch) = bytes.split_first_chunk::<RECORD>()?;
        Some(Self {
            record: Record::from_bytes(record)?,
            sketch: Sketch::from_bytes(sketch.try_into().ok()?),
        })
    }
}
