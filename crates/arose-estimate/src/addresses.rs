//! Estimates the number of servers from random IP addresses, in a simulated address space only.
//!
//! *Question.* How many servers are there, and how many pages do they have, if random IP addresses
//! are probed? Scanning a real network is out of scope. A synthetic space shows the accuracy of the
//! method and the effect of hosts with several IP addresses.
//!
//! *Idea.* Every sampled IP address shows whether a server responds. A server with K addresses is
//! hit K times as often, so each hit counts one over K. For pages, the hits are thinned in the same
//! way, so that servers are about equally likely. The pages of some public servers are counted in
//! full.
//!
//! *Paper.* O'Neill et al. 1997; Lawrence & Giles 1999. The formulas are in
//! [`arose::estimate::addresses`].

use arose::estimate::addresses::{LiveAddress, Probes, Public, live_addresses, pages, servers};
use arose::estimate::bootstrap::Bootstrap;
use arose::estimate::simulate::{AddressConfig, AddressSpace, Host};
use arose::estimate::{Estimate, Method};
use arose::mix::{SplitMix, mix};

use super::{Figure, Findings};
use crate::Error;

/// Probes `n_probes` random IP addresses of a synthetic space, and counts the pages of `n_crawled`
/// public servers.
///
/// # Errors
///
/// If the space is larger than 2^24 or too small for its hosts.
pub fn run(config: &AddressConfig, n_probes: u64, n_crawled: usize) -> Result<Findings, Error> {
    let space = AddressSpace::new(config)?;
    let mut random = SplitMix::new(mix(config.seed ^ 0xADD2));
    let found: Vec<Host> = (0..n_probes)
        .filter_map(|_| space.probe(random.below(space.size()) as usize))
        .collect();
    let hits = found.iter().map(|host| LiveAddress {
        n_addresses: host.n_addresses,
        n_hosts: 1,
    });
    let hits: Vec<LiveAddress> = hits.collect();
    let probes = Probes {
        n_pool: space.size(),
        n_drawn: n_probes,
    };
    let mut findings = Findings::new(
        "addresses",
        "servers of a simulated address space, and pages on the public servers",
        config.seed,
    );
    let live = live_addresses(probes, hits.len() as u64);
    let live = Figure::of("live addresses", Method::Addresses, &live);
    let hosts = servers(probes, &hits);
    let on_servers = hosts.as_ref().map_or_else(
        |error| Figure::refused("pages", Method::ServerPages, error),
        |hosts| page_figure(hosts, &found, n_crawled, config.seed),
    );
    let hosts = Figure::of("servers", Method::WeightedAddresses, &hosts);
    findings.figures = vec![
        hosts.with_truth(config.n_hosts as f64),
        live.with_truth(space.n_live() as f64),
        on_servers.with_truth(space.n_public_pages() as f64),
    ];
    Ok(findings.with_biases())
}

/// Estimates the pages of all public servers from some of those found.
fn page_figure(servers: &Estimate, found: &[Host], n_crawled: usize, seed: u64) -> Figure {
    let mut random = SplitMix::new(mix(seed ^ 0xC2A1));
    let is_kept = |host: &&Host| random.next_f64() * (host.n_addresses as f64) < 1.0;
    let examined: Vec<&Host> = found.iter().filter(is_kept).collect();
    let public: Vec<u64> = examined
        .iter()
        .filter(|host| host.is_public)
        .map(|host| host.n_pages)
        .collect();
    let shares = Public {
        n_examined: examined.len() as u64,
        n_public: public.len() as u64,
    };
    // Servers were hit in random order, so the first ones are a random sample.
    let crawled = &public[..public.len().min(n_crawled)];
    match pages(servers, shares, crawled, &Bootstrap::new(seed)) {
        Err(error) => Figure::refused("pages", Method::ServerPages, error),
        Ok(estimate) => {
            let mut figure = Figure::new("pages", &estimate.estimate);
            figure.notes.push(format!(
                "the largest of {} crawled servers has {:.0}% of their pages",
                crawled.len(),
                100.0 * estimate.largest_share
            ));
            figure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over 40 different spaces, the intervals of servers contain the true value in at least 90%,
    /// those of pages in at least 80%. The latter are too narrow, because the few largest servers
    /// are rarely crawled.
    #[test]
    fn intervals_hold_the_truth() {
        let mut n_covering = [0; 3];
        for seed in 0..40 {
            let config = AddressConfig {
                seed,
                ..AddressConfig::default()
            };
            let findings = run(&config, 200_000, 200).unwrap();
            for (figure, n) in findings.figures.iter().zip(&mut n_covering) {
                *n += u32::from(figure.covers().unwrap());
            }
        }
        let [servers, live, pages] = n_covering;
        assert!(servers >= 36 && live >= 36, "{n_covering:?}");
        assert!((32..=40).contains(&pages), "{n_covering:?}");
    }

    #[test]
    fn without_public_servers_there_are_no_pages() {
        let config = AddressConfig {
            public: 0.0,
            ..AddressConfig::default()
        };
        let findings = run(&config, 20_000, 200).unwrap();
        let pages = findings.figure("pages").unwrap();
        assert!(pages.refused.is_some(), "{pages:?}");
        assert!(findings.figure("servers").unwrap().value.is_some());
    }
}
