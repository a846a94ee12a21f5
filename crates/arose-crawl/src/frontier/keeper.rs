//! A thread that reads and writes the shelf, so that the crawl loop never waits for its file.
//!
//! The loop sends segments to be written, hosts to be read and segments to be emptied, in order,
//! and continues. A callback reports each finished job. [`super::Hosts`] sends the jobs and
//! collects the results, and sends no more while too many are open.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::host::Host;
use super::shelf::{self, Emptied, Segment, Spot};
use crate::journal::HostId;

/// Number of hosts that are read together, because waking a thread takes longer than reading one.
const GROUP: usize = 64;

/// A job.
#[derive(Debug)]
enum Job {
    Write(Segment),
    Read(Vec<(HostId, Spot)>),
    Empty(usize),
}

/// A finished job.
#[derive(Debug)]
pub(super) enum Done {
    Written(io::Result<Segment>),
    Read(Vec<(HostId, io::Result<Box<Host>>)>),
    Emptied(io::Result<Emptied>),
}

/// The loop's side.
#[derive(Debug)]
pub(super) struct Keeper {
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    /// Hosts to be read that were not sent to the thread yet.
    unsent: Vec<(HostId, Spot)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread, which calls `ring` after each job.
    pub(super) fn start(file: Arc<File>, ring: impl Fn() + Send + 'static) -> Self {
        let (jobs, todo) = channel();
        let (sender, done) = channel();
        let thread = std::thread::spawn(move || {
            let mut buffer = Vec::new();
            for job in todo {
                // If the loop has ended, the result is not needed.
                if sender.send(carry_out(&file, job, &mut buffer)).is_err() {
                    break;
                }
                ring();
            }
        });
        Self {
            jobs: Some(jobs),
            done,
            unsent: Vec::with_capacity(GROUP),
            thread: Some(thread),
        }
    }

    pub(super) fn write(&mut self, segment: Segment) {
        self.flush();
        self.send(Job::Write(segment));
    }

    /// Reads a segment that is to be emptied.
    pub(super) fn empty(&mut self, number: usize) {
        self.flush();
        self.send(Job::Empty(number));
    }

    /// Reads a host together with others, at the latest after the next [flush](Self::flush).
    pub(super) fn read(&mut self, id: HostId, spot: Spot) {
        self.unsent.push((id, spot));
        if self.unsent.len() >= GROUP {
            self.flush();
        }
    }

    /// Sends the hosts to be read to the thread.
    pub(super) fn flush(&mut self) {
        if !self.unsent.is_empty() {
            let hosts = std::mem::replace(&mut self.unsent, Vec::with_capacity(GROUP));
            self.send(Job::Read(hosts));
        }
    }

    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // If the thread has ended, the next wait for it notices.
            let _ = jobs.send(job);
        }
    }

    /// Returns a finished job; `None` if there is none yet.
    pub(super) fn try_next(&mut self) -> Option<Done> {
        self.flush();
        self.done.try_recv().ok()
    }

    /// Waits for a job to finish; `None` if the thread has ended.
    pub(super) fn next(&mut self) -> Option<Done> {
        self.flush();
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

fn carry_out(file: &File, job: Job, buffer: &mut Vec<u8>) -> Done {
    match job {
        Job::Write(segment) => Done::Written(segment.write(file).map(|()| segment)),
        Job::Read(asked) => {
            let mut read = |spot| shelf::read(file, spot, buffer).and_then(host_of);
            Done::Read(
                asked
                    .into_iter()
                    .map(|(id, spot)| (id, read(spot)))
                    .collect(),
            )
        }
        Job::Empty(number) => Done::Emptied(Emptied::read(file, number)),
    }
}

/// Parses a host.
pub(super) fn host_of(bytes: &[u8]) -> io::Result<Box<Host>> {
    let host = Host::from_bytes(bytes).map(Box::new);
    host.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
