//! Standard input as one text, and the display names of inputs.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use arose_corpus::charset::{self, Markup};
use arose_corpus::{Config, Counts, Reason};

use crate::options::size;
use crate::output::{printable, say};

/// Maximum size of an input.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Limit {
    /// Maximum size of a text, e.g. 1GiB. Prose needs 4 times its size in memory, text of
    /// single letters up to 12 times
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    max_size: u64,
}

impl Limit {
    /// Applies the limit to every document that is read.
    pub(crate) fn apply(self, config: &mut Config) {
        let n_bytes = usize::try_from(self.max_size).unwrap_or(usize::MAX / 2);
        let limits = &mut config.limits;
        limits.record_bytes = n_bytes;
        limits.line_bytes = n_bytes;
        limits.body_bytes = n_bytes;
    }

    /// Prints how to read documents that were too large.
    pub(crate) fn hint(self, counts: &Counts) {
        if counts.skipped.contains_key(&Reason::TooLarge) {
            let limit = self.in_words();
            say(format_args!(
                "arose: the limit is {limit}; raise it with --max-size"
            ));
        }
    }

    fn in_words(self) -> String {
        match self.max_size {
            bytes if bytes > 0 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
            bytes => format!("{bytes} bytes"),
        }
    }
}

/// A text, with a warning if it is malformed.
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) warning: Option<String>,
}

/// Reads standard input as one text.
///
/// A byte order mark determines the encoding. Without one, valid UTF-8 is UTF-8 and everything else
/// is read as windows-1252, with a warning.
pub(crate) fn read_standard_input(limit: Limit) -> anyhow::Result<Text> {
    let name = name(Path::new("-"));
    let bytes = read_up_to(io::stdin().lock(), limit);
    let bytes = bytes.with_context(|| format!("cannot read {name}"))?;
    Ok(decode(&bytes, &name))
}

/// Name of an input for display.
pub(crate) fn name(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => printable(&path.display().to_string()),
    }
}

/// Returns an error if standard input is to be read more than once.
pub(crate) fn check_standard_input_once(paths: &[PathBuf]) -> anyhow::Result<()> {
    let n = paths.iter().filter(|path| path.as_os_str() == "-").count();
    anyhow::ensure!(n <= 1, "standard input can be read only once");
    Ok(())
}

fn read_up_to(reader: impl Read, limit: Limit) -> anyhow::Result<Vec<u8>> {
    let max_bytes = limit.max_size;
    let mut bytes = Vec::new();
    reader
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        bail!(
            "larger than {}; raise the limit with --max-size",
            limit.in_words()
        );
    }
    Ok(bytes)
}

/// Decodes text as web browsers do if only the bytes are known.
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
        _ => is_malformed.then(|| format!("{name}: malformed {encoding}")),
    };
    Text { text, warning }
}
