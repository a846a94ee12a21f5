//! Last stage, instead of copying the documents: writes the names of the kept documents.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde::Serialize;

use crate::Error;
use crate::results::documents::text;
use crate::results::table::scan;
use crate::stage::kept::beside;

const COLUMNS: [&str; 6] = ["doc", "id", "url", "source", "position", "kept"];

/// The names of a document.
#[derive(Serialize)]
struct Line<'a> {
    doc: u64,
    id: &'a str,
    url: Option<&'a str>,
    source: &'a str,
    position: Option<&'a str>,
}

/// Writes a line for each kept document in the table `documents`.
pub(crate) fn write(documents: &Path, path: &Path) -> Result<(), Error> {
    let partial = beside(path);
    let file = File::create(&partial).map_err(Error::io("create", &partial))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    scan::<Error>(documents, &COLUMNS, |batch| {
        let (docs, kept) = (batch.u64s("doc")?, batch.bools("kept")?);
        let (ids, urls) = (batch.strings("id")?, batch.strings("url")?);
        let (sources, positions) = (batch.strings("source")?, batch.strings("position")?);
        for row in (0..batch.n_rows()).filter(|row| kept.value(*row)) {
            let line = Line {
                doc: docs.value(row),
                id: text(ids, row).unwrap_or_default(),
                url: text(urls, row),
                source: text(sources, row).unwrap_or_default(),
                position: text(positions, row),
            };
            let written = serde_json::to_writer(&mut out, &line).map_err(Into::into);
            written
                .and_then(|()| out.write_all(b"\n"))
                .map_err(Error::io("write", &partial))?;
        }
        Ok(())
    })?;
    out.flush().map_err(Error::io("write", &partial))?;
    fs::rename(&partial, path).map_err(Error::io("rename", &partial))
}
