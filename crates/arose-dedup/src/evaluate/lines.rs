//! The lines of a file of records, uncompressed or compressed with gzip or zstd.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde_json::{Map, Value};

use super::Error;

/// The fields of one record.
pub(crate) type Record = Map<String, Value>;

/// Maximum length of a line in bytes: labelled pairs may contain whole texts.
const MAX_LINE: u64 = 64 << 20;

/// Calls `each` with every line that is not blank. Its errors are reported with the line. `-` is
/// standard input.
pub(crate) fn for_each_line(
    path: &Path,
    mut each: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), Error> {
    let mut reader = open(path).map_err(Error::io("open", path))?;
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let mut limited = reader.by_ref().take(MAX_LINE + 1);
        let n_bytes = limited.read_until(b'\n', &mut bytes);
        if n_bytes.map_err(Error::io("read", path))? == 0 {
            break;
        }
        let result = match bytes.len() as u64 > MAX_LINE {
            true => Err(format!("longer than {MAX_LINE} bytes")),
            false if bytes.trim_ascii().is_empty() => Ok(()),
            false => each(bytes.trim_ascii_end()),
        };
        let path = path.to_owned();
        result.map_err(|flaw| Error::Line { path, line, flaw })?;
    }
    Ok(())
}

/// Calls `each` with every line, which must be a JSON object.
pub(crate) fn for_each_record(
    path: &Path,
    mut each: impl FnMut(&Record) -> Result<(), String>,
) -> Result<(), Error> {
    for_each_line(path, |line| each(&record(line)?))
}

/// Returns the object in a line.
pub(crate) fn record(line: &[u8]) -> Result<Record, String> {
    serde_json::from_slice(line).map_err(|error| format!("not a JSON object: {error}"))
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut reader: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::with_capacity(1 << 16, File::open(path)?))
    };
    Ok(match reader.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(BufReader::new(MultiGzDecoder::new(reader))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            Box::new(BufReader::new(zstd::Decoder::with_buffer(reader)?))
        }
        _ => reader,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines(bytes: &[u8]) -> Result<Vec<String>, Error> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let mut found = Vec::new();
        for_each_line(file.path(), |line| {
            found.push(String::from_utf8_lossy(line).into_owned());
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn plain_gzip_and_zstd_lines() {
        let text = b"a rose\r\n\n  \nis a rose";
        let expected = ["a rose", "is a rose"];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        assert_eq!(lines(text).unwrap(), expected);
        assert_eq!(lines(&gzip.finish().unwrap()).unwrap(), expected);
        assert_eq!(
            lines(&zstd::encode_all(&text[..], 1).unwrap()).unwrap(),
            expected
        );
        assert_eq!(lines(b"").unwrap(), [""; 0]);
    }

    #[test]
    fn damage_is_an_error() {
        let zstd = zstd::encode_all(&b"a rose is a rose is a rose"[..], 1).unwrap();
        assert!(lines(&zstd[..zstd.len() - 4]).is_err());
        assert!(lines(&[0x1f, 0x8b, 0, 0]).is_err());
    }

    #[test]
    fn a_flaw_names_its_line() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"{}\n\n[1]\n").unwrap();
        let error = for_each_record(file.path(), |_| Ok(())).unwrap_err();
        assert!(
            error.to_string().contains(":3: not a JSON object"),
            "{error}"
        );
    }
}
