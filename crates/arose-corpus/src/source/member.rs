//! One gzip member or zstd frame, decoded step by step.

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::source::raw::CHUNK;

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    /// Told from the first bytes.
    pub(crate) fn sniff(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, 8, flags, ..] if flags & 0xe0 == 0 => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            [low, 0x2a, 0x4d, 0x18, ..] if low & 0xf0 == 0x50 => Packing::Zstd,
            _ => Packing::Plain,
        }
    }

    /// How each member starts; zstd has frames without content that start otherwise.
    pub(crate) fn magic(self) -> &'static [u8] {
        match self {
            Packing::Plain => b"",
            Packing::Gzip => &[0x1f, 0x8b, 8],
            Packing::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
        }
    }
}

/// A member being decoded.
pub(crate) struct Member {
    decoder: Unpacker,
    /// Bytes of input so far.
    pub(crate) read: u64,
    /// Bytes of output so far.
    pub(crate) written: u64,
}

enum Unpacker {
    Gzip(Decompress),
    Zstd(Decoder<'static>),
}

/// What one step did.
pub(crate) struct Step {
    pub(crate) read: usize,
    pub(crate) written: usize,
    pub(crate) ended: bool,
}

impl Member {
    /// Starts a member; none in a plain file, or if the dictionary is none.
    pub(crate) fn new(packing: Packing, dictionary: Option<&[u8]>) -> Option<Self> {
        let decoder = match packing {
            Packing::Plain => return None,
            Packing::Gzip => Unpacker::Gzip(Decompress::new_gzip(15)),
            Packing::Zstd => Unpacker::Zstd(match dictionary {
                Some(dictionary) => Decoder::with_dictionary(dictionary).ok()?,
                None => Decoder::new().ok()?,
            }),
        };
        Some(Self {
            decoder,
            read: 0,
            written: 0,
        })
    }

    /// Decodes up to [`CHUNK`] bytes more. Not as many as happen to have room, so that what is
    /// noticed after a step does not depend on what was in memory before it.
    pub(crate) fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Step, String> {
        let before = output.len();
        output.resize(before + CHUNK, 0);
        let result = match &mut self.decoder {
            Unpacker::Gzip(decoder) => inflate(decoder, input, &mut output[before..]),
            Unpacker::Zstd(decoder) => unzstd(decoder, input, &mut output[before..]),
        };
        let written = result
            .as_ref()
            .map_or_else(|&(n, _)| n, |step| step.written);
        output.truncate(before + written);
        self.written += written as u64;
        let step = result.map_err(|(_, detail)| detail)?;
        self.read += step.read as u64;
        Ok(step)
    }
}

/// What was written before something was wrong, and what was wrong.
type Failure = (usize, String);

fn inflate(decoder: &mut Decompress, input: &[u8], output: &mut [u8]) -> Result<Step, Failure> {
    let (read, written) = (decoder.total_in(), decoder.total_out());
    let result = decoder.decompress(input, output, FlushDecompress::None);
    let grown = |to: u64, from: u64| usize::try_from(to - from).unwrap_or(usize::MAX);
    let written = grown(decoder.total_out(), written).min(output.len());
    let status = result.map_err(|error| (written, error.to_string()))?;
    Ok(Step {
        read: grown(decoder.total_in(), read).min(input.len()),
        written,
        ended: status == Status::StreamEnd,
    })
}

fn unzstd(
    decoder: &mut Decoder<'static>,
    input: &[u8],
    output: &mut [u8],
) -> Result<Step, Failure> {
    let mut source = InBuffer::around(input);
    let mut sink = OutBuffer::around(output);
    let result = decoder.run(&mut source, &mut sink);
    let written = sink.pos();
    let hint = result.map_err(|error| (written, error.to_string()))?;
    Ok(Step {
        read: source.pos(),
        written,
        ended: hint == 0,
    })
}
