//! The page table: a record of every URL that was fetched.
//!
//! *Question.* To visit pages again, a crawl has to know for each when it was fetched, the result,
//! how often it changed, and where its last version is. There may be more pages than fit into
//! memory, and a kill at any moment may neither lose a visit nor count one twice. *Idea.* One file
//! ([`Table`]) has a [`Record`] of 64 bytes for each page, in the order of their first fetch.
//! Visits become durable with the journal: a commit writes the changed records into its frame, and
//! they go to the file when that frame is on the disk. So the file is never ahead of the journal.
//! On opening, the records of the journal replace those of the file; because they are values and
//! not differences, this may be repeated.
//!
//! The URL, the validators and the [`Sketch`] of a page are not repeated here: the record of its
//! last response in the archive has them, and its position is known ([`Position`]).
//!
//! A crawl that visits pages again keeps 24 bytes for each in memory ([`PageStates`] and its
//! schedule).

mod known;
mod recall;
mod record;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use known::{NO_SITE, PageStates, Signal};
pub(crate) use recall::{Recalled, Revisit, Version, recall};
pub(crate) use record::{Position, RECORD, Record, Sketch, State};
pub(crate) use table::{TABLE, Table, check};

use crate::order::BASE;

/// The number of a page, in the order of first fetches.
pub(crate) type PageId = u32;

/// Returns the importance of a page, from its mass times quality at the first fetch. Lists of pages
/// have ten times the base mass of a page.
pub(crate) fn importance(kind: crate::journal::Kind, mass: f32) -> f64 {
    match kind {
        crate::journal::Kind::Sitemap => 10.0 * f64::from(BASE),
        _ => f64::from(mass).clamp(1e-3, 1e6),
    }
}
