//! The stages of a run, in order. Each reads the files of those before it and writes its own.

pub(crate) mod bucket;
pub(crate) mod candidates;
pub(crate) mod checkpoint;
pub(crate) mod cluster;
pub(crate) mod contained;
pub(crate) mod counts;
pub(crate) mod dropped;
pub(crate) mod exact;
pub(crate) mod ids;
pub(crate) mod kept;
pub(crate) mod keys;
pub(crate) mod known;
pub(crate) mod listing;
pub(crate) mod quality;
pub(crate) mod rank;
pub(crate) mod read;
pub(crate) mod repair;
pub(crate) mod room;
pub(crate) mod site_texts;
pub(crate) mod sites;
pub(crate) mod tables;
pub(crate) mod update;
pub(crate) mod urls;
pub(crate) mod verdict;
pub(crate) mod verify;
pub(crate) mod versions;
