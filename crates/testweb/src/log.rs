//! The log of all requests to the server, with their times.
//!
//! Times are monotonic, since the start of the server. A request *starts* when its head has been
//! read. It *ends* just before its last bytes are passed to the system, or when a client that gave
//! up was last seen waiting. Both err in favour of the client: it sent the request earlier than it
//! was seen, and received the response later than it was sent. Therefore every overlap and every
//! short gap in the log is real, and none is an artefact of scheduling.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::config::LogTo;
use crate::error::Error;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When its head had been read.
    pub start: Duration,
    /// When its last bytes were sent, or the time of the snapshot if they were not.
    pub end: Duration,
    /// The IP address it was sent to.
    pub address: Ipv4Addr,
    /// The host it named, in lower case, without port.
    pub host: Box<str>,
    /// Path and query.
    pub target: Box<str>,
    /// Status of the response; 0 if there was none.
    pub status: u16,
    /// Seconds of `Retry-After` in the response; 0 for none.
    pub retry_after: u16,
    /// Number of bytes sent, including the head.
    pub n_bytes: u64,
}

/// A query to the DNS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// When it arrived.
    pub at: Duration,
    /// The host name, in lower case.
    pub name: Box<str>,
    /// The type of record, 1 for an address.
    pub kind: u16,
}

/// All requests and queries. The [judge](crate::judge) reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// Time of day when the server started, since 1970.
    pub started: Duration,
    /// Requests in the order of their start, or, from a file, in the order of their end.
    pub records: Vec<Record>,
    /// Queries to the DNS server; not stored in files.
    pub queries: Vec<Query>,
    /// Number of accepted connections; not stored in files.
    pub n_connections: u64,
}

impl Log {
    /// Reads a log file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a log.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let what = || format!("cannot read the log {}", path.display());
        let file = File::open(path).map_err(Error::io(what()))?;
        let mut log = Self::default();
        for (idx, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(Error::io(what()))?;
            let bad = || Error::Log { line: idx + 1 };
            match line.strip_prefix(HEADER) {
                Some(started) => {
                    log.started = started
                        .parse()
                        .map(Duration::from_nanos)
                        .map_err(|_| bad())?;
                }
                None => log.records.push(read_line(&line).ok_or_else(bad)?),
            }
        }
        Ok(log)
    }
}

const HEADER: &str = "# testweb log; start end address host target status retry bytes; from ";

fn write_line(record: &Record, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
        record.start.as_nanos(),
        record.end.as_nanos(),
        record.address,
        record.host,
        record.target,
        record.status,
        record.retry_after,
        record.n_bytes
    )
}

fn read_line(line: &str) -> Option<Record> {
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    Some(Record {
        start: Duration::from_nanos(next()?.parse().ok()?),
        end: Duration::from_nanos(next()?.parse().ok()?),
        address: next()?.parse().ok()?,
        host: next()?.into(),
        target: next()?.into(),
        status: next()?.parse().ok()?,
        retry_after: next()?.parse().ok()?,
        n_bytes: next()?.parse().ok()?,
    })
}

/// Stores the log while the server runs. The lock guards all of it and is never held during a wait.
pub(crate) struct Recorder {
    epoch: Instant,
    started: Duration,
    inner: Mutex<Inner>,
}

struct Inner {
    store: Store,
    queries: Vec<Query>,
    n_connections: u64,
    n_requests: u64,
    /// The first write error; nothing is recorded after it.
    failure: Option<io::Error>,
}

enum Store {
    Nothing,
    Memory(Vec<Record>),
    File {
        out: BufWriter<File>,
        /// Requests that have not ended, by number.
        open: BTreeMap<u64, Record>,
    },
}

/// A request that has started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(u64);

/// Marks a request that has not ended.
const OPEN: Duration = Duration::MAX;

impl Recorder {
    pub(crate) fn new(to: &LogTo) -> Result<Self, Error> {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let started = since_1970.unwrap_or_default();
        let store = match to {
            LogTo::Nothing => Store::Nothing,
            LogTo::Memory => Store::Memory(Vec::new()),
            LogTo::File(path) => {
                let what = format!("cannot write the log {}", path.display());
                let begun = File::create(path).and_then(|file| {
                    let mut out = BufWriter::with_capacity(1 << 16, file);
                    writeln!(out, "{HEADER}{}", started.as_nanos())?;
                    Ok(out)
                });
                Store::File {
                    out: begun.map_err(Error::io(what))?,
                    open: BTreeMap::new(),
                }
            }
        };
        Ok(Self {
            epoch: Instant::now(),
            started,
            inner: Mutex::new(Inner {
                store,
                queries: Vec::new(),
                n_connections: 0,
                n_requests: 0,
                failure: None,
            }),
        })
    }

