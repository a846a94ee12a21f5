//! The settings of a web as arguments. The commands that talk about one web must be given the same.

use std::path::PathBuf;

use clap::ValueEnum;
use testweb::{Config, Error, Folder, PageCount};

#[derive(clap::Args)]
pub(crate) struct WebOptions {
    /// Selects everything that is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Synthetic hosts.
    #[arg(long, default_value_t = 100)]
    hosts: u32,
    /// Addresses that the hosts share; as many as hosts if not given.
    #[arg(long, value_name = "N")]
    addresses: Option<u32>,
    /// Pages on every host; a power law if not given, or 50 on plain hosts.
    #[arg(long, value_name = "N")]
    pages: Option<u32>,
    /// Which hosts there are.
    #[arg(long, value_enum, default_value_t = Mixture::Every)]
    mixture: Mixture,
    /// Port of every host; 0 for one that is free.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Serves each folder below this one as a host.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Serves the installed documentation of Debian packages, a host each.
    #[arg(long, value_name = "PACKAGE", value_delimiter = ',')]
    docs: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mixture {
    /// Every kind of host and every trouble.
    Every,
    /// Hosts without trouble.
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
