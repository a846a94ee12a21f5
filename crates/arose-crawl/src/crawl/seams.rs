//! Interfaces of a crawl to the outside: network, DNS, clock, order of URLs, ownership of hosts.

use std::rc::Rc;
use std::time::Duration;

use crate::connect::{Allowed, Connect, Tcp};
use crate::error::Error;
use crate::resolve::{DnsServers, NoNames, Resolve};
use crate::settings::Settings;
use crate::url::NormalUrl;

/// Returns a number for a URL and its depth. The smallest go first if the order is
/// [`settings::Order::Breadth`](crate::settings::Order::Breadth).
pub type Priority = dyn Fn(&NormalUrl, u32) -> u32;

/// The interfaces of a crawl to the outside.
pub struct Seams {
    /// Opens connections.
    pub connector: Rc<dyn Connect>,
    /// Looks up IP addresses.
    pub resolver: Rc<dyn Resolve>,
    /// Returns the time since the beginning of 1970. It may jump; it is used only for dates and
    /// times of day.
    pub clock: Box<dyn Fn() -> Duration>,
    /// Orders URLs by their depth, if the settings require breadth-first order. The smallest go
    /// first.
    pub priority: Box<Priority>,
    /// Whether the host of a URL belongs to this crawler.
    pub is_ours: Box<dyn Fn(&NormalUrl) -> bool>,
}

impl std::fmt::Debug for Seams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seams").finish_non_exhaustive()
    }
}

impl Seams {
    /// Connects to the real world: TCP, DNS servers, the system clock, breadth first, all hosts.
    ///
    /// # Errors
    ///
    /// If the settings have no contact and would lead beyond loopback, or if there are no DNS
    /// servers.
    pub fn real(settings: &Settings) -> Result<Self, Error> {
        let addresses = match (
            settings.network.allow_private,
            settings.agent.contact.as_str(),
        ) {
            (true, "") => Allowed::Loopback,
            (true, _) => Allowed::All,
            (false, "") => return Err(Error::Settings(NO_CONTACT.to_owned())),
            (false, _) => Allowed::Public,
        };
        let names = DnsServers::new(&settings.network.dns_servers);
        let names = names.map_err(|error| Error::Settings(format!("no DNS servers: {error}")))?;
        Ok(Self {
            connector: Rc::new(Tcp { addresses }),
            resolver: Rc::new(names),
            ..Self::local()
        })
    }

    /// Uses only this machine: no network, no DNS, the system clock. For crawls of local files.
    #[must_use]
    pub fn local() -> Self {
        Self {
            connector: Rc::new(Tcp {
                addresses: Allowed::None,
            }),
            resolver: Rc::new(NoNames),
            clock: Box::new(|| {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                since.unwrap_or_default()
            }),
            priority: Box::new(|_, depth| depth),
            is_ours: Box::new(|_| true),
        }
    }
}

const NO_CONTACT: &str = "no contact for site owners; set --contact or agent.contact (loopback \
    needs none, only --allow-private or network.allow_private)";
