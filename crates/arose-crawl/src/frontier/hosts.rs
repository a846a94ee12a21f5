//! All hosts, of which a bounded number is in memory.
//!
//! A host is accessed by its number, as in an array, and is read from the [`Shelf`] if it is not in
//! memory. Beyond a limit, the hosts that have been in memory longest go to the shelf, with or
//! without queued URLs, unless a request is open there. In memory they leave about 30 bytes and
//! their slot in a table: their site, and an [`Outline`].
//!
//! While a crawl runs, a thread reads and writes the file ([`Keeper`]). The loop requests a host
//! ([`Hosts::bring`]), records what is to be done with it ([`Arriving`]), and continues with
//! others. A host that is used without that is read synchronously, which takes a few microseconds
//! from the page cache. A failed read is kept for [`Hosts::check`], and the crawl does nothing
//! after it.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::ops::{Index, IndexMut};
use std::path::{Path, PathBuf};

use super::SiteId;
use super::arriving::Arriving;
use super::host::Host;
use super::keeper::{Done, Keeper, host_of};
use super::outline::{Outline, Trouble};
use super::queue::QueueEntry;
use super::shelf::{Emptied, Segment, Shelf, Spot};
use super::table::{NumberHash, Numbers};
use crate::error::{Context, Error};
use crate::journal::HostId;

/// Maximum number of hosts being read; beyond it, no more should be requested.
const MAX_ARRIVING: usize = 4096;

/// Number of hosts from which their tables exceed the caches.
const MANY: usize = 1 << 16;

/// Maximum number of segments being written.
const MAX_SEGMENTS: usize = 64;

/// Maximum number of segments being emptied.
const MAX_EMPTYING: usize = 4;

/// Hosts by number.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    slots: Vec<Slot>,
    /// The first halves of the fingerprints of their URLs, and their sites.
    hashes: Vec<u64>,
    sites: Vec<SiteId>,
    numbers: Numbers,
    /// Hosts in memory; empty if there is no limit.
    warm: VecDeque<HostId>,
    /// Hosts read recently.
    loaded: RefCell<Vec<HostId>>,
    /// Hosts being read.
    arriving: RefCell<HashMap<HostId, Box<Arriving>, NumberHash>>,
    /// Hosts that have been read.
    arrived: VecDeque<(HostId, Box<Arriving>)>,
    /// Hosts on the shelf with lost URLs or URLs put aside.
    troubled: HashMap<HostId, Trouble, NumberHash>,
    /// Outlines of the hosts on the shelf.
    outlines: Vec<u8>,
    rest: Option<Rest>,
    failure: RefCell<Option<io::Error>>,
}

/// The file of the hosts that are not in memory.
#[derive(Debug)]
struct Rest {
    path: PathBuf,
    shelf: Shelf,
    limit: usize,
    keeper: Option<Keeper>,
    /// Segments that the keeper is writing, and those that it is reading to be emptied.
    n_writing: usize,
    n_emptying: usize,
    /// Reused memory: the bytes of a host.
    buffer: Vec<u8>,
}

#[derive(Debug, Default)]
struct Slot {
    host: OnceCell<Box<Host>>,
    spot: Option<Spot>,
}

impl Hosts {
    /// Keeps at most this many hosts in memory, and the others in a file of a directory, which has
    /// this name only briefly.
    pub(crate) fn limit(&mut self, folder: &Path, name: &str, limit: usize) -> Result<(), Error> {
        let path = folder.join(name);
        self.rest = Some(Rest {
            shelf: Shelf::new(nameless(&path)?),
            path,
            limit,
            keeper: None,
            n_writing: 0,
            n_emptying: 0,
            buffer: Vec::new(),
        });
        Ok(())
    }

