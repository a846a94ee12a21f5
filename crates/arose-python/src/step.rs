//! The steps of the job for engines such as Spark: batches of messages in, batches out.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arose_corpus::{Loss, Part, PartFile, Parts};
use arose_dedup::shuffle::{self, Chunk, Context, Message};
use arose_dedup::{Config, Error, IncompleteFile};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;
use serde::{Deserialize, Serialize};

use crate::error;
use crate::options::{self, Options};
use crate::table::Table;

/// Bytes in a batch of messages, unless a single one has more. The engine has several copies of it
/// in memory.
const BATCH_BYTES: usize = 4 << 20;

static MESSAGES: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("part", DataType::Int64, false),
        Field::new("kind", DataType::Int32, false),
        Field::new("seq", DataType::Int64, false),
        Field::new("bytes", DataType::Binary, false),
        Field::new("more", DataType::Binary, true),
    ]))
});

static CHUNKS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let bytes = |name: &str| Field::new(name, DataType::Binary, false);
    Arc::new(Schema::new(vec![
        Field::new("part", DataType::Int64, false),
        Field::new("seq", DataType::Int64, false),
        Field::new("n_docs", DataType::Int64, false),
        Field::new("n_tokens", DataType::Int64, false),
        bytes("docs"),
        bytes("sketches"),
        bytes("vectors"),
        bytes("tokens"),
        Field::new("note", DataType::Utf8, true),
    ]))
});

/// A step running on its own thread; see `arose_dedup::shuffle`. Its output is passed on while it
/// runs: the thread waits when it is two batches ahead.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Worker {
    batches: Mutex<Option<SyncSender<RecordBatch>>>,
    given: Mutex<Receiver<Result<Given, Error>>>,
}

/// An item of the output of a step.
enum Given {
    /// A batch of messages, or of rows.
    Batch(RecordBatch, bool),
    /// The output for the last batch, or for all batches, is complete.
    Taken,
}

#[pymethods]
impl Worker {
    #[new]
    fn new(step: &str, options: &str, context: &str) -> PyResult<Self> {
        let config = options::parse::<Options>(options)?.config()?;
        let context: Context = options::parse(context)?;
        let (sender, given) = sync_channel(2);
        let to_drain = sender.clone();
        let drain = move |messages: Vec<Message<'static>>, rows: Vec<RecordBatch>| {
            let messages = batches_of(&messages).into_iter();
            let rows = rows.iter().map(|rows| Given::Batch(signed(rows), true));
            let mut all = messages.map(|batch| Given::Batch(batch, false)).chain(rows);
            all.try_for_each(|given| to_drain.send(Ok(given)).map_err(|_| Error::Stopped))
        };
        let worker = shuffle::Worker::new(step, &config, context, Box::new(drain));
        let worker = worker.map_err(error::run)?;
        let (batches, to_take) = sync_channel(0);
        std::thread::spawn(move || {
            if let Err(error) = work(worker, &to_take, &sender) {
                // If the receiver is gone, this is why the step stopped.
                let _ = sender.send(Err(error));
            }
        });
        Ok(Self {
            batches: Mutex::new(Some(batches)),
            given: Mutex::new(given),
        })
    }

    /// Pass a batch of messages to the step. `next` returns its output.
    fn push(&self, py: Python<'_>, batch: AnyRecordBatch) -> PyResult<()> {
        let batches = batch.into_reader()?.collect::<Result<Vec<_>, _>>();
        let batches = batches.map_err(error::arrow)?;
        let [batch] = batches.try_into().map_err(|_| one_batch())?;
        py.detach(|| {
            let to = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
            // A step that has failed accepts no more messages, and `next` returns the error.
            let _ = to.as_ref().map(|to| to.send(batch));
        });
        Ok(())
    }

    /// End the messages. `next` returns the remaining output of the step.
    fn finish(&self) {
        let mut to = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        *to = None;
    }

    /// Return the next batch of output, and whether it has rows; none if the step waits for
    /// messages.
    fn next(&self, py: Python<'_>) -> PyResult<Option<(Table, bool)>> {
        let given = py.detach(|| {
            let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
            given.recv().unwrap_or(Err(Error::Stopped))
        });
        match given.map_err(error::run)? {
            Given::Batch(batch, is_rows) => Ok(Some((Table::of(batch), is_rows))),
            Given::Taken => Ok(None),
        }
    }
}

