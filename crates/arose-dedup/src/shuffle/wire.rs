//! Messages: the encoding of records.
//!
//! A message contains records of one kind, one after the other. Fixed-size records are
//! little-endian bytes, and others start with their lengths. Nothing is aligned, so records are
//! copied out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use bytemuck::Pod;
use serde_json::Value;

use super::kind;
use crate::Error;

/// Records addressed to a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// The part.
    pub part: i64,
    /// The kind of the records.
    pub kind: i32,
    /// The position among messages of the same part and kind.
    pub seq: i64,
    /// The records.
    pub bytes: Cow<'a, [u8]>,
    /// Additional data.
    pub more: Option<Cow<'a, [u8]>>,
}

impl Message<'_> {
    /// Records of fixed size.
    pub(crate) fn records<T: Pod>(&self) -> Result<Vec<T>, Error> {
        records(&self.bytes)
    }
}

/// Returns bytes as records of fixed size.
pub(crate) fn records<T: Pod>(bytes: &[u8]) -> Result<Vec<T>, Error> {
    if !bytes.len().is_multiple_of(size_of::<T>()) {
        return Err(torn());
    }
    let chunks = bytes.chunks_exact(size_of::<T>());
    Ok(chunks.map(bytemuck::pod_read_unaligned).collect())
}

pub(crate) fn torn() -> Error {
    Error::Message {
        detail: "a record is incomplete".to_owned(),
    }
}

/// An error for a record about a document that does not exist: the messages are of different runs.
pub(crate) fn misfit(what: &str, doc: impl Into<u64>) -> Error {
    Error::Message {
        detail: format!(
            "{what} of document {} does not match the others; start over with force",
            doc.into()
        ),
    }
}

/// Reads records of any size from bytes.
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(n).ok_or_else(torn)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn record<T: Pod>(&mut self) -> Result<T, Error> {
        self.bytes(size_of::<T>()).map(bytemuck::pod_read_unaligned)
    }

    pub(crate) fn records<T: Pod>(&mut self, n: usize) -> Result<Vec<T>, Error> {
        records(self.bytes(n * size_of::<T>())?)
    }

    pub(crate) fn text(&mut self, n: usize) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(self.bytes(n)?).into_owned())
    }
}

/// Bytes for one part before they become a message.
const MESSAGE_BYTES: usize = 1 << 19;
/// Bytes for all parts before they become messages.
const SINK_BYTES: usize = 16 << 20;
/// Bytes of messages before they are passed on.
const READY_BYTES: usize = 4 << 20;

