//! Runs an external program that scores pages.
//!
//! *Question.* Any classifier, in any language, should be able to steer a crawl. It may be slow,
//! hang, die, or return nonsense. How does the crawl continue meanwhile? *Idea.* One long-running
//! process receives a line for each page and returns a line for each, in order. A thread watches
//! it. If the process ends, responds out of order, or takes too long for its current page, it is
//! restarted. That page has no score, and the other pages that were sent are sent again. Each
//! consecutive failure doubles the pause before the next start. The crawl never waits: it requests
//! scores here, and they arrive later or not at all.
//!
//! *Bounds.* [`MAX_OPEN`] pages; further ones have no score. Response lines are short; if one is
//! not, the program is restarted.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::sync::Notify;

use crate::error::Error;

/// Maximum number of pages without a response.
pub(crate) const MAX_OPEN: usize = 1024;

/// Maximum number of pages that the program has at a time.
const WINDOW: usize = 32;

/// Maximum number of bytes of the text of a page that are sent.
const MAX_TEXT: usize = 200_000;

/// Maximum number of bytes of a response.
const MAX_LINE: u64 = 4096;

/// The pause before the first restart after a failure, and the longest pause.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Number of consecutive failures after which no pages are kept for the program.
const MAX_FAILURES: u32 = 5;

/// A page as sent to the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageText<'a> {
    pub(crate) url: &'a str,
    pub(crate) title: &'a str,
    pub(crate) text: &'a str,
}

/// The result for a page: its score, if it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ScoreReport {
    pub(crate) id: u64,
    pub(crate) score: Option<f32>,
}

/// How often the program misbehaved, by kind.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// It ended.
    pub(crate) n_died: AtomicU64,
    /// It took too long.
    pub(crate) n_hung: AtomicU64,
    /// It responded out of order, or when no page was open.
    pub(crate) n_disordered: AtomicU64,
    /// Its response was not a number from 0 to 1.
    pub(crate) n_bad: AtomicU64,
    /// It was restarted.
    pub(crate) n_restarts: AtomicU64,
}

/// The program, running or about to be restarted.
#[derive(Debug)]
pub(crate) struct Program {
    inbox: Sender<Event>,
    outcomes: Mutex<Receiver<ScoreReport>>,
    n_asked: AtomicU64,
    n_open: Arc<AtomicUsize>,
    pub(crate) tally: Arc<Tally>,
    bell: Arc<OnceLock<Arc<Notify>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Program {
    /// Starts the program.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub(crate) fn start(command: &[String], timeout: Duration) -> Result<Self, Error> {
        let (inbox, events) = channel();
        let (sender, outcomes) = channel();
        let mut watcher = Watcher {
            command: command.to_vec(),
            timeout,
            events: inbox.clone(),
            outcomes: sender,
            n_open: Arc::default(),
            tally: Arc::default(),
            bell: Arc::default(),
            running: None,
            n_started: 0,
            queue: VecDeque::new(),
            sent: VecDeque::new(),
            n_failures: 0,
            not_before: Instant::now(),
        };
        watcher.start().map_err(|error| {
            let name = command.first().map_or("", String::as_str);
            Error::Settings(format!(
                "focus.command: `{name}` cannot be started: {error}"
            ))
        })?;
        Ok(Self {
            inbox,
            outcomes: Mutex::new(outcomes),
            n_asked: AtomicU64::new(0),
            n_open: Arc::clone(&watcher.n_open),
            tally: Arc::clone(&watcher.tally),
            bell: Arc::clone(&watcher.bell),
            thread: Some(std::thread::spawn(move || watcher.run(&events))),
        })
    }

    /// Sets a waker that is called when a response has arrived.
    pub(crate) fn set_bell(&self, bell: Arc<Notify>) {
        let _ = self.bell.set(bell);
    }