fn one_batch() -> PyErr {
    error::AroseError::new_err("expected one batch of messages")
}

/// Receives batches until there are no more.
fn work(
    mut worker: shuffle::Worker,
    batches: &Receiver<RecordBatch>,
    given: &SyncSender<Result<Given, Error>>,
) -> Result<(), Error> {
    let taken = || given.send(Ok(Given::Taken)).map_err(|_| Error::Stopped);
    for batch in batches {
        push(&mut worker, &batch)?;
        taken()?;
    }
    worker.finish()?;
    taken()
}

fn push(worker: &mut shuffle::Worker, batch: &RecordBatch) -> Result<(), Error> {
    let parts = batch.column(0).as_primitive::<Int64Type>();
    let kinds = batch.column(1).as_primitive::<Int32Type>();
    let seqs = batch.column(2).as_primitive::<Int64Type>();
    let bytes = batch.column(3).as_binary::<i32>();
    let more = batch.column(4).as_binary::<i32>();
    for row in 0..batch.num_rows() {
        worker.push(&Message {
            part: parts.value(row),
            kind: kinds.value(row),
            seq: seqs.value(row),
            bytes: bytes.value(row).into(),
            more: more.is_valid(row).then(|| more.value(row).into()),
        })?;
    }
    Ok(())
}

fn batches_of(mut messages: &[Message<'static>]) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    while !messages.is_empty() {
        let (batch, others) = messages.split_at(n_in_batch(messages));
        batches.push(batch_of(batch));
        messages = others;
    }
    batches
}

/// Returns how many of these messages form a batch: at least one.
fn n_in_batch(messages: &[Message<'_>]) -> usize {
    let mut n_bytes = 0;
    let is_in = |message: &&Message<'_>| {
        n_bytes += message.bytes.len();
        n_bytes <= BATCH_BYTES
    };
    messages.iter().take_while(is_in).count().max(1)
}

fn batch_of(messages: &[Message<'static>]) -> RecordBatch {
    let each = || messages.iter();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(each().map(|message| message.part).collect::<Int64Array>()),
        Arc::new(each().map(|message| message.kind).collect::<Int32Array>()),
        Arc::new(each().map(|message| message.seq).collect::<Int64Array>()),
        Arc::new(BinaryArray::from_iter_values(
            each().map(|message| &*message.bytes),
        )),
        Arc::new(
            each()
                .map(|message| message.more.as_deref())
                .collect::<BinaryArray>(),
        ),
    ];
    RecordBatch::try_new(Arc::clone(&MESSAGES), columns).expect("columns are those of the schema")
}

/// Returns a batch without unsigned numbers, which Spark does not have.
fn signed(batch: &RecordBatch) -> RecordBatch {
    let columns: Vec<ArrayRef> = batch.columns().iter().map(signed_column).collect();
    let schema = batch.schema();
    let fields = schema.fields().iter().zip(&columns);
    let fields = fields.map(|(field, column)| {
        Field::new(
            field.name(),
            column.data_type().clone(),
            field.is_nullable(),
        )
    });
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns).expect("as many columns as before")
}

fn signed_column(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::UInt64 => {
            let column = column.as_primitive::<UInt64Type>();
            Arc::new(column.unary::<_, Int64Type>(|value| value as i64))
        }
        DataType::UInt32 => {
            let column = column.as_primitive::<UInt32Type>();
            Arc::new(column.unary::<_, Int64Type>(i64::from))
        }
        _ => Arc::clone(column),
    }
}

/// A part of the input as text, for transport by the engine.
#[derive(Serialize, Deserialize)]
struct PartText {
    files: Vec<(PathBuf, bool)>,
    range: Option<(u64, u64)>,
}

