//! One crawl on many machines.
//!
//! Each machine runs an *agent* with a crawl directory of its own. A site belongs to one of 256
//! partitions, and a partition to one agent at a time, which alone sends requests to
//! its hosts. Agents send each other the URLs they find, and hand partitions over with all that is
//! known of them when agents come and go.
//!
//! - `partition`: which agent crawls which sites; `lease`: for how long; `fence`: not longer.
//! - `bus`: servers that transport and store messages; `wire`, `document`: what they contain.
//! - `agent`: does all of this for the loop of a crawl (`link`); `view`: what it sees of
//!   others; `replay`: the state of a partition that comes.
//! - `twins`: duplicates of pages of other agents.
//! - `status`: the cluster as a whole, for people.

pub(crate) mod address;
mod agent;
mod bus;
mod copy;
mod document;
pub(crate) mod fence;
mod lease;
pub(crate) mod link;
pub(crate) mod partition;
pub(crate) mod replay;
mod status;
pub(crate) mod twins;
mod view;
pub(crate) mod wire;

pub(crate) use agent::{AgentConfig, Stores, enter, run};
pub(crate) use bus::{Bus, Nats, block_on_bus};
pub use bus::{Local, Login};
pub(crate) use copy::Copies;
pub(crate) use document::CrawlDocument;
pub(crate) use fence::Fenced;
pub use lease::Terms;
pub use status::{AgentStatus, ClusterStatus, agent_name, cluster_status, drain};
pub(crate) use twins::Twins;
