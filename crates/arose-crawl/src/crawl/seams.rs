//! What a crawl is given of the world outside: network, names, clock, order, owners.

use std::rc::Rc;
use std::time::Duration;

use crate::connect::{Allowed, Connect, Tcp};
use crate::error::Error;
use crate::resolve::{NameServers, NoNames, Resolve};
use crate::settings::Settings;
use crate::url::NormalUrl;

/// A number for a URL and its depth; the smallest go first where the order is
/// [`settings::Order::Breadth`](crate::settings::Order::Breadth).
pub type Priority = dyn Fn(&NormalUrl, u32) -> u32;

/// What a crawl is given of the world outside.
pub struct Seams {
    /// Makes connections.
    pub connector: Rc<dyn Connect>,
    /// Finds addresses.
    pub resolver: Rc<dyn Resolve>,
    /// Tells the time since the beginning of 1970. May jump; nothing but dates and hours of the
    /// day is taken from it.
    pub clock: Box<dyn Fn() -> Duration>,
    /// Orders URLs by their depth, where the settings ask for an order by breadth; the smallest go
    /// first.
    pub priority: Box<Priority>,
    /// Whether the host of a URL is this crawler's.
    pub is_ours: Box<dyn Fn(&NormalUrl) -> bool>,
}

impl std::fmt::Debug for Seams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seams").finish_non_exhaustive()
    }
}

impl Seams {
    /// The real world: TCP, name servers, the system's clock, breadth first, all hosts.
    ///
    /// # Errors
    ///
    /// If the settings name no contact and would lead beyond loopback, or there are no name
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
        let names = NameServers::new(&settings.network.name_servers);
        let names = names.map_err(|error| Error::Settings(format!("no name servers: {error}")))?;
        Ok(Self {
            connector: Rc::new(Tcp { addresses }),
            resolver: Rc::new(names),
            ..Self::local()
        })
    }

    /// This machine alone: no network, no names, the system's clock. For crawls of local files.
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

const NO_CONTACT: &str = "name a contact that the owners of sites can write to (agent.contact or \
    --contact): without one nothing but loopback is crawled, and that only with \
    network.allow_private or --allow-private";
