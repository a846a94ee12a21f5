//! Plain text from a file or from standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use arose_corpus::charset::{self, Markup};

use crate::output::printable;

/// How large an input may be.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Limit {
    /// Refuses texts larger than this many MiB; prose needs four times its size in memory, a
    /// text of single letters up to twelve times.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    max_size: u64,
}

/// A text and what was odd about it.
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) warning: Option<String>,
}

/// Reads `path` as text, standard input if it is `-`.
///
/// A byte order mark decides the encoding; else valid UTF-8 is UTF-8 and anything else is taken for
/// windows-1252, with a warning.
pub(crate) fn read(path: &Path, limit: Limit) -> anyhow::Result<Text> {
    let name = name(path);
    let bytes = if path == Path::new("-") {
        read_up_to(io::stdin().lock(), limit)
    } else {
        open(path).and_then(|file| read_up_to(file, limit))
    };
    let bytes = bytes.with_context(|| format!("cannot read {name}"))?;
    Ok(decode(&bytes, &name))
}

/// What to call an input on a terminal.
pub(crate) fn name(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => printable(&path.display().to_string()),
    }
}

/// Refuses to read standard input more than once.
pub(crate) fn check_standard_input_once(paths: &[PathBuf]) -> anyhow::Result<()> {
    let n = paths.iter().filter(|path| path.as_os_str() == "-").count();
    anyhow::ensure!(n <= 1, "standard input can be read only once");
    Ok(())
}

fn open(path: &Path) -> anyhow::Result<File> {
    if path.is_dir() {
        bail!("it is a folder; name the files in it");
    }
    Ok(File::open(path)?)
}

fn read_up_to(reader: impl Read, limit: Limit) -> anyhow::Result<Vec<u8>> {
    let max_bytes = limit.max_size.saturating_mul(1 << 20);
    let mut bytes = Vec::new();
    reader
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        bail!(
            "it is larger than {} MiB; --max-size MIB allows more",
            limit.max_size
        );
    }
    Ok(bytes)
}

/// As web browsers do where nothing but the bytes is known.
fn decode(bytes: &[u8], name: &str) -> Text {
    let (text, is_malformed) = charset::decode(bytes, None, Markup::None);
    let encoding = charset::choose(bytes, None, Markup::None).name();
    let at = std::str::from_utf8(bytes)
        .err()
        .map(|error| error.valid_up_to());
    let warning = match at {
        Some(at) if encoding == "windows-1252" => Some(format!(
            "{name}: not UTF-8 at byte {at}; reading it as windows-1252"
        )),
        _ => is_malformed.then(|| format!("{name}: malformed {encoding} in it")),
    };
    Text { text, warning }
}
