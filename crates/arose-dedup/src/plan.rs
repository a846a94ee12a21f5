//! Resource needs of a run, estimated before it starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::rule::Criterion;
use arose_corpus::{Item, Position};

use crate::Error;
use crate::config::{Config, SiteCounts};
use crate::marks::{MarkTables, Marks};
use crate::record::{DocRecord, Samples, Vectors};
use crate::scheme::{Bands, KeyTables as _, Rules};
use crate::stage::keys::Key;
use crate::stage::row::STORED_TOKENS;

/// Number of documents that are read to estimate the rest.
const SAMPLE: u64 = 1000;
/// Typical number of letters of a token and the space after it.
const BYTES_PER_TOKEN: u64 = 6;
/// Typical number of bytes of a name, and of the buckets of a document.
const NAME_BYTES: usize = 64;
/// Typical compression ratio of texts.
const COMPRESSION: u64 = 4;

/// An estimate from the first documents of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceNeeds {
    /// Bytes in the input files.
    pub input_bytes: u64,
    /// Documents in them.
    pub documents: u64,
    /// Bytes of text in those.
    pub text_bytes: u64,
    /// Maximum memory of the run, except for large documents.
    pub memory_bytes: u64,
    /// Disk space needed during the run, without the results.
    pub disk_bytes: u64,
}

/// Estimates the needs of a run over `inputs`. Standard input counts as empty.
///
/// # Errors
///
/// If an input does not exist.
pub fn plan(inputs: &[PathBuf], config: &Config) -> Result<ResourceNeeds, Error> {
    let is_file = |input: &&PathBuf| input.as_os_str() != "-";
    let files: Vec<PathBuf> = inputs.iter().filter(is_file).cloned().collect();
    let sample = Sample::take(&files, config)?;
    let input_bytes = sample.input_bytes;
    let scale = match sample.consumed {
        Some(consumed) => input_bytes as f64 / consumed.max(1) as f64,
        None => 1.0,
    };
    let documents = (sample.n_docs as f64 * scale).round() as u64;
    let text_bytes = (sample.text_bytes as f64 * scale) as u64;
    let tokens = text_bytes / BYTES_PER_TOKEN;
    let per_doc = bytes_per_doc(config, tokens / documents.max(1))?;
    // Repeated text of sites is sorted twice, 16 bytes for each distinct word pair.
    let per_token = match (config.policy.criterion, config.site_counts) {
        (Criterion::Content(_), SiteCounts::Exact) => 3 + 2 * 16,
        (Criterion::Content(_), SiteCounts::Sampled) => 3 + 2,
        _ => 3,
    };
    Ok(ResourceNeeds {
        input_bytes,
        documents,
        text_bytes,
        memory_bytes: config.memory.min((96 << 20) + 400 * documents),
        disk_bytes: tokens * per_token + documents * per_doc,
    })
}

/// Returns the bytes of the work files per document with this many tokens, without the tokens.
fn bytes_per_doc(config: &Config, n_tokens: u64) -> Result<u64, Error> {
    let vectors = size_of::<Vectors>();
    let (n_tables, sketch) = match config.policy.criterion {
        Criterion::Jaccard(threshold) => {
            let stored = size_of::<Samples>() + size_of::<[u64; 6]>();
            let is_stored = n_tokens >= STORED_TOKENS as u64;
            let n_tables = Bands::new(config, threshold)?.n_tables();
            (n_tables, if is_stored { stored } else { 0 })
        }
        Criterion::Content(_) => {
            let n_tables = MarkTables::new(config)?.n_tables();
            (n_tables, size_of::<u64>() + size_of::<Marks>())
        }
        _ => (Rules::new(config)?.n_tables(), vectors),
    };
    let keys = size_of::<Key>() * n_tables as usize;
    Ok((size_of::<DocRecord>() + NAME_BYTES + keys + sketch) as u64)
}

/// The first documents of the input.
#[derive(Default)]
struct Sample {
    input_bytes: u64,
    n_docs: u64,
    text_bytes: u64,
    /// Bytes of the input that they took; none if there are no others.
    consumed: Option<u64>,
}

impl Sample {
    fn take(files: &[PathBuf], config: &Config) -> Result<Self, Error> {
        let mut sample = Self::default();
        let mut before = 0;
        let mut last: Option<(Arc<Path>, Position)> = None;
        for item in arose_corpus::read(files, config.corpus.clone())? {
            let Item::Document(document) = item else {
                continue;
            };
            if let Some((source, _)) = &last
                && *source != document.source
            {
                before += n_bytes(source);
            }
            last = Some((document.source, document.position));
            if sample.n_docs == SAMPLE {
                let (_, position) = last.expect("just set");
                sample.consumed = Some(before + position.offset + position.inner / COMPRESSION);
                break;
            }
            sample.n_docs += 1;
            sample.text_bytes += document.text.len() as u64;
        }
        let (parts, _) = arose_corpus::parts(files, u64::MAX, &config.corpus)?;
        let files = parts.iter().flat_map(|part| &part.files);
        sample.input_bytes = files.map(|file| n_bytes(&file.path)).sum();
        Ok(sample)
    }
}

/// Returns the size of a file in bytes; none if it no longer exists.
fn n_bytes(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}
