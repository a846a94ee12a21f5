//! The section on quality: the documents that each published rule rejects, with examples.

use std::fmt::{self, Write};

use super::html::{Count, Text, clip, counted, percent};
use super::page::section;
use crate::results::{QualityCounts, Summary};

/// Maximum number of characters shown of an ID or a text.
const MAX_SHOWN: usize = 120;

/// Writes the section, if quality was measured.
pub(super) fn put(f: &mut String, summary: &Summary) -> fmt::Result {
    let Some(quality) = &summary.quality else {
        return Ok(());
    };
    let read = summary.counts.read;
    section(f, "quality", "Quality")?;
    write!(
        f,
        "<p>{} at least one of the rules of Gopher, C4 and FineWeb. ",
        counted(quality.fails_any, "document fails", "documents fail")
    )?;
    match quality.filter.is_empty() {
        true => f.write_str("No filter was chosen, so none was dropped for quality.</p>\n")?,
        false => writeln!(
            f,
            "{} dropped by the filter <code>{}</code> before the search for duplicates.</p>",
            counted(
                summary.counts.dropped_filtered,
                "document was",
                "documents were"
            ),
            Text(&clip(&quality.filter.join(","), 2 * MAX_SHOWN))
        )?,
    }
    families(f, quality, read)?;
    rules(f, quality, read)?;
    f.write_str("</section>\n")
}

fn families(f: &mut String, quality: &QualityCounts, read: u64) -> fmt::Result {
    f.write_str(
        "<table><caption>What a filter would remove</caption><thead><tr>\
         <th scope=\"col\">Filter</th><th scope=\"col\" class=\"n\">Documents</th>\
         <th scope=\"col\" class=\"n\">Share</th></tr></thead><tbody>",
    )?;
    let families = quality.fails_by_family.iter();
    let all = [("all three".to_owned(), quality.fails_any)];
    let families = families.map(|(name, n)| (name.clone(), *n)).chain(all);
    for (name, n) in families {
        writeln!(
            f,
            "<tr><th scope=\"row\"><code>{}</code></th><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td></tr>",
            Text(&clip(&name, MAX_SHOWN)),
            Count(n),
            percent(n, read)
        )?;
    }
    f.write_str("</tbody></table>\n")
}

fn rules(f: &mut String, quality: &QualityCounts, read: u64) -> fmt::Result {
    for rule in quality.rules.iter().filter(|rule| rule.fails > 0) {
        writeln!(
            f,
            "<details><summary><code>{}</code> ({} {}): {}, {}</summary><table><thead><tr>\
             <th scope=\"col\">Document</th><th scope=\"col\" class=\"n\">Value</th>\
             <th scope=\"col\">Begins</th></tr></thead><tbody>",
            Text(&clip(&rule.rule, MAX_SHOWN)),
            Text(&clip(&rule.measures, MAX_SHOWN)),
            Text(&clip(&rule.passes, MAX_SHOWN)),
            counted(rule.fails, "document", "documents"),
            percent(rule.fails, read)
        )?;
        for example in &rule.examples {
            writeln!(
                f,
                "<tr><th scope=\"row\"><bdi>{}</bdi></th><td class=\"n\">{:.3}</td>\
                 <td><bdi>{}</bdi></td></tr>",
                Text(&clip(&example.id, MAX_SHOWN)),
                example.value,
                Text(&clip(&example.text, MAX_SHOWN))
            )?;
        }
        f.write_str("</tbody></table></details>\n")?;
    }
    Ok(())
}
