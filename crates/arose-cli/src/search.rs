//! `arose search`: finds documents by their words, with near duplicates collapsed.

mod quote;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Context;
use arose_crawl::GonePages;
use arose_dedup::report::html::{Count, counted};
use arose_search::{
    Collapse, Config, Fragment, Hit, Index, Kind, Order, Progress, Query, Request, Results, Scope,
    SearchDir, Updated,
};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::dedup::VersionsName;
use crate::output::{printable, remark, say, write_json};
use crate::progress::{Step, watch};
use crate::read::Outcome;

/// Default number of results per site.
pub const PER_SITE: usize = 2;

/// Help on queries, the topic `queries`.
pub(crate) const QUERIES: &str = "\
red rose            both words              red OR rose     either
\"red rose\"          one after the other     rose -thorn     without the other; also NOT
(a OR b) c          parentheses             ros*            words that start with ros
site:example.org    on a host or domain     lang:en         in a language
title:rose          in the title            url:rose        in the URL
year:2024           fetched in a year       *               all documents";

/// Search the output of `arose dedup` or `arose crawl`, with near duplicates collapsed.
///
/// The search index is built when a directory is searched for the first time, and updated when the
/// directory has changed. It is in the directory itself, or where --index says.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose search out red rose
  arose search out rose -thorn
  arose search out '\"a rose is a rose\" -thorn site:example.org'
  arose search out 'title:roses (white OR red)' --sort newest --limit 20
  arose search out rose --json --collapse none
  arose search out --quote essay.txt --min 20

`arose help queries` describes the syntax of queries.

Exit code: 0 if documents were found, 1 if none, 2 on error.")]
pub(crate) struct Options {
    /// Output directory of `arose dedup` or `arose crawl`, or a directory of web archives
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Query; several arguments are one query
    #[arg(required_unless_present = "quote", value_name = "QUERY")]
    query: Vec<String>,
    /// Find the documents that contain passages of the text in FILE; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["query", "sort", "per_site"])]
    quote: Option<PathBuf>,
    /// Minimum length of a passage for --quote, in tokens, 2 to 1000
    #[arg(long, value_name = "N", default_value_t = 13, requires = "quote",
          value_parser = clap::value_parser!(u16).range(2..=1000))]
    min: u16,
    /// Maximum number of results
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Number of results to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
    /// Ranking of the results
    #[arg(long, value_enum, default_value_t = Sort::Score)]
    sort: Sort,
    /// Documents shown as one result
    #[arg(long, value_enum, default_value_t = Level::Content, value_name = "LEVEL")]
    collapse: Level,
    /// Show only kept documents
    #[arg(long)]
    kept: bool,
    /// Which versions of a page to search, if the input has several of a URL
    #[arg(long, value_enum, default_value_t = VersionsName::Current)]
    versions: VersionsName,
    /// Maximum number of results per site, unless all are from one; 0 for any number
    /// [default: 2, or 0 with --collapse none]
    #[arg(long, value_name = "N")]
    per_site: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Directory for the search index, if DIR is read-only
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Rebuild the search index
    #[arg(long)]
    rebuild: bool,
}

/// Words to exclude may be typed as in a query. `-thorn` is not an option, so it is passed on as
/// `NOT thorn`.
pub(crate) fn with_negations(
    arguments: impl IntoIterator<Item = OsString>,
) -> impl Iterator<Item = OsString> {
    let (mut n_before, mut n_after) = (0, 0);
    let (mut is_named, mut is_search, mut is_over) = (false, false, false);
    arguments.into_iter().flat_map(move |argument| {
        n_before += 1;
        is_search |= argument == "search" && !is_named;
        // Options of all commands may precede the name of the command.
        let text = argument.to_str().unwrap_or_default();
        is_named |= n_before > 1
            && !text.starts_with('-')
            && !["auto", "always", "lines", "never"].contains(&text);
        n_after += usize::from(is_named);
        is_over |= argument == "--";
        match argument
            .to_str()
            .filter(|_| is_search && !is_over && n_after > 2)
        {
            Some(text) if is_negation(text) => {
                let word = &text[1..];
                let word = match word.contains(char::is_whitespace) {
                    true => format!("({word})"),
                    false => word.to_owned(),
                };
                vec!["NOT".into(), word.into()]
            }
            _ => vec![argument],
        }
    })
}

