//! Output with the compression of its input.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;

use crate::source::member::FileCompression;

/// An output that is compressed as a whole.
pub(super) enum Packed<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
    Xz(XzEncoder<W>),
    Bzip2(BzEncoder<W>),
}

impl<W: Write> Packed<W> {
    pub(super) fn new(out: W, packing: FileCompression) -> io::Result<Self> {
        Ok(match packing {
            FileCompression::Plain => Packed::Plain(out),
            FileCompression::Gzip => {
                Packed::Gzip(GzEncoder::new(out, flate2::Compression::default()))
            }
            FileCompression::Zstd => Packed::Zstd(zstd::Encoder::new(out, 0)?),
            FileCompression::Xz => Packed::Xz(XzEncoder::new(out, liblzma::stream::PRESET_DEFAULT)),
            FileCompression::Bzip2 => {
                Packed::Bzip2(BzEncoder::new(out, bzip2::Compression::best()))
            }
        })
    }

    /// Writes a line with a line end, even if the original had none.
    pub(super) fn put_line(&mut self, line: &[u8]) -> io::Result<()> {
        self.write_all(line.strip_suffix(b"\n").unwrap_or(line))?;
        self.write_all(b"\n")
    }

    pub(super) fn finish(self) -> io::Result<W> {
        let mut out = match self {
            Packed::Plain(out) => out,
            Packed::Gzip(out) => out.finish()?,
            Packed::Zstd(out) => out.finish()?,
            Packed::Xz(out) => out.finish()?,
            Packed::Bzip2(out) => out.finish()?,
        };
        out.flush()?;
        Ok(out)
    }

    pub(super) fn out(&self) -> &W {
        match self {
            Packed::Plain(out) => out,
            Packed::Gzip(out) => out.get_ref(),
            Packed::Zstd(out) => out.get_ref(),
            Packed::Xz(out) => out.get_ref(),
            Packed::Bzip2(out) => out.get_ref(),
        }
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packed::Plain(out) => out.write(bytes),
            Packed::Gzip(out) => out.write(bytes),
            Packed::Zstd(out) => out.write(bytes),
            Packed::Xz(out) => out.write(bytes),
            Packed::Bzip2(out) => out.write(bytes),
        }
    }

    /// Does nothing: a flush would worsen compression, and [`finish`](Packed::finish) writes the
    /// rest.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
