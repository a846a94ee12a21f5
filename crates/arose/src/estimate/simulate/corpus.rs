//! A corpus of pages that consist of numbered words.

use super::{check_share, normal_deviate};
use crate::Error;
use crate::mix::SplitMix;

/// The maximum size of a simulated corpus.
pub(super) const MAX_COUNT: usize = 10_000_000;

/// Settings of the pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorpusConfig {
    /// Pages.
    pub n_pages: usize,
    /// Number of words of the language.
    pub n_terms: usize,
    /// The first word is more frequent than the r-th by a factor of r to the power of this.
    pub zipf_exponent: f64,
    /// Half of the pages have more tokens than this.
    pub median_length: f64,
    /// The standard deviation of the logarithm of the length.
    pub length_spread: f64,
    /// The share of pages that copy an earlier one, with every 50th token replaced.
    pub copied: f64,
    /// The seed of everything.
    pub seed: u64,
}

impl Default for CorpusConfig {
    /// 4,000 pages of about 100 words, in a language of 20,000 words, none copied.
    fn default() -> Self {
        Self {
            n_pages: 4000,
            n_terms: 20_000,
            zipf_exponent: 1.0,
            median_length: 100.0,
            length_spread: 0.8,
            copied: 0.0,
            seed: 1,
        }
    }
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its words in order, as numbers.
    pub tokens: Vec<u32>,
    /// The first page with this content except for a few tokens; itself if it is not a copy.
    pub original: usize,
}

impl Page {
    /// Returns its distinct words, in ascending order.
    #[must_use]
    pub fn terms(&self) -> Vec<u32> {
        let mut terms = self.tokens.clone();
        terms.sort_unstable();
        terms.dedup();
        terms
    }
}

/// A corpus of completely known pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// The pages.
    pub pages: Vec<Page>,
    /// Words have numbers below this.
    pub n_terms: usize,
}

impl Corpus {
    /// Generates the pages.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no page or word or more than ten million of either, if the
    /// length or its spread is not a positive number, if the exponent is not finite, or if the
    /// copied share is not in `0..=1`.
    ///
    /// ```
    /// use arose::estimate::simulate::{Corpus, CorpusConfig};
    /// let config = CorpusConfig { n_pages: 100, ..CorpusConfig::default() };
    /// let corpus = Corpus::new(&config)?;
    /// assert_eq!(corpus, Corpus::new(&config)?);
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn new(config: &CorpusConfig) -> Result<Self, Error> {
        check(config)?;
        let language = Language::new(config);
        let mut random = SplitMix::new(config.seed);
        let mut pages: Vec<Page> = Vec::with_capacity(config.n_pages);
        for place in 0..config.n_pages {
            let is_copy = place > 0 && random.next_f64() < config.copied;
            let page = if is_copy {
                let model = &pages[random.below(place as u64) as usize];
                copy(model, &language, &mut random)
            } else {
                let length = length(config, &mut random);
                let tokens = (0..length).map(|_| language.draw(&mut random)).collect();
                Page {
                    tokens,
                    original: place,
                }
            };
            pages.push(page);
        }
        Ok(Self {
            pages,
            n_terms: config.n_terms,
        })
    }

    /// Returns the number of pages that contain each word.
    #[must_use]
    pub fn frequencies(&self) -> Vec<u64> {
        let mut frequencies = vec![0; self.n_terms];
        for term in self.pages.iter().flat_map(Page::terms) {
            frequencies[term as usize] += 1;
        }
        frequencies
    }
}

/// Replaces every 50th token on average.
fn copy(model: &Page, language: &Language, random: &mut SplitMix) -> Page {
    let token = |&token: &u32| {
        let is_changed = random.below(50) == 0;
        if is_changed {
            language.draw(random)
        } else {
            token
        }
    };
    Page {
        tokens: model.tokens.iter().map(token).collect(),
        original: model.original,
    }
}

fn length(config: &CorpusConfig, random: &mut SplitMix) -> usize {
    let length = config.median_length * (config.length_spread * normal_deviate(random)).exp();
    // A page has at least one word, and at most a thousand times the median.
    length.clamp(1.0, 1000.0 * config.median_length).round() as usize
}

/// Words with their frequencies.
struct Language {
    /// The cumulative probability of the words.
    cumulated: Vec<f64>,
}

impl Language {
    fn new(config: &CorpusConfig) -> Self {
        let mut sum = 0.0;
        let weights = (1..=config.n_terms).map(|rank| (rank as f64).powf(-config.zipf_exponent));
        let cumulated = weights.map(|weight| {
            sum += weight;
            sum
        });
        Self {
            cumulated: cumulated.collect(),
        }
    }

