//! Policies on the command line, with the same names and defaults for every command.

use std::num::NonZeroUsize;

use anyhow::ensure;
use arose::Threshold;
use arose::rule::{Criterion, DEFAULT_CONTAINMENT, Remove, ShortPolicy};
use arose::shingle::ShingleLength;
use arose::site::SiteKind;
use clap::ValueEnum;

/// Help on policies, the topic `policies`.
pub(crate) const HELP: &str = "\
content     the texts have the same content in the same order; text that a site repeats on its
            other pages counts less. --remove decides whether other versions are dropped
jaccard     the similarity (the share of common shingles) is at least --threshold
exact       the text is the same after Unicode and whitespace normalization, symbols included
b           at least 2 of 6 super-shingles match (Broder)
c           at least 372 of 384 simhash bits match (Charikar)
combined    b, and at least 355 bits match (Henzinger)
site        combined on the same site, c between sites, both if a site is unknown
site-union  site, and combined between sites too
contained   a longer kept document contains --threshold of its shingles, by default 0.9:
            excerpts, teasers
url         the normalized URL is the same, whatever the text

Exact duplicates are duplicates under every policy except url. Texts shorter than twice the shingle
length are duplicates only if exact, unless --short any is given. `arose dedup` verifies content,
jaccard and contained on the texts; an index estimates from sketches and has no contained or url.
With content, an index knows what a site repeats from the pages that were added so far.

The default is content. Without --policy, an option that only other policies have (--threshold,
--recall, --shingle, --cjk-shingle, --verify, --short, --minhash) means jaccard. docs/defaults.md
gives the reasons.";

/// Definition of a duplicate.
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

/// Level of the policy content at which documents are duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RemoveName {
    /// The same document; other versions of its content are kept and grouped
    Same,
    /// The same content, in whatever version
    Content,
}

impl RemoveName {
    /// The policy content at this level.
    pub(crate) fn criterion(self) -> Criterion {
        Criterion::Content(match self {
            Self::Same => Remove::Same,
            Self::Content => Remove::Content,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SiteName {
    /// The public suffix plus one label
    Registrable,
    /// Everything after the first dot
    Henzinger,
}

impl PolicyName {
    /// The policy of [`Criterion::DEFAULT`].
    const DEFAULT: Self = Self::Content;

    /// The policy that was given. Without one, options of the policy jaccard mean that policy.
    pub(crate) fn chosen(given: Option<Self>, has_options_of_jaccard: bool) -> Self {
        match given {
            Some(policy) => policy,
            None if has_options_of_jaccard => Self::Jaccard,
            None => Self::DEFAULT,
        }
    }

    /// The duplicate criterion of the policy.
    pub(crate) fn criterion(self, threshold: Option<Threshold>) -> Criterion {
        match self {
            Self::Exact => Criterion::Exact,
            Self::Jaccard => threshold.map_or_else(Criterion::jaccard, Criterion::Jaccard),
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

    /// Whether `--threshold` has an effect.
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

    /// Returns an error for options that have no effect with the policy. `given` has each option,
    /// whether it is given, and whether it has an effect.
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

/// Tokens per shingle: the given number, or the default of the criterion.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The library defines the default once.
    #[test]
    fn issue_24_the_default_is_that_of_the_library() {
        assert_eq!(PolicyName::DEFAULT.criterion(None), Criterion::DEFAULT);
        assert_eq!(PolicyName::chosen(None, false), PolicyName::DEFAULT);
        assert_eq!(PolicyName::chosen(None, true), PolicyName::Jaccard);
        let given = Some(PolicyName::Site);
        assert_eq!(PolicyName::chosen(given, true), PolicyName::Site);
    }

    /// The library defines the names once, and the help has a line for each.
    #[test]
    fn issue_32_policies_have_the_names_of_the_library() {
        for policy in PolicyName::value_variants() {
            let value = policy.to_possible_value().expect("no policy is hidden");
            let name = policy.criterion(None).name();
            assert_eq!(value.get_name(), name);
            let mut lines = HELP.lines();
            assert!(
                lines.any(|line| line.split_whitespace().next() == Some(name)),
                "{name}"
            );
        }
    }
}
