//! The keeper: a thread that reads and writes the shelf, so that the loop never waits for its file.
//!
//! The loop sends batches to be written and hosts to be read, in the order in which they happen,
//! and goes on; a bell rings when something was done. Filled and emptied by [`super::Hosts`], which
//! stops asking while too much is under way.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::host::Host;
use super::shelf::{self, Piece, Spot};
use crate::journal::HostId;

/// What is to be done.
#[derive(Debug)]
enum Job {
    Write(Vec<Piece>),
    Read(HostId, Spot),
}

/// What was done.
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
                // Where nobody listens any more, nobody has to know.
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
            // A thread that has ended is noticed by whoever waits for it.
            let _ = jobs.send(job);
        }
    }

    /// Something that was done; none if there is nothing yet.
    pub(super) fn try_next(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }

    /// Waits for something to be done; none if the thread has ended.
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

/// A host from its bytes.
pub(super) fn host_of(bytes: &[u8]) -> io::Result<Box<Host>> {
    let host = Host::from_bytes(bytes).map(Box::new);
    host.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
