//! Rules: decide from the scores of two documents whether they are duplicates, and why.
//!
//! *Question.* A candidate pair comes with scores: matching super-shingles (B), matching simhash
//! bits (C), perhaps the exact Jaccard similarity. Which scores make a duplicate?
//!
//! *Idea.* One threshold on one score is the naive rule, and each score has a weakness (Henzinger
//! 2006). B fails if a template surrounds different items, since most of its minima come from the
//! template: its precision is 0.38, and 0.34 on the same site. C fails if small scattered values
//! matter: its precision is 0.50. Requiring both, B and then C with a lower threshold, gives a
//! precision of 0.79. Different sites have no common template; there C alone has a precision of
//! 0.90 and finds far more pairs. So the site decides which rule applies ([`Criterion::SITE`]), as
//! Henzinger suggests:
//!
//! | pair | duplicate if |
//! |---|---|
//! | same content digest | always |
//! | one of the two is short | otherwise never ([`ShortPolicy::ExactOnly`]) |
//! | same site | B-sim >= 2 and C-sim >= 355 |
//! | different sites | C-sim >= 372; with [`CrossSite::Union`] also the rule above |
//! | site unknown | both of the last two rules match |
//!
//! The last line is specific to this project: without hosts no rule is known to be the right one,
//! so a pair must pass both.
//!
//! *Parameters.* r = 2 of 6 super-shingles, 372 of 384 bits alone, 355 as a filter; all are "at
//! least" (372 means at most 12 differing bits). *Cost.* A few comparisons. *Error.* The decision
//! is exact. The precision quoted is what human raters found in a crawl of 2004, and holds for
//! [`SiteKind::Henzinger`] sites.
//!
//! *Not for* ranking pairs, nor for documents sketched with different settings, whose scores cannot
//! be compared. Empty documents have no duplicates: their content is never the same
//! ([`Digest::same_content`](crate::digest::Digest::same_content)).

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use crate::content::Level;
use crate::shingle;
use crate::site::{SiteKind, same_site};
use crate::{Error, Threshold};

/// Minimum number of matching super-shingles of B-similar documents.
pub const MIN_FEATURES: u32 = 2;
/// Minimum number of matching simhash bits if C decides alone.
pub const MIN_BITS_ALONE: u32 = 372;
/// Minimum number of matching simhash bits if C filters the pairs of B.
pub const MIN_BITS_FILTER: u32 = 355;

/// Default minimum share of a contained document.
pub const DEFAULT_CONTAINMENT: f64 = 0.9;
/// Default minimum Jaccard similarity of duplicates.
pub const DEFAULT_THRESHOLD: f64 = 0.8;

/// A definition of a duplicate.
///
/// The default is that of every command: a Jaccard similarity of at least [`DEFAULT_THRESHOLD`],
/// and exact equality for short documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// The scores that decide.
    pub criterion: Criterion,
    /// How short documents can match.
    pub short: ShortPolicy,
}

/// The scores that decide, with the minimum of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Criterion {
    /// No score: only documents with equal content are duplicates.
    Exact,
    /// The Jaccard similarity of the shingle sets.
    Jaccard(Threshold),
    /// The share of a document's shingles that the other, which is not shorter, also has.
    /// [`decide`] never returns this rule, since its evidence is symmetric; see
    /// [`Comparison::rule`](crate::compare::Comparison::rule).
    Contained(Threshold),
    /// The URL, whatever the content.
    Url,
    /// The own text that two documents share in the same order ([`content`](crate::content)).
    Content(Remove),
    /// Matching super-shingles.
    B {
        /// The minimum number, r.
        min_features: u32,
    },
    /// Matching simhash bits.
    C {
        /// The minimum number.
        min_bits: u32,
    },
    /// Matching super-shingles and matching bits.
    Combined(Combined),
    /// One rule inside a site, another between sites.
    Site {
        /// The condition for pages of the same site.
        same: Combined,
        /// The minimum number of matching bits for pages of different sites.
        cross_min_bits: u32,
        /// The additional condition for pages of different sites.
        cross: CrossSite,
    },
}

