//! Random addresses, in a simulated space only.
//!
//! *Question.* How many servers are there, if one knocks at random doors? Scanning a real network
//! is nobody's business here; a synthetic space shows how good the method is, and what hosts with
//! several addresses do to it.
//!
//! *Paper.* O'Neill et al. 1997; Lawrence & Giles 1999. The formulas:
//! [`arose::estimate::addresses`].

use arose::estimate::Method;
use arose::estimate::addresses::{Hit, Probes, live_addresses, servers};
use arose::estimate::simulate::{AddressConfig, AddressSpace};
use arose::mix::{SplitMix, mix};

use super::{Figure, Findings};
use crate::Error;

/// Knocks at `n_probes` random addresses of a synthetic space.
///
/// # Errors
///
/// When the space is larger than 2^24 or too small for its hosts.
pub fn run(config: &AddressConfig, n_probes: u64) -> Result<Findings, Error> {
    let space = AddressSpace::new(config)?;
    let mut random = SplitMix::new(mix(config.seed ^ 0xADD2));
    let hits: Vec<Hit> = (0..n_probes)
        .filter_map(|_| space.probe(random.below(space.size()) as usize))
        .collect();
    let probes = Probes {
        n_pool: space.size(),
        n_drawn: n_probes,
    };
    let mut findings = Findings::new(
        "addresses",
        "servers of a simulated address space",
        config.seed,
    );
    let live = live_addresses(probes, hits.len() as u64);
    let live = Figure::of("live addresses", Method::Addresses, &live);
    let hosts = servers(probes, &hits);
    let hosts = Figure::of("servers", Method::WeightedAddresses, &hosts);
    findings.figures = vec![
        hosts.with_truth(config.n_hosts as f64),
        live.with_truth(space.n_live() as f64),
    ];
    Ok(findings.with_biases())
}
