//! A small IP address space with hosts at some IP addresses.

use super::{check_share, choose_distinct, normal_deviate};
use crate::Error;
use crate::mix::{SplitMix, mix};

/// The distribution of hosts in the space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AddressConfig {
    /// The number of IP addresses is 2 to the power of this, at most 2^24.
    pub n_bits: u32,
    /// Number of hosts.
    pub n_hosts: usize,
    /// The share of hosts with 2, 4 or 8 addresses instead of one.
    pub several: f64,
    /// The share of hosts that are open to the public.
    pub public: f64,
    /// The seed of everything.
    pub seed: u64,
}

impl Default for AddressConfig {
    /// 4,000 hosts in a space of 2^20, a tenth of them on several IP addresses.
    fn default() -> Self {
        Self {
            n_bits: 20,
            n_hosts: 4000,
            several: 0.1,
            public: 0.2,
            seed: 1,
        }
    }
}

/// The median of the pages per host.
const MEDIAN_PAGES: f64 = 50.0;

/// The standard deviation of their logarithm: a few hosts have most pages.
const SPREAD: f64 = 1.5;

/// A host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// The number of its IP addresses.
    pub n_addresses: u64,
    /// Whether it is open to the public.
    pub is_public: bool,
    /// The number of its pages.
    pub n_pages: u64,
}

/// IP addresses, some of which respond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressSpace {
    /// The host at each IP address, counted from one; zero if there is none.
    places: Vec<u32>,
    hosts: Vec<Host>,
}

impl AddressSpace {
    /// Places the hosts.
    ///
    /// # Errors
    ///
    /// Returns an error if the space is larger than 2^24, a share is not in `0..=1`, or the hosts
    /// do not fit.
    ///
    /// ```
    /// use arose::estimate::simulate::{AddressConfig, AddressSpace};
    /// let space = AddressSpace::new(&AddressConfig::default())?;
    /// assert!((5200..5700).contains(&space.n_live()));
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn new(config: &AddressConfig) -> Result<Self, Error> {
        check_share("several", config.several)?;
        check_share("public", config.public)?;
        if config.n_bits > 24 {
            return Err(Error::parameter("n_bits", config.n_bits, "0..=24"));
        }
        let size = 1_usize << config.n_bits;
        let mut random = SplitMix::new(config.seed);
        let mut sizes: Vec<u8> = Vec::new();
        for _ in 0..config.n_hosts.min(size) {
            let has_several = random.next_f64() < config.several;
            sizes.push(if has_several { 2 << random.below(3) } else { 1 });
        }
        let n_live: usize = sizes.iter().map(|&n| usize::from(n)).sum();
        if config.n_hosts > size || n_live > size {
            return Err(Error::parameter(
                "n_hosts",
                config.n_hosts,
                "few enough for the space",
            ));
        }
        let mut places = vec![0; size];
        let inhabitants = (1..).zip(&sizes);
        let inhabitants =
            inhabitants.flat_map(|(host, &n)| std::iter::repeat_n(host, usize::from(n)));
        for (place, host) in choose_distinct(size, n_live, &mut random)
            .into_iter()
            .zip(inhabitants)
        {
            places[place] = host;
        }
        let mut random = SplitMix::new(mix(config.seed ^ 0x9A6E5));
        let hosts = sizes.iter().map(|&n| Host {
            n_addresses: u64::from(n),
            is_public: random.next_f64() < config.public,
            n_pages: (MEDIAN_PAGES * (SPREAD * normal_deviate(&mut random)).exp()).ceil() as u64,
        });
        Ok(Self {
            hosts: hosts.collect(),
            places,
        })
    }

    /// Returns the number of IP addresses.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.places.len() as u64
    }

    /// Returns the number of IP addresses that respond: the ground truth.
    #[must_use]
    pub fn n_live(&self) -> usize {
        self.places.iter().filter(|&&host| host > 0).count()
    }

    /// Returns the number of pages on public hosts: the ground truth.
    #[must_use]
    pub fn n_public_pages(&self) -> u64 {
        let public = self.hosts.iter().filter(|host| host.is_public);
        public.map(|host| host.n_pages).sum()
    }

    /// Probes an address.
    #[must_use]
    pub fn probe(&self, address: usize) -> Option<Host> {
        let host = self.places.get(address).copied()? as usize;
        self.hosts.get(host.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_their_addresses() {
        let config = AddressConfig {
            several: 0.5,
            ..AddressConfig::default()
        };
        let space = AddressSpace::new(&config).unwrap();
        assert_eq!(space.size(), 1 << 20);
        let hits: Vec<Host> = (0..1 << 20)
            .filter_map(|address| space.probe(address))
            .collect();
        assert_eq!(hits.len(), space.n_live());
        let n_hosts: f64 = hits.iter().map(|hit| 1.0 / hit.n_addresses as f64).sum();
        assert!((n_hosts - 4000.0).abs() < 1e-6, "{n_hosts}");
        assert!(
            [1, 2, 4, 8]
                .iter()
                .all(|&n| hits.iter().any(|hit| hit.n_addresses == n))
        );
        assert_eq!(space.probe(1 << 20), None);
        let is_public = |host: &&Host| host.is_public;
        let n_public = hits.iter().filter(is_public).count() as f64 / hits.len() as f64;
        assert!((0.17..0.23).contains(&n_public), "{n_public}");
        let weight = |host: &Host| host.n_pages as f64 / host.n_addresses as f64;
        let n_pages: f64 = hits.iter().filter(is_public).map(weight).sum();
        assert!((n_pages - space.n_public_pages() as f64).abs() < 1e-3);
    }

    #[test]
    fn bad_settings() {
        let good = AddressConfig::default();
        for bad in [
            AddressConfig { n_bits: 25, ..good },
            AddressConfig { n_bits: 11, ..good },
            AddressConfig {
                n_bits: 12,
                several: 1.0,
                ..good
            },
            AddressConfig {
                several: f64::NAN,
                ..good
            },
            AddressConfig {
                public: 1.5,
                ..good
            },
        ] {
            assert!(AddressSpace::new(&bad).is_err(), "{bad:?}");
        }
    }
}