/// Whether an argument is a dash and a word, and not a short option.
fn is_negation(text: &str) -> bool {
    let Some(word) = text.strip_prefix('-') else {
        return false;
    };
    let is_limit = word.strip_prefix('l').is_some_and(|n| {
        n.trim_start_matches('=')
            .bytes()
            .all(|byte| byte.is_ascii_digit())
    });
    let is_option = is_limit || ["h", "q", "v"].contains(&word);
    !word.is_empty() && !word.starts_with('-') && !is_option
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sort {
    /// Best match first
    Score,
    /// Last fetched first
    Newest,
}

/// Documents that are shown as one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Duplicates, and versions of the same content.
    Content,
    /// Duplicates.
    Same,
    /// None: every document is a result.
    None,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    if let Some(file) = &options.quote {
        return quote::run(options, file);
    }
    let query: Query = options.query.join(" ").parse()?;
    let request = Request {
        offset: options.offset,
        limit: options.limit,
        order: match options.sort {
            Sort::Score => Order::Score,
            Sort::Newest => Order::Newest,
        },
        collapse: match options.collapse {
            Level::Content => Collapse::Content,
            Level::Same => Collapse::Same,
            Level::None => Collapse::Nothing,
        },
        cluster: None,
        group: None,
        scope: match options.kept {
            true => Scope::Kept,
            false => Scope::All,
        },
        versions: options.versions.into(),
        per_site: options.per_site.unwrap_or(match options.collapse {
            Level::None => 0,
            Level::Content | Level::Same => PER_SITE,
        }),
    };
    let folder = folder(&options.folder, options.index.as_deref())?;
    let index = index(&folder, options.rebuild)?;
    let results = index.search(&query, &request)?;
    if results.n_documents == 0 && options.versions == VersionsName::Current {
        hint_at_earlier(&index, &query)?;
    }
    let gone = arose_crawl::gone_pages(&options.folder)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match options.json {
        true => write_json(&mut out, &as_json(&results, &gone)),
        false => write_text(&mut out, &results, &gone),
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    Ok(match results.n_documents {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    })
}

/// A directory to search, with its index in the directory itself or in `index`.
pub(crate) fn folder(path: &Path, index: Option<&Path>) -> anyhow::Result<SearchDir> {
    let folder = SearchDir::open(path)?;
    Ok(match index {
        Some(index) => folder.with_index(index.to_owned()),
        None => folder,
    })
}

/// Updates the index of a directory and opens it; reports the changes on standard error.
pub(crate) fn index(folder: &SearchDir, rebuild: bool) -> anyhow::Result<Index> {
    if rebuild {
        arose_search::remove(folder)?;
    }
    let progress = Progress::default();
    let updated = watch(step_of(&progress), || {
        arose_search::update(folder, &Config::default(), &progress)
    })?;
    tell(folder, &updated);
    Ok(Index::open(folder)?)
}

fn tell(folder: &SearchDir, updated: &Updated) {
    if updated.n_added + updated.n_removed > 0 {
        remark(format_args!(
            "arose: {} in the search index, {} added, {} removed",
            counted(updated.n_documents, "document", "documents"),
            Count(updated.n_added),
            Count(updated.n_removed)
        ));
    }
    for file in &updated.incomplete {
        say(format_args!(
            "arose: {}; only part of it is in the search index",
            printable(file)
        ));
    }
    if let Some(source) = &updated.without_text {
        let documents = counted(updated.n_without_text, "document", "documents");
        let source = source.display().to_string();
        let source = printable(&source);
        match folder.kind {
            Kind::Run(_) => say(format_args!(
                "arose: {documents} without text, found by URL only: cannot read `{source}` as it \
                 was in the run; put the file back or run `arose dedup` again"
            )),
            Kind::Archives(_) => say(format_args!(
                "arose: {documents} without text, found by URL only: the archives in `{source}` \
                 store them as duplicates, without the page that has their text"
            )),
        }
    }
}

/// Progress of indexing.
fn step_of(progress: &Progress) -> impl FnMut() -> Step + Send {
    move || Step {
        stage: "index".to_owned(),
        done: progress.n_documents.load(Relaxed),
        unit: "documents",
        note: format!(
            "{} MB of text",
            progress.text_bytes.load(Relaxed) / 1_000_000
        ),
        ..Step::default()
    }
}

/// Says so if only versions match that are no longer current.
fn hint_at_earlier(index: &Index, query: &Query) -> anyhow::Result<()> {
    let request = Request {
        limit: 1,
        ..Request::default()
    };
    let n = index.search(query, &request)?.n_documents;
    if n > 0 {
        let versions = counted(n, "earlier version matches", "earlier versions match");
        remark(format_args!("{versions}; search them with --versions all"));
    }
    Ok(())
}

/// Whether the crawler found nothing at the URL of a result at its last three visits.
fn is_gone(hit: &Hit, gone: &GonePages) -> bool {
    hit.url.as_deref().is_some_and(|url| gone.has(url))
}

fn write_text(out: &mut impl Write, results: &Results, gone: &GonePages) -> io::Result<()> {
    let (n_documents, n_results) = (results.n_documents, results.n_results);
    write!(out, "{}", counted(n_documents, "document", "documents"))?;
    if n_documents != n_results {
        write!(out, " in {}", counted(n_results, "result", "results"))?;
    }
    writeln!(out)?;
    let mut hits = results.hits.iter();
    hits.try_for_each(|hit| write_hit(out, hit, is_gone(hit, gone)))
}

fn write_hit(out: &mut impl Write, hit: &Hit, is_gone: bool) -> io::Result<()> {
    let number = hit.rank + 1;
    let address = hit.url.as_ref().unwrap_or(&hit.id);
    let name = hit.title.as_deref().filter(|title| !title.is_empty());
    let score = hit
        .score
        .map_or(String::new(), |score| format!("  {score:.2}"));
    writeln!(
        out,
        "\n{number:>3}  {}{score}",
        printable(name.unwrap_or(address))
    )?;
    if name.is_some() {
        writeln!(out, "     {}", printable(address))?;
    }
    let words: String = hit.snippet.iter().map(|fragment| &*fragment.text).collect();
    if !words.is_empty() {
        writeln!(out, "     {}", printable(words.trim()))?;
    }
    if is_gone {
        writeln!(out, "     gone: not found at three visits")?;
    }
    if let Some(duplicates) = hit.duplicates() {
        writeln!(out, "     and {duplicates}")?;
    }
    if let Some(site) = hit.site.as_deref().filter(|_| hit.more_from_site) {
        writeln!(out, "     more from this site: site:{}", printable(site))?;
    }
    Ok(())
}

fn as_json(results: &Results, gone: &GonePages) -> Value {
    let hits = results.hits.iter().map(|hit| {
        let mut value = hit_as_json(hit);
        if is_gone(hit, gone) {
            value["gone"] = true.into();
        }
        value
    });
    let hits: Vec<Value> = hits.collect();
    json!({
        "documents": results.n_documents,
        "results": results.n_results,
        "next": results.next,
        "hits": hits,
    })
}

fn hit_as_json(hit: &Hit) -> Value {
    let snippet: Vec<Value> = hit
        .snippet
        .iter()
        .map(|Fragment { text, marked }| json!({ "text": text, "marked": marked }))
        .collect();
    json!({
        "rank": hit.rank,
        "doc": hit.doc,
        "cluster": hit.cluster,
        "exact_duplicates": hit.n_exact,
        "near_duplicates": hit.n_near,
        "versions": hit.n_versions,
        "kept": hit.kept,
        "score": hit.score,
        "id": hit.id,
        "url": hit.url,
        "title": hit.title,
        "language": hit.language,
        "time": hit.time,
        "site": hit.site,
        "more_from_site": hit.more_from_site,
        "snippet": snippet,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(Into::into).collect() };
        let seen: Vec<OsString> = with_negations(words(line)).collect();
        assert_eq!(seen, words(expected), "{line}");
    }

    #[test]
    fn issue_23_words_after_a_dash_are_negated() {
        check(
            "arose search out rose -thorn",
            "arose search out rose NOT thorn",
        );
        check(
            "arose search out -lily -hello",
            "arose search out NOT lily NOT hello",
        );
        check(
            "arose --progress lines -q search out -lily",
            "arose --progress lines -q search out NOT lily",
        );
        for line in [
            "arose search out rose -l 5 --json",
            "arose search out rose -l5 -l=5 -h",
            "arose search out rose - -- -thorn",
            "arose --color never search out rose -q -v",
            "arose dedup in -o out",
        ] {
            check(line, line);
        }
    }
}
