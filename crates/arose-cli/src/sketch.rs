//! `arose sketch`: what the program sees of a text.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context;
use arose::compare::{Profile, Profiler};
use arose::token::Tokenizer;
use serde_json::json;

use crate::input::{self, Limit};
use crate::output::{hex, printable, write_json};

/// Shows the tokens, shingles, features and simhash of texts.
///
/// Two texts are exact duplicates if their digests are equal. They are near duplicates by algorithm
/// B if two of the six features agree at the same place, and by algorithm C if 372 of the 384 bits
/// of the simhash do. `arose compare` does the counting.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose sketch rose.txt
  arose sketch --shingle 4 --tokens rose.txt
  echo 'a rose is a rose is a rose' | arose sketch --json -")]
pub(crate) struct Options {
    /// Files with plain text; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Tokens in a shingle.
    #[arg(long, value_name = "W", default_value_t = arose::shingle::DEFAULT_W)]
    shingle: NonZeroUsize,
    /// Lists every token, not only the first ones.
    #[arg(long)]
    tokens: bool,
    /// Prints a JSON object a file.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: Limit,
}

/// Tokens shown unless all are asked for.
const N_SHOWN: usize = 12;

/// Sketches each file; one that cannot be read fails the run after the others are done.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let profiler = Profiler::new(options.shingle);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut failure = None;
    for (position, file) in options.files.iter().enumerate() {
        if let Err(error) = one(options, &profiler, file, position, &mut out) {
            out.flush()?;
            if let Some(earlier) = failure.replace(error) {
                eprintln!("arose: {earlier:#}");
            }
        }
    }
    out.flush()?;
    failure.map_or(Ok(()), Err)
}

fn one(
    options: &Options,
    profiler: &Profiler,
    file: &Path,
    position: usize,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let input::Text { text, warning } = input::read(file, options.limit)?;
    if let Some(warning) = warning {
        eprintln!("arose: {warning}");
    }
    let profile = profiler.profile(&text);
    let n_shown = if options.tokens { usize::MAX } else { N_SHOWN };
    let tokens = first_tokens(&text, n_shown);
    let name = input::name(file);
    if options.json {
        write_json(out, &as_json(options, &name, &profile, &tokens))
    } else {
        let gap = if position > 0 { "\n" } else { "" };
        out.write_all(gap.as_bytes())
            .and_then(|()| write_text(out, options, &name, &profile, &tokens))
    }
    .context("cannot write the result")
}

/// The first tokens of a text in their normal form.
fn first_tokens(text: &str, n: usize) -> Vec<String> {
    let mut tokens = Vec::new();
    // A token takes a few bytes; there is no need to read a large text for twelve of them.
    let enough = text.floor_char_boundary(n.saturating_mul(200));
    Tokenizer::default().for_each(&text[..enough], |token| {
        if tokens.len() < n {
            tokens.push(printable(token));
        }
    });
    tokens
}

fn as_json(
    options: &Options,
    name: &str,
    profile: &Profile,
    tokens: &[String],
) -> serde_json::Value {
    let features: Vec<String> = profile.features.iter().map(|f| hex(&[*f])).collect();
    let mut object = json!({
        "file": name,
        "tokens": profile.n_tokens,
        "shingle": options.shingle,
        "shingles": profile.n_shingles,
        "distinct_shingles": profile.shingles.len(),
        "short": profile.is_short,
        "digest": profile.digest.to_string(),
        "features": features,
        "simhash": profile.simhash.map(|simhash| hex(&simhash.0)),
    });
    if options.tokens {
        object["token_list"] = json!(tokens);
    }
    object
}

fn shingles(options: &Options, profile: &Profile) -> String {
    let w = options.shingle;
    match (profile.n_shingles, profile.shingles.len()) {
        (0, _) => "none".to_owned(),
        (1, _) if profile.n_tokens < w.get() => {
            "the whole text, it is below one shingle".to_owned()
        }
        (1, _) => format!("1 of {w} tokens"),
        (n, distinct) => format!("{n} of {w} tokens, {distinct} distinct"),
    }
}

fn write_text(
    out: &mut impl Write,
    options: &Options,
    name: &str,
    profile: &Profile,
    tokens: &[String],
) -> io::Result<()> {
    let more = if tokens.len() < profile.n_tokens {
        " …"
    } else {
        ""
    };
    let short = if profile.is_short {
        ", a short text"
    } else {
        ""
    };
    writeln!(out, "{name}")?;
    writeln!(out, "  tokens    {}{short}", profile.n_tokens)?;
    if !tokens.is_empty() {
        writeln!(out, "            {}{more}", tokens.join(" "))?;
    }
    writeln!(out, "  shingles  {}", shingles(options, profile))?;
    writeln!(out, "  digest    {}", profile.digest)?;
    for (j, features) in profile.features.chunks(3).enumerate() {
        let label = if j == 0 { "features" } else { "" };
        let row: Vec<String> = features.iter().map(|f| hex(&[*f])).collect();
        writeln!(out, "  {label:<8}  {}", row.join(" "))?;
    }
    for (j, words) in profile
        .simhash
        .iter()
        .flat_map(|s| s.0.chunks(3))
        .enumerate()
    {
        let label = if j == 0 { "simhash" } else { "" };
        let row: Vec<String> = words.iter().map(|word| hex(&[*word])).collect();
        writeln!(out, "  {label:<8}  {}", row.join(" "))?;
    }
    Ok(())
}
