//! Records of the seen set: a key, and the position of its URL if it is kept.

/// A fingerprint, and the position of its URL among the kept strings (0 if none are kept).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyRecord {
    pub(super) key: u128,
    pub(super) place: u64,
}

/// The size of a record in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// The key alone.
    Key = 16,
    /// The key and the position.
    KeyAndPlace = 24,
}

impl Width {
    pub(super) const fn n_bytes(self) -> usize {
        self as usize
    }
}

impl KeyRecord {
    /// Appends the record; keys are big-endian, so that their bytes sort in the same order.
    pub(super) fn write(self, width: Width, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key.to_be_bytes());
        if width == Width::KeyAndPlace {
            out.extend_from_slice(&self.place.to_le_bytes());
        }
    }

    /// Reads a record from exactly its bytes.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let (key, place) = bytes.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
        let place = place.first_chunk::<8>().unwrap_or(&[0; 8]);
        Self {
            key: u128::from_be_bytes(*key),
            place: u64::from_le_bytes(*place),
        }
    }
}