    /// Leaves the file to a thread from now on. The thread calls `ring` after each job.
    pub(crate) fn keep_aside(&mut self, ring: impl Fn() + Send + 'static) {
        if let Some(rest) = &mut self.rest {
            rest.keeper = Some(Keeper::start(rest.shelf.file(), ring));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the host with this hash.
    pub(crate) fn find(&self, hash: u64) -> Option<HostId> {
        self.numbers.find(hash, |id| self.hashes[id as usize])
    }

    /// Reads what is in memory of the hosts with these hashes, all at the same time: the tables of
    /// ten million hosts are too large for the caches of a processor. Returns their sites.
    pub(super) fn touch(&self, hashes: impl Iterator<Item = u64>) -> Vec<SiteId> {
        if self.slots.len() < MANY {
            return Vec::new();
        }
        let found = hashes.filter_map(|hash| self.find(hash));
        let found: Vec<HostId> = found.collect();
        let touched = found.iter().fold(0, |all, &id| {
            let slot = &self.slots[id as usize];
            all ^ self.outlines[id as usize] ^ u8::from(slot.spot.is_some())
        });
        std::hint::black_box(touched);
        found.into_iter().map(|id| self.site(id)).collect()
    }

    /// Returns the site of a host, which need not be in memory.
    pub(crate) fn site(&self, id: HostId) -> SiteId {
        self.sites[id as usize]
    }

    pub(crate) fn push(&mut self, host: Host, hash: u64) {
        let id = self.push_empty(host.site, hash);
        self.set(id, Box::new(host));
        if self.rest.is_some() {
            self.warm.push_back(id);
        }
    }

    /// Adds a host without content: it must be [filled](Self::fill) before it is used.
    pub(crate) fn push_empty(&mut self, site: SiteId, hash: u64) -> HostId {
        let id = self.slots.len() as HostId;
        self.slots.push(Slot::default());
        self.hashes.push(hash);
        self.sites.push(site);
        self.outlines.push(0);
        self.numbers.insert(id, |id| self.hashes[id as usize]);
        id
    }

    /// Whether another host may be in memory.
    pub(crate) fn has_room(&self) -> bool {
        let most = self.rest.as_ref().map_or(usize::MAX, |rest| rest.limit);
        self.warm.len() < most
    }

    /// Whether a host is in memory.
    pub(crate) fn is_warm(&self, id: HostId) -> bool {
        self.slots[id as usize].host.get().is_some()
    }

    /// Puts a host that was empty on the shelf.
    pub(crate) fn fill(&mut self, id: HostId, host: &Host) -> Result<(), Error> {
        self.put(id, host)
    }

    /// Returns a host if it is in memory.
    pub(crate) fn warm(&mut self, id: HostId) -> Option<&mut Host> {
        self.slots[id as usize]
            .host
            .get_mut()
            .map(|host| &mut **host)
    }

    /// Takes out a host that is in memory; it must be [set](Self::set) again.
    pub(crate) fn lend(&mut self, id: HostId) -> Option<Box<Host>> {
        self.slots[id as usize].host.take()
    }

    /// Puts a host into its empty slot.
    pub(crate) fn set(&mut self, id: HostId, host: Box<Host>) {
        let _ = self.slots[id as usize].host.set(host);
    }

    /// Puts hosts on the shelf while more than the limit are in memory; examines at most `n_most`.
    pub(crate) fn shelve(&mut self, n_most: usize) -> Result<(), Error> {
        self.check()?;
        let Some(rest) = &mut self.rest else {
            return Ok(());
        };
        if let Some(keeper) = &mut rest.keeper {
            keeper.flush();
        }
        let limit = rest.limit;
        self.warm.extend(self.loaded.get_mut().drain(..));
        for _ in 0..n_most {
            if self.warm.len() <= limit {
                break;
            }
            let Some(id) = self.warm.pop_front() else {
                break;
            };
            let Some(host) = self.lend(id) else {
                continue;
            };
            if !host.can_rest() || self.arriving.get_mut().contains_key(&id) {
                self.set(id, host);
                self.warm.push_back(id);
                continue;
            }
            self.put(id, &host)?;
        }
        Ok(())
    }

    /// Writes a host, and stores its outline.
    fn put(&mut self, id: HostId, host: &Host) -> Result<(), Error> {
        let Some(rest) = &mut self.rest else {
            return Ok(());
        };
        let slot = &mut self.slots[id as usize];
        rest.buffer.clear();
        host.write(&mut rest.buffer);
        slot.spot = Some(rest.shelf.put(id, &rest.buffer, slot.spot));
        let trouble = Trouble::of(host);
        if trouble != Trouble::default() {
            self.troubled.insert(id, trouble);
        } else if !self.troubled.is_empty() {
            self.troubled.remove(&id);
        }
        self.outlines[id as usize] = Outline::of(host).to_bits();
        self.write_full()
    }

    /// Writes full segments, and has others emptied if the file is too large.
    fn write_full(&mut self) -> Result<(), Error> {
        while let Some(rest) = &mut self.rest
            && let Some(segment) = rest.shelf.take_full()
        {
            match &mut rest.keeper {
                Some(keeper) => {
                    keeper.write(segment);
                    rest.n_writing += 1;
                }
                None => {
                    let written = segment.write(&rest.shelf.file());
                    written.context("writing", &rest.path)?;
                    rest.shelf.note_written(&segment);
                }
            }
            self.empty_next()?;
        }
        let n_writing = self.rest.as_ref().map_or(0, |rest| rest.n_writing);
        match n_writing > MAX_SEGMENTS {
            true => self.wait(),
            false => Ok(()),
        }
    }

    /// Has a segment emptied if the file is too large.
    fn empty_next(&mut self) -> Result<(), Error> {
        let Some(rest) = &mut self.rest else {
            return Ok(());
        };
        if rest.n_emptying >= MAX_EMPTYING {
            return Ok(());
        }
        let Some(number) = rest.shelf.next_to_empty() else {
            return Ok(());
        };
        match &mut rest.keeper {
            Some(keeper) => {
                keeper.empty(number);
                rest.n_emptying += 1;
            }
            None => {
                let emptied = Emptied::read(&rest.shelf.file(), number);
                let emptied = emptied.context("reading", &rest.path)?;
                self.take_emptied(&emptied);
            }
        }
        Ok(())
    }

    /// Puts the valid byte strings of a segment elsewhere on the shelf.
    fn take_emptied(&mut self, emptied: &Emptied) {
        let Some(rest) = &mut self.rest else {
            return;
        };
        for (id, spot, bytes) in emptied.pieces() {
            if let Some(slot) = self.slots.get_mut(id as usize)
                && slot.spot == Some(spot)
            {
                slot.spot = Some(rest.shelf.put(id, bytes, slot.spot));
            }
        }
        rest.shelf.note_emptied(emptied);
    }

    /// Returns an error if a host could not be read or written.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match (self.failure.get_mut().take(), &self.rest) {
            (Some(error), Some(rest)) => Err(error).context("using", &rest.path),
            _ => Ok(()),
        }
    }

