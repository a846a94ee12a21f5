//! Settings as Python passes them: one JSON object, unknown names refused.
//!
//! Names and values are those of the command line, so that a run can be told to one and resumed by
//! the other, and so that a driver on Spark can hand them to its executors as text.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use arose::Threshold;
use arose::rule::{Criterion, DEFAULT_THRESHOLD, Policy, ShortPolicy};
use arose::shingle::ShingleLength;
use arose::site::SiteKind;
use arose_corpus::html::Mode;
use arose_corpus::{Fields, Files, Statuses};
use arose_dedup::{
    Against, Config, Empty, Exact, Keep, ListedPairs, OnLoss, Output, SiteCounts, Update, Verify,
};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error;

/// How documents are read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Reading {
    mode: ModeName,
    text_field: Vec<String>,
    id_field: Vec<String>,
    url_field: Vec<String>,
    success: bool,
    include: Vec<String>,
    exclude: Vec<String>,
    all_text: bool,
    pub(crate) strict: bool,
    threads: Option<NonZeroUsize>,
    /// The columns of a table that was written for this run.
    columns: Option<Columns>,
}

/// The columns to look at, and no others.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Columns {
    text: Option<String>,
    html: Option<String>,
    id: Option<String>,
    url: Option<String>,
    priority: Option<String>,
    time: Option<String>,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            mode: ModeName::Henzinger,
            text_field: Vec::new(),
            id_field: Vec::new(),
            url_field: Vec::new(),
            success: false,
            include: Vec::new(),
            exclude: Vec::new(),
            all_text: false,
            strict: false,
            threads: None,
            columns: None,
        }
    }
}

/// What makes duplicates and which of them stays.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Options {
    policy: PolicyName,
    threshold: Option<f64>,
    w: Option<NonZeroUsize>,
    cjk_w: Option<NonZeroUsize>,
    recall: Option<f64>,
    verify: VerifyName,
    keep: KeepName,
    priority_field: Option<String>,
    time_field: Option<String>,
    exact: ExactName,
    drop_empty: bool,
    short: ShortName,
    site: Option<SiteName>,
    cap: NonZeroUsize,
    pairs: PairsName,
    seed: u64,
    memory: Option<u64>,
    against: Option<PathBuf>,
    update_index: bool,
    reading: Reading,
}

impl Default for Options {
    fn default() -> Self {
        let config = Config::default();
        Self {
            policy: PolicyName::Jaccard,
            threshold: None,
            w: None,
            cjk_w: None,
            recall: None,
            verify: VerifyName::Text,
            keep: KeepName::First,
            priority_field: None,
            time_field: None,
            exact: ExactName::Text,
            drop_empty: false,
            short: ShortName::Exact,
            site: None,
            cap: config.cap,
            pairs: PairsName::Verified,
            seed: config.seed,
            memory: None,
            against: None,
            update_index: false,
            reading: Reading::default(),
        }
    }
}

