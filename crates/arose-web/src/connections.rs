//! Connections: limits on number and time, whatever clients do.
//!
//! *Question.* A client opens thousands of connections and sends half a request on each, or reads
//! its response a byte a minute. How do others get theirs?
//!
//! *Idea.* A connection has a time for each request head, and an age after which it serves its last
//! request. At most [`MAX_OPEN`] are open. For one more, the connection that has waited longest for
//! a request is closed; connections whose request is being served stay. A client that sends its
//! request at once is served before it can be the one that waited longest.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Connections that are open at a time.
const MAX_OPEN: usize = 512;

/// How long a client may take for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// How long a connection serves requests before it serves its last one.
const MAX_AGE: Duration = Duration::from_secs(60);

/// How long the last request of a connection may take, the reading of its response included.
const LAST_TIME: Duration = Duration::from_secs(40);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// How long to wait when the system has no more sockets.
const PAUSE: Duration = Duration::from_millis(20);

/// Serves connections until `stop`, and then those that are open for a while.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let connections = Arc::new(Connections::default());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return,
        };
        match accepted {
            Ok((stream, _)) => {
                if let Some(open) = connections.open() {
                    tokio::spawn(open.serve(stream, router.clone()));
                }
            }
            // A client that went away at once, or no more sockets: close one, and go on.
            Err(_) => {
                connections.close_longest_waiting();
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// All open connections.
#[derive(Default)]
struct Connections(Mutex<Registry>);

/// What is known of them. Taken for moments only, and no other lock within.
#[derive(Default)]
struct Registry {
    n_open: usize,
    next: u64,
    /// Those that wait for a request, the longest first, each with what closes it.
    waiting: BTreeMap<u64, Arc<Notify>>,
}

impl Registry {
    fn wait(&mut self, close: &Arc<Notify>) -> u64 {
        self.next += 1;
        self.waiting.insert(self.next, Arc::clone(close));
        self.next
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more; none if all connections are being served.
    fn open(self: &Arc<Self>) -> Option<Open> {
        if self.lock().n_open >= MAX_OPEN && !self.close_longest_waiting() {
            return None;
        }
        let mut registry = self.lock();
        registry.n_open += 1;
        let close = Arc::new(Notify::new());
        let turn = Mutex::new(Some(registry.wait(&close)));
        Some(Open {
            connections: Arc::clone(self),
            close,
            turn,
        })
    }

    /// Closes the connection that has waited longest; false if none waits.
    fn close_longest_waiting(&self) -> bool {
        let first = self.lock().waiting.pop_first();
        first.is_some_and(|(_, close)| {
            close.notify_one();
            true
        })
    }
}

/// An open connection.
struct Open {
    connections: Arc<Connections>,
    close: Arc<Notify>,
    /// Its place among those that wait; none while a request is being served.
    turn: Mutex<Option<u64>>,
}

impl Open {
    fn turn(&self) -> MutexGuard<'_, Option<u64>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, stream: TcpStream, router: Router) {
        // Responses are written whole, so nothing is gained by waiting for more. A connection that
        // does not take the setting is slower, not wrong.
        drop(stream.set_nodelay(true));
        let open = Arc::new(self);
        let close = Arc::clone(&open.close);
        let router = TowerToHyperService::new(router);
        let service = service_fn(move |request: Request<Incoming>| {
            let serving = Serving::new(&open);
            let response = router.call(request);
            async move {
                let response: Result<Response, Infallible> = response.await;
                drop(serving);
                response
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        // How a connection ends is the client's business.
        tokio::select! {
            _ = connection.as_mut() => return,
            () = close.notified() => return,
            () = tokio::time::sleep(MAX_AGE) => {}
        }
        connection.as_mut().graceful_shutdown();
        drop(tokio::time::timeout(LAST_TIME, connection).await);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let turn = self.turn().take();
        let mut registry = self.connections.lock();
        registry.n_open -= 1;
        if let Some(turn) = turn {
            registry.waiting.remove(&turn);
        }
    }
}

/// A connection whose request is being served: it is not closed for others.
struct Serving(Arc<Open>);

impl Serving {
    fn new(open: &Arc<Open>) -> Self {
        if let Some(turn) = open.turn().take() {
            open.connections.lock().waiting.remove(&turn);
        }
        Self(Arc::clone(open))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let turn = self.0.connections.lock().wait(&self.0.close);
        *self.0.turn() = Some(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beyond the bound those that waited longest go, and those being served stay.
    #[test]
    fn who_waits_longest_makes_room() {
        let connections = Arc::new(Connections::default());
        let open: Vec<Arc<Open>> = (0..MAX_OPEN)
            .map(|_| Arc::new(connections.open().unwrap()))
            .collect();
        let first = Serving::new(&open[0]);
        let one_more = connections.open();
        assert!(one_more.is_some());
        let n_waiting = connections.lock().waiting.len();
        // The second was told to close; the first is being served.
        assert_eq!(n_waiting, MAX_OPEN - 1);
        assert!(
            open[1]
                .turn()
                .is_some_and(|turn| !connections.lock().waiting.contains_key(&turn))
        );
        drop(first);
        assert_eq!(connections.lock().waiting.len(), MAX_OPEN);
        drop((one_more, open));
        let registry = connections.lock();
        assert_eq!((registry.n_open, registry.waiting.len()), (0, 0));
    }

    #[test]
    fn none_makes_room_while_all_are_served() {
        let connections = Arc::new(Connections::default());
        let open: Vec<Arc<Open>> = (0..MAX_OPEN)
            .map(|_| Arc::new(connections.open().unwrap()))
            .collect();
        let serving: Vec<Serving> = open.iter().map(Serving::new).collect();
        assert!(connections.open().is_none());
        drop(serving);
        assert!(connections.open().is_some());
    }
}