/// A receiver of messages and rows while a step runs.
pub type Drain =
    Box<dyn FnMut(Vec<Message<'static>>, Vec<RecordBatch>) -> Result<(), Error> + Send>;

/// Collects the output of a step and passes it on in portions. The output for one part may be many
/// times as large as the part.
pub struct Sink {
    open: BTreeMap<(i32, i64), (i64, Vec<u8>)>,
    n_open: usize,
    messages: Vec<Message<'static>>,
    /// Bytes in `messages`.
    n_ready: usize,
    rows: Vec<RecordBatch>,
    drain: Drain,
}

impl Sink {
    pub(crate) fn new(drain: Drain) -> Self {
        Self {
            open: BTreeMap::new(),
            n_open: 0,
            messages: Vec::new(),
            n_ready: 0,
            rows: Vec::new(),
            drain,
        }
    }

    /// Addresses a record to a part; `seq` orders messages by their first record.
    pub(crate) fn push(
        &mut self,
        kind: i32,
        part: i64,
        seq: i64,
        pieces: &[&[u8]],
    ) -> Result<(), Error> {
        let (_, bytes) = self.open.entry((kind, part)).or_insert((seq, Vec::new()));
        for piece in pieces {
            bytes.extend_from_slice(piece);
            self.n_open += piece.len();
        }
        if bytes.len() >= MESSAGE_BYTES {
            self.close(kind, part)
        } else if self.n_open >= SINK_BYTES {
            self.close_all()
        } else {
            Ok(())
        }
    }

    /// Sends a note to the driver.
    pub(crate) fn note(&mut self, note: &Value) -> Result<(), Error> {
        let bytes = serde_json::to_vec(note).expect("values have string keys");
        self.send(Message {
            part: -1,
            kind: kind::NOTE,
            seq: 0,
            bytes: bytes.into(),
            more: None,
        })
    }

    pub(crate) fn rows(&mut self, batch: RecordBatch) -> Result<(), Error> {
        self.rows.push(batch);
        self.drain()
    }

    pub(crate) fn forward(&mut self, message: &Message<'_>) -> Result<(), Error> {
        self.send(Message {
            bytes: message.bytes.to_vec().into(),
            more: None,
            ..*message
        })
    }

    fn close(&mut self, kind: i32, part: i64) -> Result<(), Error> {
        let Some((seq, bytes)) = self.open.remove(&(kind, part)) else {
            return Ok(());
        };
        self.n_open -= bytes.len();
        self.send(Message {
            part,
            kind,
            seq,
            bytes: bytes.into(),
            more: None,
        })
    }

    fn send(&mut self, message: Message<'static>) -> Result<(), Error> {
        self.n_ready += message.bytes.len();
        self.messages.push(message);
        match self.n_ready >= READY_BYTES {
            true => self.drain(),
            false => Ok(()),
        }
    }

    fn drain(&mut self) -> Result<(), Error> {
        self.n_ready = 0;
        let messages = std::mem::take(&mut self.messages);
        (self.drain)(messages, std::mem::take(&mut self.rows))
    }

    /// Completes all open messages of one kind.
    pub(crate) fn close_kind(&mut self, kind: i32) -> Result<(), Error> {
        let of_kind = (kind, i64::MIN)..=(kind, i64::MAX);
        while let Some((&(kind, part), _)) = self.open.range(of_kind.clone()).next() {
            self.close(kind, part)?;
        }
        Ok(())
    }

    fn close_all(&mut self) -> Result<(), Error> {
        while let Some((&(kind, part), _)) = self.open.first_key_value() {
            self.close(kind, part)?;
        }
        Ok(())
    }

    /// Passes on everything.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.close_all()?;
        self.drain()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    type Portions = Arc<Mutex<Vec<Vec<Message<'static>>>>>;

    fn sink() -> (Sink, Portions) {
        let portions = Portions::default();
        let taken = Arc::clone(&portions);
        let drain = move |messages, _| {
            taken.lock().expect("no test panics here").push(messages);
            Ok(())
        };
        (Sink::new(Box::new(drain)), portions)
    }

    /// A step may output many times its input, so nothing waits for its end.
    #[test]
    fn what_a_step_gives_is_handed_on_while_it_works() {
        let (mut sink, portions) = sink();
        for seq in 0..64 {
            sink.push(kind::PAIR, 7, seq, &[&[1; MESSAGE_BYTES]])
                .unwrap();
            assert!(sink.n_ready < READY_BYTES + MESSAGE_BYTES);
        }
        sink.finish().unwrap();
        let portions = portions.lock().unwrap();
        let sizes = portions.iter().map(|portion| {
            let bytes = portion.iter().map(|message| message.bytes.len());
            bytes.sum::<usize>()
        });
        assert!(sizes.clone().all(|n| n <= READY_BYTES));
        assert_eq!(sizes.sum::<usize>(), 64 * MESSAGE_BYTES);
    }

    /// Messages of one kind can be completed without those of others.
    #[test]
    fn kinds_are_closed_on_their_own() {
        let (mut sink, portions) = sink();
        for part in 0..3 {
            sink.push(kind::MEMBER, part, 0, &[&[1]]).unwrap();
            sink.push(kind::LONG, part, 0, &[&[1]]).unwrap();
        }
        sink.close_kind(kind::LONG).unwrap();
        for part in 0..3 {
            sink.push(kind::MEMBER, part, 9, &[&[2]]).unwrap();
            sink.push(kind::LONG, part, 9, &[&[2]]).unwrap();
        }
        sink.finish().unwrap();
        let portions = portions.lock().unwrap();
        let of_kind = |kind| {
            let messages = portions.iter().flatten();
            let messages = messages.filter(move |message| message.kind == kind);
            messages.map(|message| (message.seq, message.bytes.len()))
        };
        assert_eq!(of_kind(kind::MEMBER).collect::<Vec<_>>(), [(0, 2); 3]);
        let long: Vec<_> = of_kind(kind::LONG).collect();
        assert_eq!(long, [(0, 1), (0, 1), (0, 1), (9, 1), (9, 1), (9, 1)]);
    }
}
