//! Rabin fingerprints of all windows of `w` words of 64 bits.
//!
//! The window slides by `s' = s * x^64 + old * x^(64 w) + new (mod P)`. If the processor multiplies
//! polynomials, that takes two products, summed before one Barrett reduction of two more. Each step
//! depends on the one before, so four parts of the text are processed in parallel to hide the
//! latency. If the processor computes four products at once, short windows do not slide: each is
//! the sum of its words times powers of `x^64`, eight windows at a time, without dependencies. On
//! other processors, the products with the two constants are looked up byte by byte, with sixteen
//! independent lookups per step.

use crate::rabin::Modulus;

/// The longest window that does not slide: it takes as many products as it has words.
#[cfg(target_arch = "x86_64")]
const MAX_AT_ONCE: usize = 12;

/// The constants of sliding.
#[derive(Clone)]
pub(crate) struct Slide {
    w: usize,
    /// `x^64 mod P`, that is, the low coefficients of `P`.
    shift: u64,
    /// `x^(64 w) mod P`.
    leave: u64,
    /// `floor(x^128 / P)` without its leading term.
    barrett: u64,
    /// The factor of each word of a window except the last: `x^(64 (w - 1)) .. x^64 mod P`. Empty
    /// if windows are too long to be computed at once.
    factors: Vec<u64>,
    /// Products of each byte at each place with `shift` and with `leave`.
    tables: Box<[[[u64; 256]; 8]; 2]>,
}

impl Slide {
    pub(crate) fn new(modulus: Modulus, w: usize) -> Self {
        let shift = modulus.power_of(2, 64);
        let leave = modulus.power_of(shift, w);
        let tables = [shift, leave].map(|factor| {
            let place = |byte: usize| modulus.byte_table(modulus.multiply(factor, 1 << (8 * byte)));
            std::array::from_fn(place)
        });
        let n_factors = if w <= MAX_AT_ONCE { w } else { 1 };
        let factors = (1..n_factors).rev();
        let factors = factors.map(|k| modulus.power_of(shift, k)).collect();
        Self {
            w,
            shift,
            leave,
            barrett: modulus.barrett(),
            factors,
            tables: Box::new(tables),
        }
    }

    /// Appends the fingerprint of each window of `tokens`, which contains at least one window.
    pub(crate) fn windows_into(&self, tokens: &[u64], out: &mut Vec<u64>) {
        #[cfg(target_arch = "x86_64")]
        if self.w <= MAX_AT_ONCE
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("pclmulqdq")
        {
            // SAFETY: the processor has the features the function is compiled for, as just checked.
            return unsafe { self.windows_at_once(tokens, out) };
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("pclmulqdq") {
            // SAFETY: the processor multiplies polynomials, as just checked.
            return unsafe { self.windows_multiplied(tokens, out) };
        }
        self.windows_looked_up(tokens, out);
    }

    fn windows_looked_up(&self, tokens: &[u64], out: &mut Vec<u64>) {
        let (first, rest) = tokens.split_at(self.w);
        let mut state = first
            .iter()
            .fold(0, |state, new| self.look_up(0, state) ^ new);
        out.reserve(rest.len() + 1);
        out.push(state);
        out.extend(tokens.iter().zip(rest).map(|(&old, new)| {
            state = self.look_up(0, state) ^ self.look_up(1, old) ^ new;
            state
        }));
    }

    fn look_up(&self, factor: usize, word: u64) -> u64 {
        let places = self.tables[factor].iter().zip(word.to_le_bytes());
        places.fold(0, |sum, (table, byte)| sum ^ table[byte as usize])
    }
}

impl std::fmt::Debug for Slide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slide({} words)", self.w)
    }
}

#[cfg(target_arch = "x86_64")]
mod multiplied {
    use super::Slide;
    use std::arch::x86_64::*;

    /// Parts of a text that slide in parallel.
    const PARTS: usize = 4;

    impl Slide {
        #[target_feature(enable = "pclmulqdq,sse2")]
        pub(super) fn windows_multiplied(&self, tokens: &[u64], out: &mut Vec<u64>) {
            let n_windows = tokens.len() - self.w + 1;
            let begin = out.len();
            out.resize(begin + n_windows, 0);
            let out = &mut out[begin..];
            // Each part is a run of windows. The remainder is left to the last part, which slides
            // alone.
            let part_len = n_windows / PARTS;
            if part_len > self.w {
                let (parts, rest) = out.split_at_mut(PARTS * part_len);
                self.slide_parts(tokens, parts, part_len);
                self.slide_one(&tokens[PARTS * part_len..], rest);
            } else {
                self.slide_one(tokens, out);
            }
        }

        /// Eight windows at a time; the last few slide.
        #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse2")]
        pub(super) fn windows_at_once(&self, tokens: &[u64], out: &mut Vec<u64>) {
            let n_windows = tokens.len() - self.w + 1;
            let begin = out.len();
            out.resize(begin + n_windows, 0);
            let (eights, rest) = out[begin..].as_chunks_mut::<8>();
            for (i, out) in eights.iter_mut().enumerate() {
                let windows = self.eight_windows(&tokens[8 * i..]);
                // SAFETY: the words written are those of `out`, at any alignment.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), windows) };
            }
            self.slide_one(&tokens[8 * eights.len()..], rest);
        }

