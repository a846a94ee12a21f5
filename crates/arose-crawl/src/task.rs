//! Runs work on a separate thread for as long as the result is wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::error::Error;

/// Work in progress. Dropping it stops the work and waits for its end.
#[derive(Debug)]
pub(crate) struct Task<T> {
    thread: Option<JoinHandle<Result<T, Error>>>,
    stop: Arc<AtomicBool>,
}

impl<T: Send + 'static> Task<T> {
    /// Starts work, which should check now and then whether to stop.
    pub(crate) fn start(
        work: impl FnOnce(&AtomicBool) -> Result<T, Error> + Send + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        Self {
            thread: Some(std::thread::spawn(move || work(&told))),
            stop,
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end.
    pub(crate) fn join(mut self) -> Result<T, Error> {
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or(Err(Error::Worker))
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
