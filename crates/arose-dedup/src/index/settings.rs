//! Settings of an index, fixed when it is created: what it stores and which rule it uses.

use std::num::{NonZeroU16, NonZeroUsize};

use arose::Threshold;
use arose::rule::{Combined, Criterion, CrossSite, Policy, Remove, ShortPolicy};
use arose::shingle::ShingleLength;
use arose::simhash::Fingerprint384;
use arose::site::SiteKind;

use super::Error;
use super::file::NumberReader;
use super::own;
use crate::config::Config;
use crate::record::N_SAMPLES;
use crate::scheme::{Bands, KeyTables as _};

/// The settings that stay the same for the lifetime of an index. Its manifest stores them.
///
/// The default agrees with a run of [`Config::default`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// What is stored per document, and which documents are duplicates.
    pub kind: Kind,
    /// How short documents are matched. Default: exact duplicates only.
    pub short: ShortPolicy,
    /// Tokens per shingle. Default: 5, for every script.
    pub shingle: ShingleLength,
    /// Seed of the MinHash permutations. Only sketches with the same seed can be compared. Default:
    /// 1.
    pub seed: u64,
    /// How to derive the site from a host. Default: the registrable domain.
    pub site: SiteKind,
}

impl Default for Settings {
    fn default() -> Self {
        Self::agreeing_with(&Config::default())
    }
}

/// What is stored per document, and which documents are duplicates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// The digest. Exact duplicates only.
    Exact,
    /// The MinHash values and parities by which a run of the policy `jaccard` finds its candidates,
    /// with the same test as there. Documents that such a run would compare by text are duplicates.
    Jaccard {
        /// Minimum Jaccard similarity of duplicates.
        threshold: Threshold,
        /// Minimum recall of pairs at the threshold.
        recall: Threshold,
    },
    /// Marks and up to 256 word pairs, 1,232 bytes, with the rule of the policy `content`. Word
    /// pairs are weighed by how often the site repeats them on its other pages, which the index
    /// counts.
    Content {
        /// The levels at which documents are duplicates.
        remove: Remove,
    },
    /// Six super-shingles and a simhash, 96 bytes, and a rule on them. [`Criterion::Jaccard`]
    /// cannot be used, since these sketches do not estimate it.
    Compact {
        /// The rule for duplicates.
        criterion: Criterion,
        /// How documents with common super-shingles are found.
        keys: FeatureKeys,
    },
    /// The reference: all MinHash values, `8 t` bytes, and the minimum number that must agree.
    /// Finds exactly the documents that a count over all sketches would find.
    Full {
        /// Number of MinHash values in a sketch, t. Broder uses 200.
        n_samples: NonZeroU16,
        /// Minimum number of agreeing MinHash values, m.
        min_agreeing: NonZeroU16,
    },
}

/// How documents with `r` of `k = 6` super-shingles in common are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureKeys {
    /// By any of `k - r + 1` super-shingles: 5 for `r = 2`. `r` common super-shingles cannot all be
    /// among the others (the prefix rule). This is small, but a super-shingle that many documents
    /// share makes a long list.
    Tables,
    /// By any `r` super-shingles together: 15 keys for `r = 2`. Larger, but with few false
    /// candidates.
    Mega,
}

impl Kind {
    /// Returns what an index stores to decide by a criterion.
    #[must_use]
    pub fn of(criterion: Criterion, recall: Threshold) -> Self {
        match criterion {
            Criterion::Exact => Self::Exact,
            Criterion::Jaccard(threshold) => Self::Jaccard { threshold, recall },
            Criterion::Content(remove) => Self::Content { remove },
            criterion => Self::Compact {
                criterion,
                keys: FeatureKeys::Tables,
            },
        }
    }
}

/// Number of super-shingles of a compact sketch.
pub(super) const N_FEATURES: usize = 6;

/// Maximum tokens per shingle.
const MAX_W: usize = u16::MAX as usize;

/// Pieces shorter than 16 bits match too many other documents.
const MAX_PIECES: u32 = 24;

impl Settings {
    /// Returns the settings of an index that finds the documents that a run drops.
    #[must_use]
    pub fn agreeing_with(config: &Config) -> Self {
        Self {
            kind: Kind::of(config.policy.criterion, config.recall),
            short: config.policy.short,
            shingle: config.shingle,
            seed: config.seed,
            site: config.site,
        }
    }

