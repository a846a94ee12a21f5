//! Writes a planted corpus and its ground truth.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::{FamilyKind, Plan, Recipe};
use crate::evaluate::Error;

/// Counts of the written corpus.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Planted {
    /// Pages.
    pub n_documents: u64,
    /// Families, including single pages.
    pub n_families: u64,
    /// Pairs of pages of one family.
    pub n_pairs: u64,
    /// The pages of each kind.
    pub documents_by_kind: BTreeMap<FamilyKind, u64>,
    /// The pairs of each kind.
    pub pairs_by_kind: BTreeMap<FamilyKind, u64>,
}

#[derive(Serialize)]
struct DocumentLine<'a> {
    id: &'a str,
    url: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct TruthLine<'a> {
    a: &'a str,
    b: &'a str,
    kind: &'a str,
    jaccard: f64,
}

/// Writes `documents.jsonl`, `truth.jsonl` and `plant.json` to a directory, which is created if it
/// is missing. `plant.json` is written last, so that a directory with it is complete.
///
/// # Errors
///
/// If the directory already contains such files, or cannot be written.
pub fn write(plan: &Plan, folder: &Path) -> Result<Planted, Error> {
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    for name in ["documents.jsonl", "truth.jsonl", "plant.json"] {
        if folder.join(name).exists() {
            return Err(Error::file(
                &folder.join(name),
                "the file exists; choose another directory or remove it",
            ));
        }
    }
    let mut planted = Planted::default();
    put(folder, "documents.jsonl", |out| write_documents(plan, out))?;
    put(folder, "truth.jsonl", |out| {
        write_truth(plan, out, &mut planted)
    })?;
    put(folder, "plant.json", |out| {
        serde_json::to_writer_pretty(&mut *out, &settings(plan, &planted))?;
        writeln!(out)
    })?;
    Ok(planted)
}

/// Writes a file under a temporary name, and renames it when it is complete.
fn put(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Error> {
    let path = folder.join(name);
    let unfinished = folder.join(format!("{name}.part"));
    let file = File::create(&unfinished).map_err(Error::io("create", &unfinished))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let written = write(&mut out).and_then(|()| out.flush());
    written.map_err(Error::io("write", &unfinished))?;
    fs::rename(&unfinished, &path).map_err(Error::io("rename", &unfinished))
}

fn write_documents(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    for position in 0..plan.config().n_documents {
        let page = plan.page(position);
        let line = DocumentLine {
            id: &page.id,
            url: &page.url,
            text: &page.text,
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_truth(plan: &Plan, out: &mut impl Write, planted: &mut Planted) -> io::Result<()> {
    planted.n_documents = u64::from(plan.config().n_documents);
    planted.n_families = u64::from(plan.n_families());
    for index in 0..plan.n_families() {
        let (kind, n_members) = plan.family(index);
        *planted.documents_by_kind.entry(kind).or_default() += u64::from(n_members);
        let pairs = plan.truth(index);
        if !pairs.is_empty() {
            planted.n_pairs += pairs.len() as u64;
            *planted.pairs_by_kind.entry(kind).or_default() += pairs.len() as u64;
        }
        for pair in pairs {
            let line = TruthLine {
                a: &format!("p{}", pair.a),
                b: &format!("p{}", pair.b),
                kind: kind.as_str(),
                jaccard: pair.jaccard,
            };
            serde_json::to_writer(&mut *out, &line)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

fn settings(plan: &Plan, planted: &Planted) -> serde_json::Value {
    let config = plan.config();
    let by_kind = |counts: &BTreeMap<FamilyKind, u64>| -> serde_json::Map<_, _> {
        counts
            .iter()
            .map(|(kind, &n)| (kind.to_string(), n.into()))
            .collect()
    };
    json!({
        "settings": {
            "documents": config.n_documents,
            "sites": config.n_sites,
            "seed": config.seed,
            "words": config.median_words,
            "w": config.w,
            "preset": match config.recipe {
                Recipe::Mixed => "mixed",
                Recipe::Acceptance => "acceptance",
            },
        },
        "families": planted.n_families,
        "pairs": planted.n_pairs,
        "documents_by_kind": by_kind(&planted.documents_by_kind),
        "pairs_by_kind": by_kind(&planted.pairs_by_kind),
    })
}
