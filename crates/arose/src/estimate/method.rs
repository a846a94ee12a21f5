//! The methods by name, and the biases of each.

use std::fmt;

/// The method of an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Method {
    /// The largest count claimed for a query with OR of frequent words.
    LowerBound,
    /// The ratio of two sizes from the overlap seen from both sides.
    Overlap,
    /// Sizes of several search engines by least squares, one of them the unit.
    LinearLeastSquares,
    /// Sizes of several search engines by weighted least squares of logarithms.
    LogLeastSquares,
    /// The union of several search engines, from the number of them that have each sampled page.
    JointCoverage,
    /// The results of one search engine divided by those of another, both summed over queries.
    RatioOfSums,
    /// The results of one search engine divided by those of all search engines together, summed
    /// over queries.
    SearchCoverage,
    /// All pages, from two search engines assumed to be independent.
    TwoEngines,
    /// Servers, from the share of IP addresses that respond.
    Addresses,
    /// Servers, each IP address weighted by one over the number of IP addresses of its server.
    WeightedAddresses,
    /// Pages, as servers times public share times pages per server.
    ServerPages,
    /// A share or mean over pages sampled by degree and thinned to uniform.
    Rejection,
    /// A share or mean over pages sampled by degree and weighted to uniform.
    Importance,
    /// A share or mean over the steps of a Metropolis-Hastings walk.
    MetropolisHastings,
    /// The pages that a pool of queries matches.
    MatchedPages,
    /// All pages, from those matched and the matched share of a uniform sample.
    MatchedShare,
    /// All pages, from two pools of queries assumed to be uncorrelated.
    TwoPools,
    /// A share or mean over the pages of a random walk with jumps.
    RandomWalk,
    /// A share or mean over the pages of a walk along links in both directions.
    UndirectedWalk,
    /// Chapman's estimator for pages captured twice.
    Chapman,
    /// Chao's lower bound from pages captured once and twice.
    Chao1,
}

/// An error of a method that more samples do not reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bias {
    /// Its name, one word.
    pub name: &'static str,
    /// Its effect, and the direction if that is known.
    pub effect: &'static str,
}

impl Method {
    /// Every method, in the order of its declaration.
    pub const ALL: [Self; 21] = [
        Self::LowerBound,
        Self::Overlap,
        Self::LinearLeastSquares,
        Self::LogLeastSquares,
        Self::JointCoverage,
        Self::RatioOfSums,
        Self::SearchCoverage,
        Self::TwoEngines,
        Self::Addresses,
        Self::WeightedAddresses,
        Self::ServerPages,
        Self::Rejection,
        Self::Importance,
        Self::MetropolisHastings,
        Self::MatchedPages,
        Self::MatchedShare,
        Self::TwoPools,
        Self::RandomWalk,
        Self::UndirectedWalk,
        Self::Chapman,
        Self::Chao1,
    ];