    /// Whether a host is in memory or can be read at once. If not, it is being read, and
    /// [`Self::arriving`] records why.
    pub(crate) fn bring(&mut self, id: HostId) -> bool {
        let slot = &self.slots[id as usize];
        if slot.host.get().is_some() {
            return true;
        }
        let (Some(rest), Some(spot)) = (&mut self.rest, slot.spot) else {
            return true;
        };
        let Some(keeper) = &mut rest.keeper else {
            return true;
        };
        if rest.shelf.unwritten(spot).is_some() {
            return true;
        }
        self.arriving.get_mut().entry(id).or_insert_with(|| {
            keeper.read(id, spot);
            Box::default()
        });
        false
    }

    /// Returns what is to be done with a host that is being read.
    pub(crate) fn arriving(&mut self, id: HostId) -> &mut Arriving {
        self.arriving.get_mut().entry(id).or_default()
    }

    /// Queues a URL at a host that is being read.
    pub(super) fn queue(&mut self, id: HostId, entry: QueueEntry, is_last: bool) {
        self.arriving(id).queued.push((entry, is_last));
    }

    /// Returns the number of hosts being read.
    pub(crate) fn n_arriving(&self) -> usize {
        self.arriving.borrow().len() + self.arrived.len()
    }

    /// Whether so many are being read that others should wait.
    pub(crate) fn is_behind(&self) -> bool {
        self.n_arriving() > MAX_ARRIVING
    }

    /// Whether so many are being read that the thread has enough to do for now.
    pub(crate) fn is_busy(&self) -> bool {
        self.n_arriving() > MAX_ARRIVING / 2
    }

    /// Returns a host that has been read, and what is to be done with it.
    pub(crate) fn next_arrived(&mut self) -> Option<(HostId, Box<Arriving>)> {
        while self.arrived.is_empty() {
            let done = self.rest.as_mut()?.keeper.as_mut()?.try_next()?;
            self.take_in(done);
        }
        self.arrived.pop_front()
    }

    /// Like [`Self::next_arrived`], but waits if a host is being read.
    pub(crate) fn wait_arrived(&mut self) -> Result<Option<(HostId, Box<Arriving>)>, Error> {
        while self.arrived.is_empty() && self.n_arriving() > 0 {
            let done = self.next_done()?;
            self.take_in(done);
        }
        Ok(self.arrived.pop_front())
    }

