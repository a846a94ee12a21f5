//! The duplicate-content checker: was this page fetched before, under another address?
//!
//! *Question.* A quarter of what a crawl fetches is a copy of something it has: mirrors, sessions in
//! addresses, the same text under two headings. Which, of what, and by which rule?
//!
//! *Idea.* In this order: equal bytes (digest of the payload), equal content (digest of the tokens),
//! nearly equal content (six features find candidates, features and simhash decide, by the policy
//! of [`arose::rule`]). The first page with a content is the original of all that follow. Short
//! pages are never near duplicates.
//!
//! *Cost.* A sketch takes some 5 ns a byte; a page some 300 bytes of memory. *Error.* That of the
//! policy, which `arose evaluate` measures.

use std::collections::HashMap;
use std::num::NonZeroU16;
use std::sync::{Mutex, PoisonError};

use arose::digest::{Digest, digest64};
use arose::feature::{Features, b_sim};
use arose::rule::{Evidence, Policy, SiteRelation, decide};
use arose::shingle::{self, Shingler};
use arose::simhash::Fingerprint384;
use arose::sketch::{NarrowMinHash, Sketcher as _};
use arose::token::{Tokenizer, Tokens};
use arose_corpus::payload::Page;

/// Samples that six features of fourteen take.
const N_SAMPLES: NonZeroU16 = NonZeroU16::new(84).expect("84 is not zero");
/// Selects the permutations.
const SEED: u64 = 1;

/// What is remembered of a page.
#[derive(Debug, Clone)]
pub(crate) struct Sketch {
    digest: Digest,
    site: u64,
    is_short: bool,
    parts: Option<([u64; 6], Fingerprint384)>,
}

/// Makes sketches; its memory is used again from page to page.
#[derive(Debug)]
pub(crate) struct Sketcher {
    tokenizer: Tokenizer,
    shingler: Shingler,
    samples: NarrowMinHash,
    tokens: Tokens,
    shingles: Vec<u64>,
}

impl Sketcher {
    pub(crate) fn new() -> Self {
        Self {
            tokenizer: Tokenizer::default(),
            shingler: Shingler::new(shingle::DEFAULT_W),
            samples: NarrowMinHash::new(N_SAMPLES, SEED),
            tokens: Tokens::default(),
            shingles: Vec::new(),
        }
    }

    /// The sketch of a page of a site.
    pub(crate) fn page(&mut self, page: &Page, site: &str) -> Sketch {
        self.tokens.clear();
        let mut start = 0;
        for image in &page.images {
            let end = page.text.floor_char_boundary(image.at).max(start);
            self.tokens
                .push_text(&self.tokenizer, &page.text[start..end]);
            self.tokens.push_image(&image.src);
            start = end;
        }
        self.tokens.push_text(&self.tokenizer, &page.text[start..]);
        self.shingles.clear();
        self.shingler
            .shingles_into(&self.tokens.fingerprints, &mut self.shingles);
        let parts = Fingerprint384::of(&self.tokens.fingerprints).map(|simhash| {
            let samples = self.samples.sketch(&self.shingles);
            let features = Features::SIX_BY_FOURTEEN.of(&samples);
            let features = features.expect("a text with tokens has 84 samples");
            let features = features
                .first_chunk()
                .copied()
                .expect("there are six features");
            (features, simhash)
        });
        Sketch {
            digest: self.tokens.digest(),
            site: digest64(site.as_bytes()),
            is_short: shingle::is_short(self.tokens.len(), self.shingler.w()),
            parts,
        }
    }

    /// The sketch of something that is no text: only equal bytes make duplicates.
    pub(crate) fn bytes(&self, body: &[u8]) -> Sketch {
        Sketch {
            // Apart from all digests of tokens.
            digest: Digest(Digest::of_bytes(body).0 ^ 1),
            site: 0,
            is_short: true,
            parts: None,
        }
    }
}

/// A page that was there before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Original {
    /// Its URL.
    pub(crate) url: String,
    /// The digest of its payload.
    pub(crate) payload: String,
    /// When it was fetched, in seconds since 1970.
    pub(crate) date: i64,
    /// The rule that makes the two duplicates.
    pub(crate) rule: &'static str,
    /// How alike they are, 1 for equal content.
    pub(crate) similarity: f64,
}

/// A page as others find it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'a> {
    pub(crate) url: &'a str,
    pub(crate) payload: &'a str,
    pub(crate) date: i64,
}

/// All pages that are no duplicates. The lock is held for one question at a time.
#[derive(Debug)]
pub(crate) struct Contents {
    held: Mutex<Held>,
    policy: Policy,
}

#[derive(Debug, Default)]
struct Held {
    pages: Vec<(Sketch, Box<str>, Box<str>, i64)>,
    by_digest: HashMap<Digest, u32>,
    by_feature: HashMap<(u8, u64), Vec<u32>>,
}

/// Pages that share a feature and are looked at: a feature that more of them share is boilerplate.
const MAX_CANDIDATES: usize = 64;

impl Contents {
    pub(crate) fn new() -> Self {
        Self {
            held: Mutex::default(),
            policy: Policy::default(),
        }
    }

    /// The page that this one duplicates; none if it is new, which it then is no more.
    pub(crate) fn judge(&self, name: Name<'_>, sketch: &Sketch) -> Option<Original> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.find(sketch, &self.policy) {
            Some((doc, rule, similarity)) => {
                let (_, url, payload, date) = &held.pages[doc as usize];
                // After a crash a page may meet itself.
                (**url != *name.url).then(|| Original {
                    url: url.to_string(),
                    payload: payload.to_string(),
                    date: *date,
                    rule,
                    similarity,
                })
            }
            None => {
                held.insert(name, sketch);
                None
            }
        }
    }
}

impl Held {
    fn find(&self, sketch: &Sketch, policy: &Policy) -> Option<(u32, &'static str, f64)> {
        if let Some(&doc) = self.by_digest.get(&sketch.digest) {
            return Some((doc, "exact", 1.0));
        }
        let (features, simhash) = sketch.parts.as_ref()?;
        let mut candidates: Vec<u32> = (0..)
            .zip(features)
            .filter_map(|(j, &feature)| self.by_feature.get(&(j, feature)))
            .flat_map(|docs| docs.iter().take(MAX_CANDIDATES).copied())
            .collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates.into_iter().find_map(|doc| {
            let (other, ..) = &self.pages[doc as usize];
            let (other_features, other_simhash) = other.parts.as_ref()?;
            let evidence = Evidence {
                site: match sketch.site == other.site {
                    true => SiteRelation::Same,
                    false => SiteRelation::Different,
                },
                b_sim: b_sim(features, other_features) as u32,
                c_sim: simhash.c_sim(other_simhash),
                jaccard: None,
                same_content: false,
                either_short: sketch.is_short || other.is_short,
            };
            let rule = decide(policy, &evidence)?;
            Some((doc, rule.as_str(), f64::from(evidence.c_sim) / 384.0))
        })
    }

    fn insert(&mut self, name: Name<'_>, sketch: &Sketch) {
        let doc = self.pages.len() as u32;
        self.by_digest.insert(sketch.digest, doc);
        if let Some((features, _)) = &sketch.parts {
            for (j, &feature) in (0..).zip(features) {
                self.by_feature.entry((j, feature)).or_default().push(doc);
            }
        }
        self.pages.push((
            sketch.clone(),
            name.url.into(),
            name.payload.into(),
            name.date,
        ));
    }
}
