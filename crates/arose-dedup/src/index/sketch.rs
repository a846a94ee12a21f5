//! Sketches: what an index stores of a document.

use std::num::{NonZeroU16, NonZeroU32};

use arose::content;
use arose::digest::{Digest, digest64};
use arose::feature::Features;
use arose::rule::ShortPolicy;
use arose::shingle::{self, Shingler};
use arose::simhash::Fingerprint384;
use arose::site::{SiteKind, site};
use arose::sketch::{MinHash, NarrowMinHash, Permutations, Sketcher as _};
use arose::token::{Tokenizer, Tokens};
use arose_corpus::Document;
use bytemuck::Zeroable;

use super::settings::{Kind, Settings};
use crate::record::{N_SAMPLES, Samples as SampleRecord};
use crate::scheme::{Bands, KeyTables as _};
use crate::source::path_text;
use crate::stage::{row, urls};

/// A sketch of a document for an index with certain [`Settings`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    /// The content digest: equal for exact duplicates.
    pub digest: Digest,
    /// The site of the page; none for a document without a host.
    pub site: Option<SiteTag>,
    /// Whether it has too few tokens for a meaningful sketch.
    pub is_short: bool,
    /// MinHash values and parities ([`Kind::Jaccard`]), six super-shingles and a simhash
    /// ([`Kind::Compact`]), or all MinHash values ([`Kind::Full`]). Empty for [`Kind::Exact`] and
    /// for documents with fewer tokens than a shingle.
    pub words: Vec<u64>,
    /// The word pairs of a document that the index has yet to weigh ([`Kind::Content`]), which
    /// computes the words from them; none for all other documents.
    pub pairs: Option<Pairs>,
}

/// The word pairs of a document, by which the policy `content` compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs {
    /// The shingles of two tokens, in text order.
    pub shingles: Vec<u64>,
    /// The digest of its URL, so that a page which is seen again is not counted as another page of
    /// its site. Default: the digest of the name under which it is inserted.
    pub page: Option<u64>,
}

/// Returns the name of a document in an index: its URL, or else its file with its ID or position.
///
/// IDs alone are not unique: two files may have the same IDs.
#[must_use]
pub fn name(document: &Document) -> String {
    let source = || path_text(&document.source);
    match (&document.url, &document.id) {
        (Some(url), _) => url.clone(),
        (None, Some(id)) => format!("{}#{id}", source()),
        (None, None) => format!("{}#{}", source(), document.position),
    }
}

/// A site in 32 bits. Two sites have the same tag with probability 2^-32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteTag(pub NonZeroU32);

impl SiteTag {
    /// Returns the tag of the site to which a host belongs.
    #[must_use]
    pub fn of_host(host: &str, kind: SiteKind) -> Self {
        let hash = digest64(site(host, kind).as_bytes()) as u32;
        Self(NonZeroU32::new(hash).unwrap_or(NonZeroU32::MIN))
    }
}

impl Sketch {
    /// Creates an empty sketch, to be overwritten.
    pub(super) fn empty() -> Self {
        Self {
            digest: Digest(0),
            site: None,
            is_short: false,
            words: Vec::new(),
            pairs: None,
        }
    }

    /// Returns the same sketch for a page with this URL.
    #[must_use]
    pub fn of_page(mut self, url: &str) -> Self {
        if let Some(pairs) = &mut self.pairs {
            pairs.page = Some(digest64(url.as_bytes()));
        }
        self
    }

    /// Creates a sketch without words. Only an exact duplicate matches it, under any settings.
    #[must_use]
    pub fn of_digest(digest: Digest) -> Self {
        Self {
            digest,
            site: None,
            is_short: true,
            words: Vec::new(),
            pairs: None,
        }
    }
}

