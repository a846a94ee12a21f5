//! `report.html` of a search for the items of a reference, generated from `summary.json` alone.

use std::fmt;
use std::path::Path;

use serde_json::Value;

use crate::Error;
use crate::passages::report::{MAX_ID, table, write_end, write_head};
use crate::report::html::{Count, Text, clip, counted, percent};
use crate::report::put;
use crate::work::read_json;

/// Writes the report to the directory `out` of a complete run.
pub(crate) fn write(out: &Path) -> Result<(), Error> {
    let summary: Option<Value> = read_json(&out.join("summary.json"))?;
    let page = MatchesPage(&summary.unwrap_or_default()).to_string();
    Ok(put(&out.join("report.html"), &page)?)
}

struct MatchesPage<'a>(&'a Value);

impl fmt::Display for MatchesPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.0["version"].as_str().unwrap_or_default();
        write_head(f, &self.headline(), version)?;
        self.found(f)?;
        self.items(f)?;
        write_end(
            f,
            "All items are in <code>items.parquet</code>, the items in each document in \
             <code>documents.parquet</code>, and every match with its places in \
             <code>matches.parquet</code>.",
        )
    }
}

impl MatchesPage<'_> {
    fn count(&self, name: &str) -> u64 {
        self.0["counts"][name].as_u64().unwrap_or(0)
    }

    fn headline(&self) -> String {
        let items = counted(self.count("items"), "item", "items");
        match self.count("items_found") {
            0 => format!("None of {items} found"),
            found => format!("Found {} of {items}, in part or in full", Count(found)),
        }
    }

    fn found(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let min = self.0["settings"]["min"].as_u64().unwrap_or(0);
        let common = self.0["settings"]["common"].as_u64().unwrap_or(0);
        writeln!(
            f,
            "<section id=\"found\">\n<h2>Result</h2>\n<p class=\"lead\">{} of {} found, {} of them \
             in full, in {} of {}. A match has at least {min} tokens, or is a whole item of at least \
             8 tokens.</p>",
            Count(self.count("items_found")),
            counted(self.count("items"), "item", "items"),
            Count(self.count("items_whole")),
            Count(self.count("documents_found")),
            counted(self.count("read"), "document", "documents"),
        )?;
        if let n @ 1.. = self.count("items_common_only") {
            writeln!(
                f,
                "<p>For {}, the only passages found occur in more than {} documents, e.g. licences \
                 or instructions. These do not count.</p>",
                counted(n, "more item", "more items"),
                Count(common)
            )?;
        }
        if let n @ 1.. = self.count("items_undecided") {
            writeln!(
                f,
                "<p>{} too few tokens to decide.</p>",
                counted(n, "item has", "items have")
            )?;
        }
        let removal = &self.0["removal"];
        if removal["written"].as_bool() == Some(true) {
            writeln!(
                f,
                "<p>Removed {} tokens from {}, of which {} were dropped.</p>",
                Count(removal["removed"].as_u64().unwrap_or(0)),
                counted(
                    removal["documents_changed"].as_u64().unwrap_or(0),
                    "document",
                    "documents"
                ),
                Count(removal["documents_dropped"].as_u64().unwrap_or(0))
            )?;
        }
        f.write_str("</section>\n")
    }

    fn items(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<section id=\"items\">\n<h2>Items found most completely</h2>\n")?;
        let rows = self.0["most_found"].as_array().into_iter().flatten();
        let rows = rows.map(|row| {
            let number = |name: &str| row[name].as_u64().unwrap_or(0);
            let id = clip(row["id"].as_str().unwrap_or_default(), MAX_ID);
            let text = row["text"].as_str().unwrap_or_default();
            [
                Count(number("tokens")).to_string(),
                percent(number("covered"), number("tokens")),
                Count(number("longest")).to_string(),
                Count(number("documents")).to_string(),
                format!("<strong>{}</strong> {}", Text(&id), Text(text)),
            ]
        });
        let heads = ["Length", "Found", "Longest run", "Documents", "Item"];
        table(f, heads, rows)?;
        f.write_str("</section>\n")
    }
}
