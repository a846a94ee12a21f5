//! Small corpora in all formats.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use arose_corpus::{Config, Document, Item, Reason, Warning, read, read_from};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

/// A directory that is removed with the test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a place for temporary files"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("inside the folder")).expect("can be made");
        std::fs::write(&path, bytes).expect("can be written");
        path
    }
}

pub(crate) fn config(threads: usize, block_bytes: usize) -> Config {
    Config {
        threads: NonZeroUsize::new(threads).expect("some"),
        block_bytes: NonZeroUsize::new(block_bytes).expect("some"),
        ..Config::default()
    }
}

pub(crate) fn items(inputs: &[&Path]) -> Vec<Item> {
    items_with(inputs, Config::default())
}

pub(crate) fn items_with(inputs: &[&Path], config: Config) -> Vec<Item> {
    let inputs: Vec<PathBuf> = inputs.iter().map(|path| path.to_path_buf()).collect();
    read(&inputs, config).expect("they exist").collect()
}

pub(crate) fn piped(name: &str, bytes: &[u8], config: Config) -> Vec<Item> {
    let bytes = std::io::Cursor::new(bytes.to_vec());
    read_from(Path::new(name), bytes, config).collect()
}

pub(crate) fn documents(items: &[Item]) -> Vec<&Document> {
    let documents = items.iter().filter_map(|item| match item {
        Item::Document(document) => Some(&**document),
        Item::Skipped(_) => None,
    });
    documents.collect()
}

pub(crate) fn texts(items: &[Item]) -> Vec<&str> {
    documents(items)
        .iter()
        .map(|document| document.text.trim())
        .collect()
}

/// All warnings of damage, whether or not a document was lost.
pub(crate) fn damage(items: &[Item]) -> Vec<&Warning> {
    let warnings = items.iter().flat_map(|item| match item {
        Item::Document(document) => document.warnings.as_slice(),
        Item::Skipped(warning) => std::slice::from_ref(warning),
    });
    warnings
        .filter(|warning| warning.reason.is_damage())
        .collect()
}

/// Checks that there is exactly one warning of damage, of this kind and at this offset.
#[track_caller]
pub(crate) fn check_damage(items: &[Item], reason: Reason, offset: u64) {
    let found: Vec<_> = damage(items)
        .iter()
        .map(|warning| (warning.reason, warning.position.offset))
        .collect();
    assert_eq!(found, [(reason, offset)], "{items:#?}");
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 0).expect("to memory")
}

/// A compression.
pub(crate) type Pack = fn(&[u8]) -> Vec<u8>;

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

pub(crate) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

/// A response record with a page of this text.
pub(crate) fn response(n: usize, text: &str) -> Vec<u8> {
    let body = format!("<html><title>Page {n}</title><p>{text}</p></html>");
    let http = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{n}>\r\nWARC-Target-URI: http://x/{n}\r\n\
         WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n\
         Content-Length: {}\r\n\r\n",
        http.len()
    );
    [head.as_bytes(), http.as_bytes(), b"\r\n\r\n"].concat()
}

/// A text that compresses badly, so that damage hits content and not repetition.
pub(crate) fn noise(seed: u64, n_words: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut words = Vec::new();
    for _ in 0..n_words {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words.push(format!("{:x}", state >> 24));
    }
    words.join(" ")
}

/// A file of the data sets outside the repository; none if they are not installed.
#[expect(clippy::print_stdout, reason = "a skipped test must say so")]
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = root.join(path);
    let found = path.exists();
    if !found {
        println!("skipped: {} is not there", path.display());
    }
    found.then_some(path)
}
