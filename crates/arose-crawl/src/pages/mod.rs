//! The page table: what is known of every URL that was fetched.
//!
//! *Question.* To visit pages again a crawl has to know of each when it was fetched, what came, how
//! often it changed, and where its last version is. There may be more pages than fit into memory,
//! and a kill at any moment may neither lose a visit nor count one twice. *Idea.* A [`Record`] of
//! 64 bytes for each page, in the order in which pages were fetched first, in one file ([`Table`]),
//! and a sketch of the last version in another. Visits become durable with the journal: a commit
//! writes the records that changed into its frame, and the file gets them when that frame is on the
//! disk. So the file is never ahead of the journal, and what it lacks the journal has: opening
//! writes the records of the journal over those of the file, and since these are values and not
//! differences, however often.
//!
//! The URL and the validators of a page are not repeated here: the record of its last response in
//! the archive has them, and its place is known ([`Position`]).
//!
//! A crawl that visits pages again holds 24 bytes for each in memory ([`Known`] and its schedule).

mod known;
mod recall;
mod record;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use known::{Known, NO_SITE, Signal};
pub(crate) use recall::{Recalled, Revisit, Version, recall};
pub(crate) use record::{Position, Record, Sketch, Slot, State};
pub(crate) use table::{TABLE, Table};

use crate::order::BASE;

/// The number of a page, in the order in which pages were fetched first.
pub(crate) type PageId = u32;

/// The importance of a page whose mass times quality is known when it is fetched first. Lists of
/// pages have ten times what every page has.
pub(crate) fn importance(kind: crate::journal::Kind, mass: f32) -> f64 {
    match kind {
        crate::journal::Kind::Sitemap => 10.0 * f64::from(BASE),
        _ => f64::from(mass).clamp(1e-3, 1e6),
    }
}
