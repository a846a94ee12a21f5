//! Copies of logs in the directory of an agent.
//!
//! Servers may lose messages they have confirmed, and even their whole store. So the owner of a
//! partition keeps a copy of its log, and writes again what the servers lack. A file per partition
//! has the messages in their order, each behind its length; a partial message at the end does not
//! count.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::bus::MAX_MESSAGE;
use super::status::ClusterStatus;
use crate::error::{Context, Error};

/// The copies of an agent.
#[derive(Debug)]
pub(crate) struct Copies {
    folder: PathBuf,
}

impl Copies {
    /// Opens the copies in a directory, which is created if it is missing.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).context("creating", folder)?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    fn path(&self, partition: u8) -> PathBuf {
        self.folder.join(format!("{partition}.log"))
    }

    /// Writes down what this agent sees of its cluster, for people; one that cannot be written does
    /// not matter.
    pub(crate) fn show(&self, status: &ClusterStatus) {
        let path = self.folder.join("agents.json");
        let new = path.with_extension("new");
        let bytes = serde_json::to_vec(status).unwrap_or_default();
        let _ = fs::write(&new, bytes).and_then(|()| fs::rename(&new, path));
    }

    /// Replaces the copy of a partition.
    pub(crate) fn replace(&self, partition: u8, messages: &[Vec<u8>]) -> io::Result<()> {
        let path = self.path(partition);
        let new = path.with_extension("new");
        let mut file = io::BufWriter::new(File::create(&new)?);
        messages
            .iter()
            .try_for_each(|message| write(&mut file, message))?;
        file.into_inner()?;
        fs::rename(new, path)
    }

    /// Adds a message to the copy of a partition.
    pub(crate) fn push(&self, partition: u8, message: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .create(true)
            .open(self.path(partition))?;
        let mut bytes = Vec::with_capacity(message.len() + 4);
        write(&mut bytes, message)?;
        file.write_all(&bytes)
    }

    /// Returns the messages of a partition.
    pub(crate) fn read(&self, partition: u8) -> io::Result<Vec<Vec<u8>>> {
        let mut bytes = Vec::new();
        match File::open(self.path(partition)) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let (mut rest, mut messages) = (&bytes[..], Vec::new());
        while let Some((length, behind)) = rest.split_first_chunk()
            && let length = u32::from_le_bytes(*length) as usize
            && length <= MAX_MESSAGE
            && let Some((message, behind)) = behind.split_at_checked(length)
        {
            messages.push(message.to_vec());
            rest = behind;
        }
        Ok(messages)
    }

    /// Returns how many bytes the copy of a partition has.
    pub(crate) fn n_bytes(&self, partition: u8) -> u64 {
        fs::metadata(self.path(partition)).map_or(0, |metadata| metadata.len())
    }

    /// Removes the copy of a partition that has another owner now.
    pub(crate) fn remove(&self, partition: u8) {
        // One that stays is older than that of the next owner.
        let _ = fs::remove_file(self.path(partition));
    }
}

fn write(out: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(message)
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Title, frame};
    use super::*;

    fn message(epoch: u64, number: u64) -> Vec<u8> {
        let agent = "a-1".to_owned();
        frame(
            &Title {
                agent,
                epoch,
                number,
            },
            &[],
        )
    }

    #[test]
    fn partial_messages_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let copies = Copies::open(folder.path()).unwrap();
        assert_eq!(copies.read(7).unwrap(), Vec::<Vec<u8>>::new());
        copies.replace(7, &[message(1, 0), message(1, 1)]).unwrap();
        copies.push(7, &message(2, 0)).unwrap();
        let all = [message(1, 0), message(1, 1), message(2, 0)];
        assert_eq!(copies.read(7).unwrap(), all);
        let path = copies.path(7);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(copies.read(7).unwrap(), all[..2]);
        copies.remove(7);
        assert_eq!(copies.n_bytes(7), 0);
    }
}
