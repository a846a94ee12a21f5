//! `arose read`: extracts documents from archives, tables and directories.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose::quality::Selection;
use arose_corpus::html::{Links, Switch};
use arose_corpus::quality::{Assessment, Assessor};
use arose_corpus::{Config, Counts, Document, Item, Loss, Warning};
use arose_dedup::results::kinds;
use clap::ValueEnum;
use serde_json::json;

use crate::corpus::Choosing;
use crate::losses;
use crate::output::{printable, remark, say, write_json};
use crate::progress::{Display, Step};
use crate::quality;

/// Extract documents from archives, tables and directories.
///
/// Reads WARC, ARC, WET, JSON Lines and other JSON, Parquet, CSV, TSV, HTML, plain text and
/// Markdown, uncompressed or compressed with gzip, zstd, xz or bzip2. Inputs are files, directories
/// or patterns such as 'crawl/*.warc.gz'; `-` is standard input. The format is detected from the
/// content as well as the name. Damaged input is reported on standard error with file, position and
/// reason; the rest is still read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose read crawl.warc.gz > documents.jsonl
  arose read --format text --mode content page.html
  arose read --format links 'crawl/*.warc.gz'
  zcat corpus.jsonl.gz | arose read --text-field body -
  arose read --exclude node_modules --all-text project/

Modes, for web pages:
  visible    all text that readers see, without URLs and images
  henzinger  all text with the URLs of links and images
  content    the main content, without navigation and notices; all visible text if there is none
  plain      the source as it is

Files in directories:
  Hidden files and directories are skipped, and files of unknown kinds are counted. A pattern
  without `/` matches names at any depth, e.g. '*.py'; one with `/` matches paths below the
  directory, e.g. 'docs/**'. Files named on the command line are always read.

Exit code: 0 if documents were found, 1 if none, 2 on error, 3 if a file could not be read
completely.")]
pub(crate) struct Options {
    /// Files, directories, patterns; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// What to print of each document
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    #[command(flatten)]
    reading: Choosing,
    /// Stop with exit code 2 at the first record or file that cannot be read.
    #[arg(long)]
    strict: bool,
    /// Add the quality of each document to its JSON object: signals of spam and the rules of
    /// Gopher, C4 and FineWeb
    #[arg(long)]
    quality: bool,
    /// Leave out documents that fail these rules: gopher, c4, fineweb, or rules by name, separated
    /// by commas
    #[arg(long, value_name = "RULES", value_delimiter = ',', value_parser = quality::filter)]
    filter: Vec<Selection>,
    /// Maximum number of warnings to print; all are counted
    #[arg(long, value_name = "N", default_value_t = 20)]
    warnings: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object per document
    Jsonl,
    /// The text of each document after a line with its name
    Text,
    /// One JSON object with the URL and the links of each web page
    Links,
}

/// The outcome of a command, which determines its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Found,
    NothingFound,
    /// Done, but part of the input could not be read.
    Incomplete,
}

/// Prints the documents of all inputs, then the counts.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    ensure!(
        !options.quality || options.format == Format::Jsonl,
        "--quality has no effect without --format jsonl"
    );
    let shown = Shown::of(options);
    let mut parts = arose_corpus::read_map(&options.inputs, config(options), move |item| {
        Part::new(item, shown)
    })?;
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut notices = Notices::new(options.warnings);
    while let Some(part) = parts.next() {
        if let (true, Some(lost)) = (options.strict, &part.lost) {
            out.flush().context("cannot write the result")?;
            losses::refuse(lost)?;
        }
        out.write_all(&part.bytes)
            .context("cannot write the result")?;
        part.warnings
            .iter()
            .for_each(|warning| notices.warn(warning));
        notices.filter(part.filtered);
        notices.progress(parts.counts());
    }
    out.flush().context("cannot write the result")?;
    notices.finish(parts.counts());
    let outcome = match parts.counts().documents {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    };
    Ok(losses::outcome(&parts.counts().losses, outcome))
}

/// What to print of documents, and which documents to print.
#[derive(Debug, Clone, Copy)]
struct Shown {
    format: Format,
    has_quality: bool,
    /// Rules whose failure leaves a document out; none if quality is not measured.
    filter: Option<Selection>,
}

impl Shown {
    fn of(options: &Options) -> Self {
        Self {
            format: options.format,
            has_quality: options.quality,
            filter: quality::chosen(options.quality, &options.filter),
        }
    }
}

thread_local! {
    static ASSESSOR: RefCell<Assessor> = RefCell::default();
}

/// The output for one item, made by the thread that read it.
struct Part {
    /// The rules that the document fails, because of which it is left out.
    filtered: Selection,
    bytes: Vec<u8>,
    warnings: Vec<Warning>,
    /// A warning about a skipped record.
    lost: Option<Warning>,
}

