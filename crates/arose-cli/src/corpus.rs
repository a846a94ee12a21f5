//! How documents are read, the same for every command that reads them.

use std::num::NonZeroUsize;

use arose_corpus::html::Mode;
use arose_corpus::{Config, Statuses};
use clap::ValueEnum;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct Reading {
    /// How the text of a web page is taken.
    #[arg(long, value_enum, default_value_t = ModeName::Henzinger)]
    mode: ModeName,
    /// Field or column with the text, tried before the defaults; may be a path such as data.text.
    #[arg(long, value_name = "NAME")]
    text_field: Vec<String>,
    /// Field or column with the ID, tried before the defaults; may be a path.
    #[arg(long, value_name = "NAME")]
    id_field: Vec<String>,
    /// Field or column with the URL, tried before the defaults; may be a path.
    #[arg(long, value_name = "NAME")]
    url_field: Vec<String>,
    /// Takes only responses of status 200 to 299 out of archives.
    #[arg(long)]
    success: bool,
    /// Worker threads; the output is the same for any number. [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// How the text of a web page is taken.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeName {
    Henzinger,
    Content,
    Plain,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Henzinger => Mode::Henzinger,
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
