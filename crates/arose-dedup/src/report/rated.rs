//! What people said of sampled pairs, in the tables of Henzinger 2006.

use std::fmt::{self, Write};

use arose::judgement::{Tally, Verdict};

use super::html::{Count, Text, counted};
use super::page::section;
use crate::evaluate::ratings::{Row, Tables};

/// Writes the section.
pub(super) fn put(f: &mut String, tables: &Tables) -> fmt::Result {
    section(f, "rated", "What people said")?;
    let n = counted(tables.all.total(), "pair was", "pairs were");
    write!(f, "<p>{n} rated.")?;
    if let Some(precision) = tables.precision() {
        write!(
            f,
            " Of the pairs that the run has found an estimated share of <strong>{precision:.3}</strong> \
             are correct, each level of similarity counted by its size."
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
        table(f, title, &tables.all, rows)?;
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

fn table(f: &mut String, title: &str, all: &Tally, rows: &[Row]) -> fmt::Result {
    write!(
        f,
        "<table><thead><tr><th scope=\"col\">{title}</th><th scope=\"col\" class=\"n\">Rated</th>"
    )?;
    for verdict in ["Correct", "Incorrect", "Undecided"] {
        write!(
            f,
            "<th scope=\"col\" class=\"n\">{verdict}</th><th scope=\"col\" class=\"n\">95 %</th>"
        )?;
    }
    f.write_str("</tr></thead><tbody>")?;
    row(f, "all", all)?;
    for each in rows.iter().filter(|row| row.tally.total() > 0) {
        row(f, &each.name, &each.tally)?;
    }
    f.write_str("</tbody></table>\n")
}

fn row(f: &mut String, name: &str, tally: &Tally) -> fmt::Result {
    write!(
        f,
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td>",
        Text(name),
        Count(tally.total())
    )?;
    for verdict in Verdict::ALL {
        let interval = tally.interval(verdict);
        let share = tally.share(verdict).unwrap_or(0.0);
        write!(
            f,
            "<td class=\"n\">{share:.2}</td><td class=\"n\">{:.2}-{:.2}</td>",
            interval.low, interval.high
        )?;
    }
    f.write_str("</tr>\n")
}