/// Computes sketches for an index.
///
/// ```
/// use arose_dedup::index::{Settings, Sketcher};
/// let sketcher = Sketcher::new(&Settings::default());
/// let draft = sketcher.sketch("a rose is a rose is a rose", None);
/// assert_eq!(draft, sketcher.sketch("a rose is  a rose\nis a rose ", None));
/// ```
#[derive(Debug, Clone)]
pub struct Sketcher {
    settings: Settings,
    tokenizer: Tokenizer,
    /// For scripts with spaces between words, and for scripts without.
    shinglers: [Shingler; 2],
    samples: Samples,
}

#[derive(Debug, Clone)]
enum Samples {
    None,
    Jaccard(NarrowMinHash, Bands),
    Compact(NarrowMinHash),
    Full(MinHash),
    /// To make one takes longer than to use it.
    Pairs(Box<Shingler>),
}

/// Number of MinHash values of the policy `jaccard`.
const N_JACCARD_SAMPLES: NonZeroU16 = NonZeroU16::new(N_SAMPLES as u16).expect("there are samples");

/// Number of MinHash values for six super-shingles of fourteen each.
const N_COMPACT_SAMPLES: NonZeroU16 = NonZeroU16::new(84).expect("84 is not zero");

impl Sketcher {
    /// Creates a sketcher for an index with these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let seed = settings.seed;
        Self {
            settings: *settings,
            tokenizer: Tokenizer::default(),
            shinglers: [settings.shingle.w, settings.shingle.unspaced_w].map(Shingler::new),
            samples: match settings.kind {
                Kind::Exact => Samples::None,
                Kind::Content { .. } => Samples::Pairs(Box::new(content::shingler())),
                Kind::Jaccard { .. } => match settings.bands() {
                    Some(bands) => {
                        Samples::Jaccard(NarrowMinHash::new(N_JACCARD_SAMPLES, seed), bands)
                    }
                    // Settings with which no index can be created.
                    None => Samples::None,
                },
                Kind::Compact { .. } => {
                    Samples::Compact(NarrowMinHash::new(N_COMPACT_SAMPLES, seed))
                }
                Kind::Full { n_samples, .. } => {
                    Samples::Full(MinHash::new(Permutations::Linear, n_samples, seed))
                }
            },
        }
    }

    /// Returns the sketch of a text, with its host if it has one.
    #[must_use]
    pub fn sketch(&self, text: &str, host: Option<&str>) -> Sketch {
        self.sketch_of_tokens(&self.tokenizer.tokens(text), Digest::of_text(text), host)
    }

    /// Returns the sketch of a document, given its tokens and its content digest.
    #[must_use]
    pub fn sketch_of_tokens(&self, tokens: &Tokens, digest: Digest, host: Option<&str>) -> Sketch {
        Sketch {
            digest,
            site: host.map(|host| SiteTag::of_host(host, self.settings.site)),
            is_short: shingle::is_short(tokens.len(), self.settings.shingle.of(tokens)),
            words: self.words(tokens),
            pairs: self.pairs(tokens),
        }
    }

    /// Returns the sketch of a document of a corpus. Its images count as tokens, and its host is
    /// taken from its URL.
    #[must_use]
    pub fn sketch_of_document(&self, document: &Document) -> Sketch {
        let tokens = row::tokens(&self.tokenizer, document);
        let host = document.url.as_deref().and_then(urls::host);
        let sketch = self.sketch_of_tokens(&tokens, document.content_digest(), host);
        match &document.url {
            Some(url) => sketch.of_page(url),
            None => sketch,
        }
    }

    fn pairs(&self, tokens: &Tokens) -> Option<Pairs> {
        let Samples::Pairs(shingler) = &self.samples else {
            return None;
        };
        let mut shingles = Vec::new();
        shingler.shingles_into(&tokens.fingerprints, &mut shingles);
        Some(Pairs {
            shingles,
            page: None,
        })
    }

    fn words(&self, tokens: &Tokens) -> Vec<u64> {
        // As in a run, a document without a complete shingle has no near duplicates, however short
        // documents are matched.
        let is_part = tokens.len() < self.settings.shingle.of(tokens).get();
        let may_be_alike = self.settings.short == ShortPolicy::LikeAny;
        if tokens.is_empty() || is_part && may_be_alike {
            return Vec::new();
        }
        let shingles = || {
            let shingler = &self.shinglers[usize::from(tokens.is_mostly_unspaced())];
            let mut shingles = Vec::new();
            shingler.shingles_into(&tokens.fingerprints, &mut shingles);
            shingles
        };
        match &self.samples {
            Samples::Jaccard(sketcher, bands) => {
                let shingles = shingles();
                let kept = bands.keep(&sketcher.sketch(&shingles), &shingles);
                words_of(&kept, bands.n_tables() as usize)
            }
            Samples::Full(sketcher) => sketcher.sketch(&shingles()),
            Samples::Compact(sketcher) => {
                let Some(simhash) = Fingerprint384::of(&tokens.fingerprints) else {
                    return Vec::new();
                };
                let samples = sketcher.sketch(&shingles());
                let features = Features::SIX_BY_FOURTEEN.of(&samples);
                let mut words = features.expect("a text with tokens has 84 samples");
                words.extend(simhash.0);
                words
            }
            Samples::None | Samples::Pairs(_) => Vec::new(),
        }
    }
}

