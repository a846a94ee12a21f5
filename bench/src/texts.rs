//! The texts used for measurements.

use std::io::Read;
use std::path::Path;

use anyhow::Context;

/// Returns the `text` fields of a JSON Lines file, repeated up to `n_bytes` with a number before
/// each copy.
pub fn load(path: &Path, n_bytes: usize) -> anyhow::Result<Vec<String>> {
    let originals = read(path).with_context(|| format!("reading texts from {}", path.display()))?;
    anyhow::ensure!(!originals.is_empty(), "{} holds no text", path.display());
    let mut texts = Vec::new();
    let mut total = 0;
    for copy in 0.. {
        for text in &originals {
            if total >= n_bytes {
                return Ok(texts);
            }
            total += text.len();
            texts.push(if copy == 0 {
                text.clone()
            } else {
                format!("{copy} {text}")
            });
        }
    }
    Ok(texts)
}

fn read(path: &Path) -> anyhow::Result<Vec<String>> {
    let bytes = std::fs::read(path)?;
    let mut lines = String::new();
    match path.extension() {
        Some(extension) if extension == "zst" => {
            zstd::Decoder::new(&bytes[..])?.read_to_string(&mut lines)?
        }
        _ => (&bytes[..]).read_to_string(&mut lines)?,
    };
    let text = |line: &str| -> anyhow::Result<String> {
        let value: serde_json::Value = serde_json::from_str(line)?;
        Ok(value["text"]
            .as_str()
            .context("a line without a `text` field")?
            .to_owned())
    };
    lines.lines().map(text).collect()
}
