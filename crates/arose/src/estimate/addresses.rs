//! Random IP addresses: estimates the number of servers by probing IP addresses.
//!
//! *Question.* How many web servers are there, whether or not a search engine includes them, and
//! how many pages do they have?
//!
//! *Idea.* There are few enough 32-bit addresses to sample. Of `n` sampled uniformly from a pool of
//! `M`, `h` respond, so there are about `M h / n` live addresses ([`live_addresses`]). A host with
//! K addresses is hit K times as often, so its hits count 1/K each ([`servers`]). The number of
//! pages is the number of servers times the public share times the pages per server, from servers
//! chosen at random and crawled completely ([`pages`]). A few servers have most pages, so the share
//! of the largest is also reported.
//!
//! *Papers.* O'Neill et al. 1997; Lawrence & Giles 1999: 3.6 million tests, 1 in 269 responded, so
//! 16.0 million servers; 2.8 million public ones at 289 pages made 800 million pages.
//!
//! *Parameters.* The size of the pool: for the web, 2^32 minus the blocks that no public server can
//! have. *Cost.* None. *Error.* `sqrt((1-p)/(p n))` of the count. *Not for* 128-bit addresses,
//! among which no sample ever hits. Nothing here samples real addresses or opens a connection: the
//! address space is simulated ([`crate::estimate::simulate`]).

use crate::Error;
use crate::estimate::bootstrap::Bootstrap;
use crate::estimate::{Estimate, Factor, Method, Note, mean, mean_drawn, product};
use crate::judgement::{Interval, Z_95, wilson};

/// The IP addresses that were probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probes {
    /// The size of the pool.
    pub n_pool: u64,
    /// The number of IP addresses drawn from the pool, with replacement.
    pub n_drawn: u64,
}

/// A live address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LiveAddress {
    /// The number of IP addresses of its host, at least one.
    pub n_addresses: u64,
    /// The number of hosts known to share this IP address, at least one.
    pub n_hosts: u64,
}

/// Returns the number of IP addresses that respond, from `n_hits` hits among those drawn: an upper
/// bound on the number of servers.
///
/// # Errors
///
/// Returns an error if the pool is empty, nothing was drawn, or there are more hits than draws.
///
/// ```
/// use arose::estimate::addresses::{Probes, live_addresses};
/// let probes = Probes { n_pool: 1 << 32, n_drawn: 269 * 13_383 };
/// let estimate = live_addresses(probes, 13_383)?;
/// assert_eq!((estimate.value / 1e4).round(), 1597.0);
/// # Ok::<(), arose::Error>(())
/// ```
pub fn live_addresses(probes: Probes, n_hits: u64) -> Result<Estimate, Error> {
    let factor = live(probes, n_hits)?;
    let estimate = Estimate::new(Method::Addresses, factor.value, probes.n_drawn)?;
    Ok(estimate.with_interval(factor.interval))
}

/// Returns the number of servers. Each hit counts one over the number of IP addresses of its host.
///
/// If an IP address serves several hosts, the known ones count, and the estimate is a lower bound.
///
/// # Errors
///
/// Returns an error if the pool is empty, nothing was drawn, there are more hits than draws, or a
/// hit has no address or host.
pub fn servers(probes: Probes, hits: &[LiveAddress]) -> Result<Estimate, Error> {
    let plain = live(probes, hits.len() as u64)?;
    if hits
        .iter()
        .any(|hit| hit.n_addresses == 0 || hit.n_hosts == 0)
    {
        let reason = "a hit has no address or no host";
        return Err(Error::no_estimate(
            Method::WeightedAddresses.quantity(),
            reason,
        ));
    }
    let weight = |hit: &LiveAddress| hit.n_hosts as f64 / hit.n_addresses as f64;
    let sum: f64 = hits.iter().map(weight).sum();
    let squares: f64 = hits.iter().map(|hit| weight(hit).powi(2)).sum();
    let n = probes.n_drawn as f64;
    let value = probes.n_pool as f64 * sum / n;
    let interval = if hits.is_empty() {
        plain.interval
    } else {
        // The variance of a mean of n weights, most of them zero.
        let variance = (squares - sum * sum / n).max(0.0);
        let stretch = (Z_95 * variance.sqrt() / sum).exp();
        Interval {
            low: value / stretch,
            high: value * stretch,
        }
    };
    let is_shared = hits.iter().any(|hit| hit.n_hosts > 1);
    Ok(
        Estimate::new(Method::WeightedAddresses, value, probes.n_drawn)?
            .with_interval(interval)
            .with_notes(is_shared.then_some(Note::LowerBound)),
    )
}

/// Pages on public servers.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerPages {
    /// The number of pages.
    pub estimate: Estimate,
    /// The share of the largest crawled server in the pages of all crawled servers.
    pub largest_share: f64,
}

/// The numbers of examined and of public servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Public {
    /// Servers examined.
    pub n_examined: u64,
    /// Those of them open to the public.
    pub n_public: u64,
}