    /// Time since the server started.
    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Time of day, in seconds since 1970.
    pub(crate) fn unix_seconds(&self) -> u64 {
        (self.started + self.now()).as_secs()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connection(&self) {
        self.lock().n_connections += 1;
    }

    pub(crate) fn query(&self, name: &str, kind: u16) {
        let query = Query {
            at: self.now(),
            name: name.to_ascii_lowercase().into(),
            kind,
        };
        let mut inner = self.lock();
        if matches!(inner.store, Store::Memory(_)) {
            inner.queries.push(query);
        }
    }

    /// Records the start of a request; its end is added later.
    pub(crate) fn begin(&self, mut record: Record) -> Ticket {
        record.end = OPEN;
        let mut inner = self.lock();
        let number = inner.n_requests;
        inner.n_requests += 1;
        match &mut inner.store {
            Store::Nothing => {}
            Store::Memory(records) => records.push(record),
            Store::File { open, .. } => {
                open.insert(number, record);
            }
        }
        Ticket(number)
    }

    /// Records the end of a request.
    pub(crate) fn end(&self, ticket: Ticket, end: Duration, n_bytes: u64) {
        let mut inner = self.lock();
        let written = match &mut inner.store {
            Store::Nothing => Ok(()),
            Store::Memory(records) => {
                if let Some(record) = records.get_mut(ticket.0 as usize) {
                    (record.end, record.n_bytes) = (end, n_bytes);
                }
                Ok(())
            }
            Store::File { out, open } => match open.remove(&ticket.0) {
                Some(record) => write_line(
                    &Record {
                        end,
                        n_bytes,
                        ..record
                    },
                    out,
                ),
                None => Ok(()),
            },
        };
        inner.fail_if(written);
    }

    pub(crate) fn n_requests(&self) -> u64 {
        self.lock().n_requests
    }

    /// The records in memory so far.
    pub(crate) fn snapshot(&self) -> Log {
        let now = self.now();
        let inner = self.lock();
        let records = match &inner.store {
            Store::Memory(records) => records.clone(),
            _ => Vec::new(),
        };
        let closed = |record: Record| match record.end {
            OPEN => Record { end: now, ..record },
            _ => record,
        };
        Log {
            started: self.started,
            records: records.into_iter().map(closed).collect(),
            queries: inner.queries.clone(),
            n_connections: inner.n_connections,
        }
    }

    /// Passes buffered data to the system, so that little is lost if the process is killed.
    pub(crate) fn flush(&self) {
        let mut inner = self.lock();
        if let Store::File { out, .. } = &mut inner.store {
            let written = out.flush();
            inner.fail_if(written);
        }
    }

    /// Writes the open requests and returns the first write error.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let now = self.now();
        let mut inner = self.lock();
        if let Store::File { out, open } = &mut inner.store {
            let mut rest = std::mem::take(open).into_values();
            let written = rest
                .try_for_each(|record| write_line(&Record { end: now, ..record }, out))
                .and_then(|()| out.flush());
            inner.fail_if(written);
        }
        inner.failure.take().map_or(Ok(()), Err)
    }
}

impl Inner {
    fn fail_if(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.store = Store::Nothing;
            self.failure.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(start: u64) -> Record {
        Record {
            start: Duration::from_nanos(start),
            end: OPEN,
            address: Ipv4Addr::new(127, 1, 0, 1),
            host: "a.test".into(),
            target: "/x?y".into(),
            status: 503,
            retry_after: 2,
            n_bytes: 0,
        }
    }

    #[test]
    fn a_file_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let recorder = Recorder::new(&LogTo::File(path.clone())).unwrap();
        let first = recorder.begin(record(1));
        recorder.begin(record(2));
        recorder.end(first, Duration::from_nanos(5), 7);
        recorder.finish().unwrap();
        let log = Log::open(&path).unwrap();
        assert_eq!(log.started, recorder.started);
        let ended = Record {
            end: Duration::from_nanos(5),
            n_bytes: 7,
            ..record(1)
        };
        assert_eq!(log.records[0], ended);
        assert_eq!(log.records.len(), 2);
        assert!(log.records[1].end < OPEN);
    }

    #[test]
    fn a_broken_file_is_named_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, format!("{HEADER}5\n1\t2\tx\n")).unwrap();
        let error = Log::open(&path).unwrap_err();
        assert!(matches!(error, Error::Log { line: 2 }), "{error}");
    }

    /// A response that never ends must still be visible to the judge.
    #[test]
    fn open_requests_last_until_now() {
        let recorder = Recorder::new(&LogTo::Memory).unwrap();
        recorder.begin(record(0));
        let log = recorder.snapshot();
        assert!(log.records[0].end > Duration::ZERO && log.records[0].end < OPEN);
    }
}
