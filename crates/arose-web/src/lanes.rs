//! Limits on concurrent and waiting work, and on its time.
//!
//! *Question.* Two hundred clients send queries that take seconds each, and disconnect. How can
//! others get a response within milliseconds?
//!
//! *Idea.* Work has two lanes, each with its own turns and its own queue. The cost of a query is
//! known before it runs ([`arose_search::Index::cost`]). A query that reads much goes to the heavy
//! lane, and so do pages that read sources again. The heavy lane never has all cores. A turn
//! belongs to the work, not to the request: it is returned when the work has ended, even if the
//! client is gone. Work regularly checks whether to continue, and ends when its client is gone or
//! its time is over. If the queue is full, requests are rejected at once.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arose_search::{Cost, GoOn, Query};
use axum::http::StatusCode;
use tokio::sync::Semaphore;

use crate::answer::Refusal;
use crate::site::{Shared, View};

/// Maximum duration of work.
const MAX_WORK: Duration = Duration::from_secs(10);

/// Maximum index bytes that a light query reads.
const LIGHT_COST: u64 = 1 << 20;

/// Maximum index bytes that any query may read.
const MAX_COST: u64 = 4 << 30;

/// Maximum index bytes that a query may read in steps that cannot be stopped: less than a second.
const MAX_AT_ONCE: u64 = 256 << 20;

/// Maximum number of requests that wait for a turn, by lane.
const MAX_WAITING: [usize; 2] = [512, 32];

/// The lane of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Takes milliseconds.
    Light,
    /// May take seconds.
    Heavy,
}

/// Both lanes.
pub(crate) struct Lanes {
    light: Bounds,
    heavy: Bounds,
}

struct Bounds {
    turns: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl Bounds {
    fn new(n_turns: usize, n_waiting: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(n_turns)),
            places: Arc::new(Semaphore::new(n_turns + n_waiting)),
        }
    }
}

impl Lanes {
    pub(crate) fn new() -> Self {
        let n_cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let [light, heavy] = MAX_WAITING;
        Self {
            // One of two may be waiting for the disk.
            light: Bounds::new(2 * n_cores.max(2), light),
            heavy: Bounds::new((n_cores - 1).max(1), heavy),
        }
    }
}

/// Tells work when to end.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    is_gone: Arc<AtomicBool>,
    deadline: Instant,
}

impl Stop {
    fn new() -> Self {
        Self {
            is_gone: Arc::default(),
            deadline: Instant::now() + MAX_WORK,
        }
    }

    /// Whether the client is still connected and time is left.
    pub(crate) fn go_on(&self) -> bool {
        !self.is_gone.load(Ordering::Relaxed) && Instant::now() < self.deadline
    }

    /// The same, for a search.
    pub(crate) fn as_go_on(&self) -> GoOn {
        let stop = self.clone();
        Arc::new(move || stop.go_on())
    }

    /// The response to a client that is still connected.
    pub(crate) fn refusal() -> Refusal {
        Refusal {
            status: StatusCode::GATEWAY_TIMEOUT,
            title: "Timed out",
            detail: "This took longer than 10 seconds. Narrow the query.".to_owned(),
        }
    }
}

/// Sets the flag when a request is dropped because its client is gone.
struct Present(Arc<AtomicBool>);

impl Drop for Present {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does work that reads files, in its turn, outside the threads that serve clients.
pub(crate) async fn work<T: Send + 'static>(
    site: &Shared,
    lane: Lane,
    work: impl FnOnce(&View, &Stop) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let bounds = match lane {
        Lane::Light => &site.lanes.light,
        Lane::Heavy => &site.lanes.heavy,
    };
    let site = Arc::clone(site);
    in_turn(bounds, move |stop| work(&site.view(), stop)).await
}

/// Does work within limits, in its turn.
async fn in_turn<T: Send + 'static>(
    bounds: &Bounds,
    work: impl FnOnce(&Stop) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let busy = || Refusal {
        status: StatusCode::SERVICE_UNAVAILABLE,
        title: "Too many requests",
        detail: "The server is busy. Try again in a moment.".to_owned(),
    };
    let place = Arc::clone(&bounds.places).try_acquire_owned();
    let place = place.map_err(|_| busy())?;
    let turn = Arc::clone(&bounds.turns).acquire_owned().await;
    let turn = turn.map_err(|_| busy())?;
    let stop = Stop::new();
    let _present = Present(Arc::clone(&stop.is_gone));
    let task = tokio::task::spawn_blocking(move || {
        // Returned when the work has ended, not when its client is gone.
        let _held = (place, turn);
        work(&stop)
    });
    task.await.unwrap_or_else(|_| {
        Err(Refusal {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            title: "Internal error",
            detail: "The server failed to handle this request.".to_owned(),
        })
    })
}

/// Does the work of a query in the lane of its cost.
pub(crate) async fn work_for<T: Send + 'static, W>(
    site: &Shared,
    query: Option<Query>,
    work_of_query: W,
) -> Result<T, Refusal>
where
    W: FnOnce(&View, &Stop) -> Result<T, Refusal> + Send + 'static,
{
    let light = work(site, Lane::Light, move |view, stop| {
        let cost = query.map_or(Ok(Cost::default()), |query| view.index.cost(&query))?;
        if cost.at_once > MAX_AT_ONCE {
            return Err(Refusal::bad_request(
                "Too many documents have words with this prefix. Type more letters before *.",
            ));
        }
        match cost.bytes {
            0..=LIGHT_COST => work_of_query(view, stop).map(Ok),
            bytes if bytes <= MAX_COST => Ok(Err(work_of_query)),
            _ => Err(Refusal::bad_request(
                "This query reads too much of the index. Use fewer or rarer words.",
            )),
        }
    });
    match light.await? {
        Ok(done) => Ok(done),
        Err(work_of_query) => work(site, Lane::Heavy, work_of_query).await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A client disconnects while its work continues. The work is notified, keeps its turn until it
    /// ends, and then returns it. If the queue is full, requests are rejected at once.
    #[test]
    fn issue_23_a_turn_belongs_to_the_work() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_time()
            .build()
            .unwrap();
        let bounds = Bounds::new(1, 1);
        let (begin, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        runtime.block_on(async {
            let slow = in_turn(&bounds, move |stop| {
                begin.send(()).unwrap();
                ended.recv().unwrap();
                tell.send(stop.go_on()).unwrap();
                Ok(())
            });
            {
                let mut slow = std::pin::pin!(slow);
                while begun.try_recv().is_err() {
                    let step = tokio::time::timeout(Duration::from_millis(1), slow.as_mut());
                    assert!(step.await.is_err(), "the work does not wait");
                }
                assert_eq!(bounds.turns.available_permits(), 0);
            }
            // The request has been dropped by now.
            assert_eq!(bounds.turns.available_permits(), 0);
            assert_eq!(bounds.places.available_permits(), 1);
            let mut next = std::pin::pin!(in_turn(&bounds, |_| Ok(())));
            let step = tokio::time::timeout(Duration::from_millis(1), next.as_mut());
            assert!(step.await.is_err(), "two turns at a time");
            let refused = in_turn(&bounds, |_| Ok(()));
            let refused = tokio::time::timeout(Duration::from_secs(5), refused).await;
            let refused = refused.expect("the queue has no bound").unwrap_err();
            assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
            end.send(()).unwrap();
            assert!(next.await.is_ok());
        });
        assert!(
            !told.recv().unwrap(),
            "the work is not told that nobody waits"
        );
    }
}
