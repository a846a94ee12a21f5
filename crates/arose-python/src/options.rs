//! Settings from Python: one JSON object, in which unknown names are errors.
//!
//! Names and values are those of the command line, so that a run started by one can be resumed by
//! the other, and so that a Spark driver can pass them to its executors as text.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use arose::Threshold;
use arose::quality::{Family, RULES, Selection};
use arose::rule::{Criterion, DEFAULT_CONTAINMENT, DEFAULT_THRESHOLD, Policy, Remove, ShortPolicy};
use arose::shingle::ShingleLength;
use arose::site::SiteKind;
use arose_corpus::html::Mode;
use arose_corpus::{Fields, Files, Statuses};
use arose_dedup::{
    Against, Config, DroppedAs, Empty, Exact, Keep, KeptAs, ListedPairs, OnLoss, Output, Quality,
    SiteCounts, Update, Verify, Versions,
};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error;

/// How to read documents.
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

/// The columns to read, and no others.
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
            mode: ModeName::Visible,
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

/// The definition of a duplicate, and which duplicate to keep.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Options {
    pub(crate) policy: PolicyName,
    threshold: Option<f64>,
    remove: Option<RemoveName>,
    site_counts: Option<SiteCountsName>,
    w: Option<NonZeroUsize>,
    cjk_w: Option<NonZeroUsize>,
    recall: Option<f64>,
    verify: VerifyName,
    keep: KeepName,
    priority_field: Option<String>,
    time_field: Option<String>,
    exact: ExactName,
    drop_empty: bool,
    versions: VersionsName,
    short: ShortName,
    site: Option<SiteName>,
    cap: NonZeroUsize,
    pairs: PairsName,
    seed: u64,
    memory: Option<u64>,
    against: Option<PathBuf>,
    update_index: bool,
    dropped: DroppedName,
    max_file_size: Option<NonZeroU64>,
    ids_only: bool,
    quality: bool,
    /// Rules and families of rules, by name.
    filter: Vec<String>,
    /// Whether only the tables are needed, because the directory of the run is temporary.
    tables_only: bool,
    reading: Reading,
}

impl Default for Options {
    fn default() -> Self {
        let config = Config::default();
        Self {
            policy: PolicyName::default(),
            threshold: None,
            remove: None,
            site_counts: None,
            w: None,
            cjk_w: None,
            recall: None,
            verify: VerifyName::Text,
            keep: KeepName::First,
            priority_field: None,
            time_field: None,
            exact: ExactName::Text,
            drop_empty: false,
            versions: VersionsName::All,
            short: ShortName::Exact,
            site: None,
            cap: config.cap,
            pairs: PairsName::Verified,
            seed: config.seed,
            memory: None,
            against: None,
            update_index: false,
            dropped: DroppedName::Remove,
            max_file_size: None,
            ids_only: false,
            quality: false,
            filter: Vec::new(),
            tables_only: false,
            reading: Reading::default(),
        }
    }
}

/// Maximum size of a document in bytes.
const MAX_DOCUMENT: usize = 1 << 30;
const MIN_MEMORY: u64 = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyName {
    Exact,
    Jaccard,
    Content,
    B,
    C,
    Combined,
    Site,
    SiteUnion,
    Contained,
    Url,
}

