//! `arose search --quote`: the documents that contain passages of a text.

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use arose_dedup::report::html::counted;
use arose_search::{GoOn, Quotation, Quotations, Quoting};
use serde_json::{Value, json};

use super::{Level, Options};
use crate::output::{printable, write_json};
use crate::read::Outcome;

/// Maximum size of the text that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum number of characters shown of a passage.
const MAX_SHOWN: usize = 160;

pub(super) fn run(options: &Options, file: &Path) -> anyhow::Result<Outcome> {
    let text = read(file)?;
    let folder = super::folder(&options.folder, options.index.as_deref())?;
    let index = super::index(&folder, options.rebuild)?;
    let quoting = Quoting {
        min_tokens: options.min.into(),
        except: None,
        max_documents: usize::MAX,
    };
    let go_on: GoOn = Arc::new(|| true);
    let found = index.quotations_while(&text, &quoting, &go_on)?;
    let mut found = found.ok_or(arose_search::Error::Stopped)?;
    if options.kept {
        found.documents.retain(|found| found.document.kept);
    }
    let results = results(&found, options);
    let shown = results.iter().skip(options.offset).take(options.limit);
    let shown: Vec<&Listed<'_>> = shown.collect();
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match options.json {
        true => write_json(&mut out, &as_json(&found, results.len(), &shown, options)),
        false => write_text(&mut out, &found, (results.len(), &shown), &text, options),
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    Ok(match found.documents.is_empty() {
        true => Outcome::NothingFound,
        false => Outcome::Found,
    })
}

fn read(file: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = match file.as_os_str() == "-" {
        true => io::stdin()
            .lock()
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes),
        false => fs::File::open(file).and_then(|it| it.take(MAX_BYTES + 1).read_to_end(&mut bytes)),
    };
    let n_bytes = read.with_context(|| format!("cannot read `{}`", file.display()))?;
    ensure!(
        n_bytes as u64 <= MAX_BYTES,
        "`{}` is larger than 64 MiB; split it",
        file.display()
    );
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A document, and the number of other documents of its cluster that share passages with the text.
struct Listed<'a> {
    found: &'a Quotation,
    rank: usize,
    n_others: usize,
}

/// The documents to show as results: one per cluster, preferably the kept one, or all of them.
fn results<'a>(found: &'a Quotations, options: &Options) -> Vec<Listed<'a>> {
    let mut listed: Vec<Listed<'_>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for found in &found.documents {
        let rank = listed.len();
        let one = Listed {
            found,
            rank,
            n_others: 0,
        };
        let head = match options.collapse {
            Level::Content => found.document.group,
            Level::Same => found.document.cluster,
            Level::None => {
                listed.push(one);
                continue;
            }
        };
        let place = *places.entry(head).or_insert(rank);
        match listed.get_mut(place) {
            None => listed.push(one),
            Some(first) => {
                first.n_others += 1;
                if found.document.kept && found.doc == head {
                    first.found = found;
                }
            }
        }
    }
    listed
}

fn write_text(
    out: &mut impl Write,
    found: &Quotations,
    (n_results, shown): (usize, &[&Listed<'_>]),
    text: &str,
    options: &Options,
) -> io::Result<()> {
    let n_documents = found.documents.len();
    write!(
        out,
        "{} with passages of at least {} tokens",
        counted(n_documents as u64, "document", "documents"),
        options.min
    )?;
    if n_results != n_documents {
        write!(
            out,
            ", in {}",
            counted(n_results as u64, "result", "results")
        )?;
    }
    writeln!(out)?;
    for listed in shown {
        write_result(out, listed, found.n_tokens, text)?;
    }
    Ok(())
}

fn write_result(
    out: &mut impl Write,
    listed: &Listed<'_>,
    n_tokens: usize,
    text: &str,
) -> io::Result<()> {
    let (found, document) = (listed.found, &listed.found.document);
    let address = document.url.as_ref().unwrap_or(&document.id);
    let title = document.title.as_deref().filter(|title| !title.is_empty());
    writeln!(
        out,
        "\n{:>3}  {}  {} of {} tokens ({:.1}%)",
        listed.rank + 1,
        printable(title.unwrap_or(address)),
        found.n_tokens,
        n_tokens,
        100.0 * found.n_tokens as f64 / n_tokens.max(1) as f64
    )?;
    if title.is_some() {
        writeln!(out, "     {}", printable(address))?;
    }
    let longest = found.passages.iter().max_by_key(|bytes| bytes.len());
    if let Some(longest) = longest {
        let words: Vec<&str> = text[longest.clone()].split_whitespace().collect();
        let passage = words.join(" ");
        let shown: String = passage.chars().take(MAX_SHOWN).collect();
        let more = if shown.len() < passage.len() {
            " …"
        } else {
            ""
        };
        writeln!(out, "     \"{}{more}\"", printable(&shown))?;
    }
    match listed.n_others {
        0 => Ok(()),
        n => writeln!(
            out,
            "     and {}",
            counted(n as u64, "duplicate", "duplicates")
        ),
    }
}

fn as_json(
    found: &Quotations,
    n_results: usize,
    shown: &[&Listed<'_>],
    options: &Options,
) -> Value {
    let hits = shown.iter().map(|listed| {
        let (found, document) = (listed.found, &listed.found.document);
        let passages = found.passages.iter();
        let passages: Vec<Value> = passages.map(|it| json!([it.start, it.end])).collect();
        json!({
            "rank": listed.rank,
            "doc": found.doc,
            "cluster": document.cluster,
            "duplicates": listed.n_others,
            "kept": document.kept,
            "id": document.id,
            "url": document.url,
            "title": document.title,
            "tokens": found.n_tokens,
            "passages": passages,
        })
    });
    json!({
        "tokens": found.n_tokens,
        "min": options.min,
        "documents": found.documents.len(),
        "results": n_results,
        "hits": hits.collect::<Vec<Value>>(),
    })
}
