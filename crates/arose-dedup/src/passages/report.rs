//! `report.html` of a search for passages: the repeated passages, their places, and the effect of
//! removal.
//!
//! The page is generated from `summary.json` alone. It loads nothing else and runs no scripts, and
//! all foreign text is escaped.

use std::fmt::{self, Write};
use std::path::Path;

use serde_json::Value;

use super::listing::SHOWN_CHARS;
use crate::Error;
use crate::report::html::{Count, Text, clip, counted, percent};
use crate::report::page::STYLE;
use crate::report::put;
use crate::work::read_json;

/// Maximum number of characters shown of an ID.
pub(super) const MAX_ID: usize = 100;

/// Writes the report to the directory `out` of a complete run.
pub(crate) fn write(out: &Path) -> Result<(), Error> {
    let summary: Option<Value> = read_json(&out.join("summary.json"))?;
    let page = PassagesPage(&summary.unwrap_or_default()).to_string();
    Ok(put(&out.join("report.html"), &page)?)
}

struct PassagesPage<'a>(&'a Value);

impl fmt::Display for PassagesPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.0["version"].as_str().unwrap_or_default();
        write_head(f, &self.headline(), version)?;
        self.removal(f)?;
        self.passages(f)?;
        self.documents(f)?;
        write_end(
            f,
            "All passages are in <code>passages.parquet</code>, their places in \
             <code>places.parquet</code>, each repeated span with its source in \
             <code>removed.parquet</code>.",
        )
    }
}

/// The page up to its first section.
pub(super) fn write_head(f: &mut fmt::Formatter<'_>, headline: &str, version: &str) -> fmt::Result {
    write!(
        f,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{headline}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <p class=\"brand\">arose {}</p>\n<h1>{headline}</h1>\n</header>\n<main>\n",
        Text(version)
    )
}

/// The end of the page, which refers to the tables.
pub(super) fn write_end(f: &mut fmt::Formatter<'_>, tables: &str) -> fmt::Result {
    write!(
        f,
        "</main>\n<footer><p>{tables} This page loads nothing and runs no scripts.</p></footer>\n\
         </body>\n</html>\n"
    )
}

impl PassagesPage<'_> {
    fn count(&self, part: &str, name: &str) -> u64 {
        self.0[part][name].as_u64().unwrap_or(0)
    }

    fn tokens(&self) -> String {
        let unit = self.0["settings"]["unit"].as_str().unwrap_or("token");
        format!("{unit}s")
    }

    fn headline(&self) -> String {
        let (covered, all) = (
            self.count("counts", "covered"),
            self.count("counts", "tokens"),
        );
        let read = counted(self.count("counts", "read"), "document", "documents");
        match covered {
            0 => format!("No repeated passages in {read}"),
            _ => format!(
                "{} of the {} in {read} are repeated",
                percent(covered, all),
                self.tokens()
            ),
        }
    }

    fn removal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let removal = |name: &str| self.count("removal", name);
        let (removed, all) = (removal("removed"), self.count("counts", "tokens"));
        let is_written = self.0["removal"]["written"].as_bool() == Some(true);
        let mode = self.0["removal"]["mode"].as_str().unwrap_or_default();
        let [removes, drops] = match is_written {
            true => ["removed", "dropped"],
            false => ["would remove", "drop"],
        };
        writeln!(
            f,
            "<section id=\"removal\">\n<h2>Removal</h2>\n<p class=\"lead\"><code>--remove {}</code> \
             {removes} {} {} ({}) from {} and {drops} {} with too little left.</p>",
            Text(mode),
            Count(removed),
            self.tokens(),
            percent(removed, all),
            counted(removal("documents_changed"), "document", "documents"),
            counted(removal("documents_emptied"), "document", "documents"),
        )?;
        let bytes = (removal("removed_bytes"), self.count("counts", "text_bytes"));
        if 2 * removed > all || 2 * bytes.0 > bytes.1 {
            f.write_str(
                "<p class=\"note\"><strong>Warning:</strong> more than half of the text would be removed. In \
                 the FineWeb study, removing repeated lines or three-line spans over a whole web corpus \
                 removed 78% to 85% of its tokens and made models worse than no removal.</p>\n",
            )?;
        }
        f.write_str("</section>\n")
    }

    fn passages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<section id=\"passages\">\n<h2>Most repeated passages</h2>\n")?;
        let rows = self.0["most_repeated"].as_array().into_iter().flatten();
        let rows = rows.map(|row| {
            let number = |name: &str| Count(row[name].as_u64().unwrap_or(0)).to_string();
            let text = row["text"].as_str().unwrap_or_default();
            let is_cut = text.chars().count() >= SHOWN_CHARS;
            let end = if is_cut { "…" } else { "" };
            [
                number("occurrences"),
                number("documents"),
                number("tokens"),
                number("first_doc"),
                format!("{}{end}", Text(text)),
            ]
        });
        let heads = [
            "Occurrences",
            "Documents",
            "Length",
            "First in document",
            "Text",
        ];
        table(f, heads, rows)?;
        f.write_str("</section>\n")
    }

    fn documents(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "<section id=\"documents\">\n<h2>Documents with the most repeated text</h2>\n",
        )?;
        let rows = self.0["most_covered"].as_array().into_iter().flatten();
        let rows = rows.map(|row| {
            let number = |name: &str| row[name].as_u64().unwrap_or(0);
            let id = clip(row["id"].as_str().unwrap_or_default(), MAX_ID);
            [
                Count(number("tokens")).to_string(),
                Count(number("covered")).to_string(),
                percent(number("covered"), number("tokens")),
                Count(number("removed")).to_string(),
                Text(&id).to_string(),
            ]
        });
        let heads = ["Length", "Repeated", "Share", "Removed", "Document"];
        table(f, heads, rows)?;
        f.write_str("</section>\n")
    }
}

/// A table whose last column is text and whose cells are escaped.
pub(super) fn table(
    f: &mut fmt::Formatter<'_>,
    heads: [&str; 5],
    rows: impl Iterator<Item = [String; 5]>,
) -> fmt::Result {
    let class = |column: usize| if column < 4 { " class=\"n\"" } else { "" };
    let mut body = String::new();
    for row in rows {
        body.push_str("<tr>");
        for (column, (cell, head)) in row.iter().zip(heads).enumerate() {
            write!(
                body,
                "<td{} data-head=\"{head}\">{cell}</td>",
                class(column)
            )?;
        }
        body.push_str("</tr>\n");
    }
    if body.is_empty() {
        return f.write_str("<p class=\"nothing\">None.</p>\n");
    }
    f.write_str("<table class=\"lines\"><thead><tr>")?;
    for (column, head) in heads.iter().enumerate() {
        write!(f, "<th scope=\"col\"{}>{head}</th>", class(column))?;
    }
    write!(f, "</tr></thead><tbody>\n{body}</tbody></table>\n")
}
