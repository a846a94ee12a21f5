//! Long operations outside the interpreter: releases its lock, checks for signals, reports
//! progress.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::error;

/// Interval between checks for signals.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs `work` on another thread without the interpreter lock. Until it ends, `look` is called with
/// the lock at intervals, and once at the end. If `look` or a signal handler raises, `stop` is
/// called, and the exception is passed on once the work has ended.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send,
    stop: impl Fn() + Sync,
    look: impl Fn(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    std::thread::scope(|scope| {
        let (done, is_done) = channel();
        let worker = scope.spawn(move || {
            let result = work();
            // The receiver may be gone if a signal arrived in between. The result is joined below.
            let _ = done.send(());
            result
        });
        let is_done = std::sync::Mutex::new(is_done);
        let wait = || match is_done.lock() {
            Ok(is_done) => is_done.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout),
            Err(_) => false,
        };
        let mut raised = Ok(());
        while py.detach(wait) {
            if raised.is_ok() {
                raised = py.check_signals().and_then(|()| look(py));
                if raised.is_err() {
                    stop();
                }
            }
        }
        let result = py.detach(|| worker.join());
        raised?;
        let result = result.map_err(|panic| error::panicked(&*panic))?;
        // The last counts.
        look(py)?;
        Ok(result)
    })
}
