//! Which policy of `arose dedup` compares the pages of a crawl.

use serde::{Deserialize, Serialize};

/// What makes near duplicates: a policy of `arose dedup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DuplicatePolicy {
    /// Most of their words are the same: the default policy of `arose dedup`.
    #[default]
    Jaccard,
    /// They say the same, whatever their sites repeat on other pages: the policy `content` at the
    /// level `same`.
    Content,
}

impl DuplicatePolicy {
    /// The name it has in settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jaccard => "jaccard",
            Self::Content => "content",
        }
    }
}
