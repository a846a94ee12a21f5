//! Errors that prevent the server from starting.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// The reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Other machines could reach the server.
    #[error("other machines can reach {address}; set --token or listen on 127.0.0.1")]
    NeedsToken {
        /// The requested IP address or socket address.
        address: IpAddr,
    },
    /// The address is in use, or not an address of this machine.
    #[error("cannot listen on {address}; choose another with --listen")]
    Listen {
        /// The requested IP address or socket address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The system provides no threads, or a similar failure.
    #[error("cannot serve")]
    Runtime(#[source] io::Error),
    /// The results of a run cannot be read.
    #[error(transparent)]
    Results(#[from] arose_dedup::results::Error),
    /// The ratings cannot be read.
    #[error(transparent)]
    Ratings(#[from] arose_dedup::evaluate::Error),
    /// The index cannot be used.
    #[error(transparent)]
    Search(#[from] arose_search::Error),
}
