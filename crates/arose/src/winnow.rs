//! Winnowing: fingerprints that locate the overlap of two texts.
//!
//! *Question.* Two documents share a paragraph and nothing else. Their similarity is small, so
//! sketches miss them. Which few hashes must each document store so that the paragraph is found?
//!
//! *Idea.* Hash every run of `k` tokens. Keeping all hashes finds everything but costs too much;
//! keeping every hash divisible by `m` leaves gaps of any length. Instead, slide a window over `W`
//! consecutive hashes and keep the smallest of each window, the rightmost one if several are equal.
//! Two texts that share a window share its minimum, wherever the window is.
//!
//! *Paper.* Schleimer, Wilkerson & Aiken 2003.
//!
//! *Parameters.* The noise length `k` and the guarantee length `T >= k`, in tokens; the window is
//! `W = T - k + 1`. Any shared run of at least `T` tokens shares a selected hash; runs shorter than
//! `k` never do. A text with fewer than `W` hashes counts as one window, so it keeps one.
//!
//! *Ties.* In a text of one repeated word all hashes are equal, and the rightmost rule keeps every
//! position. Robust winnowing ([`Ties::Robust`]) keeps the position of the previous window while
//! that is still a minimum, so it keeps one position in `W`. [`anchors`] selects by either rule and
//! reports for each position which windows selected it, and whether one of them contains the hash
//! twice.
//!
//! *Cost.* Time `O(n)` for the selection, whatever the window, and `O(n k)` bytes hashed. A share
//! of `2 / (W + 1)` of the positions is kept: 0.039 for `W = 50`.
//!
//! *Error.* None except hash collisions, 2^-64 per pair. *Not for* whole-document similarity: a
//! sketch of fixed size is smaller.

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_64;

use crate::Error;

/// A checked pair of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Winnow {
    noise: usize,
    guarantee: usize,
}

/// A hash that was kept, and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selected {
    /// The index of the hash, which is the index of its first token.
    pub position: usize,
    /// The hash of `k` tokens.
    pub hash: u64,
}

impl Winnow {
    /// Hashes runs of `noise` tokens so that common runs of `guarantee` tokens are found.
    ///
    /// # Errors
    ///
    /// Returns an error if `noise` is zero or longer than `guarantee`.
    pub fn new(noise: usize, guarantee: usize) -> Result<Self, Error> {
        if noise == 0 {
            return Err(Error::parameter("noise", noise, "at least 1 token"));
        }
        if guarantee < noise {
            return Err(Error::parameter(
                "guarantee",
                guarantee,
                "at least the noise length",
            ));
        }
        Ok(Self { noise, guarantee })
    }

    /// Returns the number of hashes in a window.
    #[must_use]
    pub const fn window(self) -> usize {
        self.guarantee - self.noise + 1
    }

    /// Returns the share of positions that is kept on average in a long text.
    #[must_use]
    pub fn expected_density(self) -> f64 {
        2.0 / (self.window() as f64 + 1.0)
    }

    /// Returns the selected hashes of a text given as token fingerprints, in order of position.
    ///
    /// ```
    /// use arose::winnow::Winnow;
    /// let winnow = Winnow::new(3, 5)?;
    /// let a = winnow.fingerprints(&[1, 2, 3, 4, 5, 6, 7]);
    /// let b = winnow.fingerprints(&[9, 9, 2, 3, 4, 5, 6, 8]);
    /// assert!(a.iter().any(|x| b.iter().any(|y| x.hash == y.hash)));
    /// # Ok::<(), arose::Error>(())
    /// ```
    #[must_use]
    pub fn fingerprints(self, tokens: &[u64]) -> Vec<Selected> {
        select(&gram_hashes(tokens, self.noise), self.window())
    }
}

