//! `arose compare`: two texts by every score.

mod content;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use arose::Threshold;
use arose::compare::{Comparison, Profile, Profiler};
use arose::rule::{Policy, Rule, ShortPolicy, SiteRelation};
use arose::token::Tokenizer;
use arose_corpus::{Document, Item};
use clap::ValueEnum;
use content::Explanation;
use serde_json::json;

use crate::corpus::Reading;
use crate::input::{self, Limit};
use crate::losses::{self, Warnings};
use crate::options::{positive, threshold};
use crate::output::{printable, similarity, write_json};
use crate::policy::PolicyName;

/// Compare two texts by every score and show the rule that matches.
///
/// Similarity is the number of shingles that both texts share, divided by the number of distinct
/// shingles in either. Containment divides by the number in one text. The estimates come from
/// sketches, without the texts. Inputs are read as by `arose read`: text is extracted from web
/// pages, and compressed files are decompressed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose compare draft.txt final.txt
  arose compare -w 3 --json draft.txt final.txt
  arose compare --policy combined page.txt mirror.txt
  curl -s example.org | arose compare - kept.html
  arose compare pages.jsonl pages.jsonl --document-a p1 --document-b p7
  arose compare --among crawl/ page.html other.html

`arose help policies` describes the policies. The policy content, the default,
shows both texts side by side; text that other pages of the site repeat, in A, B and --among,
counts less.")]
pub(crate) struct Options {
    /// File with one document; `-` is standard input
    a: PathBuf,
    /// File to compare it with
    b: PathBuf,
    /// ID, URL or position of the document in A, if A contains several
    #[arg(long, value_name = "ID")]
    document_a: Option<String>,
    /// ID, URL or position of the document in B, if B contains several
    #[arg(long, value_name = "ID")]
    document_b: Option<String>,
    /// Tokens per shingle [default: 5, or 8 for the policies b, c, combined, site and site-union]
    #[arg(short = 'w', long, value_name = "N", value_parser = positive)]
    shingle: Option<NonZeroUsize>,
    /// Definition of a duplicate; see `arose help policies` [default: content]
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,
    /// Minimum similarity (policy jaccard) or containment (policy contained) [default: 0.8,
    /// or 0.9 for contained]
    #[arg(long, value_name = "J", value_parser = threshold)]
    threshold: Option<Threshold>,
    /// File or directory with more pages of the same sites (policy content); repeatable
    #[arg(long, value_name = "PATH")]
    among: Vec<PathBuf>,
    /// Whether the texts are from the same site (policies site and site-union) [default: unknown]
    #[arg(long, value_enum)]
    site: Option<Site>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    reading: Reading,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Site {
    Same,
    Different,
}

/// Compares the two files.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    input::check_standard_input_once(&[options.a.clone(), options.b.clone()])?;
    check_settings(options)?;
    let policy = policy(options);
    let w = options.shingle.unwrap_or(policy.criterion.default_w());
    let profiler = Profiler::new(w);
    let mut counter = content::Counter::new();
    let is_content = options.policy() == PolicyName::Content;
    let mut count = |document: &Document| {
        if is_content {
            counter.push(document);
        }
    };
    let documents = [
        document(
            &options.a,
            Choice::new("a", &options.document_a),
            options,
            &mut count,
        )?,
        document(
            &options.b,
            Choice::new("b", &options.document_b),
            options,
            &mut count,
        )?,
    ];
    count_among(options, count)?;
    let tokenizer = Tokenizer::default();
    let profile = |document: &Document| {
        let tokens = arose_dedup::tokens(&tokenizer, document);
        profiler.profile_of_tokens(&tokens, document.content_digest())
    };
    let [a, b] = [profile(&documents[0]), profile(&documents[1])];
    let mut comparison = profiler.compare(&a, &b);
    let repeats = counter.finish();
    let explanation = is_content.then(|| Explanation::new(&documents, &repeats));
    if let Some(explanation) = &explanation {
        comparison.content = explanation.explained.score;
    }
    let rule = comparison.rule(&policy, relation(options.site));
    // Versions are kept by default, but still shown.
    let level = explanation.as_ref().map(|_| comparison.content.level());
    let rule = rule.or_else(|| Rule::of_level(level?));
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = if options.json {
        let mut object = as_json(options, w, [&a, &b], &comparison, rule);
        if let Some(explanation) = &explanation {
            object["content"] = explanation.as_json();
        }
        write_json(&mut out, &object)
    } else {
        write_text(&mut out, options, w, [&a, &b], &comparison)
            .and_then(|()| write_verdict(&mut out, &comparison, rule, explanation.as_ref()))
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")
}

impl Options {
    /// The policy, given or by default.
    fn policy(&self) -> PolicyName {
        PolicyName::chosen(self.policy, self.threshold.is_some())
    }
}

/// Rejects options that have no effect under the policy.
fn check_settings(options: &Options) -> anyhow::Result<()> {
    let policy = options.policy();
    ensure!(
        policy != PolicyName::Url,
        "--policy url compares URLs, not texts; choose another policy"
    );
    policy.check_used(&[
        (
            "--threshold",
            options.threshold.is_some(),
            policy.has_threshold(),
        ),
        (
            "--site",
            options.site.is_some(),
            policy.is_by_site() && policy != PolicyName::Content,
        ),
        (
            "--among",
            !options.among.is_empty(),
            policy == PolicyName::Content,
        ),
    ])
}

/// The document to choose from an input.
struct Choice<'a> {
    option: String,
    id: Option<&'a str>,
}

