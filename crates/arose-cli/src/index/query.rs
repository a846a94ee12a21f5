//! `arose index query`: finds duplicates of the given documents in an index.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose::rule::{Rule, SiteRelation};
use arose::token::Tokenizer;
use arose_corpus::Item;
use arose_dedup::index::{Match, Reader, Sketch, Sketcher};
use arose_dedup::passages::index::is_index;
use arose_dedup::report::html::counted;
use serde_json::{Value, json};

use super::passages::Lookup;
use super::{Work, sketches};
use crate::corpus::Choosing;
use crate::input::{self, Limit};
use crate::losses::{self, Warnings};
use crate::output::{printable, remark, say, write_json};
use crate::read::Outcome;

/// Find duplicates of the given documents.
///
/// Without an input, standard input is read as one plain text. For each document with matches,
/// prints its name and one line per match: the score that the rule uses, the rule, the name of the
/// match, and further scores. Scores are estimates from sketches; under the policy jaccard a match
/// may have an estimate somewhat below the threshold.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index query seen page.html
  arose index query --json seen 'crawl/*.warc.gz'
  echo 'a rose is a rose is a rose' | arose index query seen

Exit code: 0 if a match was found, 1 if none, 2 on error, 3 if a file could not be read completely.")]
pub(super) struct Options {
    /// Directory of the index
    #[arg(value_name = "INDEX")]
    folder: PathBuf,
    /// Files, directories, patterns; `-` is standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Print one JSON object per document
    #[arg(long)]
    json: bool,
    /// Host that the text on standard input came from
    #[arg(long, value_name = "HOST", conflicts_with = "inputs")]
    host: Option<String>,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    reading: Choosing,
    /// Stop with exit code 2 at the first record or file that cannot be read.
    #[arg(long)]
    strict: bool,
}

/// Looks up documents in an index.
pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    input::check_standard_input_once(&options.inputs)?;
    if is_index(&options.folder) {
        return run_passages(options);
    }
    let reader = Reader::open(&options.folder)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut outcome = Outcome::NothingFound;
    let mut answer = |name: &str, sketch: &Sketch| -> anyhow::Result<()> {
        let found = reader.query(sketch)?;
        if !found.is_empty() {
            outcome = Outcome::Found;
        }
        let written = match options.json {
            true => write_json(&mut out, &as_json(name, &found)),
            false => write_matches(&mut out, name, &found),
        };
        written.context("cannot write the result")
    };
    if options.inputs.is_empty() {
        let input::Text { text, warning } = input::read_standard_input(options.limit)?;
        if let Some(warning) = warning {
            say(format_args!("arose: {warning}"));
        }
        let sketch = Sketcher::new(reader.settings()).sketch(&text, options.host.as_deref());
        answer("standard input", &sketch)?;
        out.flush().context("cannot write the result")?;
        return Ok(told(outcome));
    }
    let mut warnings = Warnings::default();
    let config = options.reading.config(vec![options.folder.clone()]);
    let mut works = sketches(&options.inputs, config, reader.settings())?;
    for work in works.by_ref() {
        match work {
            Work::Document(name, sketch) => answer(&name, &sketch)?,
            Work::Skipped(warning) if options.strict => losses::refuse(&warning)?,
            Work::Skipped(warning) => warnings.show(&warning),
        }
    }
    out.flush().context("cannot write the result")?;
    Ok(losses::outcome(&works.counts().losses, told(outcome)))
}

/// Says so if nothing was found, instead of printing nothing at all.
fn told(outcome: Outcome) -> Outcome {
    if matches!(outcome, Outcome::NothingFound) {
        remark(format_args!("arose: no duplicates in the index"));
    }
    outcome
}

/// Looks up documents in an index of passages.
fn run_passages(options: &Options) -> anyhow::Result<Outcome> {
    ensure!(
        options.host.is_none(),
        "--host has no effect on an index of passages; remove it"
    );
    let mut lookup = Lookup::open(&options.folder, options.json)?;
    if options.inputs.is_empty() {
        let input::Text { text, warning } = input::read_standard_input(options.limit)?;
        if let Some(warning) = warning {
            say(format_args!("arose: {warning}"));
        }
        lookup.look_up("standard input", &Tokenizer::default().tokens(&text))?;
        return lookup.finish();
    }
    let mut warnings = Warnings::default();
    let config = options.reading.config(vec![options.folder.clone()]);
    let mut items = arose_corpus::read(&options.inputs, config)?;
    for item in items.by_ref() {
        match item {
            Item::Document(document) => {
                let tokens = arose_dedup::tokens(&Tokenizer::default(), &document);
                lookup.look_up(&arose_dedup::index::name(&document), &tokens)?;
            }
            Item::Skipped(warning) if options.strict => losses::refuse(&warning)?,
            Item::Skipped(warning) => warnings.show(&warning),
        }
    }
    let outcome = lookup.finish()?;
    Ok(losses::outcome(&items.counts().losses, outcome))
}

fn write_matches(out: &mut impl Write, name: &str, found: &[Match]) -> io::Result<()> {
    if !found.is_empty() {
        writeln!(out, "{}", printable(name))?;
    }
    for found in found {
        let (similarity, rule) = (found.similarity, found.rule);
        let name = printable(&found.name);
        let scores = scores(found);
        writeln!(out, "  {similarity:.4}  {rule:<10}  {name}{scores}")?;
    }
    Ok(())
}

/// The scores of a match, if they say more than its similarity.
fn scores(found: &Match) -> String {
    let evidence = &found.evidence;
    if let Some(scores) = found.content.filter(|_| found.rule != Rule::Exact) {
        return format!(
            "  ({:.4} weighted, {:.4} unweighted; {} of its site counted)",
            scores.weighted,
            scores.unweighted,
            counted(scores.n_site_pages, "page", "pages")
        );
    }
    match (found.rule, evidence.jaccard) {
        (Rule::Exact, _) | (_, Some(_)) => String::new(),
        _ => format!(
            "  ({} of 6 super-shingles, {} of 384 bits)",
            evidence.b_sim, evidence.c_sim
        ),
    }
}

fn as_json(name: &str, found: &[Match]) -> Value {
    let matches = found.iter().map(|found| {
        let evidence = &found.evidence;
        let has_features = evidence.jaccard.is_none() && found.content.is_none();
        json!({
            "name": found.name,
            "rule": found.rule.as_str(),
            "similarity": found.similarity,
            // Other sketches have no super-shingles and no simhash.
            "b_sim": has_features.then_some(evidence.b_sim),
            "c_sim": has_features.then_some(evidence.c_sim),
            "jaccard_estimate": evidence.jaccard,
            "content": found.content.map(|scores| scores.weighted),
            "content_unweighted": found.content.map(|scores| scores.unweighted),
            "site_pages": found.content.map(|scores| scores.n_site_pages),
            "same_content": evidence.same_content,
            "same_site": match evidence.site {
                SiteRelation::Same => Some(true),
                SiteRelation::Different => Some(false),
                SiteRelation::Unknown => None,
            },
            "short": evidence.either_short,
        })
    });
    json!({ "name": name, "matches": matches.collect::<Vec<_>>() })
}
