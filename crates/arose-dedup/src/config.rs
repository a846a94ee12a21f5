//! What a run is told.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use arose::quality::Selection;
use arose::rule::{Criterion, Policy, ShortPolicy};
use arose::shingle::ShingleLength;
use arose::site::SiteKind;
use arose::{Threshold, rule};
use serde_json::{Value, json};

use crate::Error;

/// How to find duplicates and what to keep of them.
#[derive(Debug, Clone)]
pub struct Config {
    /// What makes two documents duplicates.
    pub policy: Policy,
    /// Tokens per shingle.
    pub shingle: ShingleLength,
    /// The share of the pairs *at* the threshold that must become candidates (policy `jaccard`).
    pub recall: Threshold,
    /// What candidates are checked against.
    pub verify: Verify,
    /// Which document of a group stays.
    pub keep: Keep,
    /// What exact duplicates have in common.
    pub exact: Exact,
    /// What happens to empty documents, which are never duplicates.
    pub empty: Empty,
    /// Which versions of a page take part.
    pub versions: Versions,
    /// Documents under one key whose sketches are all compared with each other, where they must
    /// be; beyond it each is compared with fewer, and the loss is reported.
    pub cap: NonZeroUsize,
    /// Which pairs are listed; what is kept does not depend on it.
    pub pairs: ListedPairs,
    /// Where a host is cut to give its site (policies `content`, `site` and `site-union`).
    pub site: SiteKind,
    /// How what sites repeat is counted (policy `content`).
    pub site_counts: SiteCounts,
    /// Selects the permutations.
    pub seed: u64,
    /// Bytes of memory to stay under; results do not depend on it.
    pub memory: u64,
    /// An index of documents held already; what it knows is dropped.
    pub against: Option<Against>,
    /// What is written of kept and dropped documents.
    pub output: Output,
    /// What to do if part of the input cannot be read.
    pub on_loss: OnLoss,
    /// The time between two checkpoints of reading, which is the most that a kill costs. Results
    /// do not depend on it.
    pub checkpoint: Duration,
    /// Whether quality is measured, and what it filters.
    pub quality: Option<Quality>,
    /// How documents are read; its `threads` are those of the whole run.
    pub corpus: arose_corpus::Config,
}

/// Measures the quality of documents; see [`arose::quality`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quality {
    /// Documents that fail one of these rules are dropped before duplicates are looked for.
    pub filter: Selection,
}

/// An index of documents held already, and what is done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Against {
    /// Its folder.
    pub index: PathBuf,
    /// Whether it gets the documents kept.
    pub update: Update,
}

/// What an index gets from a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Nothing.
    Leave,
    /// The documents kept, when the run is complete.
    Add,
}

/// What is written of kept and dropped documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Output {
    /// What kept documents become.
    pub kept: KeptAs,
    /// What dropped documents of web archives become.
    pub dropped: DroppedAs,
    /// The most bytes of a file of kept documents, unless a single record has more.
    pub max_file_bytes: Option<NonZeroU64>,
}

/// What kept documents become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeptAs {
    /// Copies, in the format they came in.
    #[default]
    Copies,
    /// Lines with their names and places in `kept.ids.jsonl`.
    Ids,
    /// Nothing: the caller reads the tables at once and then removes the directory. There is no
    /// report either ([`report::write`](crate::report::write) makes one), and nothing is forced to
    /// the disk.
    Nothing,
}

/// What dropped documents of web archives become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DroppedAs {
    /// Nothing.
    #[default]
    Nothing,
    /// Revisit records that refer to the kept document.
    Revisit,
}

/// What a run does if part of the input cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLoss {
    /// Reports it and goes on with the rest.
    Report,
    /// Stops before any document is written to the kept output.
    Refuse,
}

/// What exact duplicates have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    /// The text after Unicode (NFC) and whitespace normalization, symbols included, and the images.
    Text,
    /// The bytes of the text or page, as they are in the input.
    Bytes,
}

/// What happens to documents without text and images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// They are kept.
    Keep,
    /// They are dropped, by the rule `empty`.
    Drop,
}

/// Which versions of a page take part in a run, where the input has several of one URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versions {
    /// All of them.
    #[default]
    All,
    /// The one fetched last; the others are dropped, by the rule `superseded`. The input is read
    /// twice.
    Current,
}