impl From<&Part> for PartText {
    fn from(part: &Part) -> Self {
        let files = part.files.iter();
        Self {
            files: files
                .map(|file| (file.path.clone(), file.is_found))
                .collect(),
            range: part.range.as_ref().map(|range| (range.start, range.end)),
        }
    }
}

impl From<PartText> for Part {
    fn from(text: PartText) -> Self {
        let files = text.files.into_iter();
        Self {
            files: files
                .map(|(path, is_found)| PartFile { path, is_found })
                .collect(),
            range: text.range.map(|(start, end)| start..end),
        }
    }
}

/// Parts as texts, and skipped files: their reason, and the warning if it is worth one, with the
/// incomplete file that it concerns as JSON.
type CutInput = (Vec<String>, Vec<(String, Option<String>, Option<String>)>);

/// Cut inputs into parts. Return their texts, and the skipped files. Directories in `skip` are not
/// entered.
#[pyfunction]
#[pyo3(signature = (inputs, n_bytes, options, skip = Vec::new()))]
pub(crate) fn cut_input(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    n_bytes: u64,
    options: &str,
    skip: Vec<PathBuf>,
) -> PyResult<CutInput> {
    let mut config = options::parse::<Options>(options)?.config()?;
    config.corpus.files.skip = skip;
    let cut = py.detach(|| arose_corpus::parts(&inputs, n_bytes, &config.corpus));
    let (parts, skipped) = cut.map_err(error::input)?;
    let text = |part| serde_json::to_string(&PartText::from(part));
    let parts: Result<Vec<String>, _> = parts.iter().map(text).collect();
    let skipped = skipped.iter();
    let skipped = skipped.map(|warning| {
        let text = warning.is_reported().then(|| warning.to_string());
        let file = (warning.loss == Loss::File).then(|| IncompleteFile::from(warning));
        let file = file.and_then(|file| serde_json::to_string(&file).ok());
        (warning.reason.name().to_owned(), text, file)
    });
    Ok((parts.map_err(error::input)?, skipped.collect()))
}

/// Chunks of documents, produced on another thread.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Chunks {
    receiver: Mutex<Receiver<Result<Chunk, Error>>>,
}

/// Read a part from [`cut_input`]. If a directory is given, columns of chunks stay there.
#[pyfunction]
pub(crate) fn read_part(
    number: i64,
    part: &str,
    options: &str,
    version: &str,
    folder: Option<PathBuf>,
) -> PyResult<Chunks> {
    let part: Part = options::parse::<PartText>(part)?.into();
    start(options, version, move |config, give| {
        shuffle::read_part(number, &part, config, folder.as_deref(), give)
    })
}

/// Read a file from bytes that the engine provides.
#[pyfunction]
pub(crate) fn read_bytes(
    number: i64,
    name: PathBuf,
    bytes: Vec<u8>,
    options: &str,
    version: &str,
    folder: Option<PathBuf>,
) -> PyResult<Chunks> {
    start(options, version, move |config, give| {
        shuffle::read_bytes(number, &name, bytes, config, folder.as_deref(), give)
    })
}

/// Runs `work` on a thread that waits when it is two chunks ahead.
fn start(
    options: &str,
    version: &str,
    work: impl FnOnce(&Config, &mut dyn FnMut(Chunk) -> Result<(), Error>) -> Result<(), Error>
    + Send
    + 'static,
) -> PyResult<Chunks> {
    shuffle::check_version(version).map_err(error::run)?;
    let config = options::parse::<Options>(options)?.config()?;
    let (sender, receiver) = sync_channel(2);
    std::thread::spawn(move || {
        let mut give = |chunk| sender.send(Ok(chunk)).map_err(|_| Error::Stopped);
        if let Err(error) = work(&config, &mut give) {
            // If the receiver is gone, this is why the thread stopped.
            let _ = sender.send(Err(error));
        }
    });
    Ok(Chunks {
        receiver: Mutex::new(receiver),
    })
}

