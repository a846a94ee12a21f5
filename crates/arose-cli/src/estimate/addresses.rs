//! `arose estimate addresses`: the number of servers in a simulated address space.

use arose::estimate::simulate::AddressConfig;
use arose_estimate::addresses;

use super::shown::show;
use crate::read::Outcome;

/// Estimate the number of servers by probing a simulated address space.
///
/// Sends nothing: the address space is synthetic. It shows the accuracy of the method and the
/// effect of hosts with several IP addresses.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate addresses
  arose estimate addresses --bits 20 --hosts 4000 --several 0.1 --probes 200000")]
pub(crate) struct Options {
    /// Size of the address space in bits, at most 24
    #[arg(long, value_name = "N", default_value_t = 20)]
    bits: u32,
    /// Number of hosts
    #[arg(long, value_name = "N", default_value_t = 4000)]
    hosts: usize,
    /// Share of hosts with 2, 4 or 8 addresses
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    several: f64,
    /// Share of public hosts
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    public: f64,
    /// Number of public servers whose pages are counted
    #[arg(long, value_name = "N", default_value_t = 200)]
    crawled: usize,
    /// Number of addresses to probe
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    probes: u64,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let config = AddressConfig {
        n_bits: options.bits,
        n_hosts: options.hosts,
        several: options.several,
        public: options.public,
        seed: options.seed,
    };
    let findings = addresses::run(&config, options.probes, options.crawled)?;
    show(&[findings], options.json)
}
