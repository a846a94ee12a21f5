//! Control: what can be changed while the web is served.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The state of a running web.
#[derive(Debug, Default)]
pub struct Control {
    version: AtomicU64,
    names: AtomicU8,
    /// Hosts that have moved, with where they are now. The lock is held for a look-up only.
    moved: Mutex<BTreeMap<u32, Ipv4Addr>>,
}

/// How the name server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Names {
    /// Answers.
    Fine = 0,
    /// Fails for every name.
    Failing = 1,
    /// Does not answer.
    Silent = 2,
}

impl Control {
    /// Sets the step that [changing](crate::Kind::Changing) pages have come to.
    pub fn set_version(&self, version: u64) {
        self.version.store(version, Ordering::Relaxed);
    }

    /// The step that changing pages have come to, 0 at first.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Breaks or mends the name server.
    pub fn set_names(&self, names: Names) {
        self.names.store(names as u8, Ordering::Relaxed);
    }

    /// How the name server does.
    #[must_use]
    pub fn names(&self) -> Names {
        match self.names.load(Ordering::Relaxed) {
            0 => Names::Fine,
            1 => Names::Failing,
            _ => Names::Silent,
        }
    }

    /// Gives a host another address. Every host is served at every address of the web, so it is
    /// there at once; that its name leads there is known when a resolver asks next.
    pub fn move_host(&self, host: u32, address: Ipv4Addr) {
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        moved.insert(host, address);
    }

    pub(crate) fn address(&self, host: u32, first: Ipv4Addr) -> Ipv4Addr {
        let moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        moved.get(&host).copied().unwrap_or(first)
    }
}
