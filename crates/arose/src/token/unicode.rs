//! The reference tokenizer: character by character over text in NFC.

use std::ops::Range;

use icu_casemap::CaseMapper;
use unicode_segmentation::UnicodeSegmentation;

use super::class::{CharRole, class};
use super::{Case, Spacing};

/// Splits text into tokens and passes each to its sink, with its position in the text.
pub(super) struct Cutter<F> {
    case: Case,
    sink: F,
    /// The token being built, or the whole run for clusters.
    run: String,
    /// The class of the run; a separator if there is no run.
    run_class: CharRole,
    /// The position of the run in the text.
    place: Range<usize>,
}

impl<F: FnMut(&str, Spacing, Range<usize>)> Cutter<F> {
    pub(super) fn new(case: Case, sink: F) -> Self {
        Self {
            case,
            sink,
            run: String::new(),
            run_class: CharRole::Separator,
            place: 0..0,
        }
    }

    /// Splits a whole text. No token extends beyond its ends.
    pub(super) fn cut(&mut self, normal_text: &str) {
        for (at, c) in normal_text.char_indices() {
            self.push(at, c);
        }
        self.end_run();
    }

    fn push(&mut self, at: usize, c: char) {
        match class(c) {
            CharRole::Separator => self.end_run(),
            CharRole::Mark if self.run_class == CharRole::Separator => {}
            CharRole::Mark => self.extend(at, c),
            class => {
                if class != self.run_class || class == CharRole::Single {
                    self.end_run();
                    self.run_class = class;
                    self.place.start = at;
                }
                self.extend(at, c);
            }
        }
    }

    fn extend(&mut self, at: usize, c: char) {
        self.run.push(self.folded(c));
        self.place.end = at + c.len_utf8();
    }

    fn folded(&self, c: char) -> char {
        match self.case {
            Case::Keep => c,
            Case::Fold if c.is_ascii() => c.to_ascii_lowercase(),
            Case::Fold => CaseMapper::new().simple_fold(c),
        }
    }

    fn end_run(&mut self) {
        match self.run_class {
            CharRole::Separator | CharRole::Mark => return,
            CharRole::Word => (self.sink)(&self.run, Spacing::Spaced, self.place.clone()),
            CharRole::Single | CharRole::Katakana | CharRole::Hangul => {
                (self.sink)(&self.run, Spacing::Unspaced, self.place.clone());
            }
            CharRole::Cluster => {
                // Case folding does not change the length of text in these scripts.
                for (at, cluster) in self.run.grapheme_indices(true) {
                    let start = self.place.start + at;
                    let place = start..start + cluster.len();
                    (self.sink)(cluster, Spacing::Unspaced, place);
                }
            }
        }
        self.run.clear();
        self.run_class = CharRole::Separator;
    }
}