/// The largest document that is read, in bytes.
const MAX_DOCUMENT: usize = 1 << 30;
const MIN_MEMORY: u64 = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyName {
    Exact,
    Jaccard,
    B,
    C,
    Combined,
    Site,
    SiteUnion,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModeName {
    Henzinger,
    Content,
    Plain,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PairsName {
    Verified,
    All,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum VerifyName {
    Text,
    Sketch,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KeepName {
    First,
    Longest,
    Newest,
    Copies,
    Priority,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExactName {
    Text,
    Bytes,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ShortName {
    Exact,
    Any,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SiteName {
    Registrable,
    Henzinger,
}

/// Reads settings of type `T` from JSON.
pub(crate) fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| {
        // Where in the text it stands means nothing to someone who wrote none.
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        error::SettingError::new_err(words.to_owned())
    })
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Henzinger => Self::Henzinger,
            ModeName::Content => Self::Content,
            ModeName::Plain => Self::Plain,
        }
    }
}

impl Reading {
    pub(crate) fn config(&self) -> arose_corpus::Config {
        let mut config = arose_corpus::Config::default();
        config.html.mode = self.mode.into();
        config.statuses = match self.success {
            true => Statuses::Success,
            false => Statuses::Any,
        };
        config.files = Files {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            all_text: self.all_text,
            skip: Vec::new(),
        };
        config.threads = self.threads.unwrap_or(config.threads);
        // Names that are given stand alone: a misspelt one must not read another field.
        let fields = &mut config.fields;
        if !self.text_field.is_empty() {
            fields.text.clone_from(&self.text_field);
            fields.html.clear();
        }
        for (names, given) in [
            (&mut fields.id, &self.id_field),
            (&mut fields.url, &self.url_field),
        ] {
            if !given.is_empty() {
                names.clone_from(given);
            }
        }
        if let Some(columns) = &self.columns {
            let only = |name: &Option<String>| name.iter().cloned().collect();
            *fields = Fields {
                text: only(&columns.text),
                html: only(&columns.html),
                id: only(&columns.id),
                url: only(&columns.url),
                title: Vec::new(),
                language: Vec::new(),
                fetched: only(&columns.time),
                priority: only(&columns.priority),
            };
        }
        config
    }
}

/// What a policy asks of two documents.
pub(crate) fn criterion(policy: PolicyName, threshold: Option<f64>) -> PyResult<Criterion> {
    check_used(policy, "threshold", threshold.is_none(), is_jaccard(policy))?;
    let threshold = threshold.unwrap_or(DEFAULT_THRESHOLD);
    Ok(match policy {
        PolicyName::Exact => Criterion::Exact,
        PolicyName::Jaccard => {
            Criterion::Jaccard(Threshold::new(threshold).map_err(error::setting)?)
        }
        PolicyName::B => Criterion::PUBLISHED_B,
        PolicyName::C => Criterion::PUBLISHED_C,
        PolicyName::Combined => Criterion::PUBLISHED_COMBINED,
        PolicyName::Site => Criterion::SITE,
        PolicyName::SiteUnion => Criterion::SITE_UNION,
    })
}

fn is_jaccard(policy: PolicyName) -> bool {
    policy == PolicyName::Jaccard
}

pub(crate) fn is_by_site(policy: PolicyName) -> bool {
    matches!(policy, PolicyName::Site | PolicyName::SiteUnion)
}

/// An option that the policy does not look at is a mistake.
pub(crate) fn check_used(
    policy: PolicyName,
    option: &str,
    is_left_out: bool,
    has_effect: bool,
) -> PyResult<()> {
    if is_left_out || has_effect {
        return Ok(());
    }
    let name = criterion(policy, None)?.name();
    Err(error::SettingError::new_err(format!(
        "{option} has no effect with the policy {name}; remove it or choose another policy"
    )))
}

impl Options {
    pub(crate) fn config(&self) -> PyResult<Config> {
        if self.keep == KeepName::Priority && self.priority_field.is_none() {
            return Err(error::SettingError::new_err(
                "keep=\"priority\" needs priority_field, the column with the number",
            ));
        }
        let mut corpus = self.reading.config();
        if self.reading.columns.is_none() {
            corpus.fields.priority = self.priority_field.iter().cloned().collect();
            let time = self.time_field.iter().cloned();
            corpus.fields.fetched.splice(..0, time);
        }
        corpus.limits.line_bytes = MAX_DOCUMENT;
        corpus.limits.record_bytes = MAX_DOCUMENT;
        corpus.limits.body_bytes = MAX_DOCUMENT;
        let policy = self.policy;
        check_used(policy, "recall", self.recall.is_none(), is_jaccard(policy))?;
        check_used(policy, "site", self.site.is_none(), is_by_site(policy))?;
        let criterion = criterion(policy, self.threshold)?;
        let w = self.w.unwrap_or(criterion.default_w());
        Ok(Config {
            policy: Policy {
                criterion,
                short: match self.short {
                    ShortName::Exact => ShortPolicy::ExactOnly,
                    ShortName::Any => ShortPolicy::LikeAny,
                },
            },
            shingle: ShingleLength {
                w,
                unspaced_w: self.cjk_w.unwrap_or(w),
            },
            recall: match self.recall {
                Some(recall) => Threshold::new(recall).map_err(error::setting)?,
                None => Config::default().recall,
            },
            verify: match self.verify {
                VerifyName::Text => Verify::Text,
                VerifyName::Sketch => Verify::Sketch,
                VerifyName::None => Verify::None,
            },
            keep: match self.keep {
                KeepName::First => Keep::First,
                KeepName::Longest => Keep::Longest,
                KeepName::Newest => Keep::Newest,
                KeepName::Copies => Keep::Copies,
                KeepName::Priority => Keep::Priority,
            },
            exact: match self.exact {
                ExactName::Text => Exact::Text,
                ExactName::Bytes => Exact::Bytes,
            },
            empty: match self.drop_empty {
                true => Empty::Drop,
                false => Empty::Keep,
            },
            cap: self.cap,
            pairs: match self.pairs {
                PairsName::Verified => ListedPairs::Verified,
                PairsName::All => ListedPairs::All,
            },
            site: match self.site {
                None | Some(SiteName::Registrable) => SiteKind::Registrable,
                Some(SiteName::Henzinger) => SiteKind::Henzinger,
            },
            site_counts: SiteCounts::Exact,
            seed: self.seed,
            memory: self
                .memory
                .unwrap_or_else(arose_dedup::default_memory)
                .max(MIN_MEMORY),
            against: self.against.as_ref().map(|index| Against {
                index: index.clone(),
                update: match self.update_index {
                    true => Update::Add,
                    false => Update::Leave,
                },
            }),
            output: Output::default(),
            checkpoint: Config::default().checkpoint,
            on_loss: match self.reading.strict {
                true => OnLoss::Refuse,
                false => OnLoss::Report,
            },
            corpus,
        })
    }
}