/// Encodes MinHash values, parities, the number of shingles, and the remaining bits of each band as
/// words.
fn words_of(kept: &SampleRecord, n_bands: usize) -> Vec<u64> {
    let mut bytes = Vec::new();
    bytes.extend(kept.low.iter().flat_map(|sample| sample.to_le_bytes()));
    bytes.extend(kept.parity.iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(kept.n_shingles.to_le_bytes());
    bytes.extend(&kept.rest[..n_bands]);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let words = bytes.as_chunks().0.iter();
    words.map(|&word| u64::from_le_bytes(word)).collect()
}

/// Decodes the result of [`words_of`].
pub(super) fn samples_of(words: &[u64]) -> SampleRecord {
    let mut kept = SampleRecord::zeroed();
    let mut bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let mut next = || bytes.next().unwrap_or(0);
    for sample in &mut kept.low {
        *sample = u16::from_le_bytes([next(), next()]);
    }
    for word in &mut kept.parity {
        *word = u32::from_le_bytes([(); 4].map(|()| next()));
    }
    kept.n_shingles = u32::from_le_bytes([(); 4].map(|()| next()));
    kept.rest.fill_with(next);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::compare::Profiler;
    use arose::rule::Criterion;

    use crate::config::Config;

    /// An index stores the values that the other commands print for a text.
    #[test]
    fn sketches_are_those_of_profiles() {
        let recall = arose::Threshold::new(0.9).unwrap();
        let settings = Settings {
            kind: Kind::of(arose::rule::Criterion::SITE, recall),
            ..Settings::default()
        };
        let text = "Once upon a midnight dreary, while I pondered, weak and weary, over many";
        let profile = Profiler::new(settings.shingle.w).profile(text);
        let sketch = Sketcher::new(&settings).sketch(text, Some("www.example.org"));
        assert_eq!(sketch.digest, profile.digest);
        assert_eq!(sketch.words[..6], profile.features);
        assert_eq!(sketch.words[6..], profile.simhash.unwrap().0);
        assert_eq!(sketch.is_short, profile.is_short);
        let site = SiteTag::of_host("example.org", SiteKind::Registrable);
        assert_eq!(sketch.site, Some(site));
    }

    #[test]
    fn samples_are_read_as_written() {
        let settings = Settings::agreeing_with(&Config::of(Criterion::jaccard()));
        let text = "Once upon a midnight dreary, while I pondered, weak and weary, over many";
        let words = Sketcher::new(&settings).sketch(text, None).words;
        assert_eq!(words.len(), settings.n_words());
        let kept = samples_of(&words);
        assert_eq!(kept.n_shingles, 9);
        assert_eq!(words_of(&kept, 18), words);
    }

    #[test]
    fn no_tokens_no_words() {
        let sketch = Sketcher::new(&Settings::default()).sketch(" ... ", None);
        assert!(sketch.words.is_empty() && sketch.is_short);
    }
}
