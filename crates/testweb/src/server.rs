//! The server: one thread that responds for every IP address and every host.
//!
//! There is one listening socket per IP address and one task per connection, all on one core, so
//! that a measured crawler has the other cores to itself. Pages are rendered into recycled buffers
//! and sent with one system call. Only loopback IP addresses are ever bound.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener, UdpSocket as StdUdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::oneshot;

use crate::config::Config;
use crate::control::Control;
use crate::dns;
use crate::error::Error;
use crate::fault::Step;
use crate::host;
use crate::http::{self, Head, Method, Parsed, Then};
use crate::log::{Log, Record, Recorder};
use crate::reply::{Reply, Wire};
use crate::web::{Moment, Request, Web};

/// A web that is being served. Dropping it stops the server.
pub struct Server {
    /// The web; its settings have the port at which it is served.
    pub web: Arc<Web>,
    /// Changes the web while it is served.
    pub control: Arc<Control>,
    /// IP address and port of the DNS server.
    pub dns: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Binds all sockets and serves from a separate thread.
    ///
    /// # Errors
    /// If a setting is out of range, or a socket or the log file cannot be opened.
    pub fn start(mut config: Config) -> Result<Self, Error> {
        config.check()?;
        let (listeners, port) = listen(&config)?;
        config.port = port;
        let udp = StdUdpSocket::bind((Ipv4Addr::LOCALHOST, config.dns_port))
            .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
            .map_err(Error::io("cannot bind the name server"))?;
        let dns = udp
            .local_addr()
            .map_err(Error::io("cannot bind the name server"))?;
        let recorder = Recorder::new(&config.log)?;
        let web = Arc::new(Web::new(config)?);
        let control = Arc::new(Control::default());
        let shared = Arc::new(Shared {
            visits: web.hosts().iter().map(|_| AtomicU64::new(0)).collect(),
            web: Arc::clone(&web),
            control: Arc::clone(&control),
            recorder,
            buffers: Mutex::new(Vec::new()),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::io("cannot start the server"))?;
        let (stop, stopped) = oneshot::channel();
        let inner = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("testweb".to_owned())
            .spawn(move || {
                runtime.block_on(run(inner, listeners, udp, stopped));
                runtime.shutdown_background();
            })
            .map_err(Error::io("cannot start the server"))?;
        Ok(Self {
            web,
            control,
            dns,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The requests so far, if they are stored in memory.
    #[must_use]
    pub fn log(&self) -> Log {
        self.shared.recorder.snapshot()
    }

    /// Number of requests so far, wherever they are recorded.
    #[must_use]
    pub fn n_requests(&self) -> u64 {
        self.shared.recorder.n_requests()
    }

    /// Stops the server and writes the log.
    ///
    /// # Errors
    /// If the log file could not be written.
    pub fn stop(mut self) -> Result<(), Error> {
        self.halt();
        let finished = self.shared.recorder.finish();
        finished.map_err(Error::io("cannot write the log"))
    }

    fn halt(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt();
        // Callers that need the file call `stop`.
        let _ = self.shared.recorder.finish();
    }
}

/// State shared by all connections.
struct Shared {
    web: Arc<Web>,
    control: Arc<Control>,
    recorder: Recorder,
    /// Number of requests to each host so far.
    visits: Box<[AtomicU64]>,
    /// Buffers for pages; as many as there were concurrent responses.
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// One socket per IP address, all at one port.
fn listen(config: &Config) -> Result<(Vec<(Ipv4Addr, StdListener)>, u16), Error> {
    // A port that is free at one IP address may be in use at another: try a few.
    let n_tries = if config.port == 0 { 20 } else { 1 };
    let mut outcome = Ok((Vec::new(), 0));
    for _ in 0..n_tries {
        outcome = listen_once(config);
        if outcome.is_ok() {
            break;
        }
    }
    outcome.map_err(Error::io(format!(
        "cannot listen at {} addresses; is the limit of open files above that?",
        config.n_addresses
    )))
}

fn listen_once(config: &Config) -> io::Result<(Vec<(Ipv4Addr, StdListener)>, u16)> {
    let mut port = config.port;
    let mut listeners = Vec::new();
    for idx in 0..config.n_addresses {
        let address = host::address(idx);
        let listener = StdListener::bind((address, port))?;
        listener.set_nonblocking(true)?;
        port = listener.local_addr()?.port();
        listeners.push((address, listener));
    }
    Ok((listeners, port))
}

async fn run(
    shared: Arc<Shared>,
    listeners: Vec<(Ipv4Addr, StdListener)>,
    udp: StdUdpSocket,
    stopped: oneshot::Receiver<()>,
) {
    for (address, listener) in listeners {
        tokio::spawn(accept(Arc::clone(&shared), address, listener));
    }
    tokio::spawn(flush(Arc::clone(&shared)));
    tokio::spawn(serve_names(shared, udp));
    // The sender is dropped to stop the server, so an error is expected.
    let _ = stopped.await;
}

async fn flush(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        shared.recorder.flush();
    }
}

async fn serve_names(shared: Arc<Shared>, udp: StdUdpSocket) {
    let Ok(socket) = UdpSocket::from_std(udp) else {
        return;
    };
    let mut buffer = [0; 1500];
    loop {
        let Ok((len, peer)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        let message = &buffer[..len];
        if let Some(question) = dns::question(message) {
            shared.recorder.query(&question.name, question.kind);
        }
        if let Some(answer) = dns::answer(message, &shared.web, &shared.control) {
            // If a response is lost, the client must query again.
            let _ = socket.send_to(&answer, peer).await;
        }
    }
}

async fn accept(shared: Arc<Shared>, address: Ipv4Addr, listener: StdListener) {
    let Ok(listener) = TcpListener::from_std(listener) else {
        return;
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                shared.recorder.connection();
                // Responses are written at once, so there is nothing to gain by waiting for more.
                let _ = stream.set_nodelay(true);
                tokio::spawn(serve(Arc::clone(&shared), stream, address));
            }
            // Most likely out of file descriptors: wait until some are closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Responds to all requests of a connection.
async fn serve(shared: Arc<Shared>, stream: TcpStream, address: Ipv4Addr) {
    let mut input = Vec::new();
    loop {
        let (n_used, then) = match http::parse(&input) {
            Parsed::Partial => match read_more(&stream, &mut input).await {
                Ok(()) => continue,
                Err(_) => return,
            },
            Parsed::Bad(status) => {
                let reply = Reply::text(status, "not understood\n");
                let mut out = Vec::new();
                http::push_head(
                    &reply,
                    Then::Close,
                    shared.recorder.unix_seconds(),
                    &mut out,
                );
                let mut progress = Progress {
                    last: Duration::ZERO,
                    n_bytes: 0,
                };
                let _ = write_all(&shared, &stream, [&out, &reply.body], &mut progress).await;
                return;
            }
            Parsed::Whole(head, len) => (len, respond(&shared, &stream, address, &head).await),
        };
        match then {
            Then::Keep => drop(input.drain(..n_used)),
            Then::Close => return,
        }
    }
}

async fn read_more(stream: &TcpStream, input: &mut Vec<u8>) -> io::Result<()> {
    loop {
        match try_read(stream, input) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.readable().await?,
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            outcome => return outcome.map(|_| ()),
        }
    }
}

/// A separate function, so that the buffer is not part of every waiting connection.
fn try_read(stream: &TcpStream, input: &mut Vec<u8>) -> io::Result<usize> {
    let mut chunk = [0; 4096];
    let n = stream.try_read(&mut chunk)?;
    input.extend_from_slice(&chunk[..n]);
    Ok(n)
}

async fn respond(shared: &Shared, stream: &TcpStream, address: Ipv4Addr, head: &Head<'_>) -> Then {
    let start = shared.recorder.now();
    let reply = answer(shared, head);
    let ticket = shared.recorder.begin(Record {
        start,
        end: start,
        address,
        host: head.host.to_ascii_lowercase().into(),
        target: head.target.into(),
        status: reply.status,
        retry_after: reply.retry_after,
        n_bytes: 0,
    });
    let mut progress = Progress {
        last: start,
        n_bytes: 0,
    };
    // A client that disconnects is not an error here: the bytes sent until then are recorded.
    let _ = match &reply.wire {
        Wire::Script(steps) => play(shared, stream, steps, &mut progress).await,
        _ => send(shared, stream, &reply, head, &mut progress).await,
    };
    shared.recorder.end(ticket, progress.last, progress.n_bytes);
    let then = match reply.wire {
        Wire::Script(_) => Then::Close,
        _ => head.then,
    };
    give_back(shared, reply.body);
    then
}

fn answer(shared: &Shared, head: &Head<'_>) -> Reply {
    if head.method == Method::Other {
        return Reply::text(405, "GET and HEAD only\n");
    }
    let visits = shared.web.find_host(head.host);
    let visits = visits.map(|host| &shared.visits[host as usize]);
    let moment = Moment {
        unix_seconds: shared.recorder.unix_seconds(),
        version: shared.control.version(),
        n_visit: visits.map_or(0, |visits| visits.fetch_add(1, Ordering::Relaxed)),
    };
    let request = Request {
        host: head.host,
        target: head.target,
        if_none_match: head.if_none_match,
        if_modified_since: head.if_modified_since,
        accepts_gzip: head.accepts_gzip,
    };
    let buffer = {
        let mut buffers = shared
            .buffers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        buffers.pop().unwrap_or_default()
    };
    shared.web.answer(&request, &moment, buffer)
}

fn give_back(shared: &Shared, buffer: Vec<u8>) {
    // Small buffers are not worth keeping, and no buffer may keep the memory of the largest page.
    if (1024..1 << 18).contains(&buffer.capacity()) {
        let mut buffers = shared
            .buffers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        buffers.push(buffer);
    }
}

/// The progress of a response.
struct Progress {
    /// The last time at which bytes were sent or the client was seen waiting.
    last: Duration,
    n_bytes: u64,
}

async fn send(
    shared: &Shared,
    stream: &TcpStream,
    reply: &Reply,
    request: &Head<'_>,
    progress: &mut Progress,
) -> io::Result<()> {
    let mut head = Vec::with_capacity(256);
    let unix_seconds = shared.recorder.unix_seconds();
    http::push_head(reply, request.then, unix_seconds, &mut head);
    let has_body = request.method != Method::Head && reply.status != 304;
    let chunked = match reply.wire {
        Wire::Chunked => http::chunks(&reply.body),
        _ => Vec::new(),
    };
    let body = match reply.wire {
        _ if !has_body => &[],
        Wire::Chunked => &chunked[..],
        _ => &reply.body[..],
    };
    write_all(shared, stream, [&head, body], progress).await
}

async fn write_all(
    shared: &Shared,
    stream: &TcpStream,
    [head, body]: [&[u8]; 2],
    progress: &mut Progress,
) -> io::Result<()> {
    let mut n_sent = 0;
    while n_sent < head.len() + body.len() {
        let slices = [
            IoSlice::new(&head[n_sent.min(head.len())..]),
            IoSlice::new(&body[n_sent.saturating_sub(head.len())..]),
        ];
        // Before the call, not after: once it returns, the client may have had the bytes for a long
        // time.
        let before = shared.recorder.now();
        match stream.try_write_vectored(&slices) {
            Ok(n) => {
                n_sent += n;
                progress.n_bytes += n as u64;
                progress.last = before;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Performs the steps of a script.
async fn play(
    shared: &Shared,
    stream: &TcpStream,
    steps: &[Step],
    progress: &mut Progress,
) -> io::Result<()> {
    for step in steps {
        match step {
            Step::Send(bytes) => write_all(shared, stream, [bytes, &[]], progress).await?,
            Step::Repeat(bytes) => loop {
                write_all(shared, stream, [bytes, &[]], progress).await?;
            },
            Step::Drip { bytes, every } => {
                for byte in bytes.chunks(1) {
                    wait(shared, stream, *every, progress).await?;
                    write_all(shared, stream, [byte, &[]], progress).await?;
                }
            }
            Step::Hang => wait(shared, stream, Duration::from_secs(3600), progress).await?,
            Step::Reset => stream.set_zero_linger()?,
        }
    }
    Ok(())
}

/// Interval between checks of a waiting client.
const LOOK: Duration = Duration::from_millis(100);

/// Waits, but returns an error if the client has disconnected.
async fn wait(
    shared: &Shared,
    stream: &TcpStream,
    time: Duration,
    progress: &mut Progress,
) -> io::Result<()> {
    let until = shared.recorder.now() + time;
    let mut ignored = Vec::new();
    let mut seen = progress.last;
    loop {
        let now = shared.recorder.now();
        if now >= until {
            return Ok(());
        }
        let left = read_more(stream, &mut ignored);
        match tokio::time::timeout(LOOK.min(until - now), left).await {
            Ok(outcome) => outcome?,
            // The previous check: the client may have disconnected between the two.
            Err(_) => progress.last = std::mem::replace(&mut seen, now),
        }
        ignored.clear();
    }
}
