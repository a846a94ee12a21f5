//! Index files in directories that may not be written to.
//!
//! The index library makes a lock file before it reads, which fails where nothing may be written.
//! There the lock is left out: it keeps files from being removed while they are opened, and nobody
//! who may not write removes any.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tantivy::Index;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

/// Whether this is how a system says that nothing may be written.
pub(crate) fn is_read_only(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(kind, PermissionDenied | ReadOnlyFilesystem)
}

/// Opens an index for reading.
pub(crate) fn open_read_only(path: &Path) -> tantivy::Result<Index> {
    Index::open(ReadOnly(MmapDirectory::open(path)?))
}

/// A directory that is read, with locks where they can be had.
#[derive(Debug, Clone)]
struct ReadOnly(MmapDirectory);

impl Directory for ReadOnly {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.0.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.0.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.0.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.0.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.0.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.0.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        match self.0.acquire_lock(lock) {
            Err(LockError::IoError(error)) if is_read_only(error.kind()) => {
                Ok(DirectoryLock::from(Box::new(())))
            }
            result => result,
        }
    }

    fn watch(&self, watch_callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.0.watch(watch_callback)
    }
}
