//! The table of all hosts, generated once from the settings.

use std::net::Ipv4Addr;

use crate::config::{Config, Kind, PageCount};
use crate::random::{Popularity, Random, key};
use crate::robots::Robots;

/// A host of the web.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Its robots file.
    pub robots: Robots,
    /// Its IP address, unless [moved](crate::Control::move_host).
    pub address: Ipv4Addr,
    /// Seconds that its DNS record may be cached.
    pub ttl: u32,
    /// Number of ordinary pages, numbered from 0, the home page.
    pub n_pages: u32,
    /// The host whose pages these are: itself, unless it is a mirror.
    pub original: u32,
    /// Seeds everything on the pages; a mirror has the key of its original.
    pub(crate) key: u64,
    /// Hosts that the home page links to, so that every host can be found.
    pub(crate) children: Vec<u32>,
    /// Which pages are linked to most.
    pub(crate) popularity: Popularity,
}

/// The IP address with number `idx`, starting at 127.1.0.1.
#[must_use]
pub(crate) fn address(idx: u32) -> Ipv4Addr {
    let octets = [1 + idx / 62_500, idx / 250 % 250, 1 + idx % 250];
    let [b, c, d] = octets.map(|octet| octet as u8);
    Ipv4Addr::new(127, b, c, d)
}

/// The number of an IP address.
pub(crate) fn address_idx(address: Ipv4Addr) -> Option<u32> {
    let [_, b, c, d] = address.octets().map(u32::from);
    let idx = b.checked_sub(1)? * 62_500 + c * 250 + d.checked_sub(1)?;
    (self::address(idx) == address).then_some(idx)
}

/// An IP address without a listener.
const REFUSING: Ipv4Addr = Ipv4Addr::new(127, 250, 250, 250);

/// All hosts of the settings, directories last.
pub(crate) fn table(config: &Config) -> Vec<Host> {
    let kinds = deck(&config.kinds, key(config.seed, 1));
    let robots = deck(&config.robots, key(config.seed, 2));
    let mut table = Table {
        config,
        hosts: Vec::new(),
        plain: Vec::new(),
        parents: Vec::new(),
    };
    for idx in 0..config.n_hosts {
        let kind = if idx == 0 {
            Kind::Plain
        } else {
            kinds[idx as usize % kinds.len()]
        };
        let drawn = robots[idx as usize % robots.len()];
        let name = format!("{}{idx}.test", kind.as_str());
        table.add(name, kind, drawn);
    }
    for folder in &config.folders {
        table.add(folder.host.clone(), Kind::Folder, Robots::Missing);
    }
    table.hosts
}

/// Each item as often as its weight, shuffled.
fn deck<T: Copy>(weights: &[(T, u32)], key: u64) -> Vec<T> {
    let items = weights.iter();
    let mut deck: Vec<T> = items
        .flat_map(|&(item, weight)| std::iter::repeat_n(item, weight as usize))
        .collect();
    Random::new(key).shuffle(&mut deck);
    deck
}

/// A table under construction.
struct Table<'a> {
    config: &'a Config,
    hosts: Vec<Host>,
    /// Hosts that can be mirrored.
    plain: Vec<u32>,
    /// Hosts that may link to new ones: plain, and open to robots.
    parents: Vec<u32>,
}

impl Table<'_> {
    fn add(&mut self, name: String, kind: Kind, drawn: Robots) {
        let idx = self.hosts.len() as u32;
        let own_key = key(key(self.config.seed, 3), u64::from(idx));
        let mut random = Random::new(key(own_key, 1));
        if idx > 0 {
            let parent = self.parents[random.below(self.parents.len() as u64) as usize];
            self.hosts[parent as usize].children.push(idx);
        }
        let original = match kind.is_mirror() {
            true => self.plain[random.below(self.plain.len() as u64) as usize],
            false => idx,
        };
        let (key, n_pages) = match self.hosts.get(original as usize) {
            Some(original) => (original.key, original.n_pages),
            None => (own_key, page_count(self.config.pages, kind, &mut random)),
        };
        let robots = robots(idx, kind, drawn);
        self.hosts.push(Host {
            name,
            kind,
            robots,
            address: match kind {
                Kind::Refused => REFUSING,
                Kind::Wildcard => address(self.config.n_addresses - 1),
                _ => address(idx % self.config.n_addresses),
            },
            ttl: [5, 300, 3600, 86_400][random.below(4) as usize],
            n_pages,
            original,
            key,
            children: Vec::new(),
            popularity: Popularity::new(n_pages),
        });
        if kind == Kind::Plain {
            self.plain.push(idx);
        }
        if kind == Kind::Plain && robots == Robots::NotPrivate {
            self.parents.push(idx);
        }
    }
}

fn robots(idx: u32, kind: Kind, drawn: Robots) -> Robots {
    match kind {
        _ if idx == 0 => Robots::NotPrivate,
        // Their paths do not start with the disallowed directory, so nothing may appear disallowed.
        Kind::PathCrumb | Kind::Dust => Robots::AllowAll,
        Kind::Folder => drawn,
        Kind::Topic => Robots::AllowAll,
        _ if kind.has_any_robots() => drawn,
        _ => Robots::NotPrivate,
    }
}

fn page_count(pages: PageCount, kind: Kind, random: &mut Random) -> u32 {
    let n_pages = match pages {
        PageCount::Fixed(n) => n,
        PageCount::Pareto { least, alpha, most } => {
            (random.pareto(f64::from(least), alpha.max(0.1)) as u32).min(most)
        }
    };
    match kind.has_pages() {
        true => n_pages.max(1),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_distinct_and_come_back() {
        for idx in [0, 1, 249, 250, 62_499, 62_500, (1 << 20) - 1] {
            assert_eq!(address_idx(address(idx)), Some(idx));
            assert!(address(idx).is_loopback());
        }
        assert_eq!(address_idx(Ipv4Addr::LOCALHOST), None);
        assert_eq!(address_idx(REFUSING), None);
    }

    #[test]
    fn every_kind_comes_as_often_as_its_weight() {
        let config = Config {
            n_hosts: 830,
            ..Config::default()
        };
        let total: u32 = Kind::EVERY.iter().map(|&(_, weight)| weight).sum();
        assert_eq!(830 % total, 0);
        let hosts = table(&config);
        for (kind, weight) in Kind::EVERY {
            let count = hosts.iter().filter(|host| host.kind == kind).count() as u32;
            // The first host is plain, whatever the random choice.
            assert!(
                count.abs_diff(weight * 830 / total) <= 1,
                "{kind:?} {count}"
            );
        }
    }

    #[test]
    fn every_host_has_one_parent() {
        let hosts = table(&Config::default());
        let mut found: Vec<u32> = hosts
            .iter()
            .flat_map(|host| host.children.clone())
            .collect();
        found.sort_unstable();
        assert_eq!(found, (1..hosts.len() as u32).collect::<Vec<_>>());
    }
}
