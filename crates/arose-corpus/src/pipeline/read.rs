//! Reads a corpus with many threads and returns it in input order.
//!
//! *Question.* How can all cores be kept busy with little memory, and the documents still be
//! delivered in input order, whatever the number of threads?
//!
//! *Idea.* Work is divided into *tasks* in input order: a block of lines or records, a row group, a
//! few small files. Dividing is cheap compared with the work inside a task, so it needs no separate
//! thread. Each worker takes the lock of the [`Plan`], cuts the next task, queues the receiving end
//! of a new channel for its results, releases the lock and works. The consumer takes the receiving
//! ends in the order in which they were queued and empties one after the other. A worker that finds
//! the lock taken decodes ahead of the one that has it (see [`ahead`](crate::source::ahead)) and
//! tries again.
//!
//! *Bounds.* The queue has at most two tasks per thread and each channel one batch, so a worker
//! that is ahead waits. It cannot wait forever, because the oldest task always has a worker that
//! needs no lock and a consumer that receives.
//!
//! *Order.* The lock numbers the tasks, and a task numbers its results. Neither depends on which
//! thread does the work, so any number of threads gives the same output.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::JoinHandle;

use crate::config::Config;
use crate::document::{Counts, Item};
use crate::error::Error;
use crate::format::sniff::is_document_name;
use crate::pipeline::bookmark::{Bookmark, Start};
use crate::pipeline::open::{Open, Task};
use crate::source::ahead::Board;
use crate::source::input::{Input, Inputs};

/// Number of small files per task.
const FILES_PER_TASK: usize = 16;

/// Reads all `inputs`: files, directories, patterns, `-` for standard input.
///
/// # Errors
///
/// If an input passed by the user does not exist. Everything that happens later is an [`Item`].
pub fn read(inputs: &[PathBuf], config: Config) -> Result<Documents<Item>, Error> {
    read_map(inputs, config, |item| item)
}

/// Like [`read`], and applies `work` to every item on the worker threads.
///
/// # Errors
///
/// If an input passed by the user does not exist.
pub fn read_map<T: Send + 'static>(
    inputs: &[PathBuf],
    config: Config,
    work: impl Fn(Item) -> T + Send + Sync + 'static,
) -> Result<Documents<T>, Error> {
    read_from_bookmark(inputs, config, &Bookmark::default(), work)
}

/// Like [`read_map`], but starts at a [bookmark](Documents::bookmark) of an earlier reader of the
/// same inputs.
///
/// # Errors
///
/// If an input passed by the user does not exist, or the bookmark is not in the inputs.
pub fn read_from_bookmark<T: Send + 'static>(
    inputs: &[PathBuf],
    config: Config,
    bookmark: &Bookmark,
    work: impl Fn(Item) -> T + Send + Sync + 'static,
) -> Result<Documents<T>, Error> {
    let mut inputs = Inputs::new(inputs, &config.files)?;
    let Start { n_inputs, within } = &bookmark.start;
    let mut n_taken = inputs.by_ref().take(*n_inputs as usize).count() as u64;
    let mut open = None;
    if let Some(within) = within {
        let input = inputs.next().ok_or(Error::Bookmark)?;
        n_taken += 1;
        if !open.insert(Open::new(input, &config)).go_on(within) {
            return Err(Error::Bookmark);
        }
    }
    let mut documents = Documents::start_at(inputs, open, n_taken, config, work);
    documents.counts = bookmark.counts.clone();
    Ok(documents)
}

/// Reads bytes from any source; `name` is the file name in positions and may determine the format.
pub fn read_from(
    name: &Path,
    reader: impl Read + Send + 'static,
    config: Config,
) -> Documents<Item> {
    let inputs = Inputs::from_reader(name, Box::new(reader));
    Documents::start(inputs, config, |item| item)
}

/// The items of a corpus, in input order.
///
/// Dropping it stops the workers.
pub struct Documents<T> {
    /// Filled by workers in task order, emptied by [`next`](Iterator::next).
    tasks: Option<Receiver<Announced<T>>>,
    task: Option<Receiver<Message<T>>>,
    /// The start of the task, if nothing of it has been delivered and the start can be determined.
    start: Option<Start>,
    batch: std::vec::IntoIter<T>,
    counts: Counts,
    workers: Vec<JoinHandle<()>>,
}

