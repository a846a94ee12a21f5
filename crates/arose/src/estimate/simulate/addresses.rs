//! A small space of addresses with hosts at some of them.

use super::{check_share, choose_distinct};
use crate::Error;
use crate::estimate::addresses::Hit;
use crate::mix::SplitMix;

/// How hosts lie in the space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AddressConfig {
    /// There are 2 to this many addresses, up to 2^24.
    pub n_bits: u32,
    /// Hosts.
    pub n_hosts: usize,
    /// The share of hosts with 2, 4 or 8 addresses instead of one.
    pub several: f64,
    /// The seed of everything.
    pub seed: u64,
}

impl Default for AddressConfig {
    /// 4,000 hosts in a space of 2^20, a tenth of them on several addresses.
    fn default() -> Self {
        Self {
            n_bits: 20,
            n_hosts: 4000,
            several: 0.1,
            seed: 1,
        }
    }
}

/// Addresses, some of which answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressSpace {
    /// How many addresses the host here has; zero where nobody lives.
    n_addresses: Vec<u8>,
}

impl AddressSpace {
    /// Settles the hosts.
    ///
    /// # Errors
    ///
    /// When the space is larger than 2^24, the share not in `0..=1`, or the hosts do not fit in.
    ///
    /// ```
    /// use arose::estimate::simulate::{AddressConfig, AddressSpace};
    /// let space = AddressSpace::new(&AddressConfig::default())?;
    /// assert!((5200..5700).contains(&space.n_live()));
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn new(config: &AddressConfig) -> Result<Self, Error> {
        check_share("several", config.several)?;
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
        let mut n_addresses = vec![0; size];
        let inhabitants = sizes
            .iter()
            .flat_map(|&n| std::iter::repeat_n(n, usize::from(n)));
        for (place, n) in choose_distinct(size, n_live, &mut random)
            .into_iter()
            .zip(inhabitants)
        {
            n_addresses[place] = n;
        }
        Ok(Self { n_addresses })
    }

    /// How many addresses there are.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.n_addresses.len() as u64
    }

    /// How many addresses answer: the truth.
    #[must_use]
    pub fn n_live(&self) -> usize {
        self.n_addresses.iter().filter(|&&n| n > 0).count()
    }

    /// Knocks at an address.
    #[must_use]
    pub fn probe(&self, address: usize) -> Option<Hit> {
        let n = self.n_addresses.get(address).copied().unwrap_or(0);
        (n > 0).then(|| Hit {
            n_addresses: u64::from(n),
            n_hosts: 1,
        })
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
        let hits: Vec<Hit> = (0..1 << 20)
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
        ] {
            assert!(AddressSpace::new(&bad).is_err(), "{bad:?}");
        }
    }
}
