//! Sketches of many texts.

use std::cell::RefCell;
use std::num::{NonZeroU16, NonZeroUsize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use arose::digest::Digest;
use arose::feature::Features;
use arose::shingle::{ShingleLength, Shingler};
use arose::simhash::Fingerprint384;
use arose::sketch::{NarrowMinHash, Sketcher as _};
use arose::token::{Tokenizer, Tokens};
use arrow_array::types::{ArrowPrimitiveType, UInt32Type, UInt64Type};
use arrow_array::{FixedSizeBinaryArray, FixedSizeListArray, PrimitiveArray, UInt32Array};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::Field;
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3_arrow::input::AnyArray;
use rayon::prelude::*;
use serde::Deserialize;

use crate::options::{self, PolicyName};
use crate::table::{self, Table};
use crate::text::{Texts, is_arrow};
use crate::{error, watch};

mod stream;

pub(crate) use stream::SketchReader;
use stream::{Source, Stream, column_of, nullable};

/// Number of texts between two checks for a signal to stop.
const BLOCK: usize = 256;
/// For less text than this, in bytes, no threads are started.
const SMALL: usize = 1 << 18;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    policy: PolicyName,
    w: Option<NonZeroUsize>,
    cjk_w: Option<NonZeroUsize>,
    samples: Option<NonZeroU16>,
    seed: u64,
    threads: Option<NonZeroUsize>,
}

/// Computes the sketches that a policy needs.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Sketcher {
    policy: PolicyName,
    shingle: ShingleLength,
    spaced: Shingler,
    unspaced: Shingler,
    samples: NarrowMinHash,
    threads: NonZeroUsize,
}

const N_FEATURE_SAMPLES: u16 = Features::SIX_BY_FOURTEEN.t() as u16;

#[pymethods]
impl Sketcher {
    #[new]
    fn new(options: &str) -> PyResult<Self> {
        let options: Options = options::parse(options)?;
        options::check_sketches(options.policy)?;
        let is_jaccard = options.policy == PolicyName::Jaccard;
        if !is_jaccard && options.samples.is_some() {
            return Err(error::SettingError::new_err(
                "samples is for the policy jaccard only: super-shingles are made of 84",
            ));
        }
        let criterion = options::criterion(options.policy, None)?;
        let w = options.w.unwrap_or(criterion.default_w());
        let shingle = ShingleLength {
            w,
            unspaced_w: options.cjk_w.unwrap_or(w),
        };
        let n_samples = match options.policy {
            PolicyName::Jaccard => options.samples.map_or(128, NonZeroU16::get),
            _ => N_FEATURE_SAMPLES,
        };
        let n_samples = NonZeroU16::new(n_samples).unwrap_or(NonZeroU16::MIN);
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            policy: options.policy,
            shingle,
            spaced: Shingler::new(shingle.w),
            unspaced: Shingler::new(shingle.unspaced_w),
            samples: NarrowMinHash::new(n_samples, options.seed),
            threads: options.threads.unwrap_or(cores),
        })
    }

    /// Sketch every text; see `arose.Sketcher.sketch`.
    fn sketch(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<Table> {
        self.sketch_all(py, &Texts::extract(texts)?)
    }

    /// Sketch texts as they arrive: an iterator of lists of texts, or anything with the Arrow
    /// interface. The column with the text is searched for under `names`.
    fn stream(
        slf: &Bound<'_, Self>,
        data: &Bound<'_, PyAny>,
        names: Vec<String>,
    ) -> PyResult<SketchReader> {
        let source = match is_arrow(data)? {
            false => Source::Python(data.try_iter()?.unbind()),
            true => {
                let reader = error::guarded(|| data.extract::<AnyArray>()?.into_reader())?;
                let column = column_of(&reader.field(), &names)?;
                Source::Arrow(reader, column)
            }
        };
        // The schema is requested before the first batch.
        let none = PyList::empty(slf.py());
        let empty = slf.get().sketch(slf.py(), none.as_any())?;
        Ok(SketchReader {
            stream: Arc::new(Stream {
                sketcher: slf.clone().unbind(),
                source: Mutex::new(source),
            }),
            schema: nullable(&empty.schema()),
        })
    }

    /// Return the Jaccard similarity estimated from two lists of MinHash values.
    fn estimate(&self, a: Vec<u32>, b: Vec<u32>) -> Option<f64> {
        self.samples.estimate(&a, &b)
    }
}

impl Sketcher {
    fn sketch_all(&self, py: Python<'_>, texts: &Texts) -> PyResult<Table> {
        error::guarded(|| self.sketch_views(py, texts))
    }

    fn sketch_views(&self, py: Python<'_>, texts: &Texts) -> PyResult<Table> {
        let stop = AtomicBool::new(false);
        let views = texts.views();
        let n_bytes: usize = views.iter().flatten().map(|text| text.len()).sum();
        let made = if n_bytes < SMALL {
            py.detach(|| Ok(self.make(&views, &stop)))
        } else {
            let work = || self.make_on_threads(&views, &stop);
            let stop = || stop.store(true, Ordering::Relaxed);
            watch::run(py, work, stop, |_| Ok(()))?
        };
        made?.into_table(self)
    }
}

