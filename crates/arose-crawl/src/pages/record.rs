//! The record of a page, in 64 bytes, and the sketch of its last version.

use arose::freshness::{History, PageStatistics};
use arose::simhash::Fingerprint384;
use data_encoding::BASE64_NOPAD;

use crate::fingerprint::Fingerprint;
use crate::journal::Kind;

/// Size of a record in bytes.
pub(crate) const RECORD: usize = 64;

/// Size of a sketch in bytes.
const SKETCH: usize = 48;

/// If at least this many of 384 simhash bits match, the content is the same, and the differences
/// are noise.
const ALIKE: u32 = 372;

/// The position of a record in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    /// The number of the file.
    pub(crate) file: u32,
    /// 48 bits.
    pub(crate) offset: u64,
}

/// The state of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    /// It is visited when it is due.
    #[default]
    Live,
    /// This many consecutive visits found nothing there.
    Missing(u8),
    /// Three visits found nothing there.
    Gone,
    /// robots.txt or the settings no longer allow it.
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

    /// Returns its machine-readable name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Missing(_) => "missing",
            Self::Gone => "gone",
            Self::Forbidden => "forbidden",
        }
    }
}

/// The record of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Record {
    pub(crate) fingerprint: Fingerprint,
    /// The time of its last visit, the results of visits, and its importance.
    pub(crate) statistics: PageStatistics,
    /// The times of its first fetch and of its next visit, in seconds since 1970.
    pub(crate) first: u32,
    pub(crate) due: u32,
    /// The last response with its content, or with a reference to it.
    pub(crate) position: Position,
    pub(crate) status: u16,
    /// Number of versions seen.
    pub(crate) n_versions: u16,
    pub(crate) kind: Kind,
    pub(crate) state: State,
    /// Number of links from a seed, capped at the largest value.
    pub(crate) depth: u8,
    /// The digest of its content; 0 if it has none.
    pub(crate) digest: u64,
}

impl Record {
    /// Encodes the record.
    pub(crate) fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let history = self.statistics.history();
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&self.fingerprint.host.to_le_bytes());
        put(&self.fingerprint.rest.to_le_bytes());
        put(&self.statistics.last.to_le_bytes());
        put(&history.unchanged.to_le_bytes());
        put(&history.changed.to_le_bytes());
        put(&((history.n_changes * 8.0).round() as u16).to_le_bytes());
        put(&weight(self.statistics.importance()).to_le_bytes());
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

    /// Decodes a record; `None` if it was never written.
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
            statistics: PageStatistics::new(last, importance).with_history(history),
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
        // No page was fetched in 1970: a record that was never written is all zeros.
        let is_written = last > 0 && history.unchanged >= 0.0 && history.changed >= 0.0;
        is_written.then_some(record)
    }
}

/// Encodes importance as [`PageStatistics`] does: logarithms to base 2 with 10 fractional bits.
pub(super) fn weight(importance: f64) -> u16 {
    (importance.log2() * 1024.0 + 32_768.0).round() as u16
}

pub(super) fn importance(weight: u16) -> f64 {
    ((f64::from(weight) - 32_768.0) / 1024.0).exp2()
}

/// A sketch of the last version of a page; all zeros if it has no text. It is stored with the
/// archive record that [`Record::position`] refers to, which a visit has to read anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sketch(pub(crate) [u64; 6]);

impl Sketch {
    pub(crate) fn of(simhash: Option<Fingerprint384>) -> Self {
        Self(simhash.map_or([0; 6], |simhash| simhash.0))
    }

    /// Whether two texts differ only in noise, such as dates and counters.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        let n_different: u32 = pairs.map(|(a, b)| (a ^ b).count_ones()).sum();
        let is_empty = |sketch: &Self| sketch.0 == [0; 6];
        !is_empty(self) && !is_empty(other) && 384 - n_different >= ALIKE
    }

    /// Encodes the sketch as a field of an archive record; `None` if there is no text.
    pub(crate) fn to_text(self) -> Option<String> {
        let mut bytes = [0; SKETCH];
        for (part, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        (self != Self::default()).then(|| BASE64_NOPAD.encode(&bytes))
    }

    /// Decodes a field of an archive record; anything else is a version without text.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut sketch = Self::default();
        let bytes = BASE64_NOPAD.decode(text.trim().as_bytes());
        if let Some(bytes) = bytes.ok().filter(|bytes| bytes.len() == SKETCH) {
            for (word, part) in sketch.0.iter_mut().zip(bytes.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*part);
            }
        }
        sketch
    }
}