impl<'a> Choice<'a> {
    fn new(side: &str, id: &'a Option<String>) -> Self {
        Self {
            option: format!("--document-{side}"),
            id: id.as_deref(),
        }
    }

    fn is_meant(&self, document: &Document) -> bool {
        self.id.is_none_or(|id| {
            document.id.as_deref() == Some(id)
                || document.url.as_deref() == Some(id)
                || document.position.to_string() == id
                || document.name() == id
        })
    }
}

/// Counts the shingles of the other pages of the sites.
fn count_among(options: &Options, mut count: impl FnMut(&Document)) -> anyhow::Result<()> {
    if options.among.is_empty() {
        return Ok(());
    }
    let mut config = options.reading.config();
    options.limit.apply(&mut config);
    let mut items = arose_corpus::read(&options.among, config)?;
    let mut warnings = Warnings::default();
    for item in items.by_ref() {
        match item {
            Item::Skipped(warning) => warnings.show(&warning),
            Item::Document(document) => count(&document),
        }
    }
    options.limit.hint(items.counts());
    match items.counts().losses.files.first() {
        Some(warning) => bail!("cannot read {}", losses::words(warning)),
        None => Ok(()),
    }
}

/// The chosen document of an input, or its only one. All documents are counted.
fn document(
    path: &Path,
    choice: Choice<'_>,
    options: &Options,
    count: &mut impl FnMut(&Document),
) -> anyhow::Result<Document> {
    let mut config = options.reading.config();
    options.limit.apply(&mut config);
    let name = input::name(path);
    let mut items = arose_corpus::read(&[path.to_owned()], config)?;
    let mut warnings = Warnings::default();
    let mut found: Option<Document> = None;
    for item in items.by_ref() {
        if let Item::Document(document) = &item {
            count(document);
        }
        match item {
            Item::Skipped(warning) => warnings.show(&warning),
            Item::Document(document) if !choice.is_meant(&document) => {}
            Item::Document(_) if found.is_some() => bail!(
                "{name} contains more than one document{}; choose one with {} ID",
                choice
                    .id
                    .map_or(String::new(), |id| format!(" `{}`", printable(id))),
                choice.option
            ),
            Item::Document(document) => {
                document
                    .warnings
                    .iter()
                    .for_each(|warning| warnings.show(warning));
                found = Some(*document);
            }
        }
    }
    options.limit.hint(items.counts());
    if let Some(warning) = items.counts().losses.files.first() {
        bail!("cannot read {}", losses::words(warning));
    }
    match (found, choice.id) {
        (Some(document), _) => Ok(document),
        (None, None) => bail!("{name} contains no document"),
        (None, Some(id)) => bail!("{name} contains no document `{}`", printable(id)),
    }
}

