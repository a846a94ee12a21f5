//! Tokens on disk, in little more than two bytes each.
//!
//! *Question.* Verification needs the tokens of documents, which are fingerprints of eight bytes,
//! but nearly all documents are never verified. How can tokens be stored in less space, so that
//! those of any document can be read alone, without costing more time than the saved bytes?
//!
//! *Idea.* A few words make up most of a text. A *dictionary* is a table of 65,536 slots in sets of
//! four. The first fingerprints that fall into a set get its slots, and keep them. A token is then
//! the number of its slot, found with one look at four neighbouring words and no probing. If its
//! set is full, the token is a mark and the fingerprint itself. Since slots never change, the
//! decoder needs only the finished table and can start at any document.
//!
//! When a dictionary fits a part of the input badly, for example because the language changed,
//! another one is started, up to [`MAX_DICTIONARIES`].
//!
//! *Cost.* 2 bytes per token in the dictionary and 10 per other token; 512 KiB of memory and disk
//! per dictionary; about 1.5 ns to write or read a token. *Error.* None: the encoding is lossless.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;
use crate::background::Background;
use crate::column::{Column, Writer};

/// The file of tokens.
const UNITS: &str = "tokens";
/// The file of dictionaries, one after the other.
const DICTIONARIES: &str = "dictionaries";

/// Number of slots of a set.
const N_WAYS: usize = 4;
const N_SETS: usize = 1 << 14;
/// Odd, with bits like random ones: the highest bits of a product depend on all bits of the other
/// factor.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Shift that leaves the number of a set.
const SET_SHIFT: u32 = 64 - N_SETS.ilog2();
/// The last slot, which stays free. It means that a fingerprint follows.
const LITERAL: u16 = u16::MAX;
/// Number of units of a fingerprint.
const LITERAL_UNITS: usize = 4;

/// Maximum number of dictionaries of a run. Together they take 32 MiB.
const MAX_DICTIONARIES: usize = 64;
/// Number of tokens after which the fit of a dictionary is checked.
const WINDOW: u64 = 1 << 20;
/// A dictionary fits badly if it lacks more than one in this many tokens.
const MAX_LITERALS: u64 = 8;

/// The position of the tokens of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenPlace {
    /// The first unit of two bytes.
    pub(crate) at: u64,
    pub(crate) n_tokens: u32,
    /// Number of tokens that are written as fingerprints.
    pub(crate) n_literals: u32,
    /// The number of the dictionary.
    pub(crate) dictionary: u16,
}

impl TokenPlace {
    fn n_units(&self) -> usize {
        self.n_tokens as usize + LITERAL_UNITS * self.n_literals as usize
    }
}

/// Fingerprints by slot; zero for free slots.
#[derive(Clone)]
struct Dictionary {
    sets: Vec<[u64; N_WAYS]>,
}

impl Dictionary {
    fn new() -> Self {
        Self {
            sets: vec![[0; N_WAYS]; N_SETS],
        }
    }

    /// Returns the slot of a token, and assigns one if its set has a free slot. Returns none if it
    /// has not, or if the token looks like a free slot.
    fn slot(&mut self, token: u64) -> Option<u16> {
        if token == 0 {
            return None;
        }
        let set = (token.wrapping_mul(FACTOR) >> SET_SHIFT) as usize;
        let ways = &mut self.sets[set];
        // Without a branch, since the slot cannot be predicted.
        let way = usize::from(ways[1] == token)
            + 2 * usize::from(ways[2] == token)
            + 3 * usize::from(ways[3] == token);
        if ways[way] == token {
            return Some((set * N_WAYS + way) as u16);
        }
        let way = ways.iter().position(|slot| *slot == 0)?;
        let slot = (set * N_WAYS + way) as u16;
        if slot == LITERAL {
            return None;
        }
        ways[way] = token;
        Some(slot)
    }
}

/// How well a dictionary has fitted since the last check.
#[derive(Default)]
struct Fit {
    n_tokens: u64,
    n_literals: u64,
}

/// Writes the tokens of documents one after the other.
pub(crate) struct TokenWriter {
    units: Writer<u16>,
    path: PathBuf,
    dictionary: Dictionary,
    /// The number of the current dictionary.
    number: usize,
    fit: Fit,
    buffer: Vec<u16>,
}

/// The state of a file of tokens, from which to resume.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(crate) struct TokenState {
    n_units: u64,
    dictionary: usize,
}

