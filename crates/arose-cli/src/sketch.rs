//! `arose sketch`: tokens, shingles, super-shingles and simhash of texts.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context;
use arose::compare::{Profile, Profiler};
use arose::token::Tokenizer;
use arose_corpus::{Document, Item, Position};
use serde_json::json;

use crate::corpus::Choosing;
use crate::input::{self, Limit};
use crate::losses::{self, Warnings};
use crate::options::positive;
use crate::output::{hex, printable, write_json};
use crate::read::Outcome;

/// Show the tokens, shingles, super-shingles and simhash of texts.
///
/// Two texts are exact duplicates if their digests are equal. They are near duplicates under policy
/// b if at least 2 of the 6 super-shingles match at the same position, and under policy c if at
/// least 372 of the 384 simhash bits match. `arose compare` counts the matches. Inputs are read as
/// by `arose read`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose sketch rose.txt
  arose sketch -w 4 --show-tokens rose.txt
  arose sketch --mode content page.html crawl.warc.gz
  echo 'a rose is a rose is a rose' | arose sketch --json -

Exit code: 0 if documents were found, 1 if none, 2 on error, 3 if a file could not be read
completely.")]
pub(crate) struct Options {
    /// Files, directories, patterns; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Tokens per shingle
    #[arg(short = 'w', long, value_name = "N", default_value_t = arose::shingle::FEATURE_W, value_parser = positive)]
    shingle: NonZeroUsize,
    /// List every token, not only the first few
    #[arg(long = "show-tokens")]
    tokens: bool,
    /// Print one JSON object per document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    reading: Choosing,
    /// Stop with exit code 2 at the first record or file that cannot be read.
    #[arg(long)]
    strict: bool,
}

/// Number of tokens shown without `--show-tokens`.
const N_SHOWN: usize = 12;

/// Maximum number of characters shown per token.
const MAX_SHOWN: usize = 60;

/// Sketches each document; an unreadable file does not stop the others.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    input::check_standard_input_once(&options.inputs)?;
    let mut config = options.reading.config(Vec::new());
    options.limit.apply(&mut config);
    let (profiler, tokenizer) = (Profiler::new(options.shingle), Tokenizer::default());
    let mut items = arose_corpus::read(&options.inputs, config)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut warnings = Warnings::default();
    let mut gap = "";
    for item in items.by_ref() {
        let document = match item {
            Item::Document(document) => document,
            Item::Skipped(warning) => {
                out.flush().context("cannot write the result")?;
                if options.strict {
                    losses::refuse(&warning)?;
                }
                warnings.show(&warning);
                continue;
            }
        };
        document
            .warnings
            .iter()
            .for_each(|warning| warnings.show(warning));
        let tokens = arose_dedup::tokens(&tokenizer, &document);
        let profile = profiler.profile_of_tokens(&tokens, document.content_digest());
        let written = if options.json {
            write_json_object(&mut out, options, &document, &profile)
        } else {
            write!(out, "{gap}").and_then(|()| write_text(&mut out, options, &document, &profile))
        };
        written.context("cannot write the result")?;
        gap = "\n";
    }
    out.flush().context("cannot write the result")?;
    options.limit.hint(items.counts());
    let outcome = match items.counts().documents {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    };
    Ok(losses::outcome(&items.counts().losses, outcome))
}

/// The name of a document; a file that is one document has its own name.
fn name(document: &Document) -> String {
    let is_whole = document.id.is_none() && document.position == Position::default();
    match is_whole {
        true => input::name(&document.source),
        false => printable(&document.name()),
    }
}

/// The first tokens of a text, normalized, with long tokens truncated.
///
/// Reads no more of the text than necessary: the length is doubled until there is one token more
/// than needed, so that the last token shown is complete.
fn first_tokens(text: &str) -> Vec<String> {
    let mut len = 1024;
    loop {
        let end = text.floor_char_boundary(len);
        let mut tokens = Vec::new();
        Tokenizer::default().for_each(&text[..end], |token| {
            if tokens.len() <= N_SHOWN {
                tokens.push(shown(token));
            }
        });
        if tokens.len() > N_SHOWN || end == text.len() {
            tokens.truncate(N_SHOWN);
            return tokens;
        }
        len *= 2;
    }
}

fn shown(token: &str) -> String {
    match token.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", printable(&token[..end])),
        None => printable(token),
    }
}

/// Calls `write` with each token until it fails.
fn for_each_token(text: &str, mut write: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let mut result = Ok(());
    Tokenizer::default().for_each(text, |token| {
        if result.is_ok() {
            result = write(token);
        }
    });
    result
}

fn write_json_object(
    out: &mut impl Write,
    options: &Options,
    document: &Document,
    profile: &Profile,
) -> io::Result<()> {
    let features: Vec<String> = profile.features.iter().map(|f| hex(&[*f])).collect();
    let object = json!({
        "id": document.name(),
        "file": document.source.to_string_lossy(),
        "tokens": profile.n_tokens,
        "w": options.shingle,
        "shingles": profile.n_shingles,
        "distinct_shingles": profile.shingles.len(),
        "short": profile.is_short,
        "digest": profile.digest.to_string(),
        "features": features,
        "simhash": profile.simhash.map(|simhash| hex(&simhash.0)),
    });
    if !options.tokens {
        return write_json(out, &object);
    }
    // A list of all tokens would need many times the size of the text; write them one by one.
    let object = object.to_string();
    write!(out, "{},\"token_list\":[", object.trim_end_matches('}'))?;
    let mut separator = "";
    for_each_token(&document.text, |token| {
        write!(out, "{separator}{}", json!(token))?;
        separator = ",";
        Ok(())
    })?;
    writeln!(out, "]}}")
}

fn write_text(
    out: &mut impl Write,
    options: &Options,
    document: &Document,
    profile: &Profile,
) -> io::Result<()> {
    let text = &document.text;
    let short = if profile.is_short { ", short text" } else { "" };
    writeln!(out, "{}", name(document))?;
    writeln!(out, "  tokens          {}{short}", profile.n_tokens)?;
    if options.tokens {
        for_each_token(text, |token| {
            writeln!(out, "                  {}", printable(token))
        })?;
    } else if profile.n_tokens > 0 {
        let more = if profile.n_tokens > N_SHOWN {
            " …"
        } else {
            ""
        };
        writeln!(
            out,
            "                  {}{more}",
            first_tokens(text).join(" ")
        )?;
    }
    writeln!(out, "  shingles        {}", shingles(options, profile))?;
    writeln!(out, "  digest          {}", profile.digest)?;
    write_words(out, "super-shingles", &profile.features)?;
    let simhash = profile.simhash.iter().flat_map(|simhash| simhash.0);
    write_words(out, "simhash", &simhash.collect::<Vec<_>>())
}

fn shingles(options: &Options, profile: &Profile) -> String {
    let w = options.shingle;
    match (profile.n_shingles, profile.shingles.len()) {
        (0, _) => "none".to_owned(),
        (1, _) if profile.n_tokens < w.get() => {
            "1, the whole text, which is shorter than a shingle".to_owned()
        }
        (1, _) => format!("1 of {w} tokens"),
        (n, distinct) => format!("{n} of {w} tokens, {distinct} distinct"),
    }
}

/// 64-bit words, three per line, with the label in the first line.
fn write_words(out: &mut impl Write, label: &str, words: &[u64]) -> io::Result<()> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    for (words, label) in words.chunks(3).zip(labels) {
        let row: Vec<String> = words.iter().map(|word| hex(&[*word])).collect();
        writeln!(out, "  {label:<14}  {}", row.join(" "))?;
    }
    Ok(())
}
