//! The lexicon: chooses queries that sample a random page, and queries that find a given page
//! again.
//!
//! *Question.* A search engine only accepts words. How can a page be sampled from it, and how can a
//! given page be looked up without knowing its ID there?
//!
//! *Idea.* To sample a page, query two words at once, taken at random from the vocabulary of a
//! crawl, and choose one of the results. Words are first sorted into strata, each twice as frequent
//! as the last, and each stratum is equally likely; otherwise nearly every word would be one of the
//! many that occur once ([`Lexicon::draw_pair`]). To find a page again, query its eight rarest
//! words at once, which hardly any other page matches. If the page is not among the results, query
//! the next eight ([`Lexicon::strong_query`]). Five words of high tf-idf do the same
//! ([`Lexicon::robust_query`]).
//!
//! *Papers.* Bharat & Broder 1998; Phelps & Wilensky 2000. *Parameters.* 8 words, or 5. *Cost.*
//! Sampling takes constant time; a strong query sorts the words of the page. *Error.* A strong
//! query finds its page in at least 99% of the cases if the search engine indexes the full text.
//! *Not for* pages with few words, which are flagged, nor for languages that are not in the
//! lexicon.

use crate::Error;
use crate::estimate::pool::Drawn;
use crate::mix::SplitMix;

/// Words per strong query.
pub const STRONG_WORDS: usize = 8;

/// Words per robust hyperlink.
pub const ROBUST_WORDS: usize = 5;

/// The words of a crawl, with the number of pages that contain each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lexicon<W> {
    /// In ascending order.
    words: Vec<(W, u64)>,
    /// Indexes of words of similar frequency.
    strata: Vec<Vec<usize>>,
}

/// Two queries that should find a page again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrongQuery<W> {
    /// The rarest words, to be queried all at once.
    pub first: Vec<W>,
    /// The next rarest, to be tried if the first do not find the page; may be empty.
    pub second: Vec<W>,
    /// Whether the page has fewer words than required.
    pub is_weak: bool,
}

impl<W> StrongQuery<W> {
    /// Returns the first `n_words` words and the next `n_words` words.
    fn of(ranked: impl IntoIterator<Item = W>, n_words: usize) -> Self {
        let mut words = ranked.into_iter();
        let first: Vec<W> = words.by_ref().take(n_words).collect();
        Self {
            is_weak: first.len() < n_words,
            first,
            second: words.take(n_words).collect(),
        }
    }
}

impl<W: Ord + Clone> Lexicon<W> {
    /// Creates a lexicon of words with the number of pages that contain each. Of equal words the
    /// first counts; words on no page are omitted.
    ///
    /// # Errors
    ///
    /// Returns an error if fewer than two words remain.
    pub fn new(mut words: Vec<(W, u64)>) -> Result<Self, Error> {
        words.retain(|&(_, frequency)| frequency > 0);
        words.sort_by(|a, b| a.0.cmp(&b.0));
        words.dedup_by(|later, first| later.0 == first.0);
        if words.len() < 2 {
            return Err(Error::parameter(
                "lexicon",
                words.len(),
                "at least two words",
            ));
        }
        let mut strata = vec![Vec::new(); u64::BITS as usize];
        for (place, (_, frequency)) in words.iter().enumerate() {
            strata[frequency.ilog2() as usize].push(place);
        }
        strata.retain(|stratum| !stratum.is_empty());
        Ok(Self { words, strata })
    }

    /// Returns the number of words.
    #[must_use]
    pub fn n_words(&self) -> usize {
        self.words.len()
    }

    /// Returns the number of pages that contain a word; zero for words outside the lexicon.
    #[must_use]
    pub fn frequency(&self, word: &W) -> u64 {
        let place = self.words.binary_search_by(|(other, _)| other.cmp(word));
        place.map_or(0, |place| self.words[place].1)
    }

    /// Returns two different words, each from a stratum chosen uniformly.
    pub fn draw_pair(&self, random: &mut SplitMix) -> [&W; 2] {
        let first = self.draw(random);
        loop {
            let second = self.draw(random);
            if second != first {
                return [&self.words[first].0, &self.words[second].0];
            }
        }
    }

    fn draw(&self, random: &mut SplitMix) -> usize {
        let stratum = &self.strata[random.below(self.strata.len() as u64) as usize];
        stratum[random.below(stratum.len() as u64) as usize]
    }

    /// Samples pages: queries two words at once and takes a random result, however many there are.
    ///
    /// `search` returns the first results, or `None` if there was no response. The sample is
    /// smaller than requested if `max_queries` do not suffice.
    ///
    /// # Errors
    ///
    /// Returns an error if no query gives a page, or if `search` fails.
    pub fn draw_pages<E: From<Error>>(
        &self,
        n_samples: usize,
        max_queries: u64,
        random: &mut SplitMix,
        mut search: impl FnMut([&W; 2]) -> Result<Option<Vec<usize>>, E>,
    ) -> Result<Drawn, E> {
        let mut drawn = Drawn::default();
        while drawn.pages.len() < n_samples && drawn.effort.n_queries < max_queries {
            drawn.effort.n_queries += 1;
            match search(self.draw_pair(random))? {
                None => drawn.effort.n_missing += 1,
                Some(results) if results.is_empty() => drawn.effort.n_empty += 1,
                Some(results) => {
                    let place = random.below(results.len() as u64) as usize;
                    drawn.pages.push(results[place]);
                }
            }
        }
        drawn.or_none()
    }

