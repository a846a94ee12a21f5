//! `arose estimate addresses`: servers, in a simulated address space.

use arose::estimate::simulate::AddressConfig;
use arose_estimate::addresses;

use super::shown::show;
use crate::read::Outcome;

/// Knocks at random addresses of a simulated space and counts servers and their pages.
///
/// Nothing is sent anywhere: the space is synthetic, and shows how good the method is and what
/// hosts with several addresses do to it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate addresses
  arose estimate addresses --bits 20 --hosts 4000 --several 0.1 --probes 200000")]
pub(crate) struct Options {
    /// There are 2 to this many addresses, up to 24.
    #[arg(long, value_name = "N", default_value_t = 20)]
    bits: u32,
    /// Hosts.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    hosts: usize,
    /// The share of hosts with 2, 4 or 8 addresses.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    several: f64,
    /// The share of hosts that are open to the public.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    public: f64,
    /// Number of public servers whose pages are counted.
    #[arg(long, value_name = "N", default_value_t = 200)]
    crawled: usize,
    /// Addresses tried.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    probes: u64,
    /// The seed of all choices.
    #[arg(long, value_name = "K", default_value_t = 1)]
    seed: u64,
    /// Prints one JSON object.
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
