//! Connections: the interface between the crawler and the network.
//!
//! [`Connect`] opens a byte stream to an IP address. [`Tcp`] is the real implementation, and the
//! only place where IP addresses are refused: before connecting, and again by the IP address that
//! the system reports for the connection. Tests use a simulated web instead.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::address::is_public;

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// The future that a trait method returns.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Opens connections.
pub trait Connect {
    /// Connects to an IP address.
    fn connect(&self, address: SocketAddr) -> Waiting<'_, io::Result<Box<dyn Stream>>>;
}

/// Connections over TCP.
#[derive(Debug, Clone, Copy)]
pub struct Tcp {
    /// The IP addresses that may be contacted.
    pub addresses: Allowed,
}

/// Which IP addresses may be contacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// Public IP addresses.
    Public,
    /// Only loopback, for crawlers without a contact.
    Loopback,
    /// All IP addresses.
    All,
    /// No IP addresses.
    None,
}

impl Allowed {
    /// Whether the IP address may be contacted.
    #[must_use]
    pub fn allow(self, address: SocketAddr) -> bool {
        match self {
            Self::Public => is_public(address.ip()),
            Self::Loopback => address.ip().to_canonical().is_loopback(),
            Self::All => true,
            Self::None => false,
        }
    }

    fn check(self, address: SocketAddr) -> io::Result<()> {
        match self.allow(address) {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
        }
    }
}

impl Connect for Tcp {
    fn connect(&self, address: SocketAddr) -> Waiting<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            self.addresses.check(address)?;
            let stream = TcpStream::connect(address).await?;
            self.addresses.check(stream.peer_addr()?)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is sent to an IP address that is not allowed; the test needs no listener there.
    #[test]
    fn private_addresses_are_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let kind = |addresses, address: &str| {
            let connected = runtime.as_ref().unwrap().block_on(async {
                let connector = Tcp { addresses };
                connector
                    .connect(address.parse().unwrap())
                    .await
                    .map(|_| ())
            });
            connected.unwrap_err().kind()
        };
        for address in [
            "127.0.0.1:1",
            "10.0.0.1:80",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert_eq!(
                kind(Allowed::Public, address),
                io::ErrorKind::PermissionDenied
            );
        }
        assert_eq!(
            kind(Allowed::Loopback, "10.0.0.1:80"),
            io::ErrorKind::PermissionDenied
        );
        assert_eq!(
            kind(Allowed::Loopback, "127.0.0.1:1"),
            io::ErrorKind::ConnectionRefused
        );
    }
}
