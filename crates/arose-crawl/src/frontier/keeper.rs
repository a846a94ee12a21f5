//! A thread that reads and writes the shelf, so that the crawl loop never waits for its file.
//!
//! The loop sends batches to be written and hosts to be read, in order, and continues. A callback
//! reports each finished job. [`super::Hosts`] sends the jobs and collects the results, and sends
//! no more while too many are open.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::host::Host;
use super::shelf::{self, Piece, Spot};
use crate::journal::HostId;

/// A job.
#[derive(Debug)]
enum Job {
    Write(Vec<Piece>),
    Read(HostId, Spot),
}

/// A finished job.
#[derive(Debug)]
pub(super) enum Done {
    Written(io::Result<Vec<Piece>>),
    Read(HostId, io::Result<Box<Host>>),
}

/// The loop's side.
#[derive(Debug)]
pub(super) struct Keeper {
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread, which calls `ring` after each job.
    pub(super) fn start(file: Arc<File>, ring: impl Fn() + Send + 'static) -> Self {
        let (jobs, todo) = channel();
        let (sender, done) = channel();
        let thread = std::thread::spawn(move || {
            for job in todo {
                // If the loop has ended, the result is not needed.
                if sender.send(carry_out(&file, job)).is_err() {
                    break;
                }
                ring();
            }
        });
        Self {
            jobs: Some(jobs),
            done,
            thread: Some(thread),
        }
    }

    pub(super) fn write(&self, batch: Vec<Piece>) {
        self.send(Job::Write(batch));
    }

    pub(super) fn read(&self, id: HostId, spot: Spot) {
        self.send(Job::Read(id, spot));
    }

    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // If the thread has ended, the next wait for it notices.
            let _ = jobs.send(job);
        }
    }

    /// Returns a finished job; `None` if there is none yet.
    pub(super) fn try_next(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }

    /// Waits for a job to finish; `None` if the thread has ended.
    pub(super) fn next(&self) -> Option<Done> {
        self.done.recv().ok()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry_out(file: &File, job: Job) -> Done {
    match job {
        Job::Write(batch) => Done::Written(shelf::write(file, &batch).map(|()| batch)),
        Job::Read(id, spot) => {
            let host = shelf::read(file, spot).and_then(|bytes| host_of(&bytes));
            Done::Read(id, host)
        }
    }
}

/// Parses a host.
pub(super) fn host_of(bytes: &[u8]) -> io::Result<Box<Host>> {
    let host = Host::from_bytes(bytes).map(Box::new);
    host.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
