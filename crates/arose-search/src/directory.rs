//! The files of an index: everyone who can read the directory can read them, even if it is
//! read-only.
//!
//! The index library creates a lock file before it reads, which fails in a read-only directory.
//! There the lock is omitted. It keeps files from being removed while they are being opened, and a
//! process that cannot write cannot remove files. The library creates some of its files for their
//! owner only. Here they get the same permissions as any other new file.

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

/// Whether an error means that the directory cannot be written to.
pub(crate) fn is_read_only(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(kind, PermissionDenied | ReadOnlyFilesystem)
}

/// Opens an index for reading.
pub(crate) fn open_read_only(path: &Path) -> tantivy::Result<Index> {
    Index::open(Files::new(path, Locks::IfAllowed)?)
}

/// Opens an index for writing, or creates one.
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

/// Whether locks are required.
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
        // Each writer, in this process or another, has its own file name.
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
