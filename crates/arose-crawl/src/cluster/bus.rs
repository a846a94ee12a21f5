//! The bus: what agents need of the servers between them.
//!
//! It transports and stores, and nothing that it says counts without a check: messages may come
//! twice, late or never, and what was stored may be gone. Every message is bounded and has a
//! version ([`super::wire`]).
//!
//! - *Subjects* hold messages with ascending sequence numbers. Writing names the number of the last
//!   message, and fails if there is another one: a comparison and an exchange in one. Keys keep
//!   their last message only, logs keep all.
//! - *Queues*, one per partition, deliver each message to the owner of the partition until it is
//!   acknowledged.
//! - *Words* go to one agent that listens; if it does not, they are lost.

mod local;
mod nats;
#[cfg(test)]
mod tests;

use std::future::Future;

pub use local::Local;
pub use nats::Login;
pub(crate) use nats::Nats;

/// Bytes of a message at most: what NATS servers accept by default is 1 MiB.
pub(crate) const MAX_MESSAGE: usize = 900 << 10;

/// Where a message is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A document.
    Key(String),
    /// The changes of a partition.
    Log(u8),
}

/// A message of a subject and its sequence number, which is above 0.
pub(crate) type Stored = (u64, Vec<u8>);

/// A message of a queue.
#[derive(Debug)]
pub(crate) struct Delivery<T> {
    pub(crate) bytes: Vec<u8>,
    /// Acknowledges it.
    pub(crate) token: T,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BusError {
    /// The last message of the subject is another one.
    #[error("another agent was first")]
    Conflict,
    /// There is no room for it.
    #[error("the queue is full")]
    Full,
    /// It may have been done or not.
    #[error("{0}")]
    Unavailable(String),
}

/// Runs something that waits for servers, on this thread.
pub(crate) fn block_on_bus<T>(run: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("the system has room for another event loop");
    tokio::task::LocalSet::new().block_on(&runtime, run)
}

/// What agents need of the servers between them. The parts of one agent share a thread.
pub(crate) trait Bus: 'static {
    /// Acknowledges a message of a queue.
    type Token: 'static;

    /// Writes to a subject if `last` is the number of its last message, 0 if it has none; returns
    /// the number of the new one.
    fn append(
        &self,
        subject: &Subject,
        last: u64,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<u64, BusError>>;

    /// Makes sure that the servers have room for everything, if they have lost what they stored.
    fn prepare(&self) -> impl Future<Output = Result<(), BusError>>;

    /// The last message of a subject.
    fn last(&self, subject: &Subject) -> impl Future<Output = Result<Option<Stored>, BusError>>;

    /// Removes the messages of a log before this number.
    fn purge(&self, partition: u8, before: u64) -> impl Future<Output = Result<(), BusError>>;

    /// The messages of a subject behind this number, the oldest first: some of them, or none if
    /// there are no more.
    fn read(
        &self,
        subject: &Subject,
        after: u64,
    ) -> impl Future<Output = Result<Vec<Stored>, BusError>>;

    /// Waits for documents that were written; the first time for all.
    fn changes(&self) -> impl Future<Output = Vec<(String, Stored)>>;

    /// Has [`Bus::changes`] begin again with all documents.
    fn look_again(&self);

    /// Sends a message to the owner of a partition.
    fn send(&self, partition: u8, bytes: Vec<u8>) -> impl Future<Output = Result<(), BusError>>;

    /// Waits for a message to the owner of a partition.
    fn pull(&self, partition: u8) -> impl Future<Output = Delivery<Self::Token>>;

    /// Removes a message from its queue.
    fn acknowledge(&self, token: Self::Token) -> impl Future<Output = ()>;

    /// Says something to an agent.
    fn tell(&self, agent: &str, bytes: Vec<u8>) -> impl Future<Output = ()>;

    /// Waits for what is said to this agent.
    fn hear(&self) -> impl Future<Output = Vec<u8>>;
}
