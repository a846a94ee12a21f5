//! Duplicates of pages of other agents ([`crate::cluster::twins`]), in the loop of a crawl.

use super::*;
use crate::archive::{Note, Packer, Part};
use crate::cluster::twins::Finding;
use crate::crawl::background::Command;

impl Crawl {
    /// Marks a page in the archive, where it already is, as a duplicate.
    pub(super) fn mark_duplicate(&mut self, finding: &Finding) -> Result<(), Error> {
        let Finding { page, original } = finding;
        let Some((original, similarity)) = original else {
            return Ok(());
        };
        let counter = match original.payload == page.payload {
            true => Counter::ExactDuplicates,
            false => Counter::NearDuplicates,
        };
        self.counters.add(counter, 1);
        let note = Note::new(&page.url, page.date, &page.payload);
        let mut packer = Packer::new(self.settings().archive.level);
        let record = note.pack_duplicate(original, *similarity, &mut packer);
        self.background.send(Command::Append {
            part: Part::Pages,
            record,
            claim: None,
            date: (self.seams.clock)().as_secs() as i64,
            visited: None,
        })
    }
}