/// The levels of [`content`](crate::content) at which documents are duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Remove {
    /// The same document. Versions of one content are kept and shown together.
    #[default]
    Same,
    /// The same content, in any version.
    Content,
}

/// B-similar, and C-similar at a lower threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Combined {
    /// The minimum number of matching super-shingles, r.
    pub min_features: u32,
    /// The minimum number of matching simhash bits.
    pub min_bits: u32,
}

/// The condition under which pages of different sites are duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossSite {
    /// Matching bits, regardless of B.
    COnly,
    /// Matching bits, or the condition for pages of the same site.
    Union,
}

/// How two documents can match if at least one of them is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShortPolicy {
    /// Equal content only: a sketch of few shingles is not reliable.
    ExactOnly,
    /// The same as for any other document.
    LikeAny,
}

/// The evidence for an unordered pair of documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Whether both are pages of the same site.
    pub site: SiteRelation,
    /// Matching super-shingles, `0..=6`.
    pub b_sim: u32,
    /// Matching simhash bits, `0..=384`.
    pub c_sim: u32,
    /// The Jaccard similarity of the shingle sets, if it was computed.
    pub jaccard: Option<f64>,
    /// The level of [`content`](crate::content), if it was computed.
    pub level: Option<Level>,
    /// Whether the content digests are equal.
    pub same_content: bool,
    /// Whether at least one of the two has too few tokens for a meaningful sketch.
    pub either_short: bool,
}

/// The relation between the sites of two documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SiteRelation {
    /// Pages of one site.
    Same,
    /// Pages of two sites.
    Different,
    /// At least one of the two has no host.
    Unknown,
}

/// The rule that made a pair duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Equal content digests.
    Exact,
    /// The Jaccard similarity.
    Jaccard,
    /// Matching super-shingles.
    B,
    /// Matching bits.
    C,
    /// Matching super-shingles and bits, on any sites.
    Combined,
    /// Same site: matching super-shingles and bits.
    SiteSame,
    /// Different sites: matching bits.
    SiteCross,
    /// Different sites, too few matching bits, but the rule for the same site matches.
    SiteUnion,
    /// Not the rule of a pair: an empty document that was dropped because empty documents are not
    /// wanted.
    Empty,
    /// The shingles of one document are among those of the other.
    Contained,
    /// The same URL.
    Url,
    /// The same document ([`Level::Same`]).
    Same,
    /// Another version of the same content ([`Level::Content`]).
    Content,
    /// Not the rule of a pair: a document that a filter of [`quality`](crate::quality) rejects.
    Filter,
    /// Not the rule of a pair: a version of a page that was fetched again later.
    Superseded,
}

/// Returns the rule that makes the pair duplicates; `None` means distinct.
///
/// The function is total, pure and symmetric: any evidence has a decision, and evidence has no
/// order of its documents.
///
/// ```
/// use arose::rule::{Evidence, Policy, Rule, SiteRelation, decide};
/// let mut evidence = Evidence {
///     site: SiteRelation::Same,
///     b_sim: 2,
///     c_sim: 355,
///     jaccard: None,
///     level: None,
///     same_content: false,
///     either_short: false,
/// };
/// assert_eq!(decide(&Policy::SITE, &evidence), Some(Rule::SiteSame));
/// evidence.site = SiteRelation::Different;
/// assert_eq!(decide(&Policy::SITE, &evidence), None);
/// ```
#[must_use]
pub fn decide(policy: &Policy, evidence: &Evidence) -> Option<Rule> {
    if evidence.same_content {
        return Some(Rule::Exact);
    }
    // The levels of content themselves require enough text.
    let is_any = matches!(policy.criterion, Criterion::Content(_));
    match policy.short {
        ShortPolicy::ExactOnly if evidence.either_short && !is_any => None,
        _ => policy.criterion.decide(evidence),
    }
}

