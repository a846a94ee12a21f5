//! The modules of the crawler, compiled as they are.

#[path = "../../../crates/arose-crawl/src/fetch/http1.rs"]
pub(crate) mod http1;
#[expect(dead_code, reason = "the crawler uses more of it")]
#[path = "../../../crates/arose-crawl/src/fetch/message.rs"]
mod message;

pub(crate) use message::{Cut, Failure, FetchLimits, Head, Message};
