//! A synthetic web on loopback, to test crawlers against.
//!
//! A crawler can only be judged on a web of which everything is known. This one is drawn from a
//! seed: hosts with their names and addresses, pages with their words and links, mirrors and near
//! mirrors, traps, redirects, broken servers, robots files of every kind. No page is stored; each
//! is a function of seed, host and path, cheap enough for ten thousand pages a second on one core.
//!
//! - [`Config`] says what web to make, [`Web`] is that web, pure, and [`Server`] serves it over
//!   HTTP at addresses in 127.0.0.0/8, with a name server over UDP.
//! - [`Control`] changes it while it is served: versions of pages, trouble with names.
//! - [`log::Log`] is what was asked and when; its methods in [`judge`] say whether the asking was
//!   polite.
//! - [`truth`] says which pages exist, which can be reached, which are copies of which.
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
//! Not for measuring a network: loopback has no latency. Only loopback addresses are bound, and
//! only Linux has all of 127.0.0.0/8 without setting up; elsewhere use one address.
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
pub use web::{Moment, Name, Request, Target, Web};
