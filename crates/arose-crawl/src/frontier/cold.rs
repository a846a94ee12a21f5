//! The encoding of hosts on the shelf.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use super::host::{Host, HostRules, Stage, Turn};
use super::queue::{Queue, Tag};
use super::{Folders, Lane};
use crate::journal::{Decoder, push_number};
use crate::order::{Level, Weight};
use crate::pace::Pace;

impl Host {
    /// Whether it can be stored as bytes: no request is open, and no robots.txt is to be fetched
    /// there.
    pub(super) fn can_rest(&self) -> bool {
        self.stage != Stage::Busy
            && self.jobs.is_empty()
            && !matches!(self.rules, HostRules::Awaited)
    }

    /// Appends the host as bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let flags = [
            self.stage == Stage::Bench,
            self.stage == Stage::Parked,
            self.lane == Lane::Spare,
            self.is_lost,
            self.is_asleep,
            self.holds_queue,
            self.has_answered,
            self.is_slow,
            self.folders.is_some(),
            self.stage == Stage::Names,
            self.last.is_some(),
            self.again.is_some(),
        ];
        let bits = flags
            .iter()
            .rev()
            .fold(0, |bits, &flag| bits << 1 | u64::from(flag));
        let times = [self.next, self.wakes, self.asked_at].map(nanos);
        let (site, rank) = (self.site.into(), self.rank.into());
        let numbers = [bits, site, self.entry, rank, self.unreachable_since];
        for number in numbers
            .into_iter()
            .chain(times)
            .chain(self.pace.to_numbers())
        {
            push_number(out, number);
        }
        push_text(out, &self.origin);
        push_address(out, self.address);
        match &self.rules {
            HostRules::Unknown | HostRules::Awaited => out.push(0),
            HostRules::Known(robots, until) => push_rules(out, &robots.to_text(), *until),
            HostRules::Kept(text, until) => push_rules(out, text, *until),
        }
        self.queue.write(out);
        for others in [&self.last, &self.again].into_iter().flatten() {
            others.write(out);
        }
        push_turns(out, self.retries.iter());
        push_turns(out, self.aside.iter());
        push_turns(out, self.lost.iter());
        push_number(out, self.deferred.len() as u64);
        let mut before = 0;
        for (&place, (tag, weight)) in &self.deferred {
            push_number(out, place - before);
            before = place;
            push_number(out, tag.to_number().into());
            push_number(out, weight.mass.bits().into());
            push_number(out, weight.trust.bits().into());
        }
        if let Some(folders) = &self.folders {
            folders.write(out);
        }
    }

    /// Decodes a host; `None` if the bytes are malformed.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Decoder::new(bytes);
        let bits = reader.number()?;
        let flag = |at: u32| bits >> at & 1 == 1;
        let site = reader.number()?.try_into().ok()?;
        let (entry, rank) = (reader.number()?, reader.number()?.try_into().ok()?);
        let unreachable_since = reader.number()?;
        let mut time = || reader.number().map(Duration::from_nanos);
        let (next, wakes, asked_at) = (time()?, time()?, time()?);
        let pace = [(); 4].map(|()| reader.number());
        let [a, b, c, d] = pace;
        let pace = Pace::from_numbers([a?, b?, c?, d?]);
        let mut host = Self::named(reader.text()?, site);
        host.stage = match [flag(0), flag(1), flag(9)] {
            [true, ..] => Stage::Bench,
            [_, true, _] => Stage::Parked,
            [_, _, true] => Stage::Names,
            _ => Stage::Rest,
        };
        host.lane = if flag(2) { Lane::Spare } else { Lane::First };
        host.is_lost = flag(3);
        host.is_asleep = flag(4);
        host.holds_queue = flag(5);
        host.has_answered = flag(6);
        host.is_slow = flag(7);
        (host.entry, host.rank, host.unreachable_since) = (entry, rank, unreachable_since);
        (host.next, host.wakes, host.asked_at, host.pace) = (next, wakes, asked_at, pace);
        host.address = read_address(&mut reader)?;
        host.rules = match reader.number()? {
            0 => HostRules::Unknown,
            _ => {
                let until = Duration::from_nanos(reader.number()?);
                HostRules::Kept(reader.text()?.into(), until)
            }
        };
        host.queue = Queue::read(&mut reader)?;
        if flag(10) {
            host.last = Some(Box::new(Queue::read(&mut reader)?));
        }
        if flag(11) {
            host.again = Some(Box::new(Queue::read(&mut reader)?));
        }
        host.retries = read_turns(&mut reader)?.into();
        host.aside = read_turns(&mut reader)?;
        host.lost = read_turns(&mut reader)?;
        let mut place = 0_u64;
        for _ in 0..reader.number()? {
            place = place.checked_add(reader.number()?)?;
            let tag = Tag::from_number(reader.number()?.try_into().ok()?);
            let mut level = || Some(Level::from_bits(reader.number()?.try_into().ok()?));
            let weight = Weight {
                mass: level()?,
                trust: level()?,
            };
            host.deferred.insert(place, (tag, weight));
        }
        if flag(8) {
            host.folders = Some(Box::new(Folders::read(&mut reader)?));
        }
        Some(host)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn push_rules(out: &mut Vec<u8>, text: &str, until: Duration) {
    out.push(1);
    push_number(out, nanos(until));
    push_text(out, text);
}