    /// Writes everything on the shelf to its file.
    #[cfg(test)]
    pub(super) fn write_all(&mut self) -> Result<(), Error> {
        if let Some(rest) = &mut self.rest {
            rest.shelf.close();
        }
        self.write_full()?;
        while self.rest.as_ref().is_some_and(|rest| rest.n_writing > 0) {
            let done = self.next_done()?;
            self.take_in(done);
        }
        self.check()
    }

    fn next_done(&mut self) -> Result<Done, Error> {
        let keeper = self.rest.as_mut().and_then(|rest| rest.keeper.as_mut());
        keeper.and_then(Keeper::next).ok_or(Error::Worker)
    }

    /// Waits until some segments are written.
    fn wait(&mut self) -> Result<(), Error> {
        while self
            .rest
            .as_ref()
            .is_some_and(|rest| rest.n_writing > MAX_SEGMENTS / 2)
        {
            let done = self.next_done()?;
            self.take_in(done);
        }
        self.check()
    }

    fn take_in(&mut self, done: Done) {
        match done {
            Done::Written(written) => self.take_written(written),
            Done::Emptied(emptied) => self.take_read_segment(emptied),
            Done::Read(hosts) => {
                for (id, host) in hosts {
                    self.take_read(id, host);
                }
            }
        }
    }

    /// Empties a segment that was read. Segments that are full after that are written when the next
    /// host is put on the shelf.
    fn take_read_segment(&mut self, emptied: io::Result<Emptied>) {
        if let Some(rest) = &mut self.rest {
            rest.n_emptying -= 1;
        }
        match emptied {
            Ok(emptied) => self.take_emptied(&emptied),
            Err(failed) => self.fail(failed),
        }
    }

    fn take_written(&mut self, written: io::Result<Segment>) {
        let Some(rest) = &mut self.rest else {
            return;
        };
        rest.n_writing -= 1;
        match written {
            Ok(segment) => rest.shelf.note_written(&segment),
            Err(failed) => self.fail(failed),
        }
    }

    fn take_read(&mut self, id: HostId, host: io::Result<Box<Host>>) {
        let Some(mut arriving) = self.arriving.get_mut().remove(&id) else {
            return;
        };
        // It may have been needed at once meanwhile; then it stayed in memory.
        if !self.is_warm(id) {
            let host = self.or_failed(host);
            self.set(id, host);
            self.loaded.get_mut().push(id);
        }
        arriving.fill(&mut self[id as usize]);
        self.arrived.push_back((id, arriving));
    }

    fn fail(&self, failed: io::Error) {
        self.failure.borrow_mut().get_or_insert(failed);
    }

    /// Returns the numbers of URLs that are lost for now and of those put aside.
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

    /// Whether something may be queued at a host.
    pub(crate) fn may_have_work(&self, id: HostId) -> bool {
        let arriving = self.arriving.borrow();
        let is_awaited = || {
            arriving
                .get(&id)
                .is_some_and(|host| !host.queued.is_empty())
        };
        self.is_warm(id) || Outline::from_bits(self.outlines[id as usize]).has_work || is_awaited()
    }

    /// Returns the outline of a host, without reading it.
    pub(super) fn outline(&self, id: HostId) -> Outline {
        let host = self.slots[id as usize].host.get();
        let kept = || Outline::from_bits(self.outlines[id as usize]);
        host.map_or_else(kept, |host| Outline::of(host))
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

    /// Passes a host to `show`; a host that is not in memory is read for that and not kept. Nothing
    /// must be waiting for the host to be read into memory.
    pub(crate) fn show<T>(&self, id: HostId, show: impl FnOnce(&Host) -> T) -> T {
        match self.slots[id as usize].host.get() {
            Some(host) => show(host),
            None => show(&self.read(id as usize)),
        }
    }

    fn load(&self, at: usize) -> Box<Host> {
        self.loaded.borrow_mut().push(at as HostId);
        let mut host = self.read(at);
        if let Some(arriving) = self.arriving.borrow_mut().get_mut(&(at as HostId)) {
            arriving.fill(&mut host);
        }
        host
    }

    /// Reads a host that is not in memory.
    fn read(&self, at: usize) -> Box<Host> {
        let read = || {
            let (rest, spot) = (self.rest.as_ref()?, self.slots[at].spot?);
            let mut buffer = Vec::new();
            Some(rest.shelf.get(spot, &mut buffer).and_then(host_of))
        };
        let host = read().unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()));
        self.or_failed(host)
    }

    /// Returns a host that was read. If that failed, the failure is recorded, and a placeholder is
    /// returned.
    fn or_failed(&self, host: io::Result<Box<Host>>) -> Box<Host> {
        host.unwrap_or_else(|failed| {
            self.fail(failed);
            Box::new(Host::named("http://", 0))
        })
    }
}

