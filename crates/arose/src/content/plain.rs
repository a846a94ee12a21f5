//! The reference implementation of the score, for tests.

use std::collections::HashMap;

use super::{Content, Score};

/// Returns the score of two texts by the definition: the reference implementation that
/// [`Scorer`](super::Scorer) must equal. Quadratic.
#[must_use]
pub fn score_plain(a: &Content, b: &Content) -> Score {
    Score::of_chain(&a.weights, &b.weights, &chain_plain(a, b))
}

/// Returns the chain of two texts by the definition.
pub(super) fn chain_plain(a: &Content, b: &Content) -> Vec<(u32, u32)> {
    let points = matches_plain(a, b);
    let precedes = |p: &Point, q: &Point| p.i < q.i && p.j < q.j;
    // The longest chain that begins at each point, from the last.
    let mut lengths = vec![0; points.len()];
    for place in (0..points.len()).rev() {
        let later = place + 1..points.len();
        let later = later.filter(|&other| precedes(&points[place], &points[other]));
        lengths[place] = 1 + later.map(|other| lengths[other]).max().unwrap_or(0);
    }
    let mut chain: Vec<&Point> = Vec::new();
    for length in (1..=lengths.iter().copied().max().unwrap_or(0)).rev() {
        let of_length = points.iter().zip(&lengths);
        let of_length = of_length.filter(|(_, own)| **own == length);
        let next = of_length
            .map(|(point, _)| point)
            .filter(|point| chain.last().is_none_or(|last| precedes(last, point)))
            .min_by_key(|point| (u64::from(point.i) + u64::from(point.j), point.shingle));
        chain.extend(next);
    }
    chain.iter().map(|point| (point.i, point.j)).collect()
}

/// A match of two positions.
pub(super) struct Point {
    pub(super) i: u32,
    pub(super) j: u32,
    pub(super) shingle: u64,
}

/// Returns all matches, by position in the first text.
pub(super) fn matches_plain(a: &Content, b: &Content) -> Vec<Point> {
    let in_order = |content: &Content| -> Vec<u64> {
        let mut shingles = vec![0; content.len()];
        for (&shingle, &position) in content.shingles.iter().zip(&content.positions) {
            shingles[position as usize] = shingle;
        }
        shingles
    };
    let mut places: HashMap<(u64, usize), u32> = HashMap::new();
    let mut times: HashMap<u64, usize> = HashMap::new();
    for (shingle, position) in in_order(b).into_iter().zip(0..) {
        let n = times.entry(shingle).or_default();
        places.insert((shingle, *n), position);
        *n += 1;
    }
    times.clear();
    let mut points = Vec::new();
    for (shingle, i) in in_order(a).into_iter().zip(0..) {
        let n = times.entry(shingle).or_default();
        if let Some(&j) = places.get(&(shingle, *n)) {
            points.push(Point { i, j, shingle });
        }
        *n += 1;
    }
    points
}
