//! Files whose changes must survive a crash, and a recording of those changes.
//!
//! *Question.* A program that keeps its guarantees after a power failure must bring the right files
//! to disk in the right order. Tests that kill a process cannot show this, since the operating
//! system still has all written data.
//!
//! *Idea.* All durable data is written through [`File`] and the functions here. They are those of
//! `std::fs`, and also sync the directory where a name must last. A test [records](Recording) the
//! changes below a directory and generates from them what a power failure may leave: unsynced
//! writes that are dropped, partial or out of order. *Cost.* Without a recording, one comparison of
//! a number per write.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A file open for writing.
#[derive(Debug)]
pub struct File {
    file: fs::File,
    /// The position at which [`Write`] continues.
    at: u64,
    /// Its number in a recording.
    recorded: Option<(Arc<Log>, u64)>,
}

/// The content of a file when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenedAs {
    Empty,
    AsItIs,
}

impl File {
    /// Creates an empty file. An existing file loses its content.
    ///
    /// # Errors
    ///
    /// As `std::fs::File::create`.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Self::with(path, &options, OpenedAs::Empty)
    }

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    ///
    /// As `std::fs::File::open`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        Self::with(path, options.read(true).write(true), OpenedAs::AsItIs)
    }

    /// Opens a file for reading and writing, and creates an empty one if it does not exist.
    ///
    /// # Errors
    ///
    /// As `std::fs::File::create`.
    pub fn open_or_create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        Self::with(path, &options, OpenedAs::AsItIs)
    }

    fn with(path: &Path, options: &OpenOptions, start: OpenedAs) -> io::Result<Self> {
        let recording = recording_of(path);
        let file = options.open(path)?;
        let recorded = recording.map(|log| {
            let number = log.state().opened(path, start);
            (log, number)
        });
        Ok(Self {
            file,
            at: 0,
            recorded,
        })
    }

    /// Returns the file, for reading.
    #[must_use]
    pub fn as_file(&self) -> &fs::File {
        &self.file
    }

    /// Writes all bytes at a position.
    ///
    /// # Errors
    ///
    /// If the operating system reports an error. Some of the bytes may have been written.
    pub fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let written = self.file.write_all_at(bytes, at);
        self.record(|file| DiskChange::Write {
            file,
            at,
            bytes: bytes.into(),
        });
        written
    }

    /// Cuts the file to a length, or pads it with zeros.
    ///
    /// # Errors
    ///
    /// If the operating system reports an error.
    pub fn set_len(&self, n_bytes: u64) -> io::Result<()> {
        self.file.set_len(n_bytes)?;
        self.record(|file| DiskChange::Length { file, n_bytes });
        Ok(())
    }

    /// Returns when the content is on disk. A new file also needs [`sync_folder`].
    ///
    /// # Errors
    ///
    /// If the operating system reports an error.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.record(|file| DiskChange::Sync { file });
        if let Some((log, _)) = &self.recorded {
            log.pause();
        }
        Ok(())
    }

    fn record(&self, change: impl FnOnce(u64) -> DiskChange) {
        if let Some((log, number)) = &self.recorded {
            log.state().changes.push(change(*number));
        }
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lock of a directory, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: fs::File,
}

impl Lock {
    /// Takes the lock in a file, which is created if it is missing. Returns none if another
    /// process, or another part of this one, has the lock.
    ///
    /// # Errors
    ///
    /// If the operating system reports an error.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = fs::File::options().create(true).append(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough. A child process has a copy of it from the moment it is
        // forked until it runs its program, and the lock belongs to all copies. If unlocking fails,
        // closing is all that is left.
        let _ = self.file.unlock();
    }
}

/// Renames a file, and replaces an existing file of the new name.
///
/// # Errors
///
/// As `std::fs::rename`.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    if let Some(log) = recording_of(to) {
        log.state().renamed(from, to);
    }
    Ok(())
}

