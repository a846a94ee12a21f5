//! Sorts shingles by buckets.

/// Larger buckets are sorted by comparison.
const MAX_INSERTED: usize = 24;

/// Returns the shingles in ascending order, equal ones in text order, and their positions.
///
/// Fingerprints are distributed evenly, so nearly all are at their final position once they are in
/// buckets by their first bits.
pub(super) fn sort(shingles: &[u64]) -> (Vec<u64>, Vec<u32>) {
    let n_bits = shingles.len().max(2).ilog2();
    let bucket = |shingle: u64| (shingle >> (64 - n_bits)) as usize;
    // The position of the next shingle of each bucket; at the end, the end of each bucket.
    let mut places = vec![0_u32; (1 << n_bits) + 1];
    for &shingle in shingles {
        places[bucket(shingle) + 1] += 1;
    }
    let mut total = 0;
    for place in &mut places {
        total += *place;
        *place = total;
    }
    let (mut sorted, mut positions) = (vec![0; shingles.len()], vec![0; shingles.len()]);
    for (&shingle, position) in shingles.iter().zip(0..) {
        let place = &mut places[bucket(shingle)];
        sorted[*place as usize] = shingle;
        positions[*place as usize] = position;
        *place += 1;
    }
    let mut start = 0;
    for &end in &places[..1 << n_bits] {
        let range = start..end as usize;
        sort_bucket(&mut sorted[range.clone()], &mut positions[range]);
        start = end as usize;
    }
    (sorted, positions)
}

fn sort_bucket(shingles: &mut [u64], positions: &mut [u32]) {
    if shingles.len() > MAX_INSERTED {
        let pairs = shingles.iter().copied().zip(positions.iter().copied());
        let mut pairs: Vec<(u64, u32)> = pairs.collect();
        pairs.sort_unstable();
        for (place, (shingle, position)) in pairs.into_iter().enumerate() {
            (shingles[place], positions[place]) = (shingle, position);
        }
        return;
    }
    for end in 1..shingles.len() {
        let mut place = end;
        while place > 0 && shingles[place - 1] > shingles[place] {
            shingles.swap(place - 1, place);
            positions.swap(place - 1, place);
            place -= 1;
        }
    }
}
