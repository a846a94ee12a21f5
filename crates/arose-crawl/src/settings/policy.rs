//! The policy of `arose dedup` that compares the pages of a crawl.

use serde::{Deserialize, Serialize};

/// The definition of near duplicates: a policy of `arose dedup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DuplicatePolicy {
    /// Most of their shingles are the same: the policy `jaccard` at 0.8.
    Jaccard,
    /// Their contents are the same, ignoring text that their sites repeat on other pages: the
    /// policy `content` at the level `same`, as in a run of `arose dedup`.
    #[default]
    Content,
}

impl DuplicatePolicy {
    /// Returns its name in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jaccard => "jaccard",
            Self::Content => "content",
        }
    }
}