/// The receiver of the results of a task, and the start of the task.
type Announced<T> = (Receiver<Message<T>>, Option<Start>);

/// A message from a worker about its task.
enum Message<T> {
    Batch(Vec<T>, Counts),
    End,
}

impl<T: Send + 'static> Documents<T> {
    pub(crate) fn start(
        inputs: Inputs,
        config: Config,
        work: impl Fn(Item) -> T + Send + Sync + 'static,
    ) -> Self {
        Self::start_at(inputs, None, 0, config, work)
    }

    /// Starts with an open input, if there is one. `n_taken` is the number of inputs already taken
    /// from `inputs`.
    fn start_at(
        inputs: Inputs,
        open: Option<Open>,
        n_taken: u64,
        config: Config,
        work: impl Fn(Item) -> T + Send + Sync + 'static,
    ) -> Self {
        let n_threads = config.threads.get();
        let (queue, tasks) = sync_channel(2 * n_threads);
        let board = Arc::new(Board::default());
        let mut plan = Plan {
            inputs,
            n_taken,
            small_files: Vec::new(),
            open,
            board: Arc::clone(&board),
            queue,
        };
        plan.post(&config);
        let shared = Arc::new(Shared {
            plan: Mutex::new(plan),
            board,
            config,
            work,
        });
        let workers = (0..n_threads)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.work_off())
            })
            .collect();
        Self {
            tasks: Some(tasks),
            task: None,
            start: None,
            batch: Vec::new().into_iter(),
            counts: Counts::default(),
            workers,
        }
    }
}

impl<T> Documents<T> {
    /// Counts of everything delivered, up to the current batch; complete when the iterator has
    /// ended.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// A position to resume from: exactly the items before it have been delivered. There is none in
    /// the middle of a task.
    pub fn bookmark(&mut self) -> Option<Bookmark> {
        while self.batch.len() == 0 {
            let Some(task) = &self.task else {
                self.next_task()?;
                continue;
            };
            if let Some(start) = &self.start {
                return Some(Bookmark {
                    start: start.clone(),
                    counts: self.counts.clone(),
                });
            }
            match task.recv() {
                Ok(Message::Batch(batch, counts)) => self.take(batch, &counts),
                Ok(Message::End) => self.task = None,
                // The next result is a panic of the worker.
                Err(_) => return None,
            }
        }
        None
    }

    /// Moves to the next task; none if there is none.
    fn next_task(&mut self) -> Option<()> {
        let (task, start) = self.tasks.as_ref()?.recv().ok()?;
        (self.task, self.start) = (Some(task), start);
        Some(())
    }

    fn take(&mut self, batch: Vec<T>, counts: &Counts) {
        self.counts.merge(counts);
        self.start = None;
        self.batch = batch.into_iter();
    }

    /// Moves to the next batch in order; none if there is none.
    fn next_batch(&mut self) -> Option<()> {
        loop {
            if self.task.is_none() && self.next_task().is_none() {
                // Nothing was started, or everything is done.
                self.tasks.as_ref()?;
                self.counts.losses.finish();
                self.join();
                return None;
            }
            match self.task.as_ref()?.recv() {
                Ok(Message::Batch(batch, counts)) => {
                    self.take(batch, &counts);
                    return Some(());
                }
                Ok(Message::End) => self.task = None,
                // The worker died in the middle of its task.
                Err(_) => {
                    self.join();
                    return None;
                }
            }
        }
    }

    /// Waits for the workers and propagates a panic of one of them.
    fn join(&mut self) {
        (self.task, self.tasks) = (None, None);
        for worker in self.workers.drain(..) {
            if let Err(panic) = worker.join()
                && !std::thread::panicking()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl<T> Iterator for Documents<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(item) = self.batch.next() {
                return Some(item);
            }
            self.next_batch()?;
        }
    }
}

impl<T> Drop for Documents<T> {
    fn drop(&mut self) {
        self.join();
    }
}