/// Returns the XXH3-64 of every run of `k` tokens, as little-endian bytes; none if there are fewer
/// tokens.
#[must_use]
pub fn gram_hashes(tokens: &[u64], k: usize) -> Vec<u64> {
    let bytes: Vec<u8> = tokens
        .iter()
        .flat_map(|token| token.to_le_bytes())
        .collect();
    let Some(n_grams) = (tokens.len() + 1).checked_sub(k).filter(|_| k > 0) else {
        return Vec::new();
    };
    (0..n_grams)
        .map(|i| xxh3_64(&bytes[8 * i..8 * (i + k)]))
        .collect()
}

/// Returns the minimum of every window of hashes, the rightmost of equal minima, each position
/// once.
///
/// A window of zero hashes counts as a window of one hash, which keeps all hashes.
#[must_use]
pub fn select(hashes: &[u64], window: usize) -> Vec<Selected> {
    let window = window.clamp(1, hashes.len().max(1));
    let mut selected: Vec<Selected> = Vec::new();
    // The hashes of the window that are smaller than all hashes to their right: later minima.
    let mut rising: VecDeque<Selected> = VecDeque::new();
    for (position, &hash) in hashes.iter().enumerate() {
        while rising.back().is_some_and(|last| last.hash >= hash) {
            rising.pop_back();
        }
        rising.push_back(Selected { position, hash });
        if rising
            .front()
            .is_some_and(|first| first.position + window <= position)
        {
            rising.pop_front();
        }
        if position + 1 >= window {
            let minimum = rising.front().copied();
            if selected.last() != minimum.as_ref() {
                selected.extend(minimum);
            }
        }
    }
    selected
}

/// The choice among several equal minima of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// The rightmost.
    Rightmost,
    /// The one that the previous window selected if it is still a minimum, otherwise the rightmost.
    Robust,
}

/// A selected position with its neighbourhood: the windows that selected it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The index of the hash.
    pub position: usize,
    /// The hash, the minimum of every window of the neighbourhood.
    pub hash: u64,
    /// The first window that selects the position.
    pub first_window: usize,
    /// The last such window; all windows between select it too.
    pub last_window: usize,
    /// Whether the hash occurs twice in one of these windows.
    pub is_tied: bool,
}

/// Returns the positions that the windows of `window` hashes select, in order; none if there are
/// fewer hashes.
///
/// Every window belongs to exactly one anchor. The hash of that anchor is a function of the hashes
/// in the window alone, so equal windows have anchors of equal hashes.
///
/// ```
/// use arose::winnow::{Ties, anchors};
/// let places = |ties| anchors(&[5; 6], 2, ties).iter().map(|a| a.position).collect::<Vec<_>>();
/// assert_eq!(places(Ties::Robust), [1, 3, 5]);
/// assert_eq!(places(Ties::Rightmost), [1, 2, 3, 4, 5]);
/// ```
#[must_use]
pub fn anchors(hashes: &[u64], window: usize, ties: Ties) -> Vec<Anchor> {
    let window = window.max(1);
    if hashes.len() < window {
        return Vec::new();
    }
    // As many as random hashes have, and some more.
    let n_expected = 9 * (hashes.len() - window) / (4 * (window + 1)) + 1;
    let mut anchors: Vec<Anchor> = Vec::with_capacity(n_expected);
    let mut minima = Minima::default();
    let mut last = minima.select(0, &hashes[..window]);
    for (start, &hash) in (1..).zip(&hashes[window..]) {
        let position = start + window - 1;
        let is_inside = last.position >= start;
        // The minimum of the window is at most the minimum after the block.
        if is_inside && hash > minima.after.hash {
            continue;
        }
        minima.push(position, hash);
        if is_inside && hash > last.hash {
            continue;
        }
        let is_tied = hash == last.hash;
        if is_inside && is_tied && ties == Ties::Robust {
            last.is_tied = true;
            continue;
        }
        last.last_window = start - 1;
        anchors.push(last);
        last = match is_inside {
            true => Anchor::new(position, hash, start, is_tied),
            false => minima.select(start, &hashes[start..=position]),
        };
    }
    last.last_window = hashes.len() - window;
    anchors.push(last);
    anchors
}