    fn draw(&self, random: &mut SplitMix) -> u32 {
        let last = self.cumulated.len() - 1;
        let target = random.next_f64() * self.cumulated[last];
        let rank = self.cumulated.partition_point(|&sum| sum <= target);
        rank.min(last) as u32
    }
}

fn check(config: &CorpusConfig) -> Result<(), Error> {
    check_share("copied", config.copied)?;
    if !(1..=MAX_COUNT).contains(&config.n_pages) {
        return Err(Error::parameter(
            "n_pages",
            config.n_pages,
            "1 up to ten million",
        ));
    }
    if !(1..=MAX_COUNT).contains(&config.n_terms) {
        return Err(Error::parameter(
            "n_terms",
            config.n_terms,
            "1 up to ten million",
        ));
    }
    let is_positive = |value: f64| value.is_finite() && value > 0.0;
    if !is_positive(config.median_length) || config.median_length > 1e6 {
        let expected = "above 0, up to a million";
        return Err(Error::parameter(
            "median_length",
            config.median_length,
            expected,
        ));
    }
    if !(0.0..=10.0).contains(&config.length_spread) {
        return Err(Error::parameter(
            "length_spread",
            config.length_spread,
            "0..=10",
        ));
    }
    if !(0.0..=10.0).contains(&config.zipf_exponent) {
        return Err(Error::parameter(
            "zipf_exponent",
            config.zipf_exponent,
            "0..=10",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(config: CorpusConfig) -> Corpus {
        Corpus::new(&config).unwrap()
    }

    /// Half of 2,000 pages are longer than the median, within 4 sqrt(1/4 / 2000) = 0.045; the most
    /// frequent word is twice as frequent as the second, within 4 sqrt(3 / 20,000) relative.
    #[test]
    fn lengths_and_words() {
        let corpus = corpus(CorpusConfig {
            n_pages: 2000,
            ..CorpusConfig::default()
        });
        let n_long = corpus
            .pages
            .iter()
            .filter(|page| page.tokens.len() > 100)
            .count();
        assert!((n_long as f64 / 2000.0 - 0.5).abs() < 0.045, "{n_long}");
        let count = |term| {
            corpus
                .pages
                .iter()
                .flat_map(|page| &page.tokens)
                .filter(|&&t| t == term)
                .count()
        };
        let (first, second) = (count(0) as f64, count(1) as f64);
        assert!(
            (first / second / 2.0 - 1.0).abs() < 4.0 * (3.0 / first).sqrt(),
            "{first}, {second}"
        );
        assert!(
            corpus
                .pages
                .iter()
                .enumerate()
                .all(|(place, page)| page.original == place)
        );
    }

    #[test]
    fn copies_know_their_original() {
        let config = CorpusConfig {
            n_pages: 500,
            copied: 0.4,
            ..CorpusConfig::default()
        };
        let corpus = corpus(config);
        let pages = corpus.pages.iter().enumerate();
        let copies: Vec<&Page> = pages
            .filter(|&(place, page)| page.original != place)
            .map(|(_, page)| page)
            .collect();
        // 200 expected, standard deviation 11.
        assert!((156..=244).contains(&copies.len()), "{}", copies.len());
        for copy in copies {
            let original = &corpus.pages[copy.original];
            assert_eq!(original.original, copy.original);
            assert_eq!(original.tokens.len(), copy.tokens.len());
        }
    }

    #[test]
    fn frequencies_count_pages() {
        let corpus = corpus(CorpusConfig {
            n_pages: 50,
            ..CorpusConfig::default()
        });
        let n_with = corpus
            .pages
            .iter()
            .filter(|page| page.tokens.contains(&7))
            .count();
        assert_eq!(corpus.frequencies()[7], n_with as u64);
    }

    #[test]
    fn bad_settings() {
        let good = CorpusConfig::default();
        for bad in [
            CorpusConfig { n_pages: 0, ..good },
            CorpusConfig { n_terms: 0, ..good },
            CorpusConfig {
                median_length: f64::NAN,
                ..good
            },
            CorpusConfig {
                length_spread: -1.0,
                ..good
            },
            CorpusConfig {
                zipf_exponent: f64::INFINITY,
                ..good
            },
            CorpusConfig {
                copied: 1.5,
                ..good
            },
        ] {
            assert!(Corpus::new(&bad).is_err(), "{bad:?}");
        }
    }
}
