//! Incremental decompression of one gzip member, zstd frame, xz stream or bzip2 stream.

use bzip2::Decompress as Bunzip2;
use flate2::{Decompress, FlushDecompress, Status};
use liblzma::stream::{Action, Stream as Unxz};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::source::raw::CHUNK;

/// Maximum memory of one xz decoder. The highest preset of `xz` needs 65 MiB; a header can request
/// 4 GiB.
const XZ_MEMORY_BYTES: u64 = 256 << 20;

/// The compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileCompression {
    Plain,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl FileCompression {
    /// Detects the compression from the first bytes.
    pub(crate) fn sniff(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, 8, flags, ..] if flags & 0xe0 == 0 => FileCompression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => FileCompression::Zstd,
            [low, 0x2a, 0x4d, 0x18, ..] if low & 0xf0 == 0x50 => FileCompression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => FileCompression::Xz,
            // The block size, then the digits of pi before a block, or of its square root at the
            // end.
            [
                b'B',
                b'Z',
                b'h',
                b'1'..=b'9',
                0x31,
                0x41,
                0x59,
                0x26,
                0x53,
                0x59,
                ..,
            ]
            | [
                b'B',
                b'Z',
                b'h',
                b'1'..=b'9',
                0x17,
                0x72,
                0x45,
                0x38,
                0x50,
                0x90,
                ..,
            ] => FileCompression::Bzip2,
            _ => FileCompression::Plain,
        }
    }

    /// The first bytes of each member; zstd frames without content start differently.
    pub(crate) fn magic(self) -> &'static [u8] {
        match self {
            FileCompression::Plain => b"",
            FileCompression::Gzip => &[0x1f, 0x8b, 8],
            FileCompression::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
            FileCompression::Xz => b"\xfd7zXZ\0",
            FileCompression::Bzip2 => b"BZh",
        }
    }
}

/// Removes the ending of a compression from a file name in lower case.
pub(crate) fn without_packing(name: &str) -> &str {
    [".gz", ".zst", ".gzip", ".zstd", ".xz", ".bz2", ".bzip2"]
        .iter()
        .find_map(|packing| name.strip_suffix(packing))
        .unwrap_or(name)
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
    Xz(Unxz),
    Bzip2(Blocks),
}

/// The decoder of bzip2 checks a block only after it has returned all of it, and a damaged block is
/// wrong from start to end. Therefore the content of a block is held back until its check has
/// passed. That is 900 kB, or up to 46 MB of runs.
struct Blocks {
    decoder: Bunzip2,
    held: Vec<u8>,
}

/// The result of one step.
#[derive(Default)]
pub(crate) struct Step {
    pub(crate) read: usize,
    pub(crate) written: usize,
    pub(crate) ended: bool,
}

impl Member {
    /// Starts a member; none for an uncompressed file, or if the dictionary is invalid.
    pub(crate) fn new(packing: FileCompression, dictionary: Option<&[u8]>) -> Option<Self> {
        let decoder = match packing {
            FileCompression::Plain => return None,
            FileCompression::Gzip => Unpacker::Gzip(Decompress::new_gzip(15)),
            FileCompression::Zstd => Unpacker::Zstd(match dictionary {
                Some(dictionary) => Decoder::with_dictionary(dictionary).ok()?,
                None => Decoder::new().ok()?,
            }),
            FileCompression::Xz => Unpacker::Xz(Unxz::new_stream_decoder(XZ_MEMORY_BYTES, 0).ok()?),
            FileCompression::Bzip2 => Unpacker::Bzip2(Blocks {
                decoder: Bunzip2::new(false),
                held: Vec::new(),
            }),
        };
        Some(Self {
            decoder,
            read: 0,
            written: 0,
        })
    }

    /// Decodes up to [`CHUNK`] more bytes, or one bzip2 block. The amount does not depend on the
    /// free space, so that errors are noticed at the same point whatever was in memory before.
    pub(crate) fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Step, String> {
        let before = output.len();
        if let Unpacker::Bzip2(blocks) = &mut self.decoder {
            let step = blocks.step(input, output)?;
            self.read += step.read as u64;
            self.written += step.written as u64;
            return Ok(step);
        }
        output.resize(before + CHUNK, 0);
        let result = match &mut self.decoder {
            Unpacker::Gzip(decoder) => inflate(decoder, input, &mut output[before..]),
            Unpacker::Zstd(decoder) => unzstd(decoder, input, &mut output[before..]),
            Unpacker::Xz(decoder) => unxz(decoder, input, &mut output[before..]),
            Unpacker::Bzip2(_) => Ok(Step::default()),
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

/// The number of bytes written before an error, and the error.
type Failure = (usize, String);

fn inflate(decoder: &mut Decompress, input: &[u8], output: &mut [u8]) -> Result<Step, Failure> {
    let (read, written) = (decoder.total_in(), decoder.total_out());
    let result = decoder.decompress(input, output, FlushDecompress::None);
    let written = grown(decoder.total_out(), written).min(output.len());
    let status = result.map_err(|error| (written, error.to_string()))?;
    Ok(Step {
        read: grown(decoder.total_in(), read).min(input.len()),
        written,
        ended: status == Status::StreamEnd,
    })
}

/// The number of bytes by which a counter has grown.
fn grown(to: u64, from: u64) -> usize {
    usize::try_from(to - from).unwrap_or(usize::MAX)
}

fn unxz(decoder: &mut Unxz, input: &[u8], output: &mut [u8]) -> Result<Step, Failure> {
    use liblzma::stream::{Error, Status};
    let (read, written) = (decoder.total_in(), decoder.total_out());
    let result = decoder.process(input, output, Action::Run);
    let written = grown(decoder.total_out(), written).min(output.len());
    let status = match result {
        Err(Error::MemLimit) => {
            let mebibytes = XZ_MEMORY_BYTES >> 20;
            return Err((
                written,
                format!("xz needs more than {mebibytes} MiB to decompress"),
            ));
        }
        Err(error) => return Err((written, format!("xz: {error}"))),
        Ok(status) => status,
    };
    Ok(Step {
        read: grown(decoder.total_in(), read).min(input.len()),
        written,
        ended: status == Status::StreamEnd,
    })
}

impl Blocks {
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Step, String> {
        let mut step = Step::default();
        loop {
            let before = self.held.len();
            self.held.resize(before + CHUNK, 0);
            // Without input, it returns the rest of the block, and checks the block at its end.
            let (_, written, ended) = run(&mut self.decoder, &[], &mut self.held[before..])?;
            self.held.truncate(before + written);
            step.ended |= ended;
            if written < CHUNK || ended {
                break;
            }
        }
        step.written = self.held.len();
        output.append(&mut self.held);
        if !step.ended {
            // Without space for output, it reads a block and returns nothing of it yet.
            (step.read, _, step.ended) = run(&mut self.decoder, input, &mut [])?;
        }
        Ok(step)
    }
}

/// Bytes read, bytes written, and whether the member has ended.
fn run(
    decoder: &mut Bunzip2,
    input: &[u8],
    output: &mut [u8],
) -> Result<(usize, usize, bool), String> {
    let (read, written) = (decoder.total_in(), decoder.total_out());
    let status = decoder
        .decompress(input, output)
        .map_err(|error| error.to_string())?;
    Ok((
        grown(decoder.total_in(), read).min(input.len()),
        grown(decoder.total_out(), written).min(output.len()),
        status == bzip2::Status::StreamEnd,
    ))
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
