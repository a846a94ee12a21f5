//! All hosts, of which a bounded number is in memory.
//!
//! A host is met by its number, as in an array, and comes from the [`Shelf`] if it is not in
//! memory. Beyond a limit, hosts that have been in memory longest go to the shelf, whether URLs
//! wait at them or not, unless something is under way there. In memory they leave 28 bytes and
//! their slot in a table.
//!
//! A host that is needed is read at once, on the thread of the loop: a few microseconds from the
//! system's cache. A read that fails is kept for [`Hosts::check`]; nothing is done after it.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::ops::{Index, IndexMut};
use std::path::{Path, PathBuf};

use super::SiteId;
use super::host::Host;
use super::shelf::{Shelf, Spot};
use super::table::Numbers;
use crate::error::{Context, Error};
use crate::journal::HostId;

/// Hosts by number.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    slots: Vec<Slot>,
    /// The first halves of the fingerprints of their URLs, and their sites.
    hashes: Vec<u64>,
    sites: Vec<SiteId>,
    numbers: Numbers,
    /// Hosts in memory; none where there is no limit.
    warm: VecDeque<HostId>,
    /// Those that came into memory lately.
    loaded: RefCell<Vec<HostId>>,
    /// Of hosts on the shelf: what is lost or put aside there, if there is any.
    troubled: HashMap<HostId, Trouble>,
    /// Of hosts on the shelf: whether something waits there.
    work: Flags,
    rest: Option<Rest>,
    failure: RefCell<Option<io::Error>>,
}

/// Where hosts rest that are not in memory.
#[derive(Debug)]
struct Rest {
    path: PathBuf,
    shelf: Shelf,
    limit: usize,
}

/// What is lost or put aside at a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Trouble {
    is_lost: bool,
    n_lost: u64,
    n_aside: u64,
}

impl Trouble {
    fn of(host: &Host) -> Self {
        Self {
            is_lost: host.is_lost,
            n_lost: host.n_lost(),
            n_aside: host.aside.len() as u64,
        }
    }
}

/// A bit for each host.
#[derive(Debug, Default)]
struct Flags(Vec<u64>);

impl Flags {
    fn set(&mut self, at: usize, flag: bool) {
        if self.0.len() <= at / 64 {
            self.0.resize(at / 64 + 1, 0);
        }
        let word = &mut self.0[at / 64];
        *word = *word & !(1 << (at % 64)) | u64::from(flag) << (at % 64);
    }

    fn get(&self, at: usize) -> bool {
        self.0
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

#[derive(Debug)]
struct Slot {
    host: OnceCell<Box<Host>>,
    spot: Option<Spot>,
}

impl Hosts {
    /// Keeps no more than so many hosts in memory, and the others in a file of a folder.
    pub(crate) fn limit(&mut self, folder: &Path, limit: usize) -> Result<(), Error> {
        let path = folder.join("hosts.tmp");
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&path).context("creating", &path)?;
        // It is gone when the process is.
        std::fs::remove_file(&path).context("removing", &path)?;
        self.rest = Some(Rest {
            path,
            shelf: Shelf::new(file),
            limit,
        });
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The host with this hash.
    pub(crate) fn find(&self, hash: u64) -> Option<HostId> {
        self.numbers.find(hash, |id| self.hashes[id as usize])
    }

    /// The site of a host, which need not be in memory.
    pub(crate) fn site(&self, id: HostId) -> SiteId {
        self.sites[id as usize]
    }

    /// Whether a host is in memory.
    pub(crate) fn is_warm(&self, id: HostId) -> bool {
        self.slots[id as usize].host.get().is_some()
    }

    pub(crate) fn push(&mut self, host: Host, hash: u64) {
        let id = self.slots.len() as HostId;
        self.sites.push(host.site);
        self.slots.push(Slot {
            host: OnceCell::from(Box::new(host)),
            spot: None,
        });
        self.hashes.push(hash);
        self.numbers.insert(id, |id| self.hashes[id as usize]);
        if self.rest.is_some() {
            self.warm.push_back(id);
        }
    }

    /// Puts hosts on the shelf that are too many in memory; looks at so many at most.
    pub(crate) fn shelve(&mut self, n_most: usize) -> Result<(), Error> {
        self.check()?;
        let Some(rest) = &mut self.rest else {
            return Ok(());
        };
        self.warm.extend(self.loaded.get_mut().drain(..));
        for _ in 0..n_most {
            if self.warm.len() <= rest.limit {
                break;
            }
            let Some(id) = self.warm.pop_front() else {
                break;
            };
            let slot = &mut self.slots[id as usize];
            let Some(host) = slot.host.take() else {
                continue;
            };
            if !host.can_rest() {
                let _ = slot.host.set(host);
                self.warm.push_back(id);
                continue;
            }
            let spot = rest.shelf.put(&host.to_bytes(), slot.spot);
            slot.spot = Some(spot.context("writing", &rest.path)?);
            let trouble = Trouble::of(&host);
            match trouble == Trouble::default() {
                true => self.troubled.remove(&id),
                false => self.troubled.insert(id, trouble),
            };
            self.work.set(id as usize, host.has_work() || host.sleeps());
        }
        Ok(())
    }

    /// Whether all hosts could be read that were needed.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match (self.failure.get_mut().take(), &self.rest) {
            (Some(error), Some(rest)) => Err(error).context("reading", &rest.path),
            _ => Ok(()),
        }
    }

