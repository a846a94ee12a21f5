//! Recent events: those of the next frame, which is not written yet, and of the last frames.
//!
//! The crawl assigns positions to events and passes them on to be written. Until they are written,
//! and for a while afterwards, URLs are read from here. So most URLs of a small crawl, and the
//! newest of a large one, are never read from the file.

use std::collections::VecDeque;
use std::sync::Arc;

use super::event::{Decoder, Event, Queued, url_at};
use super::pool::Span;
use super::{MAX_URL_EVENT, Place};

/// Maximum number of bytes of written events that are kept.
const TAIL: usize = 16 << 20;

/// Events with consecutive positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The position of the first event.
    pub(super) place: Place,
    /// Number of hosts met before it, and in it.
    pub(super) n_hosts: u64,
    n_new_hosts: u64,
    /// Number of URLs in it.
    pub(crate) n_urls: u64,
    /// Whether no event was left out between two others.
    pub(super) is_dense: bool,
    pub(super) events: Vec<u8>,
}

impl Batch {
    pub(super) fn new(place: Place, n_hosts: u64) -> Self {
        Self {
            place,
            n_hosts,
            n_new_hosts: 0,
            n_urls: 0,
            is_dense: true,
            events: Vec::new(),
        }
    }

    /// Adds an event; returns its position.
    pub(crate) fn push(&mut self, event: Event<'_>) -> Place {
        let place = self.end();
        event.write(&mut self.events);
        self.n_new_hosts += u64::from(matches!(event, Event::Host(_)));
        self.n_urls += u64::from(matches!(event, Event::Url(_) | Event::Again { .. }));
        place
    }

    pub(super) fn n_hosts_after(&self) -> u64 {
        self.n_hosts + self.n_new_hosts
    }

    /// Returns where its URLs are found if its events are at `at` in the file.
    pub(super) fn span(&self, at: u64) -> Option<Span> {
        (self.n_urls > 0).then_some(Span {
            place: self.place,
            at,
            n_bytes: u32::try_from(self.events.len()).unwrap_or(u32::MAX),
            is_dense: self.is_dense,
        })
    }

    /// Returns the size of the events in bytes.
    pub(crate) fn n_bytes(&self) -> usize {
        self.events.len()
    }

    /// Takes the events, and begins the next batch.
    pub(crate) fn take(&mut self) -> Self {
        let next = Self::new(self.end(), self.n_hosts_after());
        std::mem::replace(self, next)
    }

    /// Returns the position after the last event.
    pub(crate) fn end(&self) -> Place {
        self.place + self.events.len() as u64
    }

    /// Hands all events to `take`, with their places.
    pub(crate) fn each(&self, mut take: impl FnMut(Place, Event<'_>)) {
        let mut decoder = Decoder::new(&self.events);
        while !decoder.is_at_end() {
            let place = self.place + decoder.at as u64;
            let event = decoder.event();
            take(place, event.expect("these bytes were written by `push`"));
        }
    }

    fn read(&self, place: Place) -> Option<Queued<'_>> {
        let bytes = self.events.get((place - self.place) as usize..)?;
        url_at(&bytes[..bytes.len().min(MAX_URL_EVENT)])
    }
}

/// The next batch, and the last ones.
#[derive(Debug)]
pub(crate) struct Draft {
    batch: Batch,
    /// Batches that were passed on, the oldest first, and their size in bytes.
    tail: VecDeque<Arc<Batch>>,
    n_tail_bytes: usize,
}

impl Draft {
    /// Continues with a batch.
    pub(crate) fn new(batch: Batch) -> Self {
        Self {
            batch,
            tail: VecDeque::new(),
            n_tail_bytes: 0,
        }
    }

    /// Adds an event; returns its position.
    pub(crate) fn push(&mut self, event: Event<'_>) -> Place {
        self.batch.push(event)
    }

    /// Returns the position after the last event.
    pub(crate) fn end(&self) -> Place {
        self.batch.end()
    }

    /// Returns the number of bytes of events that wait to be passed on.
    pub(crate) fn pending(&self) -> usize {
        self.batch.n_bytes()
    }

    /// Passes the events on.
    pub(crate) fn take(&mut self) -> Arc<Batch> {
        let batch = Arc::new(self.batch.take());
        self.n_tail_bytes += batch.n_bytes();
        self.tail.push_back(Arc::clone(&batch));
        batch
    }

    /// Records that the events before a position are in the file.
    pub(crate) fn note_written(&mut self, end: Place) {
        while let Some(first) = self.tail.front()
            && self.n_tail_bytes > TAIL
            && first.end() <= end
        {
            self.n_tail_bytes -= first.n_bytes();
            self.tail.pop_front();
        }
    }

    /// Returns a queued URL, if it is here.
    pub(crate) fn read(&self, place: Place) -> Option<Queued<'_>> {
        if place >= self.batch.place {
            return self.batch.read(place);
        }
        let after = self.tail.partition_point(|batch| batch.place <= place);
        let batch = self.tail.get(after.checked_sub(1)?)?;
        (place < batch.end()).then(|| batch.read(place)).flatten()
    }
}