/// Returns the number of pages of all public servers, from the servers found, the public share of
/// those examined, and the pages of some public servers that were crawled completely.
///
/// # Errors
///
/// Returns an error if the number of servers has no interval, if none is public, if none was
/// crawled, or if the crawled servers have no pages.
pub fn pages(
    servers: &Estimate,
    public: Public,
    pages_per_server: &[u64],
    bootstrap: &Bootstrap,
) -> Result<ServerPages, Error> {
    let no = |reason: &str| Error::no_estimate(Method::ServerPages.quantity(), reason);
    let counts: Vec<f64> = pages_per_server.iter().map(|&n| n as f64).collect();
    let total: f64 = counts.iter().sum();
    if total <= 0.0 {
        return Err(no("the crawled servers have no page"));
    }
    if public.n_public == 0 || public.n_public > public.n_examined {
        return Err(no(
            "the number of public servers is not from 1 to the number examined",
        ));
    }
    let interval = servers
        .interval
        .ok_or_else(|| no("the servers have no interval"))?;
    if servers.value <= 0.0 {
        return Err(no("no server was found"));
    }
    let found = Factor {
        value: servers.value,
        interval,
    };
    let share = Factor {
        value: public.n_public as f64 / public.n_examined as f64,
        interval: wilson(public.n_public, public.n_examined, Z_95),
    };
    let spread = bootstrap.interval(counts.len(), |times| mean_drawn(&counts, times))?;
    let per_server = spread.map(|interval| Factor {
        value: mean(&counts),
        interval,
    });
    let value = found.value * share.value * mean(&counts);
    let interval = per_server.map(|pages| product(&[found, share, pages]).interval);
    let estimate = Estimate::new(Method::ServerPages, value, counts.len() as u64)?
        .with_bootstrap(interval, bootstrap.seed)
        .with_notes(servers.notes.iter().copied());
    let largest = counts.iter().copied().fold(0.0, f64::max);
    Ok(ServerPages {
        estimate,
        largest_share: largest / total,
    })
}

/// Returns the pool times the share of hits, with Wilson's interval.
fn live(probes: Probes, n_hits: u64) -> Result<Factor, Error> {
    let Probes { n_pool, n_drawn } = probes;
    if n_pool == 0 || n_drawn == 0 || n_hits > n_drawn {
        let reason = format!("{n_hits} of {n_drawn} addresses out of {n_pool} responded");
        return Err(Error::no_estimate(Method::Addresses.quantity(), reason));
    }
    let share = wilson(n_hits, n_drawn, Z_95);
    let pool = n_pool as f64;
    Ok(Factor {
        value: pool * n_hits as f64 / n_drawn as f64,
        interval: Interval {
            low: pool * share.low,
            high: pool * share.high,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: LiveAddress = LiveAddress {
        n_addresses: 1,
        n_hosts: 1,
    };

    /// 2^32 / 269 = 15.97 million servers; 2.8 million public ones at 289 pages are 809 million.
    #[test]
    fn published_figures() {
        let probes = Probes {
            n_pool: 1 << 32,
            n_drawn: 269 * 13_383,
        };
        let servers = live_addresses(probes, 13_383).unwrap();
        assert_eq!((servers.value / 1e4).round(), 1597.0);
        let public = Public {
            n_examined: 1597,
            n_public: 280,
        };
        let pages = pages(&servers, public, &[288, 290, 289, 289], &Bootstrap::new(1)).unwrap();
        assert_eq!((pages.estimate.value / 1e6).round(), 809.0);
        assert!(pages.estimate.interval.unwrap().contains(809e6));
        assert!((pages.largest_share - 290.0 / 1156.0).abs() < 1e-12);
    }

    #[test]
    fn hosts_on_several_addresses_count_once() {
        let probes = Probes {
            n_pool: 1000,
            n_drawn: 100,
        };
        let four = LiveAddress {
            n_addresses: 4,
            n_hosts: 1,
        };
        let estimate = servers(probes, &[HOME, HOME, four, four]).unwrap();
        assert_eq!((estimate.value, estimate.notes), (25.0, vec![]));
        let shared = LiveAddress {
            n_addresses: 1,
            n_hosts: 3,
        };
        let estimate = servers(probes, &[HOME, shared]).unwrap();
        assert_eq!(
            (estimate.value, estimate.notes),
            (40.0, vec![Note::LowerBound])
        );
    }

    #[test]
    fn bad_data() {
        let probes = Probes {
            n_pool: 1000,
            n_drawn: 100,
        };
        let none = Probes {
            n_drawn: 0,
            ..probes
        };
        assert!(live_addresses(none, 0).is_err());
        let nowhere = Probes {
            n_pool: 0,
            n_drawn: 5,
        };
        assert!(live_addresses(nowhere, 0).is_err());
        assert!(live_addresses(probes, 101).is_err());
        assert!(
            servers(
                probes,
                &[LiveAddress {
                    n_addresses: 0,
                    n_hosts: 1
                }]
            )
            .is_err()
        );
        // Without a hit, the estimate is zero, and the interval extends to about 4 in a thousand.
        let nothing = servers(probes, &[]).unwrap();
        assert_eq!(nothing.value, 0.0);
        assert!(nothing.interval.unwrap().high > 30.0);
        let found = live_addresses(probes, 10).unwrap();
        let public = Public {
            n_examined: 10,
            n_public: 5,
        };
        let bootstrap = Bootstrap::new(1);
        assert!(pages(&nothing, public, &[1, 2], &bootstrap).is_err());
        assert!(pages(&found, public, &[], &bootstrap).is_err());
        assert!(pages(&found, public, &[0, 0], &bootstrap).is_err());
        let closed = Public {
            n_public: 0,
            ..public
        };
        assert!(pages(&found, closed, &[1, 2], &bootstrap).is_err());
    }
}
