//! Queues alone, to measure the memory of many URLs.

use arose::mix::mix;

use crate::frontier::{Queue, QueueEntry, Tag};
use crate::order::{BASE, Gift, Level, Weight};

/// The queues of some hosts, in memory and without the rest of a crawl.
///
/// ```
/// let mut queues = arose_crawl::rehearsal::Queues::new(3);
/// (0..100).for_each(|n| queues.push(n));
/// assert_eq!(queues.len(), 100);
/// ```
#[derive(Debug)]
pub struct Queues(Vec<Queue>);

impl Queues {
    /// Creates the queues of this many hosts.
    #[must_use]
    pub fn new(n_hosts: usize) -> Self {
        Self((0..n_hosts).map(|_| Queue::default()).collect())
    }

    /// Queues URL `n`, which must be larger than those before, at a host chosen at random. One URL
    /// in four has a second link.
    pub fn push(&mut self, n: u64) {
        let n_hosts = self.0.len().max(1) as u64;
        let Some(queue) = self.0.get_mut((mix(n) % n_hosts) as usize) else {
            return;
        };
        let weight = Weight {
            mass: Level::of(BASE),
            trust: Level::NONE,
        };
        // As far apart as URLs are in a journal.
        queue.push(QueueEntry::new(Tag::of(n), 100 * n, weight, 0));
        if n.is_multiple_of(4) {
            let gift = Gift {
                mass: 0.1,
                draw: n,
                is_link: true,
                ..Gift::NONE
            };
            queue.give(Tag::of(n), n, gift);
        }
    }

    /// Returns the number of queued URLs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(Queue::len).sum()
    }

    /// Whether no URL is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
