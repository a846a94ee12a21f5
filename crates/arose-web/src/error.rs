//! Why the server cannot start.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Others could reach the server.
    #[error("other machines can reach {address}; set --token or listen on 127.0.0.1")]
    NeedsToken {
        /// The address asked for.
        address: IpAddr,
    },
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}; choose another with --listen")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The system gives no threads, or the like.
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
