//! Contains panics: a response on which a parser fails must not end a crawl.
//!
//! Readers and parsers are written not to panic on any bytes. If one panics all the same, the URL
//! fails with [`Failure::Unreadable`](crate::fetch::Failure::Unreadable) and the crawl continues.
//! The panic message still goes to standard error.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Runs `work`; returns `None` if it panics. The caller replaces everything that `work` may have
/// left in an inconsistent state.
pub(crate) fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Waits for `work`; returns `None` if it panics.
pub(crate) async fn contain_async<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match contain(|| work.as_mut().poll(context)) {
        Some(poll) => poll.map(Some),
        None => Poll::Ready(None),
    })
    .await
}