impl Policy {
    /// The site policy with the published thresholds, and exact equality for short documents.
    pub const SITE: Self = Self {
        criterion: Criterion::SITE,
        short: ShortPolicy::ExactOnly,
    };
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            criterion: Criterion::default(),
            short: ShortPolicy::ExactOnly,
        }
    }
}

impl Default for Criterion {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Default for Combined {
    fn default() -> Self {
        Self::PUBLISHED
    }
}

impl Combined {
    const PUBLISHED: Self = Self {
        min_features: MIN_FEATURES,
        min_bits: MIN_BITS_FILTER,
    };

    fn holds(self, evidence: &Evidence) -> bool {
        evidence.b_sim >= self.min_features && evidence.c_sim >= self.min_bits
    }
}

impl Criterion {
    /// B with its published threshold.
    pub const PUBLISHED_B: Self = Self::B {
        min_features: MIN_FEATURES,
    };
    /// The definition of a duplicate unless another one is chosen, everywhere the same: the same
    /// content, in the same order.
    pub const DEFAULT: Self = Self::Content(Remove::Same);
    /// C with its published threshold.
    pub const PUBLISHED_C: Self = Self::C {
        min_bits: MIN_BITS_ALONE,
    };
    /// B, then C as a filter, with their published thresholds.
    pub const PUBLISHED_COMBINED: Self = Self::Combined(Combined::PUBLISHED);
    /// The site policy with the published thresholds.
    pub const SITE: Self = Self::site(CrossSite::COnly);
    /// The site policy that also applies the rule for the same site between sites.
    pub const SITE_UNION: Self = Self::site(CrossSite::Union);

    /// Returns the policy `jaccard` with its default threshold.
    #[must_use]
    pub fn jaccard() -> Self {
        Self::Jaccard(Threshold::new(DEFAULT_THRESHOLD).expect("0.8 is a similarity"))
    }

    /// Returns the name of the policy on command lines and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Jaccard(_) => "jaccard",
            Self::Contained(_) => "contained",
            Self::Url => "url",
            Self::Content(_) => "content",
            Self::B { .. } => "b",
            Self::C { .. } => "c",
            Self::Combined(_) => "combined",
            Self::Site { cross, .. } => match cross {
                CrossSite::COnly => "site",
                CrossSite::Union => "site-union",
            },
        }
    }

    /// Returns the default number of tokens per shingle: that of the literature if super-shingles
    /// decide, fewer if the sets themselves are compared.
    #[must_use]
    pub const fn default_w(self) -> NonZeroUsize {
        match self {
            Self::Exact | Self::Jaccard(_) | Self::Content(_) | Self::Contained(_) | Self::Url => {
                shingle::DEFAULT_W
            }
            _ => shingle::FEATURE_W,
        }
    }

    /// Returns whether a rule drops documents: every rule does, except for versions of the same
    /// content that are to be kept.
    #[must_use]
    pub fn removes(self, rule: Rule) -> bool {
        rule != Rule::Content || self == Self::Content(Remove::Content)
    }

    const fn site(cross: CrossSite) -> Self {
        Self::Site {
            same: Combined::PUBLISHED,
            cross_min_bits: MIN_BITS_ALONE,
            cross,
        }
    }

    fn decide(self, evidence: &Evidence) -> Option<Rule> {
        match self {
            Self::Exact | Self::Contained(_) | Self::Url => None,
            Self::Jaccard(threshold) => evidence
                .jaccard
                .is_some_and(|jaccard| threshold.reached_by(jaccard))
                .then_some(Rule::Jaccard),
            Self::Content(_) => evidence
                .level
                .and_then(Rule::of_level)
                .filter(|rule| self.removes(*rule)),
            Self::B { min_features } => (evidence.b_sim >= min_features).then_some(Rule::B),
            Self::C { min_bits } => (evidence.c_sim >= min_bits).then_some(Rule::C),
            Self::Combined(combined) => combined.holds(evidence).then_some(Rule::Combined),
            Self::Site {
                same,
                cross_min_bits,
                cross,
            } => decide_by_site(same, cross_min_bits, cross, evidence),
        }
    }
}