    /// Returns two queries of `n_words` each that should find the page with these words again.
    ///
    /// Words outside the lexicon are not used; of equally frequent words the smaller comes first.
    pub fn strong_query(
        &self,
        page: impl IntoIterator<Item = W>,
        n_words: usize,
    ) -> StrongQuery<W> {
        let known = page.into_iter().map(|word| (self.frequency(&word), word));
        let mut ranked: Vec<(u64, W)> = known.filter(|&(frequency, _)| frequency > 0).collect();
        ranked.sort_unstable();
        ranked.dedup();
        StrongQuery::of(ranked.into_iter().map(|(_, word)| word), n_words)
    }

    /// Returns the same with the words of the highest tf-idf: occurrences in the page times the
    /// logarithm of the rarity of the word. `page` contains a word as often as it occurs.
    ///
    /// The number of pages behind the lexicon is unknown; the frequency of its most frequent word
    /// is used instead. Words outside the lexicon are not used; of words with equal weight the
    /// smaller comes first.
    pub fn robust_query(
        &self,
        page: impl IntoIterator<Item = W>,
        n_words: usize,
    ) -> StrongQuery<W> {
        let n_pages = self.words.iter().map(|(_, frequency)| *frequency).max();
        let n_pages = n_pages.unwrap_or(1);
        let mut tokens: Vec<W> = page.into_iter().collect();
        tokens.sort_unstable();
        let weigh = |run: &[W]| {
            let frequency = self.frequency(&run[0]);
            let rarity = (n_pages as f64 / frequency as f64).ln();
            (frequency > 0).then(|| (run.len() as f64 * rarity, run[0].clone()))
        };
        let runs = tokens.chunk_by(|a, b| a == b);
        let mut ranked: Vec<(f64, W)> = runs.filter_map(weigh).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        StrongQuery::of(ranked.into_iter().map(|(_, word)| word), n_words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexicon() -> Lexicon<&'static str> {
        let words = [
            ("rose", 9),
            ("a", 1000),
            ("is", 800),
            ("gloaming", 1),
            ("dusk", 1),
            ("never", 0),
        ];
        Lexicon::new(words.to_vec()).unwrap()
    }

    #[test]
    fn rarest_words_come_first() {
        let page = ["a", "rose", "is", "a", "dusk", "gloaming", "xyzzy", "never"];
        let query = lexicon().strong_query(page, 3);
        assert_eq!(query.first, ["dusk", "gloaming", "rose"]);
        assert_eq!(query.second, ["is", "a"]);
        assert!(!query.is_weak);
        let query = lexicon().strong_query(page, STRONG_WORDS);
        assert_eq!(
            (query.first.len(), query.second.len(), query.is_weak),
            (5, 0, true)
        );
        assert!(lexicon().strong_query([], 8).is_weak);
    }

    /// ln(1000/9) * 2 = 9.4, ln(1000) * 1 = 6.9, and a word on all pages weighs nothing.
    #[test]
    fn weightiest_words_come_first() {
        let page = ["a", "rose", "is", "a", "rose", "dusk", "gloaming"];
        let query = lexicon().robust_query(page, 3);
        assert_eq!(query.first, ["rose", "dusk", "gloaming"]);
        assert_eq!(query.second, ["is", "a"]);
        assert!(!query.is_weak);
        // The choice of the rarest words, in contrast, ignores how often a word occurs.
        let rarest = lexicon().strong_query(page, 3).first;
        assert_eq!(rarest, ["dusk", "gloaming", "rose"]);
    }

    /// Strata 2^0, 2^3 and 2^9 are equally likely: `rose`, alone in its stratum, is drawn a third
    /// of the time. Within 4 standard errors sqrt(p (1-p) / n) of the first words.
    #[test]
    fn strata_are_equally_likely() {
        let lexicon = lexicon();
        let mut random = SplitMix::new(4);
        let n = 3000;
        let pairs: Vec<[&&str; 2]> = (0..n).map(|_| lexicon.draw_pair(&mut random)).collect();
        assert!(pairs.iter().all(|[first, second]| first != second));
        let share =
            pairs.iter().filter(|[first, _]| **first == "rose").count() as f64 / f64::from(n);
        let standard_error = (2.0 / 9.0 / f64::from(n)).sqrt();
        assert!((share - 1.0 / 3.0).abs() < 4.0 * standard_error, "{share}");
    }

    #[test]
    fn drawn_pages_are_results() {
        let lexicon = lexicon();
        let mut random = SplitMix::new(1);
        let search = |[first, second]: [&&str; 2]| {
            Ok::<_, Error>(match (*first, *second) {
                ("rose", _) => None,
                (_, "rose") => Some(vec![]),
                _ => Some(vec![4, 5]),
            })
        };
        let drawn = lexicon.draw_pages(50, 1000, &mut random, search).unwrap();
        assert_eq!(drawn.pages.len(), 50);
        assert!(drawn.pages.contains(&4) && drawn.pages.contains(&5));
        let effort = drawn.effort;
        assert!(effort.n_missing > 0 && effort.n_empty > 0);
        assert_eq!(effort.n_queries, 50 + effort.n_missing + effort.n_empty);
        let silent = |_: [&&str; 2]| Ok::<_, Error>(None);
        let error = lexicon
            .draw_pages(5, 20, &mut random, silent)
            .unwrap_err()
            .to_string();
        assert!(error.contains("none of 20 queries gave a page"), "{error}");
    }

    #[test]
    fn too_few_words() {
        assert!(Lexicon::new(vec![("a", 1), ("a", 2)]).is_err());
        assert!(Lexicon::new(vec![("a", 1), ("b", 0)]).is_err());
        assert_eq!(lexicon().frequency(&"nothing"), 0);
        assert_eq!(lexicon().n_words(), 5);
    }
}
