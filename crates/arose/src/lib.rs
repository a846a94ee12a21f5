//! Algorithms of duplicate detection: pure functions, tested against brute force.
//!
//! A text becomes [tokens](token), tokens become [shingles](shingle), shingles become a
//! [sketch] and [super-shingles](feature), tokens a [simhash]. Super-shingles and pieces of
//! simhashes find [candidates]; [rules](rule) decide which of them are duplicates;
//! [clusters](cluster) determine which documents are kept. Each step is a module. Its documentation
//! states the question, the idea, the paper, the parameters, the cost, the error, and when not to
//! use it.
//!
//! ```
//! use arose::compare::Profiler;
//! use arose::rule::{Criterion, Policy, Rule, ShortPolicy, SiteRelation};
//!
//! let profiler = Profiler::new(3.try_into()?);
//! let [draft, copy] = [
//!     "Once upon a midnight dreary, while I pondered, weak and weary",
//!     "Once upon  a midnight dreary,\nwhile I pondered, weak and weary",
//! ]
//! .map(|text| profiler.profile(text));
//! let comparison = profiler.compare(&draft, &copy);
//! assert_eq!(comparison.jaccard, Some(1.0));
//! let rule = comparison.rule(&Policy::default(), SiteRelation::Unknown);
//! assert_eq!(rule, Some(Rule::Exact));
//! # Ok::<(), std::num::TryFromIntError>(())
//! ```
//!
//! | to | see |
//! |---|---|
//! | compare two texts by every score | [`compare`] |
//! | split text in any language into words with 64-bit fingerprints | [`token`] |
//! | recognize exact duplicates | [`digest`] |
//! | fingerprint byte strings with a known probability of collision | [`rabin`] |
//! | measure Jaccard similarity and containment | [`shingle`] |
//! | measure how much of their own text two pages share in the same order | [`content`] |
//! | estimate similarity from a few hundred bytes | [`sketch`], [`lead_byte`] |
//! | measure the angle between word counts in 48 bytes | [`simhash`] |
//! | reject pairs with certainty, without their texts | [`parity`] |
//! | find candidates without comparing all pairs | [`feature`], [`eight_byte`], [`banding`], [`simhash::pieces`], [`candidates`], [`slot_index`] |
//! | compute how many pairs a setting finds and misses | [`filter`], [`banding`], [`simhash::law`], [`binomial`] |
//! | find repeated passages and remove them | [`winnow`], [`passage`] |
//! | decide whether two documents are duplicates, and by which rule | [`rule`], [`site`] |
//! | form clusters and choose the documents to keep | [`cluster`] |
//! | weight pages against spam, apply the filters of C4, Gopher and FineWeb | [`quality`] |
//! | measure precision and recall | [`judgement`], [`exact`] |
//! | decide which pages of a crawl to visit again | [`freshness`] |
//! | decide which links of a crawl lead to a topic | [`focus`] |
//! | learn which parts of URLs do not select a page | [`dust`] |
//! | estimate the size and overlap of search engines | [`estimate`] |
//! | check an implementation of your own | [`testing`] |
//!
//! The crate has no input or output, no clock, no threads, and no randomness without a seed
//! ([`mix`]). The same input and settings give the same values on every machine; tests freeze the
//! values that are stored in files. `unsafe` code is confined to one private module of kernels.
//! Each kernel equals its portable version bit for bit; AVX2, AVX-512 and carry-less multiplication
//! are used if the processor has them, which is detected at run time.
#![deny(unsafe_code)]

pub mod banding;
pub mod binomial;
pub mod candidates;
pub mod cluster;
pub mod compare;
pub mod content;
pub mod digest;
pub mod doc;
pub mod dust;
pub mod eight_byte;
mod error;
pub mod estimate;
pub mod exact;
pub mod feature;
pub mod filter;
pub mod focus;
pub mod freshness;
pub mod judgement;
pub mod lead_byte;
pub mod mix;
pub mod parity;
pub mod passage;
pub mod quality;
pub mod rabin;
pub mod rule;
pub mod shingle;
#[expect(
    unsafe_code,
    reason = "calls code compiled for processor features just checked"
)]
mod simd;
pub mod simhash;
pub mod site;
pub mod sketch;
pub mod slot_index;
pub mod testing;
mod threshold;
pub mod token;
pub mod winnow;

pub use doc::DocId;
pub use error::Error;
pub use threshold::Threshold;

/// The examples in the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
