//! The settings of a web as arguments. All commands about one web need the same ones.

use std::path::PathBuf;

use clap::ValueEnum;
use testweb::{Config, Error, Folder, PageCount};

#[derive(clap::Args)]
pub(crate) struct WebOptions {
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of synthetic hosts
    #[arg(long, default_value_t = 100)]
    hosts: u32,
    /// Number of IP addresses that the hosts share [default: number of hosts]
    #[arg(long, value_name = "N")]
    addresses: Option<u32>,
    /// Pages per host [default: a power law, or 50 on plain hosts]
    #[arg(long, value_name = "N")]
    pages: Option<u32>,
    /// Kinds of hosts
    #[arg(long, value_enum, default_value_t = Mixture::Every)]
    mixture: Mixture,
    /// Send no validators, so that no page is known to be unchanged before it is read
    #[arg(long)]
    no_validators: bool,
    /// Port of every host; 0 selects a free port
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Serve each subdirectory of this directory as a host
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Serve the installed documentation of Debian packages, one host each
    #[arg(long, value_name = "PACKAGE", value_delimiter = ',')]
    docs: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mixture {
    /// Every kind of host and every fault
    Every,
    /// Hosts without faults
    Plain,
}

impl WebOptions {
    pub(crate) fn config(&self) -> Result<Config, Error> {
        let mut config = match self.mixture {
            Mixture::Every => Config::default(),
            Mixture::Plain => Config::plain(self.hosts),
        };
        config.seed = self.seed;
        config.n_hosts = self.hosts;
        config.n_addresses = self.addresses.unwrap_or(self.hosts);
        config.port = self.port;
        config.validators = !self.no_validators;
        if let Some(n_pages) = self.pages {
            config.pages = PageCount::Fixed(n_pages);
        }
        if let Some(folder) = &self.folder {
            config.folders = Folder::below(folder)?;
        }
        config.folders.extend(Folder::debian(&self.docs)?);
        Ok(config)
    }
}