/// Opens a file that is removed with the process.
pub(crate) fn nameless(path: &Path) -> Result<File, Error> {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(true);
    let file = options.open(path).context("creating", path)?;
    std::fs::remove_file(path).context("removing", path)?;
    Ok(file)
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
    use crate::frontier::queue::Tag;
    use crate::order::{Level, Weight};
    use arose::mix::{SplitMix, mix};

    fn entry(n: u64) -> QueueEntry {
        let weight = Weight {
            mass: Level::of((n % 3) as f32),
            trust: Level::NONE,
        };
        QueueEntry::new(Tag::of(n), n + 1, weight, 0)
    }

    fn bytes_of(host: &Host) -> Vec<u8> {
        let mut bytes = Vec::new();
        host.write(&mut bytes);
        bytes
    }

    /// Hosts that a thread reads are as they would be in memory, whether they are waited for or
    /// needed at once. What is to be done with them is not lost.
    #[test]
    fn issue_22_hosts_arrive_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let mut random = SplitMix::new(4);
        let (mut hosts, mut model) = (Hosts::default(), Vec::new());
        hosts.limit(folder.path(), "hosts.tmp", 20).unwrap();
        hosts.keep_aside(|| ());
        let (mut n_asked, mut n_arrived) = (0, 0);
        for n in 0..30_000_u64 {
            if n < 3000 {
                let name = format!("http://h{n}");
                hosts.push(Host::named(&name, n as u32), mix(n));
                model.push(Host::named(&name, n as u32));
            }
            let at = random.below(model.len() as u64) as usize;
            model[at].push(entry(n), n % 7 == 0);
            match hosts.bring(at as HostId) {
                true => hosts[at].push(entry(n), n % 7 == 0),
                false => {
                    hosts.queue(at as HostId, entry(n), n % 7 == 0);
                    let arriving = hosts.arriving(at as HostId);
                    n_asked += u64::from(!std::mem::replace(&mut arriving.advances, true));
                    if n % 5 == 0 {
                        model[at].pop();
                        hosts[at].pop();
                    }
                }
            }
            let mut arrived = |(_, arriving): (HostId, Box<Arriving>)| {
                assert!(arriving.advances && arriving.queued.is_empty());
                n_arrived += 1;
            };
            if n % 7 == 0 {
                std::iter::from_fn(|| hosts.next_arrived()).for_each(&mut arrived);
            }
            if hosts.n_arriving() > 50 {
                hosts.wait_arrived().unwrap().map(&mut arrived);
            }
            hosts.shelve(20).unwrap();
        }
        while hosts.wait_arrived().unwrap().is_some() {
            n_arrived += 1;
        }
        assert!(
            n_asked > 1000 && n_arrived == n_asked,
            "{n_asked} {n_arrived}"
        );
        for (at, host) in model.iter().enumerate() {
            assert_eq!(bytes_of(&hosts[at]), bytes_of(host));
        }
        hosts.check().unwrap();
    }

    /// Hosts in the file are as they would be in memory, whatever is done to them.
    #[test]
    fn issue_22_hosts_on_the_shelf_are_as_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut random = SplitMix::new(3);
        let (mut hosts, mut model) = (Hosts::default(), Vec::new());
        hosts.limit(folder.path(), "hosts.tmp", 7).unwrap();
        for n in 0..5000_u64 {
            if n < 200 {
                let name = format!("http://h{n}");
                hosts.push(Host::named(&name, n as u32), mix(n));
                model.push(Host::named(&name, n as u32));
            }
            let at = random.below(model.len() as u64) as usize;
            let change = |host: &mut Host| {
                host.push(entry(n), n % 7 == 0);
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
            assert_eq!(bytes_of(&hosts[at]), bytes_of(host));
            assert_eq!(hosts.find(mix(at as u64)), Some(at as HostId));
        }
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
    }
}