    /// Returns whether an index with these settings finds the documents that a run drops, within
    /// the expected recall.
    pub(crate) fn agrees_with(&self, config: &Config) -> bool {
        let wanted = Self::agreeing_with(config);
        let kind = match (self.kind, wanted.kind) {
            // They differ only in space and time.
            (
                Kind::Compact { criterion, .. },
                Kind::Compact {
                    criterion: other,
                    keys,
                },
            ) if criterion == other => Kind::Compact { criterion, keys },
            (kind, _) => kind,
        };
        Self { kind, ..*self } == wanted
    }

    /// Returns the policy and its parameters, as text for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let policy = match self.kind {
            Kind::Exact => return Criterion::Exact.name().to_owned(),
            Kind::Jaccard { threshold, .. } => format!("jaccard at {}", threshold.get()),
            Kind::Content { remove } => {
                return format!("content at the level {}", level_name(remove));
            }
            Kind::Compact { criterion, .. } => criterion.name().to_owned(),
            Kind::Full {
                n_samples,
                min_agreeing,
            } => format!("jaccard by {min_agreeing} of {n_samples} MinHash values"),
        };
        let ShingleLength { w, unspaced_w } = self.shingle;
        match w == unspaced_w {
            true => format!("{policy}, shingles of {w}"),
            false => format!("{policy}, shingles of {w} and {unspaced_w}"),
        }
    }

    /// Returns an error for settings with which an index cannot work.
    pub(super) fn check(&self) -> Result<(), Error> {
        for w in [self.shingle.w, self.shingle.unspaced_w] {
            if w.get() > MAX_W {
                return Err(Error::parameter("w", w, "at most 65535 tokens"));
            }
        }
        match self.kind {
            Kind::Exact | Kind::Content { .. } => Ok(()),
            Kind::Jaccard { threshold, recall } => match bands(threshold, recall) {
                Some(_) => Ok(()),
                None => Err(Error::parameter(
                    "recall",
                    recall.get(),
                    "one that 128 MinHash values reach at the threshold",
                )),
            },
            Kind::Compact { criterion, .. } => check_criterion(criterion),
            Kind::Full {
                n_samples,
                min_agreeing,
            } if min_agreeing > n_samples => Err(Error::parameter(
                "min_agreeing",
                min_agreeing,
                "at most the number of MinHash values",
            )),
            Kind::Full { .. } => Ok(()),
        }
    }

    /// Returns the policy of [`arose::rule::decide`] for this kind.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let least =
            |share: f64| Threshold::new(share).expect("m of t is at most 1, checked before");
        let criterion = match self.kind {
            Kind::Exact => Criterion::Exact,
            Kind::Jaccard { threshold, .. } => Criterion::Jaccard(threshold),
            Kind::Content { remove } => Criterion::Content(remove),
            Kind::Compact { criterion, .. } => criterion,
            Kind::Full {
                n_samples,
                min_agreeing,
            } => Criterion::Jaccard(least(
                f64::from(min_agreeing.get()) / f64::from(n_samples.get()),
            )),
        };
        Policy {
            criterion,
            short: self.short,
        }
    }

    /// Returns the number of 64-bit words stored per document.
    #[must_use]
    pub fn n_words(&self) -> usize {
        match self.kind {
            Kind::Exact => 0,
            Kind::Jaccard { .. } => {
                let n_bands = self.bands().map_or(0, |bands| bands.n_tables() as usize);
                SAMPLE_BYTES.saturating_add(n_bands).div_ceil(8)
            }
            Kind::Content { .. } => own::N_WORDS,
            Kind::Compact { .. } => N_FEATURES + Fingerprint384::BITS as usize / 64,
            Kind::Full { n_samples, .. } => n_samples.get().into(),
        }
    }

    /// Returns whether the policy is `content`.
    pub(crate) fn is_content(&self) -> bool {
        matches!(self.kind, Kind::Content { .. })
    }

    /// Returns the bands of MinHash values by which documents are found; none if MinHash values are
    /// not used.
    pub(super) fn bands(&self) -> Option<Bands> {
        match self.kind {
            Kind::Jaccard { threshold, recall } => bands(threshold, recall),
            _ => None,
        }
    }

    /// Returns the smallest number of common super-shingles that can decide; none if they are not
    /// used.
    pub(super) fn min_features(&self) -> Option<(usize, FeatureKeys)> {
        let Kind::Compact { criterion, keys } = self.kind else {
            return None;
        };
        let r = match criterion {
            Criterion::B { min_features } => min_features,
            Criterion::Combined(combined) => combined.min_features,
            Criterion::Site { same, .. } => same.min_features,
            Criterion::Exact
            | Criterion::C { .. }
            | Criterion::Jaccard(_)
            | Criterion::Content(_)
            | Criterion::Contained(_)
            | Criterion::Url => return None,
        };
        Some((r as usize, keys))
    }

    /// Returns the pieces of a simhash that find all documents within the threshold; none if the
    /// simhash alone decides nothing.
    pub(super) fn n_pieces(&self) -> Option<u32> {
        match self.kind {
            Kind::Compact {
                criterion: Criterion::C { min_bits },
                ..
            } => Some(pieces_for(min_bits)),
            Kind::Compact {
                criterion: Criterion::Site { cross_min_bits, .. },
                ..
            } => Some(pieces_for(cross_min_bits)),
            _ => None,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for w in [self.shingle.w, self.shingle.unspaced_w] {
            out.extend((w.get() as u32).to_le_bytes());
        }
        out.extend(self.seed.to_le_bytes());
        out.push(match self.short {
            ShortPolicy::ExactOnly => 0,
            ShortPolicy::LikeAny => 1,
        });
        out.push(match self.site {
            SiteKind::Henzinger => 0,
            SiteKind::Registrable => 1,
        });
        let (kind, numbers) = self.kind.encode();
        out.push(kind);
        numbers
            .iter()
            .for_each(|number| out.extend(number.to_le_bytes()));
    }

    pub(super) fn decode(fields: &mut NumberReader<'_>) -> Result<Self, Error> {
        let unknown = |name, value: u64| Error::parameter(name, value, "a known setting");
        let length = |w: u32| NonZeroUsize::new(w as usize).ok_or_else(|| unknown("w", w.into()));
        let settings = Self {
            shingle: ShingleLength {
                w: length(fields.u32()?)?,
                unspaced_w: length(fields.u32()?)?,
            },
            seed: fields.u64()?,
            short: match fields.u8()? {
                0 => ShortPolicy::ExactOnly,
                1 => ShortPolicy::LikeAny,
                other => return Err(unknown("short", other.into())),
            },
            site: match fields.u8()? {
                0 => SiteKind::Henzinger,
                1 => SiteKind::Registrable,
                other => return Err(unknown("site", other.into())),
            },
            kind: {
                let kind = fields.u8()?;
                let numbers = [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
                Kind::decode(kind, numbers).ok_or_else(|| unknown("kind", kind.into()))?
            },
        };
        settings.check()?;
        Ok(settings)
    }
}

impl Kind {
    /// Returns the number of the kind, and its parameters padded with zeros. If the kind uses
    /// super-shingles, the first parameter says how their keys are formed.
    fn encode(self) -> (u8, [u32; 4]) {
        let (criterion, keys) = match self {
            Self::Exact => return (0, [0; 4]),
            Self::Jaccard { threshold, recall } => {
                let [threshold, recall] = [threshold, recall].map(|share| share.get().to_bits());
                let halves = |bits: u64| [bits as u32, (bits >> 32) as u32];
                let ([t0, t1], [r0, r1]) = (halves(threshold), halves(recall));
                return (7, [t0, t1, r0, r1]);
            }
            Self::Content { remove } => {
                return (8, [u32::from(remove == Remove::Content), 0, 0, 0]);
            }
            Self::Full {
                n_samples,
                min_agreeing,
            } => return (1, [0, n_samples.get().into(), min_agreeing.get().into(), 0]),
            Self::Compact { criterion, keys } => (criterion, keys),
        };
        let keys = match keys {
            FeatureKeys::Tables => 0,
            FeatureKeys::Mega => 1,
        };
        match criterion {
            Criterion::B { min_features } => (2, [keys, min_features, 0, 0]),
            Criterion::C { min_bits } => (3, [keys, 0, min_bits, 0]),
            Criterion::Combined(Combined {
                min_features,
                min_bits,
            }) => (4, [keys, min_features, min_bits, 0]),
            Criterion::Site {
                same,
                cross_min_bits,
                cross,
            } => {
                let kind = match cross {
                    CrossSite::COnly => 5,
                    CrossSite::Union => 6,
                };
                (
                    kind,
                    [keys, same.min_features, same.min_bits, cross_min_bits],
                )
            }
            Criterion::Exact
            | Criterion::Jaccard(_)
            | Criterion::Content(_)
            | Criterion::Contained(_)
            | Criterion::Url => {
                unreachable!("refused by check")
            }
        }
    }

    fn decode(kind: u8, [keys, first, second, third]: [u32; 4]) -> Option<Self> {
        let combined = Combined {
            min_features: first,
            min_bits: second,
        };
        let site = |cross| Criterion::Site {
            same: combined,
            cross_min_bits: third,
            cross,
        };
        let criterion = match kind {
            0 => return Some(Self::Exact),
            1 => {
                let number = |value: u32| NonZeroU16::new(u16::try_from(value).ok()?);
                return Some(Self::Full {
                    n_samples: number(first)?,
                    min_agreeing: number(second)?,
                });
            }
            2 => Criterion::B {
                min_features: first,
            },
            3 => Criterion::C { min_bits: second },
            4 => Criterion::Combined(combined),
            5 => site(CrossSite::COnly),
            6 => site(CrossSite::Union),
            7 => {
                let share = |low: u32, high: u32| {
                    Threshold::new(f64::from_bits(u64::from(high) << 32 | u64::from(low))).ok()
                };
                return Some(Self::Jaccard {
                    threshold: share(keys, first)?,
                    recall: share(second, third)?,
                });
            }
            8 => {
                let remove = match keys {
                    0 => Remove::Same,
                    1 => Remove::Content,
                    _ => return None,
                };
                return Some(Self::Content { remove });
            }
            _ => return None,
        };
        let keys = match keys {
            0 => FeatureKeys::Tables,
            1 => FeatureKeys::Mega,
            _ => return None,
        };
        Some(Self::Compact { criterion, keys })
    }
}

/// Bytes of MinHash values, parities and the number of shingles. Each band takes one more.
const SAMPLE_BYTES: usize = 2 * N_SAMPLES + 4 * arose::parity::N_WORDS + 4;

/// Returns the bands by which a run with these settings finds its candidates.
fn bands(threshold: Threshold, recall: Threshold) -> Option<Bands> {
    let config = Config {
        recall,
        ..Config::default()
    };
    Bands::new(&config, threshold).ok()
}

fn level_name(remove: Remove) -> &'static str {
    match remove {
        Remove::Same => "same",
        Remove::Content => "content",
    }
}

