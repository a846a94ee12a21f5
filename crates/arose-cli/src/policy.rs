//! Policies on the command line, with the same names and defaults for every command.

use std::num::NonZeroUsize;

use anyhow::{Context, ensure};
use arose::Threshold;
use arose::rule::{Criterion, DEFAULT_CONTAINMENT, Remove, ShortPolicy};
use arose::shingle::ShingleLength;
use arose::site::SiteKind;
use clap::ValueEnum;

/// What makes two documents duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShortName {
    /// Exact duplicates only
    Exact,
    /// The policy, as for any other document
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SiteName {
    /// The public suffix and one label more
    Registrable,
    /// Everything after the first dot
    Henzinger,
}

impl PolicyName {
    /// What the policy asks of two documents.
    pub(crate) fn criterion(self, threshold: Option<Threshold>) -> Criterion {
        match self {
            Self::Exact => Criterion::Exact,
            Self::Jaccard => threshold.map_or_else(Criterion::default, Criterion::Jaccard),
            Self::Content => Criterion::Content(Remove::default()),
            Self::B => Criterion::PUBLISHED_B,
            Self::C => Criterion::PUBLISHED_C,
            Self::Combined => Criterion::PUBLISHED_COMBINED,
            Self::Site => Criterion::SITE,
            Self::SiteUnion => Criterion::SITE_UNION,
            Self::Contained => {
                Criterion::Contained(threshold.unwrap_or_else(|| {
                    Threshold::new(DEFAULT_CONTAINMENT).expect("0.9 is a share")
                }))
            }
            Self::Url => Criterion::Url,
        }
    }

    /// Whether `--threshold` means something.
    pub(crate) fn has_threshold(self) -> bool {
        matches!(self, Self::Jaccard | Self::Contained)
    }

    /// Whether sketches of two documents can decide.
    pub(crate) fn has_sketches(self) -> bool {
        !matches!(self, Self::Exact | Self::Contained | Self::Url)
    }

    pub(crate) fn is_by_site(self) -> bool {
        matches!(self, Self::Content | Self::Site | Self::SiteUnion)
    }

    /// An option that the policy does not look at is a mistake, not a detail. `given` has options
    /// with whether they are given and whether they have an effect.
    pub(crate) fn check_used(self, given: &[(&str, bool, bool)]) -> anyhow::Result<()> {
        let name = self.criterion(None).name();
        for (option, is_given, is_used) in given {
            ensure!(
                *is_used || !is_given,
                "{option} has no effect with --policy {name}; remove it or choose another policy"
            );
        }
        Ok(())
    }
}

/// Tokens per shingle: those given, else what the criterion is made for.
pub(crate) fn shingle_length(
    criterion: Criterion,
    w: Option<NonZeroUsize>,
    cjk_w: Option<NonZeroUsize>,
) -> ShingleLength {
    let w = w.unwrap_or(criterion.default_w());
    let unspaced_w = cjk_w.unwrap_or(w);
    ShingleLength { w, unspaced_w }
}

pub(crate) fn short_policy(name: Option<ShortName>) -> ShortPolicy {
    match name {
        None | Some(ShortName::Exact) => ShortPolicy::ExactOnly,
        Some(ShortName::Any) => ShortPolicy::LikeAny,
    }
}

pub(crate) fn site_kind(name: Option<SiteName>) -> SiteKind {
    match name {
        None | Some(SiteName::Registrable) => SiteKind::Registrable,
        Some(SiteName::Henzinger) => SiteKind::Henzinger,
    }
}

/// A number in 0..=1 as written on the command line.
pub(crate) fn threshold(argument: &str) -> anyhow::Result<Threshold> {
    let value = argument
        .parse()
        .with_context(|| format!("{argument:?} is not a number"))?;
    Ok(Threshold::new(value)?)
}