    /// Returns the method's name in files; it never changes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LowerBound => "lower-bound",
            Self::Overlap => "overlap",
            Self::LinearLeastSquares => "linear-least-squares",
            Self::LogLeastSquares => "log-least-squares",
            Self::JointCoverage => "joint-coverage",
            Self::RatioOfSums => "ratio-of-sums",
            Self::SearchCoverage => "search-coverage",
            Self::TwoEngines => "two-engines",
            Self::Addresses => "addresses",
            Self::WeightedAddresses => "weighted-addresses",
            Self::ServerPages => "server-pages",
            Self::Rejection => "rejection",
            Self::Importance => "importance",
            Self::MetropolisHastings => "metropolis-hastings",
            Self::MatchedPages => "matched-pages",
            Self::MatchedShare => "matched-share",
            Self::TwoPools => "two-pools",
            Self::RandomWalk => "random-walk",
            Self::UndirectedWalk => "undirected-walk",
            Self::Chapman => "chapman",
            Self::Chao1 => "chao1",
        }
    }

    /// Returns the estimated quantity, as the middle of a sentence.
    #[must_use]
    pub const fn quantity(self) -> &'static str {
        match self {
            Self::LowerBound => "a lower bound of the size",
            Self::Overlap => "the relative size of two engines",
            Self::LinearLeastSquares | Self::LogLeastSquares => "the relative sizes of engines",
            Self::JointCoverage => "the joint coverage of engines",
            Self::RatioOfSums => "the relative size of two engines from their results",
            Self::SearchCoverage => "the coverage of an engine from its results",
            Self::Addresses | Self::WeightedAddresses => "the number of servers",
            Self::ServerPages => "the number of pages on servers",
            Self::Rejection | Self::Importance | Self::MetropolisHastings => "a mean over pages",
            Self::MatchedPages => "the number of pages that a pool matches",
            Self::RandomWalk | Self::UndirectedWalk => "a mean over the pages of a walk",
            Self::TwoEngines
            | Self::MatchedShare
            | Self::TwoPools
            | Self::Chapman
            | Self::Chao1 => "the number of pages",
        }
    }

    /// Returns the biases that its interval does not cover, the most serious first.
    #[must_use]
    pub const fn biases(self) -> &'static [Bias] {
        match self {
            Self::LowerBound => &[CLAIMS, LANGUAGES],
            Self::Overlap
            | Self::LinearLeastSquares
            | Self::LogLeastSquares
            | Self::JointCoverage => &[QUERY, RANKING, CHECKING, RESTRICTION, MALICE, OPERATION],
            Self::RatioOfSums | Self::SearchCoverage => &[LOG, TOPICS, DUPLICATES],
            Self::TwoEngines => &[DEPENDENCE, LOG, TOPICS, DUPLICATES],
            Self::Addresses => &[SEVERAL_ADDRESSES, SHARED_ADDRESS, SIX],
            Self::WeightedAddresses => &[SHARED_ADDRESS, SIX],
            Self::ServerPages => &[HEAVY_TAIL, SHARED_ADDRESS, SIX],
            Self::Rejection | Self::Importance => &[INVISIBLE, DEGREES, OPERATION],
            Self::MetropolisHastings => &[INVISIBLE, BURN_IN, DEGREES, OPERATION],
            Self::MatchedPages => &[INVISIBLE, DEGREES, OPERATION],
            Self::MatchedShare => &[DEGREES, UNIFORMITY, OPERATION],
            Self::TwoPools => &[CORRELATION, DEGREES, OPERATION],
            Self::RandomWalk => &[REACHABILITY, EARLY, LINK_SPAM, MOVING],
            Self::UndirectedWalk => &[REACHABILITY, IN_LINKS, MOVING],
            Self::Chapman => &[DEPENDENCE, DUPLICATES],
            Self::Chao1 => &[HETEROGENEITY, DUPLICATES],
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

const fn bias(name: &'static str, effect: &'static str) -> Bias {
    Bias { name, effect }
}

const CLAIMS: Bias = bias("claims", "claimed counts are rough and may be inflated");
const LANGUAGES: Bias = bias(
    "languages",
    "pages without any of the words are not counted",
);
const QUERY: Bias = bias(
    "query",
    "long, content-rich pages in the language of the lexicon are sampled more often",
);
const RANKING: Bias = bias(
    "ranking",
    "only the first results of a query can be sampled",
);
const CHECKING: Bias = bias(
    "checking",
    "duplicates count as found, and pages with few words are dropped",
);
const RESTRICTION: Bias = bias(
    "restriction",
    "search engines mishandle queries of many words",
);
const MALICE: Bias = bias(
    "malice",
    "search engines may respond to probes in their own interest",
);
const OPERATION: Bias = bias("operation", "time-outs and changes during the study");
const LOG: Bias = bias(
    "log",
    "the source of the queries favours its own search engine",
);
const TOPICS: Bias = bias("topics", "pages on popular topics are counted more often");
const DUPLICATES: Bias = bias("duplicates", "unrecognized duplicates count twice");
const DEPENDENCE: Bias = bias(
    "dependence",
    "popular pages are in both samples more often than by chance, so the size is underestimated",
);
const SEVERAL_ADDRESSES: Bias = bias(
    "several addresses",
    "a host with several addresses is hit several times as often, so the number is overestimated",
);
const SHARED_ADDRESS: Bias = bias(
    "shared address",
    "of many hosts on one address only the known ones count, so the number is underestimated",
);
const SIX: Bias = bias("IPv6", "hosts with only an IPv6 address are not counted");
const HEAVY_TAIL: Bias = bias(
    "heavy tail",
    "a sample of servers rarely contains the few that have most pages",
);
const INVISIBLE: Bias = bias(
    "invisible",
    "pages that no valid query of the pool returns are not counted",
);
const DEGREES: Bias = bias(
    "degrees",
    "pages are indexed by words that are not in their text, or not by all words in it",
);
const UNIFORMITY: Bias = bias("uniformity", "the page sample is not quite uniform");
const CORRELATION: Bias = bias(
    "correlation",
    "pages that match one pool match the other more often, so the size is underestimated",
);
const BURN_IN: Bias = bias("burn-in", "the walk depends on where it started");
const REACHABILITY: Bias = bias("reachability", "only pages reachable from the seeds count");
const EARLY: Bias = bias("early pages", "pages near the seeds are over-represented");
const LINK_SPAM: Bias = bias("link spam", "pages that link to each other trap the walk");
const MOVING: Bias = bias("change", "the graph changes during the walk");
const IN_LINKS: Bias = bias("in-links", "unknown in-links make degrees too low");
const HETEROGENEITY: Bias = bias(
    "heterogeneity",
    "pages that are hard to capture are not counted, so this is a lower bound",
);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_method_has_its_own_name_and_biases() {
        let names: BTreeSet<_> = Method::ALL.map(Method::as_str).into();
        assert_eq!(names.len(), Method::ALL.len());
        assert!(Method::ALL.iter().all(|method| !method.biases().is_empty()));
        assert!(Method::ALL.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(format!("{:>9}", Method::Chao1), "    chao1");
    }
}
