//! Settings of a run.

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

/// How to find duplicates and which of them to keep.
#[derive(Debug, Clone)]
pub struct Config {
    /// The definition of a duplicate.
    pub policy: Policy,
    /// Tokens per shingle.
    pub shingle: ShingleLength,
    /// Minimum recall of pairs *at* the threshold (policy `jaccard`).
    pub recall: Threshold,
    /// How to verify candidates.
    pub verify: Verify,
    /// Which duplicate to keep.
    pub keep: Keep,
    /// What exact duplicates have in common.
    pub exact: Exact,
    /// How to treat empty documents, which are never duplicates.
    pub empty: Empty,
    /// Which versions of a page to process.
    pub versions: Versions,
    /// Compare all pairs only for keys shared by at most this many documents. Beyond it, each
    /// document is compared with fewer, and the loss is reported.
    pub cap: NonZeroUsize,
    /// Which pairs to list; does not affect the kept documents.
    pub pairs: ListedPairs,
    /// How to derive the site from a host (policies `content`, `site` and `site-union`).
    pub site: SiteKind,
    /// How to count the text that sites repeat (policy `content`).
    pub site_counts: SiteCounts,
    /// Seed of the MinHash permutations.
    pub seed: u64,
    /// Memory limit in bytes; does not affect results.
    pub memory: u64,
    /// An index of earlier documents; documents already in it are dropped.
    pub against: Option<Against>,
    /// What to write of kept and dropped documents.
    pub output: Output,
    /// What to do if part of the input cannot be read.
    pub on_loss: OnLoss,
    /// The time between two checkpoints of reading, and so the most work that a kill can lose. Does
    /// not affect results.
    pub checkpoint: Duration,
    /// Whether to measure quality, and which documents to filter by it.
    pub quality: Option<Quality>,
    /// How to read documents; its `threads` apply to the whole run.
    pub corpus: arose_corpus::Config,
}

/// How to use the quality of documents; see [`arose::quality`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quality {
    /// Documents that fail one of these rules are dropped before the search for duplicates.
    pub filter: Selection,
}

/// An index of earlier documents, and how to use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Against {
    /// Its directory.
    pub index: PathBuf,
    /// Whether to add the kept documents to it.
    pub update: Update,
}

/// What a run adds to an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Nothing.
    Leave,
    /// The kept documents, when the run is complete.
    Add,
}

/// What to write of kept and dropped documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Output {
    /// What to write of kept documents.
    pub kept: KeptAs,
    /// What to write of dropped documents of web archives.
    pub dropped: DroppedAs,
    /// Maximum size in bytes of a file of kept documents, unless a single record is larger.
    pub max_file_bytes: Option<NonZeroU64>,
}

/// What to write of kept documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeptAs {
    /// Copies in the input format.
    #[default]
    Copies,
    /// Lines with their names and positions in `kept.ids.jsonl`.
    Ids,
    /// Nothing: the caller reads the tables at once and then removes the directory. No report is
    /// written either ([`report::write`](crate::report::write) writes one), and nothing is synced
    /// to disk.
    Nothing,
}

/// What to write of dropped documents of web archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DroppedAs {
    /// Nothing.
    #[default]
    Nothing,
    /// Revisit records that refer to the kept document.
    Revisit,
}

/// What to do if part of the input cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLoss {
    /// Report it and continue with the rest.
    Report,
    /// Stop before any kept document is written.
    Refuse,
}

/// What exact duplicates have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    /// The text after Unicode (NFC) and whitespace normalization, symbols included, and the images.
    Text,
    /// The bytes of the text or page as they are in the input.
    Bytes,
}

/// How to treat documents without text and images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// Keep them.
    Keep,
    /// Drop them by the rule `empty`.
    Drop,
}

/// Which versions of a page to process if the input contains several of one URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Versions {
    /// All of them.
    #[default]
    All,
    /// The one fetched last. The others are dropped by the rule `superseded`. The input is read
    /// twice.
    Current,
}

/// How to count the text that sites repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SiteCounts {
    /// Every word pair.
    #[default]
    Exact,
    /// One word pair in 16; the others take the count of the nearest. Needs a sixteenth of the
    /// temporary disk space and makes more errors.
    Sampled,
}

/// How to verify a candidate pair before it is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// By the shingles of the texts: exact.
    Text,
    /// By the sketches: an estimate.
    Sketch,
    /// Not at all: every candidate is reported.
    None,
}

/// Which pairs to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedPairs {
    /// Each dropped document with its kept one, and the other pairs verified to find them.
    Verified,
    /// Every pair found at or above the threshold, up to the square of the number of documents.
    All,
}

/// Which duplicate to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The first in input order.
    First,
    /// The one with the most text.
    Longest,
    /// The one fetched last.
    Newest,
    /// The one with the most exact copies, then the greatest priority, then the one fetched first.
    Copies,
    /// The one with the greatest [`arose_corpus::Document::priority`].
    Priority,
}

/// Default minimum recall of pairs at the threshold.
pub(crate) const DEFAULT_RECALL: f64 = 0.995;
/// Default time between two checkpoints of reading.
const DEFAULT_CHECKPOINT: Duration = Duration::from_secs(30);
/// Default seed of the permutations.
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

    /// Returns the settings that affect the result, by name.
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
            "mode": self.corpus.html.mode.as_str(),
            "statuses": format!("{:?}", self.corpus.statuses).to_lowercase(),
            "fields": fields(&self.corpus.fields),
            "limits": limits(&self.corpus.limits),
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

    /// Returns an error if the policy does not support another setting.
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

/// The names of fields and columns, in the form read by [`crate::results::Summary::reading`].
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

/// The limits of reading, by name.
fn limits(limits: &arose_corpus::Limits) -> Value {
    json!({
        "record_bytes": limits.record_bytes,
        "line_bytes": limits.line_bytes,
        "header_bytes": limits.header_bytes,
        "body_bytes": limits.body_bytes,
        "page_bytes": limits.page_bytes,
        "expansion": limits.expansion,
        "table_bytes": limits.table_bytes,
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
