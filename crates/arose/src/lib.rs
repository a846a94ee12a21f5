//! The algorithms of duplicate detection, pure and checked against brute force.
//!
//! A text becomes [tokens](token), tokens become [shingles](shingle), shingles become a
//! [sketch] and [features](feature), tokens a [simhash]. Features and pieces of
//! simhashes find [candidates]; [rules](rule) decide which of them are duplicates;
//! [clusters](cluster) say what to keep. Each step is a module that opens like a chapter: the
//! question, the idea, the paper, the parameters, the cost, the error, and when not to use it.
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
//! assert_eq!(comparison.resemblance, Some(1.0));
//! let rule = comparison.rule(&Policy::default(), SiteRelation::Unknown);
//! assert_eq!(rule, Some(Rule::Exact));
//! # Ok::<(), std::num::TryFromIntError>(())
//! ```
//!
//! | to | see |
//! |---|---|
//! | compare two texts by every measure | [`compare`] |
//! | cut text into words in any language, name them by 64 bits | [`token`] |
//! | tell exact duplicates | [`digest`] |
//! | fingerprint byte strings with a counted chance of collision | [`rabin`] |
//! | measure resemblance and containment | [`shingle`] |
//! | measure what two pages have of their own in the same order | [`content`] |
//! | estimate resemblance from a few hundred bytes | [`sketch`], [`lead_byte`] |
//! | measure the angle between word counts in 48 bytes | [`simhash`] |
//! | rule pairs out for certain, without their texts | [`parity`] |
//! | find candidates without comparing all pairs | [`feature`], [`eight_byte`], [`banding`], [`simhash::pieces`], [`candidates`], [`slot_index`] |
//! | know what a setting will find and miss | [`filter`], [`banding`], [`simhash::law`], [`binomial`] |
//! | find repeated passages, cut them out | [`winnow`], [`passage`] |
//! | decide, and say why | [`rule`], [`site`] |
//! | group and keep | [`cluster`] |
//! | judge the result | [`judgement`], [`exact`] |
//! | decide which pages of a crawl to visit again | [`freshness`] |
//! | estimate how large an index is and how much two of them share | [`estimate`] |
//!
//! What is absent, on purpose: no input or output, no clock, no thread, no randomness without a
//! seed ([`mix`]). The same input and settings give the same values on every machine; values that
//! files hold are frozen by tests. `unsafe` code is confined to one private module of kernels, each
//! with a portable twin that it equals bit for bit; AVX2, AVX-512 and carry-less multiplication are
//! used where the processor has them, found at run time.
#![deny(unsafe_code)]

pub mod banding;
pub mod binomial;
pub mod candidates;
pub mod cluster;
pub mod compare;
pub mod content;
pub mod digest;
pub mod doc;
pub mod eight_byte;
mod error;
pub mod estimate;
pub mod exact;
pub mod feature;
pub mod filter;
pub mod freshness;
pub mod judgement;
pub mod lead_byte;
pub mod mix;
pub mod parity;
pub mod passage;
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
