//! A thread that passes data to the operating system while another thread makes the next data.
//!
//! *Question.* One thread writes the columns of the first stage in order. A third of its time is
//! the copy of its buffers into the cache of the operating system. How can another core do it?
//!
//! *Idea.* A full buffer goes to a thread that writes it, in order, and gives the empty buffer
//! back. *Bounds.* At most [`MAX_WAITING`] buffers wait, then the maker of the data does.
//! *Error.* A write that fails is reported by the next write to the same file, or when the file is
//! flushed.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Maximum number of buffers that wait to be written.
const MAX_WAITING: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// The thread. It ends when all files that it writes are closed.
pub(crate) struct Background {
    /// Filled by the makers of the data, emptied by the thread; none once it is closed.
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Empty buffers to use again. The lock is never held while data is written.
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Background {
    /// Starts the thread; none if a run has only one.
    pub(crate) fn start() -> Option<Arc<Self>> {
        if rayon::current_num_threads() == 1 {
            return None;
        }
        let (sender, jobs): (_, Receiver<Job>) = sync_channel(MAX_WAITING);
        let thread = std::thread::spawn(move || jobs.into_iter().for_each(|job| job()));
        Some(Arc::new(Self {
            jobs: Some(sender),
            thread: Some(thread),
            spare: Arc::default(),
        }))
    }

    /// Runs a job after all jobs before it.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(Box::new(job)));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(io::Error::other("the thread that writes has ended")),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by a job that could not be sent or did not answer.
            let _ = thread.join();
        }
    }
}

/// A file that the thread writes.
pub(crate) struct BackgroundFile {
    file: Arc<File>,
    buffer: Vec<u8>,
    n_buffer_bytes: usize,
    failure: Arc<Mutex<Option<io::Error>>>,
    background: Arc<Background>,
}

impl BackgroundFile {
    /// Writes to `file` in buffers of this many bytes.
    pub(crate) fn new(file: File, n_buffer_bytes: usize, background: &Arc<Background>) -> Self {
        Self {
            file: Arc::new(file),
            buffer: Vec::with_capacity(n_buffer_bytes),
            n_buffer_bytes,
            failure: Arc::default(),
            background: Arc::clone(background),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > self.n_buffer_bytes {
            self.send()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns when the operating system has all data.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.send()?;
        let (sender, is_done) = sync_channel(1);
        self.background.run(move || {
            let _ = sender.send(());
        })?;
        if is_done.recv().is_err() {
            return Err(io::Error::other("the thread that writes has ended"));
        }
        self.check()
    }

    fn send(&mut self) -> io::Result<()> {
        self.check()?;
        let spare = lock(&self.background.spare).pop();
        let spare = spare.unwrap_or_else(|| Vec::with_capacity(self.n_buffer_bytes));
        let mut buffer = std::mem::replace(&mut self.buffer, spare);
        let file = Arc::clone(&self.file);
        let failure = Arc::clone(&self.failure);
        let spare = Arc::clone(&self.background.spare);
        self.background.run(move || {
            if let Err(error) = (&*file).write_all(&buffer) {
                lock(&failure).get_or_insert(error);
            }
            buffer.clear();
            lock(&spare).push(buffer);
        })
    }

    fn check(&self) -> io::Result<()> {
        lock(&self.failure).take().map_or(Ok(()), Err)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_threads(n: usize, run: impl FnOnce() + Send) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build();
        pool.unwrap().install(run);
    }

    #[test]
    fn files_get_their_bytes_in_order() {
        let folder = tempfile::tempdir().unwrap();
        with_threads(2, || {
            let background = Background::start().unwrap();
            let paths = ["a", "b"].map(|name| folder.path().join(name));
            let mut files = paths
                .each_ref()
                .map(|path| BackgroundFile::new(File::create(path).unwrap(), 10, &background));
            let mut expected = [Vec::new(), Vec::new()];
            for n in 0..2000_usize {
                let bytes = vec![n as u8; n % 17];
                files[n % 2].write_all(&bytes).unwrap();
                expected[n % 2].extend(bytes);
            }
            // What is flushed is there while the file is still open.
            files[0].flush().unwrap();
            assert!(std::fs::read(&paths[0]).unwrap() == expected[0]);
            files[1].flush().unwrap();
            assert!(std::fs::read(&paths[1]).unwrap() == expected[1]);
        });
    }

    #[test]
    fn a_failed_write_is_reported() {
        with_threads(2, || {
            let background = Background::start().unwrap();
            let full = File::options().write(true).open("/dev/full").unwrap();
            let mut file = BackgroundFile::new(full, 4, &background);
            let mut written = (0..10_000).map(|_| file.write_all(b"abc"));
            let error = written.find_map(Result::err).unwrap();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            let full = File::options().write(true).open("/dev/full").unwrap();
            let mut file = BackgroundFile::new(full, 4, &background);
            file.write_all(b"abc").unwrap();
            let error = file.flush().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        });
    }

    #[test]
    fn one_thread_stays_one() {
        with_threads(1, || assert!(Background::start().is_none()));
    }
}