impl Default for PolicyName {
    /// The policy of [`Criterion::DEFAULT`].
    fn default() -> Self {
        let name = serde_json::Value::from(Criterion::DEFAULT.name());
        serde_json::from_value(name).expect("every policy has its name")
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RemoveName {
    Same,
    Content,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SiteCountsName {
    Exact,
    Sampled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum VersionsName {
    All,
    Current,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DroppedName {
    Remove,
    Revisit,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModeName {
    Henzinger,
    Visible,
    Content,
    Plain,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PairsName {
    Verified,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
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

/// Parses settings of type `T` from JSON.
pub(crate) fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| {
        // The position in the JSON text means nothing to a caller who did not write it.
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        error::SettingError::new_err(words.to_owned())
    })
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Henzinger => Self::Henzinger,
            ModeName::Visible => Self::Visible,
            ModeName::Content => Self::Content,
            ModeName::Plain => Self::Plain,
        }
    }
}

/// Replaces the directories of crawls by their archives, and returns whether there were any. Error
/// pages of a crawl are not documents.
pub(crate) fn expanded(inputs: Vec<PathBuf>) -> PyResult<(Vec<PathBuf>, bool)> {
    let expanded = arose_cli::expand(&inputs);
    let expanded = expanded.map_err(|cause| error::InputError::new_err(format!("{cause:#}")))?;
    let is_crawl = expanded != inputs;
    Ok((expanded, is_crawl))
}

/// Returns the memory limit.
pub(crate) fn memory(given: Option<u64>) -> u64 {
    given
        .unwrap_or_else(arose_dedup::default_memory)
        .max(MIN_MEMORY)
}

/// Allows documents of up to a gigabyte if there is enough memory.
pub(crate) fn allow_large_documents(config: &mut arose_corpus::Config) {
    config.limits.line_bytes = MAX_DOCUMENT;
    config.limits.record_bytes = MAX_DOCUMENT;
    config.limits.body_bytes = MAX_DOCUMENT;
}

impl Reading {
    /// Returns what to do if part of the input cannot be read.
    pub(crate) fn on_loss(&self) -> OnLoss {
        match self.strict {
            true => OnLoss::Refuse,
            false => OnLoss::Report,
        }
    }

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
        // Only the given names are tried: a misspelt one must not select another field.
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

/// Returns the criterion of a policy.
pub(crate) fn criterion(policy: PolicyName, threshold: Option<f64>) -> PyResult<Criterion> {
    let has_threshold = matches!(policy, PolicyName::Jaccard | PolicyName::Contained);
    check_used(policy, "threshold", threshold.is_none(), has_threshold)?;
    let at_least = |default: f64| {
        let value = threshold.unwrap_or(default);
        Threshold::new(value).map_err(error::setting)
    };
    Ok(match policy {
        PolicyName::Exact => Criterion::Exact,
        PolicyName::Jaccard => Criterion::Jaccard(at_least(DEFAULT_THRESHOLD)?),
        PolicyName::Content => Criterion::Content(Remove::default()),
        PolicyName::Contained => Criterion::Contained(at_least(DEFAULT_CONTAINMENT)?),
        PolicyName::Url => Criterion::Url,
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

/// Whether the policy depends on whether two texts come from one site.
pub(crate) fn is_by_site(policy: PolicyName) -> bool {
    matches!(policy, PolicyName::Site | PolicyName::SiteUnion)
}

/// Returns an error if the policy cannot be decided by sketches.
pub(crate) fn check_sketches(policy: PolicyName) -> PyResult<()> {
    match policy {
        PolicyName::Content | PolicyName::Contained | PolicyName::Url => {
            let name = criterion(policy, None)?.name();
            Err(error::SettingError::new_err(format!(
                "policy='{name}', expected one that sketches can decide: 'exact', 'jaccard', 'b', \
                 'c', 'combined', 'site' or 'site-union'"
            )))
        }
        _ => Ok(()),
    }
}

/// Returns an error for an option that the policy ignores.
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
        "{option} has no effect with policy='{name}'; remove it or choose another policy"
    )))
}

impl Options {
    /// Returns an error for an option that the policy, or the choice of the kept document, ignores.
    /// Options with their default values are accepted.
    fn check_used(&self) -> PyResult<()> {
        let (policy, default) = (self.policy, Self::default());
        let is_content = policy == PolicyName::Content;
        let is_near = !matches!(
            policy,
            PolicyName::Exact | PolicyName::Contained | PolicyName::Url
        );
        let is_compared = is_near && !is_content;
        let has_shingles = is_compared || policy == PolicyName::Contained;
        let has_site = is_content || is_by_site(policy);
        for (option, is_left_out, has_effect) in [
            ("recall", self.recall.is_none(), is_jaccard(policy)),
            ("site", self.site.is_none(), has_site),
            ("remove", self.remove.is_none(), is_content),
            ("site_counts", self.site_counts.is_none(), is_content),
            ("w", self.w.is_none(), has_shingles),
            ("cjk_w", self.cjk_w.is_none(), has_shingles),
            ("drop_empty", !self.drop_empty, policy != PolicyName::Url),
            ("verify", self.verify == default.verify, is_compared),
            ("short", self.short == default.short, is_compared),
            ("cap", self.cap == default.cap, is_near),
            ("seed", self.seed == default.seed, is_near),
        ] {
            check_used(policy, option, is_left_out, has_effect)?;
        }
        let is_current = self.versions == VersionsName::Current;
        for (option, is_given, is_used, names) in [
            (
                "priority_field",
                self.priority_field.is_some(),
                self.keep == KeepName::Priority,
                "keep='priority'",
            ),
            (
                "time_field",
                self.time_field.is_some(),
                self.keep == KeepName::Newest || is_current,
                "keep='newest', versions='current'",
            ),
        ] {
            if is_given && !is_used && self.keep != KeepName::Copies {
                return Err(error::SettingError::new_err(format!(
                    "{option} has no effect without {names} or keep='copies'; remove it"
                )));
            }
        }
        if self.update_index && self.against.is_none() {
            return Err(error::SettingError::new_err(
                "update_index=True has no effect without against; pass the directory of an index",
            ));
        }
        let is_copied = self.dropped == DroppedName::Remove && self.max_file_size.is_none();
        if self.ids_only && !is_copied {
            return Err(error::SettingError::new_err(
                "dropped and max_file_size have no effect with ids_only=True; remove them",
            ));
        }
        Ok(())
    }

    /// Whether to measure quality, and the rules that documents must not fail.
    fn quality(&self) -> PyResult<Option<Quality>> {
        let mut filter = Selection::default();
        for name in &self.filter {
            let Some(rules) = Selection::named(name) else {
                let families = Family::ALL.map(|family| format!("'{}'", family.as_str()));
                let rules: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
                return Err(error::SettingError::new_err(format!(
                    "filter='{name}', expected {} or a rule: {}",
                    families.join(", "),
                    rules.join(", ")
                )));
            };
            filter = filter.union(rules);
        }
        let is_measured = self.quality || !self.filter.is_empty();
        Ok(is_measured.then_some(Quality { filter }))
    }

    pub(crate) fn config(&self) -> PyResult<Config> {
        if self.keep == KeepName::Priority && self.priority_field.is_none() {
            return Err(error::SettingError::new_err(
                "keep='priority' needs priority_field, the column with the number",
            ));
        }
        let mut corpus = self.reading.config();
        if self.reading.columns.is_none() {
            corpus.fields.priority = self.priority_field.iter().cloned().collect();
            let time = self.time_field.iter().cloned();
            corpus.fields.fetched.splice(..0, time);
        }
        allow_large_documents(&mut corpus);
        self.check_used()?;
        let criterion = match self.remove {
            Some(RemoveName::Content) => Criterion::Content(Remove::Content),
            _ => criterion(self.policy, self.threshold)?,
        };
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
            versions: match self.versions {
                VersionsName::All => Versions::All,
                VersionsName::Current => Versions::Current,
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
            site_counts: match self.site_counts {
                None | Some(SiteCountsName::Exact) => SiteCounts::Exact,
                Some(SiteCountsName::Sampled) => SiteCounts::Sampled,
            },
            seed: self.seed,
            memory: memory(self.memory),
            against: self.against.as_ref().map(|index| Against {
                index: index.clone(),
                update: match self.update_index {
                    true => Update::Add,
                    false => Update::Leave,
                },
            }),
            output: Output {
                kept: match (self.tables_only, self.ids_only) {
                    (true, _) => KeptAs::Nothing,
                    (false, true) => KeptAs::Ids,
                    (false, false) => KeptAs::Copies,
                },
                dropped: match self.dropped {
                    DroppedName::Remove => DroppedAs::Nothing,
                    DroppedName::Revisit => DroppedAs::Revisit,
                },
                max_file_bytes: self.max_file_size,
            },
            checkpoint: Config::default().checkpoint,
            quality: self.quality()?,
            on_loss: self.reading.on_loss(),
            corpus,
        })
    }
}