        /// Returns the first eight windows of `tokens`.
        #[inline]
        #[target_feature(enable = "avx512f,vpclmulqdq")]
        fn eight_windows(&self, tokens: &[u64]) -> __m512i {
            let [mut even, mut odd] = [_mm512_setzero_si512(); 2];
            for (i, &factor) in self.factors.iter().enumerate() {
                let (words, factor) = (eight(&tokens[i..]), _mm512_set1_epi64(factor as i64));
                even = _mm512_xor_si512(even, _mm512_clmulepi64_epi128::<0>(words, factor));
                odd = _mm512_xor_si512(odd, _mm512_clmulepi64_epi128::<1>(words, factor));
            }
            let windows = _mm512_unpacklo_epi64(self.reduce_four(even), self.reduce_four(odd));
            _mm512_xor_si512(windows, eight(&tokens[self.w - 1..]))
        }

        /// As in [`Self::step`], for four sums; returns the low half of each.
        #[inline]
        #[target_feature(enable = "avx512f,vpclmulqdq")]
        fn reduce_four(&self, sums: __m512i) -> __m512i {
            let barrett = _mm512_set1_epi64(self.barrett as i64);
            let quotients = _mm512_clmulepi64_epi128::<1>(sums, barrett);
            let quotients = _mm512_xor_si512(quotients, sums);
            let shift = _mm512_set1_epi64(self.shift as i64);
            _mm512_xor_si512(sums, _mm512_clmulepi64_epi128::<1>(quotients, shift))
        }

        #[target_feature(enable = "pclmulqdq,sse2")]
        fn slide_one(&self, tokens: &[u64], out: &mut [u64]) {
            let Some((first, rest)) = out.split_first_mut() else {
                return;
            };
            let mut state = self.first_window(tokens);
            *first = low(state);
            let steps = tokens.iter().zip(&tokens[self.w..]);
            for (out, (&old, &new)) in rest.iter_mut().zip(steps) {
                state = self.step(state, old, new);
                *out = low(state);
            }
        }

        #[target_feature(enable = "pclmulqdq,sse2")]
        fn slide_parts(&self, tokens: &[u64], out: &mut [u64], part_len: usize) {
            let mut outs = out.chunks_exact_mut(part_len);
            let mut outs: [&mut [u64]; PARTS] =
                std::array::from_fn(|_| outs.next().expect("the output is PARTS times part_len"));
            let part_at = |begin: usize| &tokens[begin..][..part_len];
            let olds: [&[u64]; PARTS] = std::array::from_fn(|part| part_at(part * part_len));
            let news: [&[u64]; PARTS] =
                std::array::from_fn(|part| part_at(part * part_len + self.w - 1));
            let mut states: [__m128i; PARTS] =
                std::array::from_fn(|part| self.first_window(olds[part]));
            for (out, state) in outs.iter_mut().zip(states) {
                out[0] = low(state);
            }
            for i in 1..part_len {
                for part in 0..PARTS {
                    states[part] = self.step(states[part], olds[part][i - 1], news[part][i]);
                    outs[part][i] = low(states[part]);
                }
            }
        }

        #[target_feature(enable = "pclmulqdq,sse2")]
        fn first_window(&self, tokens: &[u64]) -> __m128i {
            let tokens = tokens[..self.w].iter();
            tokens.fold(_mm_setzero_si128(), |state, &new| self.step(state, 0, new))
        }

        /// `state * x^64 + old * x^(64 w) + new`, reduced. The state is the low half; the high half
        /// is arbitrary.
        #[inline]
        #[target_feature(enable = "pclmulqdq,sse2")]
        fn step(&self, state: __m128i, old: u64, new: u64) -> __m128i {
            let shifted = _mm_clmulepi64_si128::<0>(state, word(self.shift));
            let left = _mm_clmulepi64_si128::<0>(word(old), word(self.leave));
            let sum = _mm_xor_si128(shifted, left);
            // Barrett: the high half times `floor(x^128 / P)`, whose leading term contributes the
            // high half itself, is the quotient; the low half differs from quotient times P by the
            // remainder.
            let quotient = _mm_clmulepi64_si128::<1>(sum, word(self.barrett));
            let quotient = _mm_xor_si128(quotient, sum);
            let product = _mm_clmulepi64_si128::<1>(quotient, word(self.shift));
            _mm_xor_si128(_mm_xor_si128(sum, word(new)), product)
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn eight(words: &[u64]) -> __m512i {
        let words: &[u64; 8] = words
            .first_chunk()
            .expect("eight windows have eight words each");
        // SAFETY: the words read are those of the array, at any alignment.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn word(word: u64) -> __m128i {
        _mm_cvtsi64_si128(word as i64)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn low(words: __m128i) -> u64 {
        _mm_cvtsi128_si64(words) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rabin::Rabin;
    use proptest::prelude::*;

    proptest! {
        /// Lengths extend beyond the point at which four parts slide in parallel.
        #[test]
        fn looked_up_equals_multiplied(
            seed in 0_u64..8,
            w in 1_usize..15,
            tokens in prop::collection::vec(any::<u64>(), 15..120),
        ) {
            let slide = Slide::new(Rabin::from_seed(seed).modulus(), w);
            let (mut fast, mut portable) = (Vec::new(), Vec::new());
            slide.windows_into(&tokens, &mut fast);
            slide.windows_looked_up(&tokens, &mut portable);
            prop_assert_eq!(&fast, &portable);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("pclmulqdq") {
                let mut slid = Vec::new();
                // SAFETY: the processor multiplies polynomials, as just checked.
                unsafe { slide.windows_multiplied(&tokens, &mut slid) };
                prop_assert_eq!(&slid, &portable);
            }
        }
    }
}
