//! Ratings of sampled pairs, in the tables of Henzinger 2006.

use std::fmt::{self, Write};

use super::html::{Count, Text, counted};
use super::page::section;
use crate::evaluate::ratings::{Row, Tables};

/// Writes the section.
pub(super) fn put(f: &mut String, tables: &Tables) -> fmt::Result {
    section(f, "rated", "Ratings")?;
    let n = counted(tables.all.total(), "pair was", "pairs were");
    write!(f, "<p>{n} rated.")?;
    if let Some(precision) = tables.precision() {
        write!(
            f,
            " Estimated precision of the run: <strong>{:.3}</strong> (95% interval {:.3} to {:.3}), \
             weighted by the size of each similarity range.",
            precision.value, precision.interval.low, precision.interval.high
        )?;
    }
    if tables.n_elsewhere > 0 {
        let n = counted(tables.n_elsewhere, "rating is", "ratings are");
        write!(
            f,
            " {n} of pairs that this run does not list, and not counted here."
        )?;
    }
    f.write_str("</p>\n")?;
    for (title, rows) in [
        ("B-sim", &tables.by_b),
        ("C-sim", &tables.by_c),
        ("Sites", &tables.by_sites),
    ] {
        table(f, title, rows)?;
    }
    for agreement in &tables.agreements {
        let (one, other) = &agreement.raters;
        write!(
            f,
            "<p><bdi>{}</bdi> and <bdi>{}</bdi> agree on {} of {} pairs",
            Text(one),
            Text(other),
            Count(agreement.n_agreed),
            Count(agreement.n_pairs)
        )?;
        match agreement.kappa {
            Some(kappa) => writeln!(f, ", a kappa of {kappa:.2}.</p>")?,
            None => f.write_str(".</p>\n")?,
        }
    }
    f.write_str("</section>\n")
}

fn table(f: &mut String, title: &str, rows: &[Row]) -> fmt::Result {
    write!(
        f,
        "<table><thead><tr><th scope=\"col\">{title}</th><th scope=\"col\" class=\"n\">Rated</th>"
    )?;
    for verdict in ["Correct", "Incorrect", "Undecided"] {
        write!(
            f,
            "<th scope=\"col\" class=\"n\">{verdict}</th><th scope=\"col\" class=\"n\">95%</th>"
        )?;
    }
    f.write_str("</tr></thead><tbody>")?;
    for each in rows.iter().filter(|row| row.tally.total() > 0) {
        put_row(f, each)?;
    }
    f.write_str("</tbody></table>\n")
}

fn put_row(f: &mut String, row: &Row) -> fmt::Result {
    write!(
        f,
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td>",
        Text(&row.name),
        Count(row.tally.total())
    )?;
    for share in row.shares {
        match share {
            Some(share) => write!(
                f,
                "<td class=\"n\">{:.2}</td><td class=\"n\">{:.2}-{:.2}</td>",
                share.value, share.interval.low, share.interval.high
            )?,
            None => f.write_str("<td class=\"n\">–</td><td class=\"n\">–</td>")?,
        }
    }
    f.write_str("</tr>\n")
}