/// Removes a file.
///
/// # Errors
///
/// As `std::fs::remove_file`.
pub fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    if let Some(log) = recording_of(path) {
        log.state().removed(path);
    }
    Ok(())
}

/// Returns when the names in a directory are on disk.
///
/// # Errors
///
/// If the operating system reports an error.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()?;
    if let Some(log) = recording_of(path) {
        let path = path.to_owned();
        log.state().changes.push(DiskChange::SyncFolder { path });
        log.pause();
    }
    Ok(())
}

/// Returns when the content of an existing file is on disk, even if another process wrote it.
///
/// # Errors
///
/// If the operating system reports an error.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()?;
    if let Some(log) = recording_of(path) {
        let mut state = log.state();
        let file = state.opened(path, OpenedAs::AsItIs);
        state.changes.push(DiskChange::Sync { file });
    }
    Ok(())
}

/// Removes a directory with all its contents.
///
/// # Errors
///
/// As `std::fs::remove_dir_all`.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path)?;
    if let Some(log) = recording_of(path) {
        let mut state = log.state();
        state.files.retain(|file, _| !file.starts_with(path));
        state.removed(path);
    }
    Ok(())
}

/// Creates a directory and its missing parents. They are durable when this returns.
///
/// # Errors
///
/// If the operating system reports an error.
pub fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    create_folder(parent)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        created => created?,
    }
    if let Some(log) = recording_of(path) {
        let path = path.to_owned();
        log.state().changes.push(DiskChange::Directory { path });
    }
    sync_folder(parent)
}

/// Replaces a file atomically: after a crash it has the old content or the new.
///
/// # Errors
///
/// If the operating system reports an error. The file is then unchanged.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let file = File::create(&part)?;
    file.write_all_at(bytes, 0)?;
    file.sync()?;
    rename(&part, path)?;
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    sync_folder(parent.unwrap_or(Path::new(".")))
}

/// A change below a recorded directory. Files have numbers, since names change.
#[derive(Debug, Clone)]
pub enum DiskChange {
    /// A file was seen under this name: a new file, or one that existed before.
    Link {
        /// The name.
        path: PathBuf,
        /// The file.
        file: u64,
    },
    /// Bytes were written.
    Write {
        /// The file.
        file: u64,
        /// The position.
        at: u64,
        /// The bytes.
        bytes: Box<[u8]>,
    },
    /// A file was truncated or padded with zeros.
    Length {
        /// The file.
        file: u64,
        /// Its length.
        n_bytes: u64,
    },
    /// The content of a file was synced.
    Sync {
        /// The file.
        file: u64,
    },
    /// A file was renamed.
    Rename {
        /// The old name.
        from: PathBuf,
        /// The new one.
        to: PathBuf,
    },
    /// A name was removed.
    Remove {
        /// The name.
        path: PathBuf,
    },
    /// A directory was created.
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The names in a directory were synced.
    SyncFolder {
        /// The directory.
        path: PathBuf,
    },
}

/// Records the changes below a directory until it is dropped.
#[derive(Debug)]
pub struct Recording {
    log: Arc<Log>,
}

#[derive(Debug)]
struct Log {
    root: PathBuf,
    /// Additional duration of each sync.
    sync_takes: Duration,
    state: Mutex<LogState>,
}

#[derive(Debug, Default)]
struct LogState {
    changes: Vec<DiskChange>,
    /// The files that have names.
    files: BTreeMap<PathBuf, u64>,
    n_files: u64,
}

/// All recordings. There are few, and only in tests.
static RECORDINGS: Mutex<Vec<Arc<Log>>> = Mutex::new(Vec::new());
static N_RECORDINGS: AtomicUsize = AtomicUsize::new(0);

impl Recording {
    /// Starts to record changes below `root`.
    #[must_use]
    pub fn start(root: &Path) -> Self {
        Self::start_slow(root, Duration::ZERO)
    }