impl Anchor {
    fn new(position: usize, hash: u64, window: usize, is_tied: bool) -> Self {
        Self {
            position,
            hash,
            first_window: window,
            last_window: window,
            is_tied,
        }
    }
}

/// The minimum of a moving window, in constant time on average for any hashes.
///
/// A window consists of the end of a block of hashes, whose minima are known from each position
/// on, and of the hashes after it. When nothing is left of the block, the window is the next block.
#[derive(Debug, Default)]
struct Minima {
    /// The rightmost minima of the ends of the block, the shortest end first.
    ends: Vec<End>,
    /// The rightmost minimum after the block.
    after: After,
}

/// A minimum of the hashes after a block.
#[derive(Debug)]
struct After {
    /// The largest number if there are no hashes.
    hash: u64,
    position: Option<usize>,
    /// Whether another hash there is equal to it.
    is_tied: bool,
}

impl Default for After {
    fn default() -> Self {
        Self {
            hash: u64::MAX,
            position: None,
            is_tied: false,
        }
    }
}

/// A hash that is smaller than all to its right in its block.
#[derive(Debug, Clone, Copy)]
struct End {
    hash: u64,
    position: usize,
    /// The last position before it with the same hash.
    tied_at: Option<usize>,
}

impl Minima {
    /// Adds a hash to the window.
    fn push(&mut self, position: usize, hash: u64) {
        if hash <= self.after.hash {
            self.after = After {
                hash,
                is_tied: hash == self.after.hash && self.after.position.is_some(),
                position: Some(position),
            };
        }
    }

    /// Returns the anchor that a window selects as the first one.
    fn select(&mut self, start: usize, window: &[u64]) -> Anchor {
        while self.ends.pop_if(|end| end.position < start).is_some() {}
        if self.ends.is_empty() {
            self.fill(start, window);
        }
        let end = self.ends[self.ends.len() - 1];
        let After { hash, is_tied, .. } = self.after;
        match self.after.position {
            Some(position) if hash <= end.hash => {
                Anchor::new(position, hash, start, is_tied || hash == end.hash)
            }
            _ => {
                let is_tied = end.tied_at.is_some_and(|other| other >= start);
                Anchor::new(end.position, end.hash, start, is_tied)
            }
        }
    }