/// How what sites repeat is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SiteCounts {
    /// Every pair of words.
    #[default]
    Exact,
    /// One in 16; the others take the count of the nearest. Needs a sixteenth of the temporary
    /// disk, and is wrong more often.
    Sampled,
}

/// What a candidate pair is checked against before it is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// The shingles of the texts: exact.
    Text,
    /// The sketches: an estimate.
    Sketch,
    /// Nothing: every candidate is reported.
    None,
}

/// Which pairs are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedPairs {
    /// Each dropped document with its kept one, and what else was verified to find them.
    Verified,
    /// Every pair found at or above the threshold, which may be as many as the square of the
    /// documents.
    All,
}

/// Which document of a group stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The first in input order.
    First,
    /// The one with most text.
    Longest,
    /// The one fetched last.
    Newest,
    /// The one with most exact copies, then the heaviest, then the one fetched first.
    Copies,
    /// The one with the greatest [`arose_corpus::Document::priority`].
    Priority,
}

/// The share of the pairs at the threshold that must be found, unless another one is chosen.
pub(crate) const DEFAULT_RECALL: f64 = 0.995;
/// The time between two checkpoints of reading, unless another one is chosen.
const DEFAULT_CHECKPOINT: Duration = Duration::from_secs(30);
/// The seed of the permutations, unless another one is chosen.
pub(crate) const DEFAULT_SEED: u64 = 1;

impl Default for Config {
    /// The policy `content`, which drops documents at the level `same`.
    fn default() -> Self {
        Self::of(Criterion::DEFAULT)
    }
}

impl Config {
    /// Returns the default settings of a run with this definition of a duplicate.
    #[must_use]
    pub fn of(criterion: Criterion) -> Self {
        Self {
            policy: Policy {
                criterion,
                ..Policy::default()
            },
            shingle: ShingleLength::uniform(criterion.default_w()),
            recall: Threshold::new(DEFAULT_RECALL).expect("0.995 is a share"),
            verify: Verify::Text,
            keep: Keep::First,
            exact: Exact::Text,
            empty: Empty::Keep,
            versions: Versions::All,
            cap: NonZeroUsize::new(1024).expect("1024 is not zero"),
            pairs: ListedPairs::Verified,
            site: SiteKind::Registrable,
            site_counts: SiteCounts::Exact,
            seed: DEFAULT_SEED,
            memory: 1 << 30,
            against: None,
            output: Output::default(),
            on_loss: OnLoss::Report,
            checkpoint: DEFAULT_CHECKPOINT,
            quality: None,
            corpus: arose_corpus::Config::default(),
        }
    }

