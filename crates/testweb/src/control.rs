//! Control: changes the web while it is served.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The state of a running web.
#[derive(Debug, Default)]
pub struct Control {
    version: AtomicU64,
    names: AtomicU8,
    /// Hosts that have moved, with their current IP address. The lock is held only for a lookup.
    moved: Mutex<BTreeMap<u32, Ipv4Addr>>,
}

/// The state of the DNS server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Names {
    /// Responds normally.
    Fine = 0,
    /// Fails for every host name.
    Failing = 1,
    /// Does not respond.
    Silent = 2,
}

impl Control {
    /// Sets the current version of [changing](crate::Kind::Changing) pages.
    pub fn set_version(&self, version: u64) {
        self.version.store(version, Ordering::Relaxed);
    }

    /// The current version of changing pages, initially 0.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Breaks or repairs the DNS server.
    pub fn set_names(&self, names: Names) {
        self.names.store(names as u8, Ordering::Relaxed);
    }

    /// The state of the DNS server.
    #[must_use]
    pub fn names(&self) -> Names {
        match self.names.load(Ordering::Relaxed) {
            0 => Names::Fine,
            1 => Names::Failing,
            _ => Names::Silent,
        }
    }

    /// Gives a host another IP address. Every host is served at every IP address of the web, so the
    /// move takes effect immediately. Clients notice it at their next DNS lookup.
    pub fn move_host(&self, host: u32, address: Ipv4Addr) {
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        moved.insert(host, address);
    }

    pub(crate) fn address(&self, host: u32, first: Ipv4Addr) -> Ipv4Addr {
        let moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        moved.get(&host).copied().unwrap_or(first)
    }
}