    /// URLs that are lost for now, and those put aside.
    pub(crate) fn n_lost_and_aside(&self) -> (u64, u64) {
        let all = (0..self.slots.len()).map(|at| self.trouble(at));
        all.fold((0, 0), |(n_lost, n_aside), trouble| {
            (n_lost + trouble.n_lost, n_aside + trouble.n_aside)
        })
    }

    /// Whether something is lost for now at a host.
    pub(crate) fn has_lost(&self, id: HostId) -> bool {
        let trouble = self.trouble(id as usize);
        trouble.is_lost || trouble.n_lost > 0
    }

    /// Whether something may wait at a host.
    pub(crate) fn may_have_work(&self, id: HostId) -> bool {
        self.slots[id as usize].host.get().is_some() || self.work.get(id as usize)
    }

    fn trouble(&self, at: usize) -> Trouble {
        match self.slots[at].host.get() {
            Some(host) => Trouble::of(host),
            None => self
                .troubled
                .get(&(at as HostId))
                .copied()
                .unwrap_or_default(),
        }
    }

    fn load(&self, at: usize) -> Box<Host> {
        let read = || {
            let (rest, spot) = (self.rest.as_ref()?, self.slots[at].spot?);
            let host = rest.shelf.get(spot).map(|bytes| Host::from_bytes(&bytes));
            Some(host.and_then(|host| host.ok_or_else(|| io::ErrorKind::InvalidData.into())))
        };
        self.loaded.borrow_mut().push(at as HostId);
        let failed = match read().unwrap_or_else(|| Err(io::ErrorKind::NotFound.into())) {
            Ok(host) => return Box::new(host),
            Err(failed) => failed,
        };
        self.failure.borrow_mut().get_or_insert(failed);
        Box::new(Host::named("http://", 0))
    }
}

impl Index<usize> for Hosts {
    type Output = Host;

    fn index(&self, at: usize) -> &Host {
        self.slots[at].host.get_or_init(|| self.load(at))
    }
}

impl IndexMut<usize> for Hosts {
    fn index_mut(&mut self, at: usize) -> &mut Host {
        if self.slots[at].host.get().is_none() {
            let host = self.load(at);
            let _ = self.slots[at].host.set(host);
        }
        let host = self.slots[at].host.get_mut();
        host.expect("it was loaded if it was not there")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::frontier::Stage;
    use crate::frontier::queue::Entry;
    use crate::order::{Level, Weight};
    use arose::mix::{SplitMix, mix};

    /// Hosts that rest in the file are what they would be in memory, whatever is done to them.
    #[test]
    fn issue_22_hosts_on_the_shelf_are_as_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut random = SplitMix::new(3);
        let (mut hosts, mut model) = (Hosts::default(), Vec::new());
        hosts.limit(folder.path(), 7).unwrap();
        for n in 0..5000_u64 {
            if n < 200 {
                let name = format!("http://h{n}");
                hosts.push(Host::named(&name, n as u32), mix(n));
                model.push(Host::named(&name, n as u32));
            }
            let at = random.below(model.len() as u64) as usize;
            let change = |host: &mut Host| {
                let weight = Weight {
                    mass: Level::of((n % 3) as f32),
                    trust: Level::NONE,
                };
                host.push(Entry::new(n as u32, n + 1, weight, 0), n % 7 == 0);
                host.next = Duration::from_millis(n);
                match n % 11 {
                    0 => host.lose(n + 1),
                    1 => drop(host.pop()),
                    2 => host.stage = Stage::Busy,
                    3 => host.stage = Stage::Rest,
                    _ => {}
                }
            };
            change(&mut hosts[at]);
            change(&mut model[at]);
            hosts.shelve(20).unwrap();
            let n_warm = hosts.slots.iter().filter(|slot| slot.host.get().is_some());
            let n_busy = model.iter().filter(|host| host.stage == Stage::Busy);
            assert!(n_warm.count() <= 8 + n_busy.count());
        }
        let n_lost: u64 = model.iter().map(Host::n_lost).sum();
        assert!(n_lost > 100 && hosts.n_lost_and_aside() == (n_lost, 0));
        for (at, host) in model.iter().enumerate() {
            // In memory a queue may be divided or not.
            assert_eq!(hosts[at].to_bytes(), host.to_bytes());
            assert_eq!(hosts.find(mix(at as u64)), Some(at as HostId));
        }
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}
