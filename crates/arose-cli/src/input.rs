//! Standard input as one text, and how inputs are called.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use arose_corpus::charset::{self, Markup};
use arose_corpus::{Config, Counts, Reason};

use crate::output::printable;

/// How large an input may be.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Limit {
    /// Refuses texts larger than this many MiB; prose needs four times its size in memory, a
    /// text of single letters up to twelve times.
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    max_size: u64,
}

impl Limit {
    /// Applies to every document that is read.
    pub(crate) fn apply(self, config: &mut Config) {
        let n_bytes = self.max_size.saturating_mul(1 << 20);
        let n_bytes = usize::try_from(n_bytes).unwrap_or(usize::MAX / 2);
        let limits = &mut config.limits;
        limits.record_bytes = n_bytes;
        limits.line_bytes = n_bytes;
        limits.body_bytes = n_bytes;
    }

    /// Says how to read what was too large.
    pub(crate) fn hint(self, counts: &Counts) {
        if counts.skipped.contains_key(&Reason::TooLarge) {
            let limit = self.max_size;
            eprintln!("arose: the limit is {limit} MiB; raise it with --max-size");
        }
    }
}

/// A text and what was odd about it.
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) warning: Option<String>,
}

/// Reads standard input as one text.
///
/// A byte order mark decides the encoding; else valid UTF-8 is UTF-8 and anything else is taken for
/// windows-1252, with a warning.
pub(crate) fn read_standard_input(limit: Limit) -> anyhow::Result<Text> {
    let name = name(Path::new("-"));
    let bytes = read_up_to(io::stdin().lock(), limit);
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