    /// Makes the window the block.
    fn fill(&mut self, start: usize, window: &[u64]) {
        self.after = After::default();
        for (i, &hash) in window.iter().enumerate().rev() {
            match self.ends.last_mut() {
                Some(end) if hash > end.hash => {}
                Some(end) if hash == end.hash => {
                    end.tied_at = end.tied_at.or(Some(start + i));
                }
                _ => self.ends.push(End {
                    hash,
                    position: start + i,
                    tied_at: None,
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;
    use proptest::prelude::*;

    /// The same as [`select`], by scanning each window.
    fn select_by_scanning(hashes: &[u64], window: usize) -> Vec<Selected> {
        let window = window.clamp(1, hashes.len().max(1));
        let mut selected: Vec<Selected> = Vec::new();
        for (start, values) in hashes.windows(window).enumerate() {
            let smallest = values.iter().copied().min();
            let offset = values.iter().rposition(|&hash| Some(hash) == smallest);
            let minimum = smallest.zip(offset).map(|(hash, i)| Selected {
                position: start + i,
                hash,
            });
            selected.extend(minimum.filter(|_| selected.last() != minimum.as_ref()));
        }
        selected
    }

    fn positions(hashes: &[u64], window: usize) -> Vec<usize> {
        select(hashes, window)
            .iter()
            .map(|selected| selected.position)
            .collect()
    }

    /// The worked example of the paper: windows of 4 over the hashes of "adorunrunrunadorunrun".
    #[test]
    fn the_papers_example() {
        let hashes = [
            77, 74, 42, 17, 98, 50, 17, 98, 8, 88, 67, 39, 77, 74, 42, 17, 98,
        ];
        let kept: Vec<u64> = select(&hashes, 4)
            .iter()
            .map(|selected| selected.hash)
            .collect();
        assert_eq!(kept, [17, 17, 8, 39, 17]);
        assert_eq!(positions(&hashes, 4), [3, 6, 8, 11, 15]);
    }

    fn anchor_positions(hashes: &[u64], window: usize, ties: Ties) -> Vec<usize> {
        let anchors = anchors(hashes, window, ties);
        anchors.iter().map(|anchor| anchor.position).collect()
    }

    #[test]
    fn both_rules_of_selection() {
        let hashes = [
            77, 74, 42, 17, 98, 50, 17, 98, 8, 88, 67, 39, 77, 74, 42, 17, 98,
        ];
        for ties in [Ties::Robust, Ties::Rightmost] {
            assert_eq!(anchor_positions(&hashes, 4, ties), [3, 6, 8, 11, 15]);
        }
        assert_eq!(anchor_positions(&[1; 6], 2, Ties::Robust), [1, 3, 5]);
        assert_eq!(
            anchor_positions(&[1; 6], 2, Ties::Rightmost),
            [1, 2, 3, 4, 5]
        );
        assert_eq!(anchor_positions(&[1; 5], 3, Ties::Robust), [2]);
        assert_eq!(anchor_positions(&[1; 5], 3, Ties::Rightmost), [2, 3, 4]);
        assert_eq!(anchor_positions(&[1; 2], 3, Ties::Robust), [0; 0]);
    }

    /// Constant text of `n` windows keeps one position in `W`.
    #[test]
    fn constant_text_has_few_anchors() {
        for (n_hashes, window) in [(1, 1), (40, 7), (41, 7), (1000, 26)] {
            let n_windows = n_hashes - window + 1;
            let found = anchors(&vec![9; n_hashes], window, Ties::Robust);
            assert_eq!(found.len(), n_windows.div_ceil(window));
            assert!(found.iter().all(|anchor| anchor.is_tied == (window > 1)));
        }
    }

    /// The definition, window by window.
    fn anchors_by_scanning(hashes: &[u64], window: usize, ties: Ties) -> Vec<Anchor> {
        let mut anchors: Vec<Anchor> = Vec::new();
        for (start, values) in hashes.windows(window).enumerate() {
            let minimum = values.iter().copied().min().unwrap();
            let places = (0..window).filter(|&i| values[i] == minimum);
            let places: Vec<usize> = places.map(|i| start + i).collect();
            let is_tied = places.len() > 1;
            let before = anchors.last().map(|anchor| anchor.position);
            let position = match before.filter(|place| places.contains(place)) {
                Some(before) if ties == Ties::Robust => before,
                _ => places[places.len() - 1],
            };
            match anchors.last_mut().filter(|last| last.position == position) {
                Some(last) => {
                    last.last_window = start;
                    last.is_tied |= is_tied;
                }
                None => anchors.push(Anchor {
                    position,
                    hash: minimum,
                    first_window: start,
                    last_window: start,
                    is_tied,
                }),
            }
        }
        anchors
    }

    #[test]
    fn ties_go_to_the_right() {
        assert_eq!(positions(&[5, 5, 5, 5, 5], 3), [2, 3, 4]);
        assert_eq!(positions(&[1, 9, 1, 9, 9], 3), [2]);
    }

    #[test]
    fn borders() {
        assert_eq!(positions(&[], 3), [0; 0]);
        assert_eq!(positions(&[7], 3), [0]);
        assert_eq!(positions(&[7, 3, 8], 5), [1]);
        assert_eq!(positions(&[7, 3, 8], usize::MAX), [1]);
        assert_eq!(positions(&[7, 3, 8], 1), [0, 1, 2]);
        assert_eq!(positions(&[7, 3, 8], 0), [0, 1, 2]);
        assert!(Winnow::new(0, 5).is_err());
        assert!(Winnow::new(6, 5).is_err());
        assert_eq!(Winnow::new(5, 5).unwrap().window(), 1);
        assert!(gram_hashes(&[1, 2], 3).is_empty());
        assert!(gram_hashes(&[1, 2], 0).is_empty());
        assert_eq!(gram_hashes(&[1, 2, 3], 3).len(), 1);
        assert_eq!(gram_hashes(&[1, 2, 3], 2)[1], gram_hashes(&[2, 3], 2)[0]);
    }

    #[test]
    fn density_of_the_default_example() {
        let winnow = Winnow::new(1, 50).unwrap();
        assert_eq!(winnow.window(), 50);
        assert!((winnow.expected_density() - 0.0392).abs() < 0.51e-4);
    }

    /// A step selects a new position exactly if the minimum of the W + 1 hashes of both windows
    /// lies at an end, which gives `1 + (windows - 1) 2/(W + 1)` positions on average. The
    /// tolerance is four standard errors over 100 random sequences, from their spread.
    #[test]
    fn density_is_two_over_window_plus_one() {
        const N_RUNS: usize = 100;
        let mut random = SplitMix::new(2003);
        for window in [4, 50, 100] {
            let counts: Vec<f64> = (0..N_RUNS)
                .map(|_| {
                    let hashes: Vec<u64> = (0..5000).map(|_| random.next_u64()).collect();
                    select(&hashes, window).len() as f64
                })
                .collect();
            let mean = counts.iter().sum::<f64>() / N_RUNS as f64;
            let squares: f64 = counts.iter().map(|x| (x - mean).powi(2)).sum();
            let standard_error = (squares / ((N_RUNS - 1) * N_RUNS) as f64).sqrt();
            let expected = 1.0 + (5000 - window) as f64 * 2.0 / (window as f64 + 1.0);
            assert!(
                (mean - expected).abs() <= 4.0 * standard_error,
                "window {window}: {mean} kept, expected {expected} +- {standard_error}"
            );
        }
    }

    /// The length of the longest run of tokens that occurs in both texts.
    fn longest_common_run(a: &[u64], b: &[u64]) -> usize {
        let ends =
            |i, j| (0..).take_while(move |&n| n < i && n < j && a[i - n - 1] == b[j - n - 1]);
        let lengths = (1..=a.len()).flat_map(|i| (1..=b.len()).map(move |j| ends(i, j).count()));
        lengths.max().unwrap_or(0)
    }

    fn share_a_hash(a: &[Selected], b: &[Selected]) -> bool {
        a.iter().any(|x| b.iter().any(|y| x.hash == y.hash))
    }

    proptest! {
        #[test]
        fn the_deque_selects_what_scanning_selects(
            hashes in prop::collection::vec(0..12_u64, 0..80),
            window in 0_usize..20,
        ) {
            prop_assert_eq!(select(&hashes, window), select_by_scanning(&hashes, window));
        }

        #[test]
        fn anchors_follow_the_definition(
            hashes in prop::collection::vec(0..9_u64, 0..80),
            window in 1_usize..20,
        ) {
            for ties in [Ties::Robust, Ties::Rightmost] {
                let expected = anchors_by_scanning(&hashes, window, ties);
                prop_assert_eq!(anchors(&hashes, window, ties), expected);
            }
        }

        #[test]
        fn both_guarantees(
            mut a in prop::collection::vec(0..6_u64, 0..30),
            mut b in prop::collection::vec(0..6_u64, 0..30),
            shared in prop::collection::vec(0..6_u64, 0..14),
            noise in 1_usize..6,
            extra in 0_usize..7,
        ) {
            a.splice(a.len() / 2..a.len() / 2, shared.iter().copied());
            b.splice(b.len() / 3..b.len() / 3, shared.iter().copied());
            let winnow = Winnow::new(noise, noise + extra).unwrap();
            let share = share_a_hash(&winnow.fingerprints(&a), &winnow.fingerprints(&b));
            let longest = longest_common_run(&a, &b);
            if longest >= noise + extra {
                prop_assert!(share, "a run of {} tokens was missed", longest);
            }
            if longest < noise {
                prop_assert!(!share, "a run of {} tokens was found", longest);
            }
        }
    }
}
