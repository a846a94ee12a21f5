//! DNS lookups: the interface between the crawler and the domain name system.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;

use crate::connect::Waiting;

/// Looks up the IP addresses of host names.
pub trait Resolve {
    /// Looks up a host name.
    fn resolve<'a>(&'a self, name: &'a str) -> Waiting<'a, Result<Addresses, NoAddress>>;
}

/// The IP addresses of a host name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// At least one IP address, in order of preference.
    pub addresses: Vec<IpAddr>,
    /// How long the result is valid.
    pub ttl: Duration,
}

/// Why a lookup gave no IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAddress {
    /// There is no such host name, or it has no IP address.
    Unknown,
    /// The lookup failed.
    Failed,
}

/// Lookups by DNS servers.
pub struct DnsServers {
    resolver: TokioResolver,
}

impl std::fmt::Debug for DnsServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DnsServers").finish_non_exhaustive()
    }
}

impl DnsServers {
    /// Uses these servers, or those of the system if there are none.
    ///
    /// # Errors
    ///
    /// If the DNS servers of the system cannot be determined.
    pub fn new(servers: &[SocketAddr]) -> Result<Self, std::io::Error> {
        let builder = if servers.is_empty() {
            TokioResolver::builder_tokio().map_err(std::io::Error::other)?
        } else {
            let servers = servers.iter().map(dns_server).collect();
            let config = ResolverConfig::from_parts(None, Vec::new(), servers);
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        let mut builder = builder;
        set_options(builder.options_mut());
        let resolver = builder.build().map_err(std::io::Error::other)?;
        Ok(Self { resolver })
    }
}

fn dns_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    let at_port = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    server.connections = server.connections.drain(..).map(at_port).collect();
    server
}

/// Disables the cache, because [`crate::names`] keeps results longer.
fn set_options(options: &mut ResolverOpts) {
    options.cache_size = 0;
    options.timeout = Duration::from_secs(3);
    options.attempts = 1;
    options.ndots = 0;
}

impl Resolve for DnsServers {
    fn resolve<'a>(&'a self, name: &'a str) -> Waiting<'a, Result<Addresses, NoAddress>> {
        Box::pin(async move {
            // With a final dot, a host name is looked up as it is and not within the system's
            // domain.
            let absolute = format!("{name}.");
            let v4 = addresses(self.resolver.ipv4_lookup(absolute.clone()).await);
            if v4.is_ok() {
                return v4;
            }
            let v6 = addresses(self.resolver.ipv6_lookup(absolute).await);
            // A host name does not exist only if both lookups say so.
            match (v4, v6) {
                (_, Ok(found)) => Ok(found),
                (Err(NoAddress::Unknown), Err(NoAddress::Unknown)) => Err(NoAddress::Unknown),
                _ => Err(NoAddress::Failed),
            }
        })
    }
}

fn addresses(found: Result<Lookup, NetError>) -> Result<Addresses, NoAddress> {
    let found = found.map_err(reason)?;
    let answers = found.answers().iter();
    let addresses: Vec<IpAddr> = answers.filter_map(|record| record.data.ip_addr()).collect();
    let ttl = found
        .valid_until()
        .saturating_duration_since(Instant::now());
    match addresses.is_empty() {
        true => Err(NoAddress::Unknown),
        false => Ok(Addresses { addresses, ttl }),
    }
}

fn reason(error: NetError) -> NoAddress {
    match error.is_nx_domain() || error.is_no_records_found() {
        true => NoAddress::Unknown,
        false => NoAddress::Failed,
    }
}
/// Finds no host names.
#[derive(Debug, Clone, Copy)]
pub struct NoNames;

impl Resolve for NoNames {
    fn resolve<'a>(&'a self, _: &'a str) -> Waiting<'a, Result<Addresses, NoAddress>> {
        Box::pin(async { Err(NoAddress::Unknown) })
    }
}