/// Writes 0 for no address, or 4 or 16 and the bytes.
fn push_address(out: &mut Vec<u8>, address: Option<IpAddr>) {
    match address {
        None => out.push(0),
        Some(IpAddr::V4(v4)) => {
            out.push(4);
            out.extend_from_slice(&v4.octets());
        }
        Some(IpAddr::V6(v6)) => {
            out.push(16);
            out.extend_from_slice(&v6.octets());
        }
    }
}

fn read_address(reader: &mut Decoder<'_>) -> Option<Option<IpAddr>> {
    let mut bytes = [0; 16];
    let n = usize::from(reader.byte()?);
    for byte in bytes.get_mut(..n)? {
        *byte = reader.byte()?;
    }
    Some(match n {
        0 => None,
        4 => Some(IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])),
        _ => Some(IpAddr::V6(Ipv6Addr::from(bytes))),
    })
}

/// Positions mostly ascend, so the difference to the previous one is short.
fn push_turns<'t>(out: &mut Vec<u8>, turns: impl ExactSizeIterator<Item = &'t Turn>) {
    push_number(out, turns.len() as u64);
    let mut before = 0_u64;
    for turn in turns {
        push_number(out, turn.place.wrapping_sub(before));
        before = turn.place;
        push_number(out, turn.weight.mass.bits().into());
        push_number(out, turn.weight.trust.bits().into());
        out.push(turn.n_tries);
    }
}

fn read_turns(reader: &mut Decoder<'_>) -> Option<Vec<Turn>> {
    let n = reader.number()?;
    let mut place = 0_u64;
    let mut next = || {
        place = place.wrapping_add(reader.number()?);
        let mut level = || Some(Level::from_bits(reader.number()?.try_into().ok()?));
        let weight = Weight {
            mass: level()?,
            trust: level()?,
        };
        let n_tries = reader.byte()?;
        Some(Turn {
            place,
            weight,
            n_tries,
        })
    };
    (0..n).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::Novelty;
    use crate::frontier::queue::QueueEntry;
    use crate::robots::Robots;

    fn bytes_of(host: &Host) -> Vec<u8> {
        let mut bytes = Vec::new();
        host.write(&mut bytes);
        bytes
    }

    /// A host can be read back unchanged, with its rules as text.
    #[test]
    fn issue_22_a_host_comes_back() {
        let mut host = Host::named("https://h.example:8443", 7);
        let check = |host: &Host| {
            let bytes = bytes_of(host);
            let back = Host::from_bytes(&bytes).unwrap();
            assert_eq!(bytes_of(&back), bytes);
            for length in 0..bytes.len() {
                assert!(Host::from_bytes(&bytes[..length]).is_none(), "{length}");
            }
            format!("{back:?}")
        };
        assert_eq!(check(&host), format!("{host:?}"));
        let weight = Weight {
            mass: Level::of(3.0),
            trust: Level::of(0.5),
        };
        for (class, place) in [(1, 10), (0, 20), (7, 1 << 40)] {
            host.push(
                QueueEntry::new(Tag::of(place), place, weight, class),
                class == 1,
            );
        }
        host.push_again(QueueEntry::new(Tag::of(5), 30, weight, 6));
        let turn = |place, n_tries| Turn {
            place,
            weight,
            n_tries,
        };
        host.put_back(turn(99, 3));
        host.put_back(turn(7, 0));
        host.aside = vec![turn(4, 0), turn(2, 1)];
        host.lost = vec![turn(u64::MAX, 0)];
        for place in [3, 1 << 40, 50] {
            host.deferred.insert(place, (Tag::of(place), weight));
        }
        host.address = Some("::1".parse().unwrap());
        (host.stage, host.lane, host.entry, host.rank) = (Stage::Bench, Lane::Spare, 12, 99);
        (host.is_lost, host.is_slow) = (true, true);
        host.next = Duration::new(5, 123_456_789);
        host.pace.asked_delay = Duration::from_millis(1500);
        host.pace.n_failures = 3;
        assert_eq!(check(&host), format!("{host:?}"));
        let robots = Robots::parse(b"User-agent: *\nDisallow: /x\nCrawl-delay: 2\n", "");
        let text: Box<str> = robots.to_text().into();
        host.rules = HostRules::Known(std::sync::Arc::new(robots), Duration::from_secs(9));
        let back = check(&host);
        host.rules = HostRules::Kept(text, Duration::from_secs(9));
        assert_eq!(back, format!("{host:?}"));
        let mut folders = Folders::default();
        let page = Novelty {
            original: Some(7),
            of_repeat: true,
            n_found: 1,
            ..Novelty::default()
        };
        (0..16).for_each(|n| folders.record(&format!("/a/{n}"), page, 5));
        assert!(folders.admits("/a/x", 5, Duration::from_secs(1)));
        host.folders = Some(Box::new(folders));
        check(&host);
    }
}