fn decide_by_site(
    same: Combined,
    cross_min_bits: u32,
    cross: CrossSite,
    evidence: &Evidence,
) -> Option<Rule> {
    let inside = same.holds(evidence);
    let across = if evidence.c_sim >= cross_min_bits {
        Some(Rule::SiteCross)
    } else if inside && cross == CrossSite::Union {
        Some(Rule::SiteUnion)
    } else {
        None
    };
    match evidence.site {
        SiteRelation::Same => inside.then_some(Rule::SiteSame),
        SiteRelation::Different => across,
        SiteRelation::Unknown => (inside && across.is_some()).then_some(Rule::Combined),
    }
}

impl SiteRelation {
    /// Compares the sites of two hosts.
    ///
    /// ```
    /// use arose::rule::SiteRelation;
    /// use arose::site::SiteKind;
    /// let relation = |a, b| SiteRelation::of(a, b, SiteKind::Registrable);
    /// assert_eq!(relation(Some("www.x.org"), Some("x.org")), SiteRelation::Same);
    /// assert_eq!(relation(Some("x.org"), None), SiteRelation::Unknown);
    /// ```
    #[must_use]
    pub fn of(a: Option<&str>, b: Option<&str>, kind: SiteKind) -> Self {
        match (a, b) {
            (Some(a), Some(b)) if same_site(a, b, kind) => Self::Same,
            (Some(_), Some(_)) => Self::Different,
            _ => Self::Unknown,
        }
    }
}

impl Rule {
    /// Every rule, in the order of its declaration.
    pub const ALL: [Self; 15] = [
        Self::Exact,
        Self::Jaccard,
        Self::B,
        Self::C,
        Self::Combined,
        Self::SiteSame,
        Self::SiteCross,
        Self::SiteUnion,
        Self::Empty,
        Self::Contained,
        Self::Url,
        Self::Same,
        Self::Content,
        Self::Filter,
        Self::Superseded,
    ];

    /// Returns the rule of a level of [`content`](crate::content); none if documents at this level
    /// are not duplicates.
    #[must_use]
    pub const fn of_level(level: Level) -> Option<Self> {
        match level {
            Level::Same => Some(Self::Same),
            Level::Content => Some(Self::Content),
            Level::Alike | Level::Distinct => None,
        }
    }

