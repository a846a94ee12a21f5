//! Messages: how records travel.
//!
//! A message holds records of one kind, one after the other. Fixed ones are their bytes, little end
//! first; others say their lengths. Nothing is aligned, so records are copied out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use bytemuck::Pod;
use serde_json::Value;

use super::kind;
use crate::Error;

/// Records on their way to a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// Where to.
    pub part: i64,
    /// What they are.
    pub kind: i32,
    /// Their place among those of the same part and kind.
    pub seq: i64,
    /// The records.
    pub bytes: Cow<'a, [u8]>,
    /// What goes with them.
    pub more: Option<Cow<'a, [u8]>>,
}

impl Message<'_> {
    /// Records of fixed size.
    pub(crate) fn records<T: Pod>(&self) -> Result<Vec<T>, Error> {
        records(&self.bytes)
    }
}

/// Bytes as records of fixed size.
pub(crate) fn records<T: Pod>(bytes: &[u8]) -> Result<Vec<T>, Error> {
    if !bytes.len().is_multiple_of(size_of::<T>()) {
        return Err(torn());
    }
    let chunks = bytes.chunks_exact(size_of::<T>());
    Ok(chunks.map(bytemuck::pod_read_unaligned).collect())
}

pub(crate) fn torn() -> Error {
    Error::Message {
        detail: "a record is torn".to_owned(),
    }
}

/// Takes records of any size out of bytes.
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

/// Bytes to one part before they become a message.
const MESSAGE_BYTES: usize = 1 << 19;
/// Bytes to all parts before they become messages.
const SINK_BYTES: usize = 16 << 20;

/// Gathers what a step gives.
#[derive(Default)]
pub struct Sink {
    open: BTreeMap<(i32, i64), (i64, Vec<u8>)>,
    n_open: usize,
    messages: Vec<Message<'static>>,
    rows: Vec<RecordBatch>,
}

impl Sink {
    /// Addresses a record to a part; `seq` orders messages by their first record.
    pub(crate) fn push(&mut self, kind: i32, part: i64, seq: i64, pieces: &[&[u8]]) {
        let (_, bytes) = self.open.entry((kind, part)).or_insert((seq, Vec::new()));
        for piece in pieces {
            bytes.extend_from_slice(piece);
            self.n_open += piece.len();
        }
        if bytes.len() >= MESSAGE_BYTES {
            self.close(kind, part);
        } else if self.n_open >= SINK_BYTES {
            self.finish();
        }
    }

    /// Tells the driver something.
    pub(crate) fn note(&mut self, note: &Value) {
        let bytes = serde_json::to_vec(note).expect("values have string keys");
        self.messages.push(Message {
            part: -1,
            kind: kind::NOTE,
            seq: 0,
            bytes: bytes.into(),
            more: None,
        });
    }

    pub(crate) fn rows(&mut self, batch: RecordBatch) {
        self.rows.push(batch);
    }

    pub(crate) fn forward(&mut self, message: &Message<'_>) {
        self.messages.push(Message {
            bytes: message.bytes.to_vec().into(),
            more: None,
            ..*message
        });
    }

    fn close(&mut self, kind: i32, part: i64) {
        if let Some((seq, bytes)) = self.open.remove(&(kind, part)) {
            self.n_open -= bytes.len();
            self.messages.push(Message {
                part,
                kind,
                seq,
                bytes: bytes.into(),
                more: None,
            });
        }
    }

    /// Makes messages of all that is open.
    pub(crate) fn finish(&mut self) {
        while let Some((&(kind, part), _)) = self.open.first_key_value() {
            self.close(kind, part);
        }
    }

    pub(crate) fn take_messages(&mut self) -> Vec<Message<'static>> {
        std::mem::take(&mut self.messages)
    }

    pub(crate) fn take_rows(&mut self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.rows)
    }
}
