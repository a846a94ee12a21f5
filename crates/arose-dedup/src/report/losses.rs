//! The section on input that could not be read.

use std::fmt::{self, Write};

use super::html::{Text, clip, counted};
use super::page::MAX_VALUE;
use crate::results::{Summary, kinds};

/// Maximum number of incomplete files listed.
const MAX_FILES: usize = 50;

/// Lists the missing input; writes nothing if the input is complete.
pub(super) fn put(f: &mut String, summary: &Summary) -> fmt::Result {
    let counts = &summary.counts;
    if counts.null_text > 0 {
        writeln!(
            f,
            "<p>{} null text. They are not compared and are kept.</p>",
            counted(counts.null_text, "record has", "records have")
        )?;
    }
    if !summary.unknown_files.is_empty() {
        let kinds = clip(&kinds(&summary.unknown_files), MAX_VALUE);
        writeln!(
            f,
            "<p>Files of unknown formats were not read: {}.</p>",
            Text(&kinds)
        )?;
    }
    if counts.incomplete_files == 0 {
        return Ok(());
    }
    writeln!(
        f,
        "<p class=\"lost\"><strong>{} could not be read completely.</strong></p>\n<ul>",
        counted(counts.incomplete_files, "file", "files")
    )?;
    for file in summary.incomplete_files.iter().take(MAX_FILES) {
        writeln!(
            f,
            "<li><bdi>{}</bdi></li>",
            Text(&clip(&file.to_string(), MAX_VALUE))
        )?;
    }
    let n_shown = MAX_FILES.min(summary.incomplete_files.len()) as u64;
    if let Some(more @ 1..) = counts.incomplete_files.checked_sub(n_shown) {
        writeln!(f, "<li>{}</li>", counted(more, "more file", "more files"))?;
    }
    f.write_str("</ul>\n")
}
