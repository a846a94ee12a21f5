//! Connections, with limits on their number and time.
//!
//! *Question.* A client opens thousands of connections and sends half a request on each, or reads
//! its response at one byte per minute. How can other clients still be served?
//!
//! *Idea.* A connection has a time limit for each request head, and an age after which it serves
//! its last request. At most [`MAX_OPEN`] connections are open. For a new one, the connection that
//! has waited longest for a request is closed. Connections whose request is being served stay open.
//! A client that sends its request immediately is served before it can be the one that waited
//! longest.

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

/// Maximum number of open connections.
const MAX_OPEN: usize = 512;

/// Maximum time for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(5);

/// Age after which a connection serves its last request.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Maximum time for the last request of a connection, including the time to read its response.
const LAST_TIME: Duration = Duration::from_secs(40);

/// Maximum size of a request head, in bytes.
const MAX_HEAD: usize = 64 << 10;

/// Pause when the system has no more sockets.
const PAUSE: Duration = Duration::from_millis(20);

/// Serves connections until `stop`, and then serves the open ones for a while.
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
            // The client disconnected immediately, or there are no more sockets: close one and
            // continue.
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

/// The state of the connections. It is locked only briefly, and no other lock is taken meanwhile.
#[derive(Default)]
struct Registry {
    n_open: usize,
    next: u64,
    /// Connections that wait for a request, the longest first, each with the handle that closes it.
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

    /// Makes room for one more connection; none if all connections are being served.
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

    /// Closes the connection that has waited longest; false if none is waiting.
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
    /// Its place in the waiting list; none while a request is being served.
    turn: Mutex<Option<u64>>,
}

impl Open {
    fn turn(&self) -> MutexGuard<'_, Option<u64>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, stream: TcpStream, router: Router) {
        // Responses are written at once, so nothing is gained by waiting for more. If the setting
        // fails, the connection is slower but still works.
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
        // Errors at the end of a connection do not matter to the server.
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

/// A connection whose request is being served; it is not closed in favour of others.
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

    /// Beyond the limit, the connections that waited longest are closed, and those being served
    /// stay.
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
        // The second connection was told to close; the first is being served.
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