impl Part {
    fn new(item: Item, shown: Shown) -> Self {
        let mut bytes = Vec::new();
        let mut filtered = Selection::default();
        let lost = match &item {
            Item::Skipped(warning) if warning.loss != Loss::Nothing => Some(warning.clone()),
            _ => None,
        };
        let warnings = match item {
            Item::Document(document) => {
                let found = shown
                    .filter
                    .map(|_| ASSESSOR.with_borrow_mut(|assessor| assessor.document(&document)));
                if let (Some(filter), Some(found)) = (shown.filter, &found) {
                    filtered = Selection::failed(&found.signals).intersection(filter);
                }
                if filtered.is_empty() {
                    let found = found.filter(|_| shown.has_quality);
                    write(&mut bytes, shown.format, &document, found.as_ref())
                        .expect("memory can be written to");
                }
                document.warnings
            }
            // Intact records without text are counted; incomplete files are named at the end.
            Item::Skipped(warning) if warning.is_reported() && warning.loss != Loss::File => {
                vec![warning]
            }
            Item::Skipped(_) => Vec::new(),
        };
        Self {
            filtered,
            bytes,
            warnings,
            lost,
        }
    }
}

fn config(options: &Options) -> Config {
    let mut config = options.reading.config(Vec::new());
    if options.format == Format::Links {
        config.html.links = Links::Collect;
    }
    if options.quality || !options.filter.is_empty() {
        config.html.visibility = Switch::On;
    }
    config
}

fn write(
    out: &mut impl Write,
    format: Format,
    document: &Document,
    found: Option<&Assessment>,
) -> io::Result<()> {
    match format {
        Format::Jsonl => {
            let fields = found.map(quality::fields).unwrap_or_default();
            arose_corpus::write_json_with(document, fields, out)
        }
        Format::Text => {
            let name = document.url.clone().unwrap_or_else(|| document.name());
            writeln!(
                out,
                "== {}\n{}\n",
                printable(&name),
                document.text.trim_end()
            )
        }
        Format::Links => match &document.page {
            Some(page) => {
                let links: Vec<&str> = page.links.iter().map(|link| link.url.as_str()).collect();
                let url = document.url.clone().unwrap_or_else(|| document.name());
                write_json(out, &json!({ "url": url, "links": links }))
            }
            None => Ok(()),
        },
    }
}

/// Messages on standard error during and after reading.
struct Notices {
    max_warnings: u64,
    n_warnings: u64,
    /// Documents left out by a filter.
    n_filtered: u64,
    /// How many of them fail a rule.
    filtered: BTreeMap<&'static str, u64>,
    display: Display,
}

impl Notices {
    fn new(max_warnings: u64) -> Self {
        Self {
            max_warnings,
            n_warnings: 0,
            n_filtered: 0,
            filtered: BTreeMap::new(),
            display: Display::new(),
        }
    }

    fn filter(&mut self, rules: Selection) {
        self.n_filtered += u64::from(!rules.is_empty());
        for rule in rules.rules() {
            *self.filtered.entry(rule.name).or_default() += 1;
        }
    }

    fn warn(&mut self, warning: &Warning) {
        self.n_warnings += 1;
        if self.n_warnings <= self.max_warnings {
            say(format_args!("arose: {}", printable(&warning.to_string())));
        } else if self.n_warnings == self.max_warnings + 1 {
            say(format_args!(
                "arose: further warnings are only counted; see more with --warnings N"
            ));
        }
    }

    fn progress(&mut self, counts: &Counts) {
        self.display.tick(|| Step {
            stage: "read".to_owned(),
            done: counts.documents,
            unit: "documents",
            note: format!(
                "{} MB of text, {} skipped",
                counts.text_bytes / 1_000_000,
                counts.skipped.values().sum::<u64>()
            ),
            ..Step::default()
        });
    }

    fn finish(self, counts: &Counts) {
        let bytes = counts.text_bytes;
        remark(format_args!("{}, {bytes} bytes of text", documents(counts)));
        for (reason, n) in &counts.skipped {
            remark(format_args!("  {n} skipped: {reason}"));
        }
        if !counts.unknown_files.is_empty() {
            remark(format_args!(
                "  unknown formats: {}",
                kinds(&counts.unknown_files)
            ));
        }
        if self.n_filtered > 0 {
            remark(format_args!("  {} left out by the filter", self.n_filtered));
        }
        for (rule, n) in &self.filtered {
            remark(format_args!("    {n} fail {rule}"));
        }
        for (reason, n) in &counts.marked {
            remark(format_args!("  {n} marked: {reason}"));
        }
    }
}

fn documents(counts: &Counts) -> String {
    let plural = if counts.documents == 1 { "" } else { "s" };
    format!("{} document{plural}", counts.documents)
}
