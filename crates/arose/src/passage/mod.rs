//! Passages: token sequences that occur more than once, and their removal.
//!
//! *Question.* Which parts of the documents of a corpus also occur elsewhere, and what is left of a
//! text without them?
//!
//! *Idea.* "All maximal repeats" is quadratic, and merging overlapping repeats gives strings that
//! occur once. Instead, look at windows of `T` tokens. A window is *repeated* if an identical one
//! occurs at another place. Two neighbouring windows are *joined* if they occur at exactly the same
//! places, shifted by one, and a *passage* is the string of a maximal run of joined windows. So
//! each repeated window lies in exactly one passage, and a passage occurs as often as each of its
//! windows. Two windows are joined if all places of the first are followed by the same token and
//! all places of the second are preceded by the same token. This needs no sets of places.
//!
//! [`RollingHash`] hashes all grams of a text in constant time each, [`crate::winnow::anchors`]
//! selects some of them, and [`crate::testing::repeated_passages`] follows the definition.
//! [`removed`] determines which tokens to cut, [`Cells`] which bytes, and [`units`] finds lines,
//! paragraphs and sentences. [`Reference`] finds the windows of a few texts in others.
//!
//! *Paper.* Schleimer, Wilkerson & Aiken 2003 (winnowing); Lee et al. 2022 (removal of repeated
//! substrings).
//!
//! *Parameters.* The length `T` of a window, [`DEFAULT_TOKENS`] by default, at most [`MAX_TOKENS`];
//! grams of [`gram_length`] tokens.
//!
//! *Cost.* One scan of the text, and one record for each anchor that shares its hash with another.
//! *Error.* No repetition of at least `T` tokens is missed, whatever the hash of grams. Windows are
//! compared by 122 bits, and then token by token.
//!
//! *Not for* passages with changed words: only exact repetition of the tokens counts.

mod cells;
mod cuts;
mod reference;
mod rolling;
pub(crate) mod search;
mod units;

pub use cells::{Cells, without};
pub use cuts::{Removal, Role, removed};
pub use reference::{
    BYTES_PER_WINDOW, Builder as ReferenceBuilder, Hit, Joiner, MIN_WHOLE, Reference, SharedRun,
    WholeItems,
};
pub use rolling::{RollingHash, WindowHash};
pub use search::{Occurrence, Place, Scope};
pub use units::{Unit, units};

use crate::Error;

/// The default length of a window in tokens (Lee et al. 2022).
pub const DEFAULT_TOKENS: usize = 50;
/// The largest length of a window.
pub const MAX_TOKENS: usize = 1 << 16;

/// Returns the number of tokens in a gram for windows of `n_tokens`: half of them, rounded up.
#[must_use]
pub const fn gram_length(n_tokens: usize) -> usize {
    n_tokens.div_ceil(2)
}

/// Checks the length of a window.
///
/// # Errors
///
/// Returns an error if it is zero or greater than [`MAX_TOKENS`].
pub fn check_length(name: &'static str, n_tokens: usize) -> Result<usize, Error> {
    match n_tokens {
        1..=MAX_TOKENS => Ok(n_tokens),
        _ => Err(Error::parameter(name, n_tokens, "1 to 65536")),
    }
}

#[cfg(test)]
mod tests;
