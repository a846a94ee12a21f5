//! Threads that read pages.
//!
//! The thread that fetches must never be late for a host. So it reads no pages itself, unless
//! `machine.threads` is 0, which tests use so that time stands still meanwhile. Jobs go into a
//! bounded queue that the workers empty, and reports into one that the crawl empties. While the
//! first is full, no new requests are made.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

use crate::error::Error;
use crate::page::{Job, Reader, Report, Shared};

/// Maximum number of queued jobs per worker.
const QUEUE: usize = 64;

/// Reads pages, here or on threads.
#[derive(Debug)]
pub(crate) struct Workers {
    place: Readers,
    /// The state for reading pages.
    shared: Arc<Shared>,
    /// Jobs without a report.
    pub(crate) n_open: usize,
    n_most: usize,
    /// Jobs that did not fit into the queue; at most as many as there were open requests.
    overflow: VecDeque<Assignment>,
}

/// A job, and the state for reading it.
type Assignment = (Job, Arc<Shared>);

#[derive(Debug)]
enum Readers {
    Here(Box<Reader>, VecDeque<Report>),
    Threads {
        jobs: SyncSender<Assignment>,
        reports: mpsc::Receiver<Report>,
        threads: Vec<JoinHandle<()>>,
    },
}

impl Workers {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let n_threads = shared.settings.machine.threads;
        let place = match n_threads {
            0 => Readers::Here(Box::new(Reader::new(Arc::clone(shared))), VecDeque::new()),
            _ => threads(shared, n_threads),
        };
        Self {
            place,
            shared: Arc::clone(shared),
            n_open: 0,
            n_most: QUEUE * n_threads.max(1),
            overflow: VecDeque::new(),
        }
    }

    /// Changes the settings of later jobs.
    pub(crate) fn renew(&mut self, shared: &Arc<Shared>) {
        self.shared = Arc::clone(shared);
    }

    /// Submits a job.
    pub(crate) fn submit(&mut self, job: Job) -> Result<(), Error> {
        self.n_open += 1;
        match &mut self.place {
            Readers::Here(reader, reports) => {
                reader.renew(&self.shared);
                reports.push_back(reader.read(job));
                Ok(())
            }
            Readers::Threads { .. } => {
                self.overflow.push_back((job, Arc::clone(&self.shared)));
                self.push_overflow()
            }
        }
    }

    fn push_overflow(&mut self) -> Result<(), Error> {
        let Readers::Threads { jobs, threads, .. } = &self.place else {
            return Ok(());
        };
        if threads.iter().any(JoinHandle::is_finished) {
            return Err(Error::Worker);
        }
        while let Some(job) = self.overflow.pop_front() {
            match jobs.try_send(job) {
                Ok(()) => {}
                Err(TrySendError::Full(job)) => {
                    self.overflow.push_front(job);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => return Err(Error::Worker),
            }
        }
        Ok(())
    }

    /// Returns a report that is ready.
    pub(crate) fn try_next(&mut self) -> Result<Option<Report>, Error> {
        let report = match &mut self.place {
            Readers::Here(_, reports) => reports.pop_front(),
            Readers::Threads { reports, .. } => reports.try_recv().ok(),
        };
        if report.is_some() {
            self.n_open -= 1;
        }
        self.push_overflow()?;
        Ok(report)
    }

    /// Waits for a report; forever if none is due.
    pub(crate) async fn next(&mut self) -> Option<Report> {
        let report = match &mut self.place {
            Readers::Here(_, reports) => reports.pop_front(),
            Readers::Threads { reports, .. } => reports.recv().await,
        };
        match report {
            Some(report) => {
                self.n_open -= 1;
                Some(report)
            }
            None => std::future::pending().await,
        }
    }

    /// Returns how full the queue is.
    pub(crate) fn backlog(&self) -> f64 {
        self.n_open as f64 / self.n_most as f64
    }
}

fn threads(shared: &Arc<Shared>, n_threads: usize) -> Readers {
    let (jobs, queue) = sync_channel(QUEUE * n_threads);
    let (sender, reports) = mpsc::channel(QUEUE * n_threads);
    let queue = Arc::new(Mutex::new(queue));
    let start = |_| {
        let (queue, sender) = (Arc::clone(&queue), sender.clone());
        let mut reader = Reader::new(Arc::clone(shared));
        std::thread::spawn(move || {
            while let Some((job, shared)) = next_job(&queue) {
                reader.renew(&shared);
                if sender.blocking_send(reader.read(job)).is_err() {
                    return;
                }
            }
        })
    };
    Readers::Threads {
        threads: (0..n_threads).map(start).collect(),
        jobs,
        reports,
    }
}

/// Waits for a job. The lock is held meanwhile, because another worker that needs a job has nothing
/// else to do either.
fn next_job(queue: &Mutex<Receiver<Assignment>>) -> Option<Assignment> {
    queue
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .recv()
        .ok()
}

impl Drop for Workers {
    /// Waits for the threads, which end when there are no more jobs.
    fn drop(&mut self) {
        let nothing = Readers::Threads {
            jobs: sync_channel(1).0,
            reports: mpsc::channel(1).1,
            threads: Vec::new(),
        };
        if let Readers::Threads {
            jobs,
            reports,
            threads,
        } = std::mem::replace(&mut self.place, nothing)
        {
            drop((jobs, reports));
            for thread in threads {
                let _ = thread.join();
            }
        }
    }
}