impl TokenWriter {
    /// Creates the files, of which the thread writes the larger one, if there is a thread.
    pub(crate) fn create(
        background: Option<&Arc<Background>>,
        folder: &Path,
    ) -> Result<Self, Error> {
        let path = folder.join(DICTIONARIES);
        fs::File::create(&path).map_err(Error::io("create", &path))?;
        Ok(Self {
            units: Writer::create_on(background, &folder.join(UNITS))?,
            path,
            dictionary: Dictionary::new(),
            number: 0,
            fit: Fit::default(),
            buffer: Vec::new(),
        })
    }

    /// Resumes from a state. A dictionary may have gained tokens since, which does no harm.
    pub(crate) fn resume(
        background: Option<&Arc<Background>>,
        folder: &Path,
        state: TokenState,
    ) -> Result<Self, Error> {
        let path = folder.join(DICTIONARIES);
        let mut all = read_dictionaries(&path)?;
        all.truncate(state.dictionary + 1);
        let dictionary = all.pop().filter(|_| all.len() == state.dictionary);
        Ok(Self {
            units: Writer::resume_on(background, &folder.join(UNITS), state.n_units)?,
            dictionary: dictionary.ok_or_else(|| cut_short(&path))?,
            path,
            number: state.dictionary,
            fit: Fit::default(),
            buffer: Vec::new(),
        })
    }

    pub(crate) fn push(&mut self, tokens: &[u64]) -> Result<TokenPlace, Error> {
        if self.fit.n_tokens >= WINDOW {
            self.judge()?;
        }
        self.buffer.clear();
        let mut n_literals = 0;
        for &token in tokens {
            match self.dictionary.slot(token) {
                Some(slot) => self.buffer.push(slot),
                None => {
                    n_literals += 1;
                    let [a, b, c, d] = bytemuck::cast(token);
                    self.buffer.extend([LITERAL, a, b, c, d]);
                }
            }
        }
        self.fit.n_tokens += tokens.len() as u64;
        self.fit.n_literals += u64::from(n_literals);
        let at = self.units.len();
        self.units.extend(&self.buffer)?;
        Ok(TokenPlace {
            at,
            n_tokens: tokens.len() as u32,
            n_literals,
            dictionary: self.number as u16,
        })
    }

    /// Starts another dictionary if this one fits badly.
    fn judge(&mut self) -> Result<(), Error> {
        let Fit {
            n_tokens,
            n_literals,
        } = std::mem::take(&mut self.fit);
        if n_literals * MAX_LITERALS > n_tokens && self.number + 1 < MAX_DICTIONARIES {
            self.write_dictionary()?;
            self.dictionary = Dictionary::new();
            self.number += 1;
        }
        Ok(())
    }

    fn write_dictionary(&self) -> Result<(), Error> {
        let bytes: &[u8] = bytemuck::cast_slice(&self.dictionary.sets);
        let file = fs::File::options().write(true).open(&self.path);
        file.and_then(|file| file.write_all_at(bytes, (self.number * bytes.len()) as u64))
            .map_err(Error::io("write", &self.path))
    }

    /// Passes all data to the operating system and returns the state from which to resume.
    pub(crate) fn flush(&mut self) -> Result<TokenState, Error> {
        self.write_dictionary()?;
        self.units.flush()?;
        Ok(TokenState {
            n_units: self.units.len(),
            dictionary: self.number,
        })
    }

    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.flush().map(drop)
    }
}

/// Random access to the tokens of documents.
pub(crate) struct TokenColumn {
    units: Column<u16>,
    /// Fingerprints by slot.
    dictionaries: Vec<Dictionary>,
    path: PathBuf,
}

impl TokenColumn {
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(UNITS);
        Ok(Self {
            units: Column::open(&path, 0)?,
            dictionaries: read_dictionaries(&folder.join(DICTIONARIES))?,
            path,
        })
    }

    /// Returns the number of units of all documents. All positions are below it.
    pub(crate) fn n_units(&self) -> Result<u64, Error> {
        self.units.len()
    }

    /// Appends the tokens at `place` to `tokens`.
    pub(crate) fn read(&self, place: &TokenPlace, tokens: &mut Vec<u64>) -> Result<(), Error> {
        UNITS_READ.with_borrow_mut(|units| {
            units.resize(place.n_units(), 0);
            self.units.read_into(place.at, units)?;
            self.decode(place, units, tokens)
        })
    }

    fn decode(
        &self,
        place: &TokenPlace,
        mut units: &[u16],
        tokens: &mut Vec<u64>,
    ) -> Result<(), Error> {
        let dictionary = self.dictionaries.get(usize::from(place.dictionary));
        let slots = dictionary.ok_or_else(|| cut_short(&self.path))?;
        let slots = slots.sets.as_flattened();
        tokens.reserve(place.n_tokens as usize);
        if place.n_literals == 0 {
            tokens.extend(units.iter().map(|unit| slots[usize::from(*unit)]));
            return Ok(());
        }
        while let Some((unit, mut rest)) = units.split_first() {
            let mut token = slots[usize::from(*unit)];
            if *unit == LITERAL {
                let (literal, after) = rest
                    .split_first_chunk::<LITERAL_UNITS>()
                    .ok_or_else(|| cut_short(&self.path))?;
                token = bytemuck::cast(*literal);
                rest = after;
            }
            tokens.push(token);
            units = rest;
        }
        Ok(())
    }
}

