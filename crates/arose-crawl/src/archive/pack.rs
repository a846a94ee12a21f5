//! Gzip members: records are compressed where pages are read and completed where they are written.
//!
//! *Question.* A record refers to the `warcinfo` record of its file, and the file is known only
//! when the record is appended. How can threads compress the record earlier? *Idea.* A member may
//! consist of several deflate blocks. The lines that depend on the file form one stored,
//! uncompressed block before the compressed blocks. *Cost.* About 90 bytes per record.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// A compressed record without its first lines.
#[derive(Debug, Default)]
pub(crate) struct Member {
    /// Deflate blocks; the last one ends the stream.
    deflated: Vec<u8>,
    crc: Crc,
}

/// Header, stored block and trailer of a gzip member, without the lines in the stored block.
const OVERHEAD: usize = 10 + 5 + 8;

impl Member {
    /// Returns the size of the member in bytes if it begins with these lines.
    pub(super) fn len(&self, lines: &[u8]) -> usize {
        OVERHEAD + lines.len() + self.deflated.len()
    }

    /// Appends the member, with these lines before the compressed blocks.
    pub(super) fn seal(&self, lines: &[u8], out: &mut Vec<u8>) {
        debug_assert!(
            lines.len() <= usize::from(u16::MAX),
            "a stored block is short"
        );
        out.reserve(self.len(lines));
        out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff]);
        let length = lines.len() as u16;
        out.push(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(lines);
        out.extend_from_slice(&self.deflated);
        let mut crc = Crc::new();
        crc.update(lines);
        crc.combine(&self.crc);
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&crc.amount().to_le_bytes());
    }
}

/// Compresses records, all with one compressor, because its tables are large and can be reused.
pub(crate) struct Packer {
    compress: Compress,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Packer {
    pub(crate) fn new(level: u32) -> Self {
        let compress = Compress::new(Compression::new(level.clamp(1, 9)), false);
        Self { compress }
    }

    /// Compresses the parts as one member.
    pub(super) fn pack(&mut self, parts: &[&[u8]]) -> Member {
        self.compress.reset();
        let n_bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut deflated = Vec::with_capacity(n_bytes / 2 + 128);
        let mut crc = Crc::new();
        for part in parts {
            crc.update(part);
            self.push(part, FlushCompress::None, &mut deflated);
        }
        self.push(&[], FlushCompress::Finish, &mut deflated);
        Member { deflated, crc }
    }

    fn push(&mut self, mut part: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        loop {
            if out.capacity() - out.len() < 64 {
                out.reserve(out.len().max(4096));
            }
            let before = self.compress.total_in();
            let status = self.compress.compress_vec(part, out, flush);
            part = &part[(self.compress.total_in() - before) as usize..];
            match (flush, status) {
                (FlushCompress::Finish, Ok(Status::StreamEnd)) | (_, Err(_)) => return,
                (FlushCompress::None, _) if part.is_empty() => return,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn members_hold_what_was_packed(
            parts in prop::collection::vec(any::<Vec<u8>>(), 0..4),
            lines: Vec<u8>,
            level in 1..10_u32,
        ) {
            let mut packer = Packer::new(level);
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let mut bytes = Vec::new();
            for _ in 0..2 {
                let member = packer.pack(&slices);
                let before = bytes.len();
                member.seal(&lines, &mut bytes);
                prop_assert_eq!(bytes.len() - before, member.len(&lines));
            }
            let mut unpacked = Vec::new();
            let mut decoder = flate2::read::MultiGzDecoder::new(bytes.as_slice());
            decoder.read_to_end(&mut unpacked).unwrap();
            let once = [lines, parts.concat()].concat();
            prop_assert_eq!(unpacked, once.repeat(2));
        }
    }
}