fn policy(options: &Options) -> Policy {
    Policy {
        criterion: options.policy().criterion(options.threshold),
        short: ShortPolicy::ExactOnly,
    }
}

fn relation(site: Option<Site>) -> SiteRelation {
    match site {
        Some(Site::Same) => SiteRelation::Same,
        Some(Site::Different) => SiteRelation::Different,
        None => SiteRelation::Unknown,
    }
}

fn as_json(
    options: &Options,
    w: NonZeroUsize,
    profiles: [&Profile; 2],
    comparison: &Comparison,
    rule: Option<Rule>,
) -> serde_json::Value {
    json!({
        "a": options.a.to_string_lossy(),
        "b": options.b.to_string_lossy(),
        "w": w,
        "tokens": profiles.map(|profile| profile.n_tokens),
        "distinct_shingles": profiles.map(|profile| profile.shingles.len()),
        "common_shingles": comparison.n_common,
        "jaccard": comparison.jaccard,
        "containment": comparison.containment,
        "jaccard_estimate": comparison.jaccard_estimate,
        "containment_estimate": comparison.containment_estimate,
        "b_sim": comparison.b_sim,
        "c_sim": comparison.c_sim,
        "cosine_estimate": comparison.cosine_estimate,
        "same_content": comparison.same_content,
        "short": comparison.either_short,
        "rule": rule.map(Rule::as_str),
    })
}

fn write_text(
    out: &mut impl Write,
    options: &Options,
    w: NonZeroUsize,
    [a, b]: [&Profile; 2],
    comparison: &Comparison,
) -> io::Result<()> {
    let [a_in_b, b_in_a] = comparison.containment.map(similarity);
    let [a_in_b_estimate, b_in_a_estimate] = comparison.containment_estimate.map(similarity);
    let (common, union) = (comparison.n_common, comparison.n_union);
    writeln!(out, "a  {}", input::name(&options.a))?;
    writeln!(out, "b  {}", input::name(&options.b))?;
    writeln!(out)?;
    writeln!(out, "                   exact  estimated")?;
    writeln!(
        out,
        "similarity        {:>6}  {:>9}   {common} of {union} distinct {w}-token shingles in both",
        similarity(comparison.jaccard),
        similarity(comparison.jaccard_estimate),
    )?;
    writeln!(
        out,
        "a contained in b  {a_in_b:>6}  {a_in_b_estimate:>9}   a has {}",
        a.shingles.len()
    )?;
    writeln!(
        out,
        "b contained in a  {b_in_a:>6}  {b_in_a_estimate:>9}   b has {}",
        b.shingles.len()
    )?;
    writeln!(out)?;
    writeln!(out, "B-sim  {} of 6 super-shingles", comparison.b_sim)?;
    match comparison.c_sim.zip(comparison.cosine_estimate) {
        Some((c_sim, cosine)) => {
            writeln!(out, "C-sim  {c_sim} of 384 bits, cosine about {cosine:.3}")
        }
        None => writeln!(out, "C-sim  none: a text has no tokens"),
    }
}

fn write_verdict(
    out: &mut impl Write,
    comparison: &Comparison,
    rule: Option<Rule>,
    explanation: Option<&Explanation<'_>>,
) -> io::Result<()> {
    let Some(explanation) = explanation else {
        return writeln!(out, "rule   {}", verdict(comparison, rule));
    };
    // The levels themselves require enough text.
    let comparison = &Comparison {
        either_short: false,
        ..comparison.clone()
    };
    writeln!(out)?;
    explanation.write_scores(out)?;
    writeln!(out, "rule     {}", verdict(comparison, rule))?;
    explanation.write_rows(out)
}

fn verdict(comparison: &Comparison, rule: Option<Rule>) -> String {
    match rule {
        Some(Rule::Exact) => "exact: the texts are the same".to_owned(),
        Some(Rule::Content) => "content: versions of the same content".to_owned(),
        Some(rule) => format!("{rule}: near duplicates"),
        None if comparison.n_union == 0 => "none: empty texts are never duplicates".to_owned(),
        None if comparison.either_short => "none: short texts must be exact duplicates".to_owned(),
        None => "none: not duplicates".to_owned(),
    }
}
