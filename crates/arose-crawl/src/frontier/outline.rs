//! Properties of hosts that are known without reading them.

use super::Lane;
use super::host::{Host, Stage};

/// The lost URLs and those put aside at a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) is_lost: bool,
    pub(super) n_lost: u64,
    pub(super) n_aside: u64,
}

impl Trouble {
    pub(super) fn of(host: &Host) -> Self {
        Self {
            is_lost: host.is_lost,
            n_lost: host.n_lost(),
            n_aside: host.aside.len() as u64,
        }
    }
}

/// Properties of a host that are known without reading it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outline {
    /// Whether anything is queued there.
    pub(super) has_work: bool,
    /// Whether a robots.txt is to be fetched there.
    pub(super) has_jobs: bool,
    /// Whether all its queued URLs go last.
    pub(super) goes_last: bool,
    pub(super) is_parked: bool,
    /// Whether it waits in the spare lane.
    pub(super) is_spare: bool,
}

impl Outline {
    pub(super) fn of(host: &Host) -> Self {
        Self {
            has_work: host.has_work() || host.sleeps(),
            has_jobs: !host.jobs.is_empty(),
            goes_last: host.goes_last(),
            is_parked: host.stage == Stage::Parked,
            is_spare: host.stage == Stage::Bench && host.lane == Lane::Spare,
        }
    }

    /// Encodes the outline in one byte, because there are ten million of them.
    pub(super) fn to_bits(self) -> u8 {
        let flags = [
            self.has_work,
            self.has_jobs,
            self.goes_last,
            self.is_parked,
            self.is_spare,
        ];
        flags
            .iter()
            .fold(0, |bits, &flag| bits << 1 | u8::from(flag))
    }

    pub(super) fn from_bits(bits: u8) -> Self {
        let flag = |at: u32| bits >> at & 1 == 1;
        Self {
            has_work: flag(4),
            has_jobs: flag(3),
            goes_last: flag(2),
            is_parked: flag(1),
            is_spare: flag(0),
        }
    }
}
