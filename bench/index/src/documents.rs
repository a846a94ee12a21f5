//! Generated documents: sketches without texts.

use std::num::NonZeroU32;

use arose::digest::Digest;
use arose::mix::SplitMix;
use arose::rule::Criterion;
use arose_dedup::Config;
use arose_dedup::index::{Settings, SiteTag, Sketch};

/// Returns the settings of an index of these documents: the policy `site`.
pub(crate) fn settings() -> Settings {
    Settings::agreeing_with(&Config::of(Criterion::SITE))
}

/// Returns the document with a number: six random super-shingles and a random simhash, like those
/// of unrelated texts, on one of 46 sites per thousand documents.
pub(crate) fn sketch(number: u64) -> Sketch {
    let mut random = SplitMix::new(number.wrapping_mul(0x9E6D_62D0_6F6A_9A9B));
    let digest = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    Sketch {
        digest: Digest(digest),
        site: NonZeroU32::new(random.below(1 << 20) as u32 + 1).map(SiteTag),
        is_short: false,
        words: (0..12).map(|_| random.next_u64()).collect(),
        pairs: None,
    }
}

/// Returns its name, eight digits.
pub(crate) fn name(number: u64) -> String {
    format!("{number:08}")
}