    /// Requests the score of a page. Returns a number that identifies it, or `None` if too many
    /// pages are open.
    pub(crate) fn ask(&self, page: PageText<'_>) -> Option<u64> {
        if self.n_open.fetch_add(1, Ordering::Relaxed) >= MAX_OPEN {
            self.n_open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let id = self.n_asked.fetch_add(1, Ordering::Relaxed) + 1;
        let text = &page.text[..page.text.floor_char_boundary(MAX_TEXT)];
        let line = serde_json::json!({
            "id": id,
            "url": page.url,
            "title": page.title,
            "text": text,
        });
        let line = format!("{line}\n").into();
        self.inbox.send(Event::Job(Job { id, line })).ok()?;
        Some(id)
    }

    /// Returns the results that have arrived.
    pub(crate) fn take(&self) -> Vec<ScoreReport> {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.try_iter().collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.inbox.send(Event::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A page to be scored.
#[derive(Debug, Clone)]
struct Job {
    id: u64,
    line: Arc<str>,
}

#[derive(Debug)]
enum Event {
    Job(Job),
    /// A response of the process with this start number.
    Line(u64, String),
    /// The process closed its output.
    Closed(u64),
    Stop,
}

/// The process.
#[derive(Debug)]
struct Running {
    child: Child,
    input: SyncSender<Arc<str>>,
}

/// The thread that watches.
struct Watcher {
    command: Vec<String>,
    timeout: Duration,
    events: Sender<Event>,
    outcomes: Sender<ScoreReport>,
    n_open: Arc<AtomicUsize>,
    tally: Arc<Tally>,
    bell: Arc<OnceLock<Arc<Notify>>>,
    running: Option<Running>,
    n_started: u64,
    /// Pages that are not sent yet, and those that the process has, with the time from which it
    /// could work on each.
    queue: VecDeque<Job>,
    sent: VecDeque<(Job, Instant)>,
    /// Consecutive failures, without a response between them.
    n_failures: u32,
    not_before: Instant,
}

impl Watcher {
    fn run(&mut self, events: &Receiver<Event>) {
        loop {
            match events.recv_timeout(self.until_due()) {
                Ok(Event::Job(job)) => self.queue.push_back(job),
                Ok(Event::Line(number, line)) if self.is_current(number) => self.take_line(&line),
                Ok(Event::Closed(number)) if self.is_current(number) => {
                    self.fail(|tally| &tally.n_died);
                }
                Ok(Event::Line(..) | Event::Closed(_)) => {}
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let since = self.sent.front().map(|(_, since)| *since);
                    if since.is_some_and(|since| since.elapsed() >= self.timeout) {
                        self.fail(|tally| &tally.n_hung);
                    }
                }
            }
            self.pump();
        }
        self.kill();
    }

    /// Whether an event is from the current process.
    fn is_current(&self, number: u64) -> bool {
        self.running.is_some() && number == self.n_started
    }

    /// Returns how long the thread may sleep unless an event arrives.
    fn until_due(&self) -> Duration {
        const LONG: Duration = Duration::from_secs(3600);
        let answer = self.sent.front().map(|(_, since)| *since + self.timeout);
        let start = (self.running.is_none() && !self.queue.is_empty()).then_some(self.not_before);
        let due = answer.into_iter().chain(start).min();
        due.map_or(LONG, |due| due.saturating_duration_since(Instant::now()))
    }

    /// Sends as many pages as the process has room for, and starts it if necessary.
    fn pump(&mut self) {
        if self.running.is_none() && !self.queue.is_empty() {
            if self.n_failures >= MAX_FAILURES && Instant::now() < self.not_before {
                for job in std::mem::take(&mut self.queue) {
                    self.answer(job.id, None);
                }
                return;
            }
            if Instant::now() < self.not_before {
                return;
            }
            self.tally.n_restarts.fetch_add(1, Ordering::Relaxed);
            if self.start().is_err() {
                return self.fail(|tally| &tally.n_died);
            }
        }
        while self.sent.len() < WINDOW
            && let Some(running) = &self.running
            && let Some(job) = self.queue.pop_front()
        {
            // The channel has room for as many lines; a process that has ended reports so itself.
            let _ = running.input.try_send(Arc::clone(&job.line));
            self.sent.push_back((job, Instant::now()));
        }
    }

    fn start(&mut self) -> std::io::Result<()> {
        let (name, arguments) = self
            .command
            .split_first()
            .ok_or(std::io::ErrorKind::NotFound)?;
        let mut command = Command::new(name);
        command.args(arguments).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        self.n_started += 1;
        let number = self.n_started;
        let (input, lines) = sync_channel::<Arc<str>>(WINDOW + 1);
        if let Some(mut stdin) = child.stdin.take() {
            std::thread::spawn(move || {
                while let Ok(line) = lines.recv() {
                    let written = stdin.write_all(line.as_bytes());
                    if written.and_then(|()| stdin.flush()).is_err() {
                        return;
                    }
                }
            });
        }
        if let Some(stdout) = child.stdout.take() {
            let events = self.events.clone();
            std::thread::spawn(move || listen(stdout, number, &events));
        }
        self.running = Some(Running { child, input });
        Ok(())
    }

    fn take_line(&mut self, line: &str) {
        let Some((job, _)) = self.sent.front() else {
            return self.fail(|tally| &tally.n_disordered);
        };
        let id = job.id;
        let (named, score) = parse(line);
        if named.is_some_and(|named| named != id) {
            return self.fail(|tally| &tally.n_disordered);
        }
        if score.is_none() {
            self.tally.n_bad.fetch_add(1, Ordering::Relaxed);
        } else {
            self.n_failures = 0;
        }
        self.sent.pop_front();
        // The process works on the next page from now on.
        if let Some((_, since)) = self.sent.front_mut() {
            *since = Instant::now();
        }
        self.answer(id, score);
    }

    /// Ends the process. Its current page has no score; the others are sent again.
    fn fail(&mut self, counter: impl Fn(&Tally) -> &AtomicU64) {
        counter(&self.tally).fetch_add(1, Ordering::Relaxed);
        self.kill();
        let sent = std::mem::take(&mut self.sent);
        for (at, (job, _)) in sent.into_iter().enumerate().rev() {
            match at {
                0 => self.answer(job.id, None),
                _ => self.queue.push_front(job),
            }
        }
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.n_failures.min(20));
        self.not_before = Instant::now() + pause.min(MAX_PAUSE);
        self.n_failures += 1;
    }

    fn answer(&self, id: u64, score: Option<f32>) {
        self.n_open.fetch_sub(1, Ordering::Relaxed);
        let _ = self.outcomes.send(ScoreReport { id, score });
        if let Some(bell) = self.bell.get() {
            bell.notify_one();
        }
    }

    /// Ends the process and all processes that it has started.
    fn kill(&mut self) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        let group = rustix::process::Pid::from_child(&running.child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = running.child.kill();
        let _ = running.child.wait();
    }
}

/// Forwards the output of a process, line by line.
fn listen(stdout: impl Read, number: u64, events: &Sender<Event>) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line);
        let is_whole = read.is_ok() && line.ends_with(b"\n");
        let event = match is_whole {
            true => Event::Line(number, String::from_utf8_lossy(&line).trim().to_owned()),
            false => Event::Closed(number),
        };
        if events.send(event).is_err() || !is_whole {
            return;
        }
    }
}

/// Returns the page number in a response, if it has one, and the score.
fn parse(line: &str) -> (Option<u64>, Option<f32>) {
    #[derive(Deserialize)]
    struct Answer {
        id: Option<u64>,
        score: Option<f32>,
    }
    let (id, score) = match serde_json::from_str::<Answer>(line) {
        Ok(Answer { id, score }) if line.starts_with('{') => (id, score),
        _ => (None, line.parse().ok()),
    };
    (id, score.filter(|score| (0.0..=1.0).contains(score)))
}
