//! A synthetic web on loopback, to test crawlers.
//!
//! A crawler can only be assessed on a web that is completely known. This one is generated from a
//! seed: hosts with their names and IP addresses, pages with their words and links, mirrors and
//! near mirrors, traps, redirects, broken servers, and robots files of every kind. No page is
//! stored. Each is a function of seed, host and path, cheap enough for ten thousand pages per
//! second on one core.
//!
//! - [`Config`] has the settings, [`Web`] is the web itself, without side effects, and [`Server`]
//!   serves it over HTTP at IP addresses in 127.0.0.0/8, with a DNS server over UDP.
//! - [`Control`] changes it while it is served: versions of pages, failures of the DNS server.
//! - [`log::Log`] records all requests with their times; its methods in [`judge`] check whether
//!   they were polite.
//! - [`truth`] has the ground truth: which pages exist, which can be reached, which duplicate
//!   others.
//!
//! ```
//! use testweb::{Config, Server, truth::Visit};
//!
//! let server = Server::start(Config { n_hosts: 5, n_addresses: 2, ..Config::default() })?;
//! let home = server.web.url(testweb::PageId { host: 0, page: 0 });
//! println!("crawl {home}, asking {} for names", server.dns);
//! let visit = Visit { seeds: vec![home], max_redirects: 5, minute: None };
//! println!("{} pages are there to find", server.web.reachable(&visit).len());
//! # Ok::<(), testweb::Error>(())
//! ```
//!
//! Not for measuring a network: loopback has no latency. Only loopback IP addresses are bound. Only
//! Linux provides all of 127.0.0.0/8 without configuration; elsewhere use one IP address.
#![forbid(unsafe_code)]

mod config;
mod control;
mod dns;
mod error;
mod fault;
mod folder;
mod graph;
mod host;
mod http;
pub mod judge;
pub mod log;
mod page;
mod prose;
mod random;
mod reply;
mod robots;
mod server;
mod spam;
mod topic;
mod trap;
pub mod truth;
mod variants;
mod web;

pub use config::{Config, Folder, Kind, LogTo, PageCount};
pub use control::{Control, Names};
pub use error::Error;
pub use fault::{Fault, Step};
pub use graph::PageId;
pub use host::Host;
pub use reply::{Reply, Wire};
pub use robots::{Robots, Verdict};
pub use server::Server;
pub use topic::{N_TOPICS, topic_words};
pub use trap::Redirect;
pub use variants::{Flavour, Selection};
pub use web::{Dates, Moment, Name, Request, Target, Web};
