//! Bounds on the number of listed pairs of exact duplicates.

/// Average number of pairs to list per document, up to which exact duplicates are multiplied.
pub(crate) const PAIRS_PER_DOC: u64 = 64;

/// The number of document pairs that the pairs of contents represent, by magnitude.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Products(pub(crate) [u64; 64]);

impl Default for Products {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Products {
    pub(crate) fn count(&mut self, product: u64) {
        let bucket = &mut self.0[product.ilog2() as usize];
        *bucket = bucket.saturating_add(product);
    }

    /// Returns the largest product that is listed in full.
    pub(crate) fn limit(&self, n_docs: u64) -> u64 {
        let budget = PAIRS_PER_DOC * n_docs + (1 << 20);
        let mut total = 0_u64;
        for (magnitude, n_pairs) in self.0.into_iter().enumerate() {
            total = total.saturating_add(n_pairs);
            // Products of one are the pairs themselves, which are always listed.
            if total > budget && magnitude > 0 {
                return (1 << magnitude) - 1;
            }
        }
        u64::MAX
    }
}
