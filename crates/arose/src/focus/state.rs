//! The learned state as bytes, from which a later run resumes.

use super::link::{BITS, Link, LinkModel, MAX_WORDS, TAG};

/// Maximum number of bytes of a [`Link`].
pub const LINK_BYTES: usize = 17 + 3 * MAX_WORDS;

/// Marks a bucket of a link as a tag path, in three bytes.
const SHORT_TAG: u32 = 1 << 23;

impl Link {
    /// Appends the link as bytes, at most [`LINK_BYTES`] of them.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.n_parents.to_le_bytes());
        for number in [self.sum, self.max, self.odds] {
            out.extend(number.to_le_bytes());
        }
        out.push(self.words.len().min(MAX_WORDS) as u8);
        for &word in self.words.iter().take(MAX_WORDS) {
            let mark = if word & TAG == 0 { 0 } else { SHORT_TAG };
            out.extend(&(word & !TAG | mark).to_le_bytes()[..3]);
        }
    }

    /// Reads a link; none if the bytes are not a link. Further bytes are ignored.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(f32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let [sum, max, odds] = [number(4)?, number(8)?, number(12)?];
        if ![sum, max, odds].iter().all(|number| number.is_finite()) {
            return None;
        }
        let n_words = usize::from(*bytes.get(16)?);
        let words = bytes.get(17..17 + 3 * n_words)?.chunks_exact(3);
        let words = words.map(|word| {
            let word = u32::from_le_bytes([word[0], word[1], word[2], 0]);
            let place = word & ((1 << BITS) - 1);
            place | if word & SHORT_TAG == 0 { 0 } else { TAG }
        });
        Some(Self {
            n_parents: u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?),
            sum,
            max,
            odds,
            words: words.take(MAX_WORDS).collect(),
        })
    }
}

impl LinkModel {
    /// Returns everything that the model has learned, as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let is_set = |&at: &u32| {
            let at = at as usize;
            self.words[at] != 0.0 || self.with[at] != [0.0; 2]
        };
        self.bytes_of((0..self.words.len() as u32).filter(is_set))
    }

    /// Returns what has changed since the last call, or everything at the first one. It can be
    /// [applied](Self::apply) to the model as it was then.
    pub fn take_changes(&mut self) -> Vec<u8> {
        match self.touched.replace(Vec::new()) {
            None => self.to_bytes(),
            Some(mut touched) => {
                touched.sort_unstable();
                touched.dedup();
                self.bytes_of(touched.into_iter())
            }
        }
    }

    fn bytes_of(&self, words: impl Iterator<Item = u32>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in self.weights.iter().chain(&self.all) {
            bytes.extend(number.to_le_bytes());
        }
        for word in words {
            let at = word as usize;
            let numbers = [self.words[at], self.with[at][0], self.with[at][1]];
            bytes.extend(word.to_le_bytes());
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes
    }

    /// Reads a model; none if the bytes are not a model.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut model = Self::new();
        model.apply(bytes)?;
        Some(model)
    }

    /// Applies changes. Returns none if the bytes are not changes of a model; the model may then be
    /// partially changed.
    pub fn apply(&mut self, bytes: &[u8]) -> Option<()> {
        let model = self;
        let (head, rest) = bytes.split_at_checked(7 * 8)?;
        let mut numbers = head.chunks_exact(8).map(|number| {
            let number = f64::from_le_bytes(number.try_into().ok()?);
            number.is_finite().then_some(number)
        });
        for number in model.weights.iter_mut().chain(&mut model.all) {
            *number = numbers.next()??;
        }
        let entries = rest.chunks_exact(16);
        if !entries.remainder().is_empty() {
            return None;
        }
        for entry in entries {
            let part = |at: usize| entry[4 * at..4 * at + 4].try_into().ok();
            let at = u32::from_le_bytes(part(0)?) as usize;
            let [word, on, off] = [part(1)?, part(2)?, part(3)?].map(f32::from_le_bytes);
            if ![word, on, off].iter().all(|number| number.is_finite()) {
                return None;
            }
            *model.words.get_mut(at)? = word;
            model.with[at] = [on, off];
        }
        Some(())
    }
}