/// Splits the inputs into tasks, in order.
struct Plan<T> {
    inputs: Inputs,
    /// Number of inputs taken from `inputs`.
    n_taken: u64,
    /// Files to hand out together; they were the last ones taken.
    small_files: Vec<Input>,
    open: Option<Open>,
    board: Arc<Board>,
    /// The queue in which tasks are announced.
    queue: SyncSender<Announced<T>>,
}

impl<T> Plan<T> {
    /// The next task, and its start if it can be determined.
    fn next(&mut self, config: &Config) -> Option<(Task, Option<Start>)> {
        loop {
            if let Some(open) = &mut self.open {
                let start = open.start(self.n_taken - 1);
                if let Some(task) = open.next() {
                    return Some((task, start));
                }
                self.open = None;
            }
            match self.inputs.next() {
                Some(Input::File(path, origin)) if is_document_name(&path) => {
                    self.n_taken += 1;
                    self.small_files.push(Input::File(path, origin));
                    if self.small_files.len() == FILES_PER_TASK {
                        return self.take_files(0);
                    }
                }
                Some(input) => {
                    self.n_taken += 1;
                    self.open = Some(Open::new(input, config));
                    self.post(config);
                    if !self.small_files.is_empty() {
                        return self.take_files(1);
                    }
                }
                None => return self.take_files(0),
            }
        }
    }

    /// Lets other threads decode ahead of the one that cuts the open input.
    fn post(&mut self, config: &Config) {
        let ahead = self.open.as_mut().and_then(|open| open.read_ahead(config));
        self.board.post(ahead.as_ref());
    }

    /// The small files, after which `n_after` inputs were taken.
    fn take_files(&mut self, n_after: u64) -> Option<(Task, Option<Start>)> {
        let files = std::mem::take(&mut self.small_files);
        let start = Start {
            n_inputs: self.n_taken - n_after - files.len() as u64,
            within: None,
        };
        (!files.is_empty()).then_some((Task::Files(files), Some(start)))
    }
}

struct Shared<T, F> {
    plan: Mutex<Plan<T>>,
    /// Work to do while another worker has the plan. Its lock is taken while the lock of the plan
    /// is held, or alone.
    board: Arc<Board>,
    config: Config,
    work: F,
}

impl<T, F: Fn(Item) -> T> Shared<T, F> {
    /// Runs tasks until there are none left, or the consumer is gone.
    fn work_off(&self) {
        while let Some((task, results)) = self.take_task() {
            if self.run(task, &results).is_none() {
                return;
            }
        }
    }

    fn take_task(&self) -> Option<(Task, SyncSender<Message<T>>)> {
        let mut plan = self.lock_plan()?;
        let (task, start) = plan.next(&self.config)?;
        let (sender, receiver) = sync_channel(1);
        plan.queue.send((receiver, start)).ok()?;
        Some((task, sender))
    }

    /// Waits for the plan, and decodes ahead of the worker that has it. A lock poisoned by a panic
    /// means that the run has failed.
    fn lock_plan(&self) -> Option<MutexGuard<'_, Plan<T>>> {
        loop {
            match self.plan.try_lock() {
                Ok(plan) => return Some(plan),
                Err(TryLockError::Poisoned(_)) => return None,
                Err(TryLockError::WouldBlock) if self.board.help() => {}
                Err(TryLockError::WouldBlock) => return self.plan.lock().ok(),
            }
        }
    }

    fn run(&self, task: Task, results: &SyncSender<Message<T>>) -> Option<()> {
        let mut batch = Vec::new();
        let mut counts = Counts::default();
        let mut n_bytes = 0;
        let mut is_heard = true;
        task.run(&self.config, &mut |item| {
            if let Item::Document(document) = &item {
                n_bytes += document.text.len();
            }
            n_bytes += 128;
            counts.add(&item);
            batch.push((self.work)(item));
            if n_bytes >= self.config.block_bytes.get() && is_heard {
                n_bytes = 0;
                let message =
                    Message::Batch(std::mem::take(&mut batch), std::mem::take(&mut counts));
                is_heard = results.send(message).is_ok();
            }
        });
        if is_heard && !batch.is_empty() {
            is_heard = results.send(Message::Batch(batch, counts)).is_ok();
        }
        (is_heard && results.send(Message::End).is_ok()).then_some(())
    }
}