    /// Returns the rule's name in files; it never changes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Jaccard => "jaccard",
            Self::B => "b",
            Self::C => "c",
            Self::Combined => "combined",
            Self::SiteSame => "site-same",
            Self::SiteCross => "site-cross",
            Self::SiteUnion => "site-union",
            Self::Empty => "empty",
            Self::Contained => "contained",
            Self::Url => "url",
            Self::Same => "same",
            Self::Content => "content",
            Self::Filter => "filter",
            Self::Superseded => "superseded",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let expected = "the name of a rule, such as exact, jaccard or site-same";
        let rule = Self::ALL.into_iter().find(|rule| rule.as_str() == name);
        rule.ok_or_else(|| Error::parameter("rule", name, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SiteRelation::{Different, Same, Unknown};
    use proptest::prelude::*;

    const RELATIONS: [SiteRelation; 3] = [Same, Different, Unknown];
    const SHORT_POLICIES: [ShortPolicy; 2] = [ShortPolicy::ExactOnly, ShortPolicy::LikeAny];

    fn criteria() -> [Criterion; 9] {
        [
            Criterion::Content(Remove::Same),
            Criterion::Content(Remove::Content),
            Criterion::Exact,
            Criterion::Jaccard(Threshold::new(0.9).unwrap()),
            Criterion::PUBLISHED_B,
            Criterion::PUBLISHED_C,
            Criterion::PUBLISHED_COMBINED,
            Criterion::SITE,
            Criterion::SITE_UNION,
        ]
    }

    fn policies() -> impl Iterator<Item = Policy> {
        criteria()
            .into_iter()
            .flat_map(|criterion| SHORT_POLICIES.map(|short| Policy { criterion, short }))
    }

    fn scores(site: SiteRelation, b_sim: u32, c_sim: u32) -> Evidence {
        Evidence {
            site,
            b_sim,
            c_sim,
            jaccard: None,
            level: None,
            same_content: false,
            either_short: false,
        }
    }

    #[track_caller]
    fn check(criterion: Criterion, evidence: Evidence, expected: Option<Rule>) {
        let short = ShortPolicy::ExactOnly;
        assert_eq!(decide(&Policy { criterion, short }, &evidence), expected);
    }

    #[test]
    fn truth_table_of_the_site_policy() {
        check(Criterion::SITE, scores(Same, 2, 355), Some(Rule::SiteSame));
        check(Criterion::SITE, scores(Same, 2, 354), None);
        check(Criterion::SITE, scores(Same, 1, 384), None);
        check(
            Criterion::SITE,
            scores(Different, 0, 372),
            Some(Rule::SiteCross),
        );
        check(Criterion::SITE, scores(Different, 6, 371), None);
    }

    #[test]
    fn union_accepts_between_sites_what_is_accepted_inside() {
        check(
            Criterion::SITE_UNION,
            scores(Different, 6, 371),
            Some(Rule::SiteUnion),
        );
        check(
            Criterion::SITE_UNION,
            scores(Different, 2, 355),
            Some(Rule::SiteUnion),
        );
        check(Criterion::SITE_UNION, scores(Different, 2, 354), None);
        check(
            Criterion::SITE_UNION,
            scores(Different, 6, 372),
            Some(Rule::SiteCross),
        );
        check(Criterion::SITE_UNION, scores(Same, 1, 384), None);
    }

    #[test]
    fn unknown_sites_need_both_rules() {
        check(Criterion::SITE, scores(Unknown, 2, 371), None);
        check(Criterion::SITE, scores(Unknown, 1, 384), None);
        check(
            Criterion::SITE,
            scores(Unknown, 2, 372),
            Some(Rule::Combined),
        );
        check(
            Criterion::SITE_UNION,
            scores(Unknown, 2, 355),
            Some(Rule::Combined),
        );
    }

    #[test]
    fn thresholds_are_reached_from_below() {
        check(Criterion::PUBLISHED_B, scores(Same, 1, 384), None);
        check(Criterion::PUBLISHED_B, scores(Same, 2, 0), Some(Rule::B));
        check(Criterion::PUBLISHED_C, scores(Same, 6, 371), None);
        check(Criterion::PUBLISHED_C, scores(Same, 0, 372), Some(Rule::C));
        check(
            Criterion::PUBLISHED_COMBINED,
            scores(Different, 2, 355),
            Some(Rule::Combined),
        );
        check(
            Criterion::PUBLISHED_COMBINED,
            scores(Different, 2, 354),
            None,
        );
        check(
            Criterion::PUBLISHED_COMBINED,
            scores(Different, 1, 384),
            None,
        );
    }

    #[test]
    fn jaccard_must_have_been_computed() {
        let criterion = Criterion::Jaccard(Threshold::new(0.9).unwrap());
        let at = |jaccard| Evidence {
            jaccard,
            ..scores(Same, 6, 384)
        };
        check(criterion, at(Some(0.9)), Some(Rule::Jaccard));
        check(criterion, at(Some(0.899)), None);
        check(criterion, at(Some(f64::NAN)), None);
        check(criterion, at(None), None);
    }

    #[test]
    fn short_documents_need_equal_content() {
        let mut short = scores(Same, 6, 384);
        short.either_short = true;
        let [exact_only, like_any] = SHORT_POLICIES.map(|short| Policy {
            short,
            ..Policy::SITE
        });
        assert_eq!(decide(&exact_only, &short), None);
        assert_eq!(decide(&like_any, &short), Some(Rule::SiteSame));
        short.same_content = true;
        assert_eq!(decide(&exact_only, &short), Some(Rule::Exact));
    }

    #[test]
    fn the_default_is_the_one_of_the_commands() {
        let policy = Policy::default();
        assert_eq!(policy.criterion, Criterion::Content(Remove::Same));
        assert_eq!(policy.criterion.default_w().get(), 5);
        let threshold = Threshold::new(0.8).unwrap();
        assert_eq!(Criterion::jaccard(), Criterion::Jaccard(threshold));
        assert_eq!(Criterion::SITE.default_w().get(), 8);
        assert_eq!(policy.short, ShortPolicy::ExactOnly);
    }

    /// The definitions, written independently of the code: with numbers and without shared helpers.
    fn is_duplicate(policy: &Policy, e: &Evidence) -> bool {
        let by_score = match policy.criterion {
            Criterion::Exact | Criterion::Contained(_) | Criterion::Url => false,
            Criterion::Jaccard(_) => matches!(e.jaccard, Some(j) if j >= 0.9),
            Criterion::Content(Remove::Same) => e.level == Some(Level::Same),
            Criterion::Content(Remove::Content) => {
                matches!(e.level, Some(Level::Same | Level::Content))
            }
            Criterion::B { .. } => !matches!(e.b_sim, 0 | 1),
            Criterion::C { .. } => 384 - e.c_sim <= 12,
            Criterion::Combined(_) => e.b_sim > 1 && 384 - e.c_sim <= 29,
            Criterion::Site { cross, .. } => {
                let one_site = e.b_sim > 1 && 384 - e.c_sim <= 29;
                let union = matches!(cross, CrossSite::Union) && one_site;
                let two_sites = 384 - e.c_sim <= 12 || union;
                (e.site == Different || one_site) && (e.site == Same || two_sites)
            }
        };
        let is_content = matches!(policy.criterion, Criterion::Content(_));
        let is_exact_only = policy.short == ShortPolicy::ExactOnly && !is_content;
        let is_too_short = e.either_short && is_exact_only;
        e.same_content || by_score && !is_too_short
    }

    /// Every pair of relations, scores and flags; Jaccard at three values.
    fn all_evidence() -> impl Iterator<Item = Evidence> {
        let flags = [(false, false), (false, true), (true, false), (true, true)];
        let kinds = RELATIONS.into_iter().flat_map(move |site| {
            flags
                .into_iter()
                .flat_map(move |(same_content, either_short)| {
                    [None, Some(0.89), Some(0.9)].map(move |jaccard| Evidence {
                        jaccard,
                        same_content,
                        either_short,
                        ..scores(site, 0, 0)
                    })
                })
        });
        kinds.flat_map(|kind| {
            (0..=6).flat_map(move |b_sim| {
                (0..=384).map(move |c_sim| Evidence {
                    b_sim,
                    c_sim,
                    ..kind
                })
            })
        })
    }

    /// Under the policies of content, levels decide whatever the other scores are, even for short
    /// documents.
    #[test]
    fn issue_24_levels_decide() {
        let rules = [
            (Level::Same, [Some(Rule::Same); 2]),
            (Level::Content, [None, Some(Rule::Content)]),
            (Level::Alike, [None; 2]),
            (Level::Distinct, [None; 2]),
        ];
        for (level, expected) in rules {
            for (remove, expected) in [Remove::Same, Remove::Content].into_iter().zip(expected) {
                for (b_sim, either_short) in [(0, false), (6, true)] {
                    let evidence = Evidence {
                        level: Some(level),
                        either_short,
                        ..scores(Same, b_sim, 0)
                    };
                    check(Criterion::Content(remove), evidence, expected);
                }
            }
        }
        let criterion = Criterion::Content(Remove::Same);
        check(criterion, scores(Same, 6, 384), None);
        assert!(!criterion.removes(Rule::Content) && criterion.removes(Rule::Same));
        assert!(Criterion::Content(Remove::Content).removes(Rule::Content));
        assert!(Criterion::SITE.removes(Rule::SiteSame));
    }

    #[test]
    fn every_decision_agrees_with_the_definitions() {
        let mut n_decisions = 0;
        for policy in policies() {
            for evidence in all_evidence() {
                let rule = decide(&policy, &evidence);
                let expected = is_duplicate(&policy, &evidence);
                assert_eq!(rule.is_some(), expected, "{policy:?} {evidence:?}");
                n_decisions += 1;
            }
        }
        assert_eq!(n_decisions, 18 * 3 * 4 * 3 * 7 * 385);
    }

    /// One step up in any score. Single steps suffice, since larger ones consist of them.
    #[test]
    fn more_agreement_never_makes_a_pair_distinct() {
        for policy in policies() {
            for below in all_evidence().filter(|below| decide(&policy, below).is_some()) {
                let above = [
                    Evidence {
                        b_sim: below.b_sim + 1,
                        ..below
                    },
                    Evidence {
                        c_sim: below.c_sim + 1,
                        ..below
                    },
                    Evidence {
                        jaccard: below.jaccard.map(|j| j + 0.01),
                        ..below
                    },
                    Evidence {
                        same_content: true,
                        ..below
                    },
                    Evidence {
                        either_short: false,
                        ..below
                    },
                ];
                for more in above {
                    assert!(
                        decide(&policy, &more).is_some(),
                        "{policy:?} {below:?} {more:?}"
                    );
                }
            }
        }
    }

    /// The rule reported belongs to the policy and to the sites.
    #[test]
    fn each_policy_has_its_own_rules() {
        for policy in policies() {
            for evidence in all_evidence() {
                let expected: &[Rule] = match (policy.criterion, evidence.site) {
                    _ if evidence.same_content => &[Rule::Exact],
                    (Criterion::Exact | Criterion::Contained(_) | Criterion::Url, _) => &[],
                    (Criterion::Jaccard(_), _) => &[Rule::Jaccard],
                    (Criterion::Content(_), _) => &[Rule::Same, Rule::Content],
                    (Criterion::B { .. }, _) => &[Rule::B],
                    (Criterion::C { .. }, _) => &[Rule::C],
                    (Criterion::Combined(_), _) => &[Rule::Combined],
                    (Criterion::Site { .. }, Same) => &[Rule::SiteSame],
                    (Criterion::Site { .. }, Different) => &[Rule::SiteCross, Rule::SiteUnion],
                    (Criterion::Site { .. }, Unknown) => &[Rule::Combined],
                };
                let rule = decide(&policy, &evidence);
                assert!(rule.is_none_or(|rule| expected.contains(&rule)), "{rule:?}");
            }
        }
    }

    #[test]
    fn names_are_stable_and_read_back() {
        let names = Rule::ALL.map(Rule::as_str).join(" ");
        let expected = "exact jaccard b c combined site-same site-cross site-union empty contained url same content filter superseded";
        assert_eq!(names, expected);
        for rule in Rule::ALL {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        for name in ["", "Exact", "site", "exact "] {
            assert!(name.parse::<Rule>().is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn relation_is_symmetric(a in host(), b in host()) {
            let [a, b] = [a.as_deref(), b.as_deref()];
            for kind in [SiteKind::Henzinger, SiteKind::Registrable] {
                prop_assert_eq!(SiteRelation::of(a, b, kind), SiteRelation::of(b, a, kind));
            }
        }

        #[test]
        fn any_evidence_has_a_decision(b_sim: u32, c_sim: u32, min_features: u32, min_bits: u32) {
            let same = Combined { min_features, min_bits };
            let cross = CrossSite::Union;
            let criterion = Criterion::Site { same, cross_min_bits: min_bits, cross };
            let policy = Policy { criterion, short: ShortPolicy::LikeAny };
            let evidence = scores(Different, b_sim, c_sim);
            prop_assert_eq!(decide(&policy, &evidence).is_some(), c_sim >= min_bits);
        }
    }

    fn host() -> impl Strategy<Value = Option<String>> {
        proptest::option::of(r"(www\.|a\.)?(x|y)\.(org|co\.uk)")
    }
}
