//! Sorts events by host, for a start that has few hosts in memory at a time.
//!
//! *Question.* The journal has the events of ten million hosts in order of time: a URL is queued at
//! a host here, and done there. A replay in this order has to keep all hosts in memory, or read
//! them from the disk for each event. *Idea.* First sort the events into parts of [`PART`] hosts.
//! The events of each part are collected and written to a file when there are too many. Then the
//! parts are read one after the other, and each host is built once.
//!
//! *Cost.* [`HELD`] bytes of memory, and as much disk as the journal, during a start.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::{Decoder, Event, HostId, Place, push_number};
use crate::error::{Context, Error};

/// Hosts per part.
pub(crate) const PART: usize = 1 << 14;

/// Maximum number of bytes of events in memory.
const HELD: usize = 64 << 20;

/// Events by host.
#[derive(Debug, Default)]
pub(crate) struct ByHost {
    parts: Vec<Part>,
    /// The file for events that exceed the memory; `None` if all are kept in memory.
    file: Option<(PathBuf, File)>,
    end: u64,
    n_held: usize,
}

#[derive(Debug, Default)]
struct Part {
    /// The positions of its first events in the file, with their lengths in bytes.
    pieces: Vec<(u64, usize)>,
    /// Its last events.
    held: Vec<u8>,
}

/// An event of a host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told<'b> {
    pub(crate) host: HostId,
    pub(crate) event: Event<'b>,
    pub(crate) place: Place,
    /// Whether the seen set does not have it yet.
    pub(crate) is_fresh: bool,
}

impl ByHost {
    /// Writes events that exceed the memory to a file, which must be empty and was created at this
    /// path.
    pub(crate) fn in_file(path: PathBuf, file: File) -> Self {
        Self {
            file: Some((path, file)),
            ..Self::default()
        }
    }

    /// Adds an event, after all others of its host.
    pub(crate) fn push(&mut self, told: &Told<'_>) -> Result<(), Error> {
        let part = told.host as usize / PART;
        if self.parts.len() <= part {
            self.parts.resize_with(part + 1, Part::default);
        }
        let held = &mut self.parts[part].held;
        let n_before = held.len();
        push_number(held, told.host.into());
        push_number(held, told.place);
        held.push(u8::from(told.is_fresh));
        told.event.write(held);
        self.n_held += held.len() - n_before;
        match self.n_held > HELD {
            true => self.write_held(),
            false => Ok(()),
        }
    }

    fn write_held(&mut self) -> Result<(), Error> {
        let Some((path, file)) = &self.file else {
            return Ok(());
        };
        for part in self.parts.iter_mut().filter(|part| !part.held.is_empty()) {
            let written = file.write_all_at(&part.held, self.end);
            written.context("writing", path)?;
            part.pieces.push((self.end, part.held.len()));
            self.end += part.held.len() as u64;
            part.held = Vec::new();
        }
        self.n_held = 0;
        Ok(())
    }

    /// Returns the number of parts; the first ones may be empty.
    pub(crate) fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// Calls `take` with the events of a part, those of each host in order.
    pub(crate) fn each(
        &self,
        part: usize,
        mut take: impl FnMut(Told<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Part { pieces, held } = &self.parts[part];
        let mut buffer = Vec::new();
        if let Some((path, file)) = &self.file {
            for &(at, n_bytes) in pieces {
                buffer.resize(n_bytes, 0);
                file.read_exact_at(&mut buffer, at)
                    .context("reading", path)?;
                each_in(&buffer, &mut take)?;
            }
        }
        each_in(held, &mut take)
    }
}

fn each_in(
    bytes: &[u8],
    take: &mut impl FnMut(Told<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reader = Decoder { bytes, at: 0 };
    while reader.at < bytes.len() {
        let mut next = || {
            Some(Told {
                host: reader.number()?.try_into().ok()?,
                place: reader.number()?,
                is_fresh: reader.byte()? == 1,
                event: reader.event()?,
            })
        };
        // This process wrote it a moment ago.
        take(next().ok_or(Error::Worker)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    /// Events are returned by part, in order, some from the file and some from memory.
    #[test]
    fn issue_22_events_by_host() {
        let mut random = SplitMix::new(9);
        let mut by_host = ByHost::in_file(PathBuf::new(), tempfile::tempfile().unwrap());
        let mut model: Vec<Vec<(HostId, u64, bool)>> = vec![Vec::new(); 3];
        for place in 0..20_000 {
            let host = random.below(3 * PART as u64) as HostId;
            let told = Told {
                host,
                event: Event::Done { host, place },
                place: place << 20,
                is_fresh: place % 3 == 0,
            };
            by_host.push(&told).unwrap();
            model[host as usize / PART].push((host, place, place % 3 == 0));
            if place % 7000 == 6999 {
                by_host.write_held().unwrap();
            }
        }
        assert_eq!(by_host.n_parts(), 3);
        for (part, expected) in model.iter().enumerate() {
            let mut all = Vec::new();
            let each = by_host.each(part, |told| {
                let Event::Done { host, place } = told.event else {
                    return Err(Error::Worker);
                };
                assert_eq!((host, place << 20), (told.host, told.place));
                all.push((host, place, told.is_fresh));
                Ok(())
            });
            each.unwrap();
            assert_eq!(&all, expected);
        }
    }
}