#[pymethods]
impl Chunks {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let next = py.detach(|| {
            let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
            receiver.recv().ok()
        });
        let chunk = next.transpose().map_err(error::run)?;
        Ok(chunk.map(|chunk| Table::of(chunk_batch(&chunk))))
    }
}

fn chunk_batch(chunk: &Chunk) -> RecordBatch {
    let number = |n: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![n])) };
    let bytes = |bytes: &[u8]| -> ArrayRef { Arc::new(BinaryArray::from_iter_values([bytes])) };
    let columns = vec![
        number(chunk.part),
        number(chunk.seq),
        number(chunk.n_docs.into()),
        number(chunk.n_tokens as i64),
        bytes(&chunk.docs),
        bytes(&chunk.sketches),
        bytes(&chunk.vectors),
        bytes(&chunk.tokens),
        Arc::new(StringArray::from(vec![chunk.note.as_deref()])),
    ];
    RecordBatch::try_new(Arc::clone(&CHUNKS), columns).expect("columns are those of the schema")
}

/// Return the settings of a run by name, and the size of its messages in bytes, as JSON. Settings
/// that do not go together are an error.
#[pyfunction]
pub(crate) fn settings(options: &str) -> PyResult<(String, String)> {
    let config = options::parse::<Options>(options)?.config()?;
    arose_dedup::promise(&config).map_err(error::run)?;
    let sizes = shuffle::sizes(&config).map_err(error::run)?;
    let sizes = serde_json::to_string(&sizes).expect("numbers have names");
    Ok((shuffle::settings(&config).to_string(), sizes))
}

/// Return the schemas of messages, chunks and rows: by table the names of columns, their Spark
/// types, and whether values may be missing.
#[pyfunction]
pub(crate) fn schemas() -> BTreeMap<&'static str, Vec<(String, &'static str, bool)>> {
    let of = |schema: &Schema| {
        let fields = schema.fields().iter();
        let fields = fields.map(|field| {
            let name = field.name().clone();
            (name, spark_type(field.data_type()), field.is_nullable())
        });
        fields.collect()
    };
    let tables = shuffle::schemas();
    let tables = tables.iter().map(|(name, schema)| (*name, of(schema)));
    let own = [("messages", of(&MESSAGES)), ("chunks", of(&CHUNKS))];
    tables.chain(own).collect()
}

/// Returns the Spark type for a column. Spark has no unsigned numbers.
fn spark_type(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::UInt64 | DataType::UInt32 | DataType::Int64 => "long",
        DataType::Int32 => "int",
        DataType::Float64 => "double",
        DataType::Boolean => "boolean",
        DataType::Binary => "binary",
        _ => "string",
    }
}

/// Return the archives of crawls in place of their directories, and whether there was any.
#[pyfunction]
pub(crate) fn expand_inputs(inputs: Vec<PathBuf>) -> PyResult<(Vec<PathBuf>, bool)> {
    options::expanded(inputs)
}

/// Copy the kept records of a file, as determined by the step `kept`, to a new file. Return the
/// file as JSON if some of its records could not be copied.
#[pyfunction]
pub(crate) fn copy_kept(
    py: Python<'_>,
    source: PathBuf,
    kept: Vec<u8>,
    dropped: Vec<u8>,
    options: &str,
    out: PathBuf,
) -> PyResult<Option<String>> {
    let config = options::parse::<Options>(options)?.config()?;
    py.detach(|| {
        let file = File::create(&out).map_err(error::input)?;
        let copy = Copy(BufWriter::with_capacity(1 << 20, file));
        let lost = shuffle::copy_kept(&source, &kept, &dropped, &config, copy);
        let lost = lost.map_err(error::run)?;
        Ok(lost.and_then(|lost| serde_json::to_string(&lost).ok()))
    })
}

/// A copy in one file.
struct Copy(BufWriter<File>);

impl Write for Copy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Parts for Copy {
    fn limit(&self) -> Option<u64> {
        None
    }

    fn n_bytes(&self) -> u64 {
        0
    }

    fn next_part(&mut self) -> io::Result<()> {
        Ok(())
    }
}
