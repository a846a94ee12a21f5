//! The files of an index, readable by everyone who can read the directory, even if it is read-only.
//!
//! The index library makes a lock file before it reads, which fails where nothing may be written.
//! There the lock is omitted: it keeps files from being removed while they are opened, and nobody
//! who may not write removes any. Some of its files it makes for their owner alone; here they have
//! the same permissions as any other new file.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};
use tantivy::{Index, IndexBuilder};

/// Whether this is how a system says that nothing may be written.
pub(crate) fn is_read_only(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(kind, PermissionDenied | ReadOnlyFilesystem)
}

/// Opens an index for reading.
pub(crate) fn open_read_only(path: &Path) -> tantivy::Result<Index> {
    Index::open(Files::new(path, Locks::IfAllowed)?)
}

/// Opens an index, or makes one, for writing.
pub(crate) fn open_or_create(path: &Path, builder: IndexBuilder) -> tantivy::Result<Index> {
    builder.open_or_create(Files::new(path, Locks::Always)?)
}

/// The files in a directory.
#[derive(Debug, Clone)]
struct Files {
    path: PathBuf,
    inner: MmapDirectory,
    locks: Locks,
}

/// Whether there must be locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Locks {
    Always,
    IfAllowed,
}

impl Files {
    fn new(path: &Path, locks: Locks) -> tantivy::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            inner: MmapDirectory::open(path)?,
            locks,
        })
    }
}

impl Directory for Files {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.inner.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.inner.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.inner.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.inner.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        // A name of its own for each writer, of this process and of others.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (process, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let temporary = format!("{}.{process}-{n}.new", path.display());
        let temporary = self.path.join(temporary);
        let mut file = fs::File::create(&temporary)?;
        file.write_all(data)?;
        file.sync_data()?;
        fs::rename(&temporary, self.path.join(path))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        match self.inner.acquire_lock(lock) {
            Err(LockError::IoError(error))
                if self.locks == Locks::IfAllowed && is_read_only(error.kind()) =>
            {
                Ok(DirectoryLock::from(Box::new(())))
            }
            result => result,
        }
    }

    fn watch(&self, watch_callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(watch_callback)
    }
}