thread_local! {
    /// Memory that a worker reuses.
    static UNITS_READ: RefCell<Vec<u16>> = RefCell::default();
}

fn read_dictionaries(path: &Path) -> Result<Vec<Dictionary>, Error> {
    let bytes = fs::read(path).map_err(Error::io("read", path))?;
    let size = size_of::<[u64; N_WAYS]>() * N_SETS;
    if bytes.len() % size != 0 {
        return Err(cut_short(path));
    }
    let dictionaries = bytes.chunks_exact(size).map(|bytes| {
        let mut dictionary = Dictionary::new();
        bytemuck::cast_slice_mut(&mut dictionary.sets).copy_from_slice(bytes);
        dictionary
    });
    Ok(dictionaries.collect())
}

fn cut_short(path: &Path) -> Error {
    Error::Damaged {
        path: path.to_owned(),
        detail: "tokens are missing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    /// Documents of words, many of them rare, and of a word whose fingerprint is zero.
    fn documents(seed: u64, n: usize) -> Vec<Vec<u64>> {
        let mut random = SplitMix::new(seed);
        let document = |_| {
            let n_tokens = random.below(200);
            let token = |_| match random.below(100) {
                0..10 => random.next_u64(),
                10 => 0,
                _ => arose::mix::mix(seed << 20 | random.below(30_000)),
            };
            (0..n_tokens).map(token).collect()
        };
        (0..n).map(document).collect()
    }

    #[track_caller]
    fn check(folder: &Path, documents: &[Vec<u64>], places: &[TokenPlace]) {
        let column = TokenColumn::open(folder).unwrap();
        // In any order.
        for (document, place) in documents.iter().zip(places).rev() {
            let mut tokens = Vec::new();
            column.read(place, &mut tokens).unwrap();
            assert_eq!(&tokens, document);
        }
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let documents = documents(1, 3000);
        let mut writer = TokenWriter::create(None, folder.path()).unwrap();
        let places = documents.iter().map(|tokens| writer.push(tokens).unwrap());
        let places: Vec<TokenPlace> = places.collect();
        writer.finish().unwrap();
        check(folder.path(), &documents, &places);
        let n_tokens: usize = documents.iter().map(Vec::len).sum();
        let n_bytes = fs::metadata(folder.path().join(UNITS)).unwrap().len();
        assert!(n_bytes < 3 * n_tokens as u64, "{n_bytes} for {n_tokens}");
        assert!(places.iter().any(|place| place.n_literals > 0));
    }

    #[test]
    fn another_language_gets_another_dictionary() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = TokenWriter::create(None, folder.path()).unwrap();
        let (mut all, mut places) = (Vec::new(), Vec::new());
        for seed in 1..6 {
            let documents = documents(seed, 12_000);
            places.extend(documents.iter().map(|tokens| writer.push(tokens).unwrap()));
            all.extend(documents);
        }
        writer.finish().unwrap();
        check(folder.path(), &all, &places);
        assert!(places.last().unwrap().dictionary > 0);
    }

    /// Data written after the state is discarded, and data written next is read back.
    #[test]
    fn writing_goes_on_from_a_state() {
        let folder = tempfile::tempdir().unwrap();
        let documents = documents(3, 1000);
        let mut writer = TokenWriter::create(None, folder.path()).unwrap();
        let first = documents[..400].iter();
        let mut places: Vec<TokenPlace> =
            first.map(|tokens| writer.push(tokens).unwrap()).collect();
        let state = writer.flush().unwrap();
        for tokens in &documents[600..] {
            writer.push(tokens).unwrap();
        }
        writer.flush().unwrap();
        drop(writer);
        let mut writer = TokenWriter::resume(None, folder.path(), state).unwrap();
        let rest = documents[400..].iter();
        places.extend(rest.map(|tokens| writer.push(tokens).unwrap()));
        writer.finish().unwrap();
        check(folder.path(), &documents, &places);
    }
}
