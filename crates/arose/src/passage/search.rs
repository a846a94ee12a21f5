//! Passages by definition: the reference implementation for tests.

use std::collections::BTreeMap;

use super::Removal;
use super::cuts::{Role, removed};

/// A place: a document and a token in it. Places are ordered by document, then token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The number of the document.
    pub doc: u32,
    /// The number of the token.
    pub token: u32,
}

/// The places of a window that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All.
    Any,
    /// One for each document.
    Across,
    /// Those in the same document.
    Within,
}

impl Scope {
    /// Returns the role of the occurrence at `place`, given the first place of the passage.
    #[must_use]
    pub fn role(self, place: Place, first: Place) -> Role {
        match self {
            _ if place == first => Role::First,
            // Repetition inside a document is ignored.
            Self::Across if place.doc == first.doc => Role::Own,
            _ => Role::Later,
        }
    }
}

/// An occurrence of a passage in a document: the tokens from `start` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Occurrence {
    /// The first token.
    pub start: u32,
    /// The token after the last.
    pub end: u32,
    /// The number of places of the passage.
    pub count: u64,
    /// The first place.
    pub first: Place,
}

/// Returns the occurrences in each document of the passages of at least `n_tokens` tokens with at
/// least `times` places (documents for [`Scope::Across`]), found by comparing sets of places.
///
/// ```
/// use arose::passage::Scope;
/// use arose::testing::repeated_passages;
/// let documents = [vec![1, 2, 3, 4], vec![9, 1, 2, 3]];
/// let found = repeated_passages(&documents, 2, 2, Scope::Any);
/// let ranges = found.map(|document| document.iter().map(|o| o.start..o.end).collect::<Vec<_>>());
/// assert_eq!(ranges.collect::<Vec<_>>(), [vec![0..3], vec![1..4]]);
/// ```
pub fn brute_force(
    docs: &[Vec<u64>],
    n_tokens: usize,
    times: u64,
    scope: Scope,
) -> impl Iterator<Item = Vec<Occurrence>> {
    let alone = |doc: usize| {
        let mut others = vec![Vec::new(); docs.len()];
        others[doc].clone_from(&docs[doc]);
        others
    };
    let places = match scope {
        Scope::Within => Vec::new(),
        _ => vec![places_of(docs, n_tokens)],
    };
    (0..docs.len()).map(move |doc| {
        let own = match scope {
            Scope::Within => places_of(&alone(doc), n_tokens),
            _ => BTreeMap::new(),
        };
        let places = places.first().unwrap_or(&own);
        occurrences(&docs[doc], n_tokens, places, |places| match scope {
            Scope::Across => n_docs(places) >= times,
            _ => places.len() as u64 >= times,
        })
    })
}

type Places = BTreeMap<Vec<u64>, Vec<Place>>;

fn places_of(docs: &[Vec<u64>], n_tokens: usize) -> Places {
    let mut places: Places = BTreeMap::new();
    for (doc, tokens) in docs.iter().enumerate() {
        for (token, window) in tokens.windows(n_tokens).enumerate() {
            let place = Place {
                doc: doc as u32,
                token: token as u32,
            };
            places.entry(window.to_vec()).or_default().push(place);
        }
    }
    places
}

fn n_docs(places: &[Place]) -> u64 {
    let mut docs: Vec<u32> = places.iter().map(|place| place.doc).collect();
    docs.dedup();
    docs.len() as u64
}

fn occurrences(
    tokens: &[u64],
    n_tokens: usize,
    places: &Places,
    is_repeated: impl Fn(&[Place]) -> bool,
) -> Vec<Occurrence> {
    let mut found: Vec<Occurrence> = Vec::new();
    let mut before: Option<&Vec<Place>> = None;
    for (start, window) in tokens.windows(n_tokens).enumerate() {
        let here = &places[window];
        let end = (start + n_tokens) as u32;
        let is_shifted = |before: &Vec<Place>| {
            let shifted = before.iter().map(|place| (place.doc, place.token + 1));
            shifted.eq(here.iter().map(|place| (place.doc, place.token)))
        };
        if here.len() < 2 || !is_repeated(here) {
            before = None;
            continue;
        }
        match found.last_mut() {
            Some(last) if before.is_some_and(is_shifted) => last.end = end,
            _ => found.push(Occurrence {
                start: start as u32,
                end,
                count: here.len() as u64,
                first: here[0],
            }),
        }
        before = Some(here);
    }
    found
}

impl Occurrence {
    /// Returns the tokens of a document that `removal` removes, given its occurrences in order.
    #[must_use]
    pub fn removed(
        doc: u32,
        found: &[Self],
        scope: Scope,
        removal: Removal,
    ) -> Vec<std::ops::Range<u32>> {
        let roles = found.iter().map(|one| {
            let place = Place {
                doc,
                token: one.start,
            };
            (one.start..one.end, scope.role(place, one.first))
        });
        removed(roles, removal)
    }
}