    /// As [`Recording::start`], on a disk that takes this long for every sync.
    #[must_use]
    pub fn start_slow(root: &Path, sync_takes: Duration) -> Self {
        let log = Arc::new(Log {
            root: root.to_owned(),
            sync_takes,
            state: Mutex::default(),
        });
        recordings().push(Arc::clone(&log));
        N_RECORDINGS.fetch_add(1, Ordering::SeqCst);
        Self { log }
    }

    /// Returns the number of changes so far.
    #[must_use]
    pub fn n_changes(&self) -> usize {
        self.log.state().changes.len()
    }

    /// Returns all changes so far.
    #[must_use]
    pub fn changes(&self) -> Vec<DiskChange> {
        self.log.state().changes.clone()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        N_RECORDINGS.fetch_sub(1, Ordering::SeqCst);
        recordings().retain(|log| !Arc::ptr_eq(log, &self.log));
    }
}

fn recordings() -> MutexGuard<'static, Vec<Arc<Log>>> {
    RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn recording_of(path: &Path) -> Option<Arc<Log>> {
    if N_RECORDINGS.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let all = recordings();
    all.iter().find(|log| path.starts_with(&log.root)).cloned()
}

impl Log {
    fn pause(&self) {
        if !self.sync_takes.is_zero() {
            std::thread::sleep(self.sync_takes);
        }
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogState {
    fn opened(&mut self, path: &Path, start: OpenedAs) -> u64 {
        let file = match self.files.get(path) {
            Some(&file) => file,
            None => {
                let file = self.n_files;
                self.n_files += 1;
                self.files.insert(path.to_owned(), file);
                let path = path.to_owned();
                self.changes.push(DiskChange::Link { path, file });
                file
            }
        };
        if start == OpenedAs::Empty {
            let n_bytes = 0;
            self.changes.push(DiskChange::Length { file, n_bytes });
        }
        file
    }

    fn renamed(&mut self, from: &Path, to: &Path) {
        if let Some(file) = self.files.remove(from) {
            self.files.insert(to.to_owned(), file);
        }
        let (from, to) = (from.to_owned(), to.to_owned());
        self.changes.push(DiskChange::Rename { from, to });
    }

    fn removed(&mut self, path: &Path) {
        self.files.remove(path);
        let path = path.to_owned();
        self.changes.push(DiskChange::Remove { path });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a child process that another thread is starting.
    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        assert!(Lock::take(&path).unwrap().is_none());
        let copy = lock.file.try_clone().unwrap();
        drop(lock);
        assert!(Lock::take(&path).unwrap().is_some());
        drop(copy);
    }

    #[test]
    fn changes_are_recorded_by_file_and_not_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        let recording = Recording::start(&root);
        create_folder(&root).unwrap();
        let file = File::create(&root.join("a")).unwrap();
        file.write_all_at(b"one", 0).unwrap();
        rename(&root.join("a"), &root.join("b")).unwrap();
        file.write_all_at(b"two", 3).unwrap();
        file.sync().unwrap();
        let again = File::open_or_create(&root.join("b")).unwrap();
        again.set_len(4).unwrap();
        replace(&folder.path().join("elsewhere"), b"x").unwrap();
        let files: Vec<Option<u64>> = recording
            .changes()
            .iter()
            .map(|change| match change {
                DiskChange::Link { file, .. }
                | DiskChange::Write { file, .. }
                | DiskChange::Length { file, .. }
                | DiskChange::Sync { file } => Some(*file),
                _ => None,
            })
            .collect();
        let expected = [
            None,
            Some(0),
            Some(0),
            Some(0),
            None,
            Some(0),
            Some(0),
            Some(0),
        ];
        assert_eq!(files, expected);
        assert_eq!(fs::read(root.join("b")).unwrap(), b"onet");
        remove(&root.join("b")).unwrap();
        assert_eq!(recording.n_changes(), 9);
        drop(recording);
        assert!(recording_of(&root).is_none());
    }
}