/// One more piece than bits may differ, so that one piece always agrees.
fn pieces_for(min_bits: u32) -> u32 {
    (Fingerprint384::BITS - min_bits.min(Fingerprint384::BITS) + 1).max(N_FEATURES as u32)
}

fn check_criterion(criterion: Criterion) -> Result<(), Error> {
    let features = |r: u32| match r {
        1..=6 => Ok(()),
        _ => Err(Error::parameter("min_features", r, "1..=6")),
    };
    // Fewer bits would need more pieces than `MAX_PIECES`.
    let alone = |bits: u32| match bits {
        361..=384 => Ok(()),
        _ => Err(Error::parameter(
            "min_bits",
            bits,
            "361..=384 if no other score decides",
        )),
    };
    debug_assert_eq!(pieces_for(361), MAX_PIECES);
    match criterion {
        Criterion::Exact => Err(Error::parameter(
            "criterion",
            "exact",
            "a rule on super-shingles and simhashes, or the kind without sketches",
        )),
        Criterion::Contained(_) | Criterion::Url => Err(Error::parameter(
            "criterion",
            criterion.name(),
            "a rule that sketches can decide",
        )),
        Criterion::Jaccard(_) => Err(Error::parameter(
            "criterion",
            "jaccard",
            "a rule on super-shingles and simhashes, or the kind with MinHash values",
        )),
        Criterion::Content(_) => Err(Error::parameter(
            "criterion",
            "content",
            "the kind that counts text repeated on sites",
        )),
        Criterion::B { min_features } => features(min_features),
        Criterion::C { min_bits } => alone(min_bits),
        Criterion::Combined(combined) => features(combined.min_features),
        Criterion::Site {
            same,
            cross_min_bits,
            ..
        } => features(same.min_features).and(alone(cross_min_bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    pub(super) fn kinds() -> Vec<Kind> {
        let criteria = [
            Criterion::PUBLISHED_B,
            Criterion::PUBLISHED_C,
            Criterion::PUBLISHED_COMBINED,
            Criterion::SITE,
            Criterion::SITE_UNION,
        ];
        let compact = criteria.into_iter().flat_map(|criterion| {
            [FeatureKeys::Tables, FeatureKeys::Mega].map(|keys| Kind::Compact { criterion, keys })
        });
        let full = Kind::Full {
            n_samples: NonZeroU16::new(200).unwrap(),
            min_agreeing: NonZeroU16::new(160).unwrap(),
        };
        let jaccard = Kind::of(Criterion::jaccard(), Threshold::new(0.99).unwrap());
        let content = [Remove::Same, Remove::Content].map(|remove| Kind::Content { remove });
        let others = [Kind::Exact, full, jaccard].into_iter().chain(content);
        compact.chain(others).collect()
    }

    #[test]
    fn settings_are_read_as_written() {
        for (i, kind) in kinds().into_iter().enumerate() {
            let settings = Settings {
                kind,
                short: [ShortPolicy::ExactOnly, ShortPolicy::LikeAny][i % 2],
                shingle: ShingleLength {
                    w: NonZeroUsize::new(i + 1).unwrap(),
                    unspaced_w: NonZeroUsize::new(2 * i + 1).unwrap(),
                },
                seed: i as u64,
                site: [SiteKind::Henzinger, SiteKind::Registrable][i % 2],
            };
            let mut bytes = Vec::new();
            settings.encode(&mut bytes);
            let mut fields = NumberReader::new(&bytes, Path::new("manifest"));
            assert_eq!(Settings::decode(&mut fields).unwrap(), settings);
            assert!(fields.end().is_ok());
        }
    }

    #[test]
    fn what_no_index_could_answer_is_refused() {
        let check = |criterion| {
            let keys = FeatureKeys::Tables;
            let kind = Kind::Compact { criterion, keys };
            Settings {
                kind,
                ..Settings::default()
            }
            .check()
        };
        assert!(check(Criterion::SITE).is_ok());
        assert!(check(Criterion::Jaccard(Threshold::new(0.9).unwrap())).is_err());
        assert!(check(Criterion::B { min_features: 0 }).is_err());
        assert!(check(Criterion::B { min_features: 7 }).is_err());
        assert!(check(Criterion::C { min_bits: 360 }).is_err());
        assert!(check(Criterion::C { min_bits: 361 }).is_ok());
        assert!(check(Criterion::C { min_bits: 385 }).is_err());
    }

    #[test]
    fn samples_reach_the_recall_or_are_refused() {
        let kind = |threshold| Kind::Jaccard {
            threshold: Threshold::new(threshold).unwrap(),
            recall: Threshold::new(0.999).unwrap(),
        };
        let settings = |threshold| Settings {
            kind: kind(threshold),
            ..Settings::default()
        };
        assert!(settings(0.8).check().is_ok());
        assert!(settings(0.1).check().is_err());
        // 128 MinHash values, 512 parities, 18 bands.
        let jaccard = Settings::agreeing_with(&Config::of(Criterion::jaccard()));
        assert_eq!(jaccard.n_words(), 43);
    }

    #[test]
    fn twelve_differing_bits_take_thirteen_pieces() {
        let kind = Kind::of(Criterion::SITE, Threshold::new(0.9).unwrap());
        let settings = Settings {
            kind,
            ..Settings::default()
        };
        assert_eq!(settings.n_pieces(), Some(13));
        assert_eq!(pieces_for(384), 6);
    }
}