    /// The settings that shape the result, by name.
    pub(crate) fn settings(&self) -> Value {
        let mut settings = json!({
            "policy": self.policy.criterion.name(),
            "w": self.shingle.w.get(),
            "cjk_w": self.shingle.unspaced_w.get(),
            "short": match self.policy.short {
                ShortPolicy::ExactOnly => "exact",
                ShortPolicy::LikeAny => "any",
            },
            "verify": self.verify.as_str(),
            "keep": self.keep.as_str(),
            "exact": match self.exact {
                Exact::Text => "text",
                Exact::Bytes => "bytes",
            },
            "empty": match self.empty {
                Empty::Keep => "keep",
                Empty::Drop => "drop",
            },
            "cap": self.cap.get(),
            "pairs": self.pairs.as_str(),
            "seed": self.seed,
            "mode": format!("{:?}", self.corpus.html.mode).to_lowercase(),
            "statuses": format!("{:?}", self.corpus.statuses).to_lowercase(),
            "fields": fields(&self.corpus.fields),
            "limits": format!("{:?}", self.corpus.limits),
        });
        let own = match self.policy.criterion {
            Criterion::Exact | Criterion::Url => json!({}),
            Criterion::Contained(threshold) => json!({ "threshold": threshold.get() }),
            Criterion::Jaccard(threshold) => {
                json!({ "threshold": threshold.get(), "recall": self.recall.get(),
                        "samples": crate::record::N_SAMPLES })
            }
            Criterion::Content(remove) => json!({
                "remove": match remove {
                    rule::Remove::Same => "same",
                    rule::Remove::Content => "content",
                },
                "site_counts": match self.site_counts {
                    SiteCounts::Exact => "exact",
                    SiteCounts::Sampled => "sampled",
                },
                "site": self.site_name(),
            }),
            Criterion::B { min_features } => json!({ "min_features": min_features }),
            Criterion::C { min_bits } => json!({ "min_bits": min_bits }),
            Criterion::Combined(both) => {
                json!({ "min_features": both.min_features, "min_bits": both.min_bits })
            }
            Criterion::Site {
                same,
                cross_min_bits,
                cross,
            } => json!({
                "min_features": same.min_features,
                "min_bits": same.min_bits,
                "cross_min_bits": cross_min_bits,
                "cross": match cross {
                    rule::CrossSite::COnly => "c",
                    rule::CrossSite::Union => "union",
                },
                "site": self.site_name(),
            }),
        };
        if let (Value::Object(all), Value::Object(own)) = (&mut settings, own) {
            all.extend(own);
        }
        let files = &self.corpus.files;
        if !files.include.is_empty() {
            settings["include"] = json!(files.include);
        }
        if !files.exclude.is_empty() {
            settings["exclude"] = json!(files.exclude);
        }
        if files.all_text {
            settings["all_text"] = json!(true);
        }
        if self.versions == Versions::Current {
            settings["versions"] = json!("current");
        }
        let output = self.output;
        if output.kept == KeptAs::Ids {
            settings["ids_only"] = json!(true);
        }
        if output.dropped == DroppedAs::Revisit {
            settings["dropped"] = json!("revisit");
        }
        if let Some(n_bytes) = output.max_file_bytes {
            settings["max_file_bytes"] = json!(n_bytes);
        }
        if let Some(quality) = self.quality {
            let filter: Vec<&str> = quality.filter.rules().map(|rule| rule.name).collect();
            settings["quality"] = json!(true);
            settings["filter"] = json!(filter);
        }
        if let Some(against) = &self.against {
            settings["against"] = json!(against.index.display().to_string());
            settings["update_index"] = json!(against.update == Update::Add);
        }
        settings
    }

    /// An error if the policy cannot do what other settings ask for.
    pub(crate) fn check_policy(&self) -> Result<(), Error> {
        let criterion = self.policy.criterion;
        let is_url = criterion == Criterion::Url;
        let is_whole = is_url || matches!(criterion, Criterion::Contained(_));
        let refused = [
            ("--against", is_whole && self.against.is_some()),
            ("--pairs all", is_whole && self.pairs == ListedPairs::All),
            ("--exact bytes", is_url && self.exact == Exact::Bytes),
            ("--drop-empty", is_url && self.empty == Empty::Drop),
            ("--verify", is_whole && self.verify != Verify::Text),
        ];
        match refused.into_iter().find(|(_, is_refused)| *is_refused) {
            None => Ok(()),
            Some((option, _)) => Err(Error::PolicyOption {
                option,
                policy: criterion.name(),
            }),
        }
    }

    fn site_name(&self) -> &'static str {
        match self.site {
            SiteKind::Henzinger => "henzinger",
            SiteKind::Registrable => "registrable",
        }
    }

    /// Bytes for one of `share` equal parts of the memory.
    pub(crate) fn part(&self, share: u64) -> u64 {
        self.memory / share
    }
}

/// The names of fields and columns, as [`reading`](crate::results::Summary::reading) takes them.
fn fields(fields: &arose_corpus::Fields) -> Value {
    json!({
        "text": fields.text,
        "html": fields.html,
        "id": fields.id,
        "url": fields.url,
        "title": fields.title,
        "language": fields.language,
        "fetched": fields.fetched,
        "priority": fields.priority,
    })
}

impl Verify {
    /// Its name in settings and results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Sketch => "sketch",
            Self::None => "none",
        }
    }
}

impl ListedPairs {
    /// Its name in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::All => "all",
        }
    }
}

impl Keep {
    /// Its name in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Longest => "longest",
            Self::Newest => "newest",
            Self::Copies => "copies",
            Self::Priority => "priority",
        }
    }
}
