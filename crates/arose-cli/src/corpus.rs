//! Reading options, shared by all commands that read documents.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use arose_corpus::html::Mode;
use arose_corpus::{Config, Files, Statuses};
use clap::ValueEnum;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct Reading {
    /// How to extract text from web pages
    #[arg(long, value_enum, default_value_t = ModeName::DEFAULT)]
    mode: ModeName,
    /// Field or column with the text, tried before the defaults; may be a path such as data.text
    #[arg(long, value_name = "NAME")]
    text_field: Vec<String>,
    /// Field or column with the ID, tried before the defaults; may be a path
    #[arg(long, value_name = "NAME")]
    id_field: Vec<String>,
    /// Field or column with the URL, tried before the defaults; may be a path
    #[arg(long, value_name = "NAME")]
    url_field: Vec<String>,
    /// Read only archived responses with status 200 to 299
    #[arg(long)]
    success: bool,
    /// Number of worker threads; does not affect the output [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::options::threads)]
    threads: Option<NonZeroUsize>,
}

/// Options that also select files in directories.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct Choosing {
    #[command(flatten)]
    reading: Reading,
    /// Read only files in directories that match this pattern, whatever their kind; repeatable
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// Leave out files and directories that match this pattern; repeatable
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Read all text files in directories, not only those of known kinds
    #[arg(long)]
    all_text: bool,
}

impl Choosing {
    /// Settings of the reader; directories in `skip` are not entered.
    pub(crate) fn config(&self, skip: Vec<PathBuf>) -> Config {
        Config {
            files: Files {
                include: self.include.clone(),
                exclude: self.exclude.clone(),
                all_text: self.all_text,
                skip,
            },
            ..self.reading.config()
        }
    }
}

/// How text is extracted from web pages.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeName {
    Henzinger,
    Visible,
    Content,
    Plain,
}

impl ModeName {
    /// The text that readers see. URLs in the text cost recall (docs/evaluation.md).
    pub(crate) const DEFAULT: Self = Self::Visible;
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Henzinger => Mode::Henzinger,
            ModeName::Visible => Mode::Visible,
            ModeName::Content => Mode::Content,
            ModeName::Plain => Mode::Plain,
        }
    }
}

impl Reading {
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::default();
        config.html.mode = self.mode.into();
        config.statuses = match self.success {
            true => Statuses::Success,
            false => Statuses::Any,
        };
        config.threads = self.threads.unwrap_or(config.threads);
        let fields = &mut config.fields;
        fields.text.splice(..0, self.text_field.iter().cloned());
        fields.id.splice(..0, self.id_field.iter().cloned());
        fields.url.splice(..0, self.url_field.iter().cloned());
        config
    }
}

/// Maximum size of a document in runs over whole corpora, in bytes.
const MAX_DOCUMENT: usize = 1 << 30;

/// Raises the limit on the size of a document. Larger documents are skipped and reported.
pub(crate) fn allow_large_documents(config: &mut arose_corpus::Config) {
    config.limits.line_bytes = MAX_DOCUMENT;
    config.limits.record_bytes = MAX_DOCUMENT;
    config.limits.body_bytes = MAX_DOCUMENT;
}
