//! Last stage, instead of copying the documents: writes the names of the kept documents.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::json;

use crate::Error;
use crate::results::documents::for_each;
use crate::stage::kept::beside;

/// Writes a line for each kept document in the table `documents`.
pub(crate) fn write(documents: &Path, path: &Path) -> Result<(), Error> {
    let partial = beside(path);
    let file = File::create(&partial).map_err(Error::io("create", &partial))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    for_each(documents, |doc, detail| {
        if !detail.kept {
            return Ok(());
        }
        let line = json!({
            "doc": doc,
            "id": detail.id,
            "url": detail.url,
            "source": detail.source,
            "position": detail.position.map(|position| position.to_string()),
        });
        writeln!(out, "{line}").map_err(Error::io("write", &partial))
    })?;
    out.flush().map_err(Error::io("write", &partial))?;
    fs::rename(&partial, path).map_err(Error::io("rename", &partial))
}