/// Sketches of texts, one after the other.
#[derive(Default)]
struct Made {
    n_tokens: Vec<u32>,
    digests: Vec<u8>,
    samples: Vec<u32>,
    features: Vec<u64>,
    simhashes: Vec<u64>,
    /// Whether there is a sketch. Texts without tokens have none.
    is_there: Vec<bool>,
}

/// Reused memory.
#[derive(Default)]
struct Scratch {
    tokens: Tokens,
    shingles: Vec<u64>,
    sketch: Vec<u32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Sketcher {
    /// Creates a separate pool. Threads do not survive the fork of a process, and a global pool
    /// would wait for them forever.
    fn make_on_threads(&self, texts: &[Option<&str>], stop: &AtomicBool) -> PyResult<Made> {
        if self.threads.get() == 1 {
            return Ok(self.make(texts, stop));
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.get())
            .build()
            .map_err(|cause| error::AroseError::new_err(error::words(&cause)))?;
        Ok(pool.install(|| {
            let n_parts = 8 * self.threads.get();
            let part = texts.len().div_ceil(n_parts).max(1);
            let parts: Vec<Made> = texts
                .par_chunks(part)
                .map(|texts| self.make(texts, stop))
                .collect();
            Made::concat(parts)
        }))
    }

    fn make(&self, texts: &[Option<&str>], stop: &AtomicBool) -> Made {
        let mut made = Made::default();
        made.reserve(texts.len(), self);
        SCRATCH.with_borrow_mut(|scratch| {
            for block in texts.chunks(BLOCK) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                for text in block {
                    self.push(text.unwrap_or_default(), scratch, &mut made);
                }
            }
        });
        made
    }

    fn push(&self, text: &str, scratch: &mut Scratch, made: &mut Made) {
        let Scratch {
            tokens,
            shingles,
            sketch,
        } = scratch;
        tokens.clear();
        tokens.push_text(&Tokenizer::default(), text);
        made.n_tokens
            .push(u32::try_from(tokens.len()).unwrap_or(u32::MAX));
        made.digests.extend(Digest::of_text(text).0.to_be_bytes());
        made.is_there.push(!tokens.is_empty());
        if self.has_samples() || self.has_features() {
            let shingler = match self.shingle.of(tokens) == self.shingle.w {
                true => &self.spaced,
                false => &self.unspaced,
            };
            shingles.clear();
            shingler.shingles_into(&tokens.fingerprints, shingles);
            self.samples.sketch_into(shingles, sketch);
            sketch.resize(self.samples.t(), 0);
        }
        if self.has_samples() {
            made.samples.extend_from_slice(sketch);
        }
        if self.has_features() {
            let features = Features::SIX_BY_FOURTEEN.append_to(sketch, &mut made.features);
            features.expect("as many samples as features need");
        }
        if self.has_simhash() {
            let simhash = Fingerprint384::of(&tokens.fingerprints);
            made.simhashes
                .extend(simhash.map_or([0; 6], |simhash| simhash.0));
        }
    }

    fn has_samples(&self) -> bool {
        self.policy == PolicyName::Jaccard
    }

    fn has_features(&self) -> bool {
        !matches!(
            self.policy,
            PolicyName::Exact | PolicyName::Jaccard | PolicyName::C
        )
    }

    fn has_simhash(&self) -> bool {
        !matches!(
            self.policy,
            PolicyName::Exact | PolicyName::Jaccard | PolicyName::B
        )
    }
}

impl Made {
    fn reserve(&mut self, n: usize, sketcher: &Sketcher) {
        self.n_tokens.reserve(n);
        self.digests.reserve(16 * n);
        self.is_there.reserve(n);
        if sketcher.has_samples() {
            self.samples.reserve(n * sketcher.samples.t());
        }
    }

    fn concat(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.n_tokens.extend(part.n_tokens);
            all.digests.extend(part.digests);
            all.samples.extend(part.samples);
            all.features.extend(part.features);
            all.simhashes.extend(part.simhashes);
            all.is_there.extend(part.is_there);
        }
        all
    }

    fn into_table(self, sketcher: &Sketcher) -> PyResult<Table> {
        let nulls = NullBuffer::from(self.is_there);
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        let digests = FixedSizeBinaryArray::try_new(16, Buffer::from_vec(self.digests), None);
        let mut columns = vec![
            table::column("n_tokens", UInt32Array::from(self.n_tokens)),
            table::column("digest", digests.map_err(error::arrow)?),
        ];
        if sketcher.has_samples() {
            let n = sketcher.samples.t();
            let lists = lists::<UInt32Type>(self.samples, n, nulls.clone())?;
            columns.push(table::column("samples", lists));
        }
        if sketcher.has_features() {
            let lists = lists::<UInt64Type>(self.features, 6, nulls.clone())?;
            columns.push(table::column("features", lists));
        }
        if sketcher.has_simhash() {
            let lists = lists::<UInt64Type>(self.simhashes, 6, nulls)?;
            columns.push(table::column("simhash", lists));
        }
        table::of_columns(columns).map_err(error::arrow)
    }
}

/// Lists of `n` values each.
fn lists<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    n: usize,
    nulls: Option<NullBuffer>,
) -> PyResult<FixedSizeListArray> {
    let values = PrimitiveArray::<T>::new(ScalarBuffer::from(values), None);
    let field = Arc::new(Field::new("item", T::DATA_TYPE, false));
    FixedSizeListArray::try_new(field, n as i32, Arc::new(values), nulls).map_err(error::arrow)
}
