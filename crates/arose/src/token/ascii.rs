//! The optimized tokenizer: vectorized for ASCII, the reference implementation for the rest.
//!
//! A token of up to 16 ASCII bytes takes two loads, two masks against the bytes that follow it, and
//! setting the case bit (which does not change digits, since theirs is already set).
//!
//! The tokens equal those of the reference implementation for this reason. An ASCII character is
//! never the second half of a composition, and no composition extends across one. So NFC can be
//! applied separately on both sides of the boundary before it. Hence a stretch that begins with the
//! token (or the character) that contains the first non-ASCII byte, and ends before the next ASCII
//! separator, contains whole tokens and can be normalized separately. Compositions of the
//! separators `<`, `=`, `>` with U+0338 are separators as well, and U+0338 alone begins no token,
//! so they need not be in the same stretch.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use icu_normalizer::ComposingNormalizerBorrowed;

use super::unicode::Cutter;
use super::{Case, Spacing, fingerprint, fingerprint_words, words};
use crate::simd;
use crate::simd::fingerprint::{Batch, Found, Hashing, LENGTH_MASKS};

thread_local! {
    /// The batch of each thread, so that its 6 kB are not cleared for every text.
    static BATCH: RefCell<Batch> = const { RefCell::new(Batch::new()) };
}

/// Appends the fingerprints of the tokens of `text`, and the beginning of each if they are wanted;
/// returns how many belong to unspaced scripts.
pub(super) fn fingerprints_into(
    case: Case,
    text: &str,
    out: &mut Vec<u64>,
    mut starts: Option<&mut Vec<u32>>,
) -> usize {
    // English has a token every six bytes; one growth then mostly suffices.
    out.reserve(text.len() / 6);
    if let Some(starts) = &mut starts {
        starts.reserve(text.len() / 6);
    }
    let hashing = Hashing {
        case_bits: case_bits(case),
        slow: match case {
            Case::Fold => folded,
            Case::Keep => fingerprint,
        },
    };
    let mut found = Found {
        tokens: out,
        starts,
        offset: 0,
    };
    BATCH.with_borrow_mut(|batch| {
        let mut n_unspaced = 0;
        let mut rest = text;
        while !rest.is_empty() {
            found.offset = text.len() - rest.len();
            let bytes = rest.as_bytes();
            let ascii_len = batch.hash(bytes, hashing, &mut found);
            let stretch = unicode_stretch(&bytes[ascii_len..]);
            let (stretch, after) = rest[ascii_len..].split_at(stretch);
            found.offset += ascii_len;
            n_unspaced += of_unicode(case, stretch, &mut found);
            rest = after;
        }
        n_unspaced
    })
}

#[inline]
fn of_ascii(case: Case, bytes: &[u8], start: usize, end: usize) -> u64 {
    let case_bits = case_bits(case);
    let len = end - start;
    match bytes[start..].first_chunk() {
        Some(window) if len <= 16 => {
            let [low, high] = words(window);
            let [low_mask, high_mask] = LENGTH_MASKS[len];
            fingerprint_words((low | case_bits) & low_mask, (high | case_bits) & high_mask)
        }
        _ => of_ascii_slow(case, &bytes[start..end]),
    }
}

/// Returns the bits that case folding sets in each byte.
fn case_bits(case: Case) -> u64 {
    match case {
        Case::Fold => 0x2020_2020_2020_2020,
        Case::Keep => 0,
    }
}

/// Returns the fingerprint of a long token, or of one within 16 bytes of the end of the text.
#[cold]
fn of_ascii_slow(case: Case, token: &[u8]) -> u64 {
    match case {
        Case::Fold => folded(token),
        Case::Keep => fingerprint(token),
    }
}

/// Returns the fingerprint of an ASCII token in lower case.
fn folded(token: &[u8]) -> u64 {
    let mut room = [0; 64];
    match room.get_mut(..token.len()) {
        Some(folded) => {
            folded.copy_from_slice(token);
            folded.make_ascii_lowercase();
            fingerprint(folded)
        }
        None => fingerprint(&token.to_ascii_lowercase()),
    }
}

/// Calls `sink` with each normalized token of `text` and its position.
pub(super) fn for_each_place(case: Case, text: &str, mut sink: impl FnMut(&str, Range<usize>)) {
    let mut folded = String::new();
    let mut start = 0;
    while start < text.len() {
        let rest = &text[start..];
        let ascii_len = simd::ascii::words(rest.as_bytes(), |from, to| {
            folded.clear();
            folded.push_str(&rest[from..to]);
            if case == Case::Fold {
                folded.make_ascii_lowercase();
            }
            sink(&folded, start + from..start + to);
        });
        start += ascii_len;
        let stretch = &rest[ascii_len..];
        let stretch = &stretch[..unicode_stretch(stretch.as_bytes())];
        places_of_unicode(case, stretch, start, &mut sink);
        start += stretch.len();
    }
}

/// Calls `sink` with the fingerprint of the first `max_bytes` of each token, and its position.
pub(super) fn for_each_fingerprint(
    case: Case,
    text: &str,
    max_bytes: usize,
    mut sink: impl FnMut(u64, Range<usize>),
) {
    let mut start = 0;
    while start < text.len() {
        let rest = &text[start..];
        let bytes = rest.as_bytes();
        let ascii_len = simd::ascii::words(bytes, |from, to| {
            let end = to.min(from.saturating_add(max_bytes));
            sink(of_ascii(case, bytes, from, end), start + from..start + to);
        });
        start += ascii_len;
        let stretch = &rest[ascii_len..];
        let stretch = &stretch[..unicode_stretch(stretch.as_bytes())];
        places_of_unicode(case, stretch, start, |token, place| {
            let end = token.floor_char_boundary(max_bytes);
            sink(fingerprint(&token.as_bytes()[..end]), place);
        });
        start += stretch.len();
    }
}

/// Calls `sink` with the tokens of a stretch that begins at `start`. If it had to be normalized to
/// NFC, they all have the position of the stretch.
fn places_of_unicode(
    case: Case,
    stretch: &str,
    start: usize,
    mut sink: impl FnMut(&str, Range<usize>),
) {
    let normal = ComposingNormalizerBorrowed::new_nfc().normalize(stretch);
    let is_same = matches!(normal, Cow::Borrowed(_));
    Cutter::new(case, |token: &str, _, place: Range<usize>| {
        let place = match is_same {
            true => start + place.start..start + place.end,
            false => start..start + stretch.len(),
        };
        sink(token, place);
    })
    .cut(&normal);
}

/// Returns the length of the stretch up to the first ASCII separator.
fn unicode_stretch(bytes: &[u8]) -> usize {
    let separates = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
    bytes.iter().position(separates).unwrap_or(bytes.len())
}

/// Appends the tokens of a stretch. If it had to be normalized to NFC, they all begin where the
/// stretch does.
fn of_unicode(case: Case, stretch: &str, found: &mut Found<'_>) -> usize {
    let normal = ComposingNormalizerBorrowed::new_nfc().normalize(stretch);
    let is_same = matches!(normal, Cow::Borrowed(_));
    let mut n_unspaced = 0;
    Cutter::new(case, |token: &str, spacing, place: Range<usize>| {
        found.tokens.push(fingerprint(token.as_bytes()));
        n_unspaced += usize::from(spacing == Spacing::Unspaced);
        if let Some(starts) = &mut found.starts {
            let start = if is_same { place.start } else { 0 };
            starts.push((found.offset + start) as u32);
        }
    })
    .cut(&normal);
    n_unspaced
}
