//! Character classes of the tokenizer.

use std::sync::LazyLock;

use icu_properties::props::{Alphabetic, GeneralCategory, Script};
use icu_properties::{CodePointMapData, CodePointSetData};

/// The role of a character in tokenization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CharRole {
    /// Ends a token and belongs to none.
    Separator,
    /// Continues any token and begins none.
    Mark,
    /// Part of a word, as in all scripts with spaces; also decimal digits.
    Word,
    /// One token per character: Han, Hiragana.
    Single,
    /// Runs of Katakana.
    Katakana,
    /// Runs of Hangul.
    Hangul,
    /// Split at grapheme clusters: Thai, Lao, Khmer, Myanmar.
    Cluster,
}

/// Returns the class of a character.
#[inline]
pub(super) fn class(c: char) -> CharRole {
    let code = c as usize;
    if code < BASIC_PLANE {
        BASIC[code]
    } else {
        look_up(c)
    }
}

const BASIC_PLANE: usize = 0x1_0000;

/// The classes of the basic plane, which covers nearly all text: one lookup instead of three.
static BASIC: LazyLock<Box<[CharRole]>> = LazyLock::new(|| {
    let class = |code| char::from_u32(code).map_or(CharRole::Separator, look_up);
    (0..BASIC_PLANE as u32).map(class).collect()
});

fn look_up(c: char) -> CharRole {
    use GeneralCategory as G;
    match CodePointMapData::<GeneralCategory>::new().get(c) {
        G::NonspacingMark | G::SpacingMark | G::EnclosingMark => CharRole::Mark,
        G::DecimalNumber => of_script(c),
        _ if CodePointSetData::new::<Alphabetic>().contains(c) => of_script(c),
        _ => CharRole::Separator,
    }
}

fn of_script(c: char) -> CharRole {
    // Common by script, Katakana by use: the prolonged sound marks and the half-width voicing
    // marks.
    if matches!(c, '\u{30FC}' | '\u{FF70}' | '\u{FF9E}' | '\u{FF9F}') {
        return CharRole::Katakana;
    }
    match CodePointMapData::<Script>::new().get(c) {
        Script::Han | Script::Hiragana => CharRole::Single,
        Script::Katakana => CharRole::Katakana,
        Script::Hangul => CharRole::Hangul,
        Script::Thai | Script::Lao | Script::Khmer | Script::Myanmar => CharRole::Cluster,
        _ => CharRole::Word,
    }
}
