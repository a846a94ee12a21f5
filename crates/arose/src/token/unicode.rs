//! The plain tokeniser: character by character over text in NFC.

use icu_casemap::CaseMapper;
use unicode_segmentation::UnicodeSegmentation;

use super::class::{Class, class};
use super::{Case, Spacing};

/// Cuts text into tokens and hands each to its sink.
pub(super) struct Cutter<F> {
    case: Case,
    sink: F,
    /// The token being built, or the whole run for clusters.
    run: String,
    /// The class of the run; a separator when there is none.
    run_class: Class,
}

impl<F: FnMut(&str, Spacing)> Cutter<F> {
    pub(super) fn new(case: Case, sink: F) -> Self {
        Self {
            case,
            sink,
            run: String::new(),
            run_class: Class::Separator,
        }
    }

    /// Cuts a whole text; its ends separate.
    pub(super) fn cut(&mut self, normal_text: &str) {
        for c in normal_text.chars() {
            self.push(c);
        }
        self.end_run();
    }

    fn push(&mut self, c: char) {
        match class(c) {
            Class::Separator => self.end_run(),
            Class::Mark if self.run_class == Class::Separator => {}
            Class::Mark => self.run.push(self.folded(c)),
            class => {
                if class != self.run_class || class == Class::Single {
                    self.end_run();
                    self.run_class = class;
                }
                self.run.push(self.folded(c));
            }
        }
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
            Class::Separator | Class::Mark => return,
            Class::Word => (self.sink)(&self.run, Spacing::Spaced),
            Class::Single | Class::Katakana | Class::Hangul => {
                (self.sink)(&self.run, Spacing::Unspaced);
            }
            Class::Cluster => {
                self.run
                    .graphemes(true)
                    .for_each(|cluster| (self.sink)(cluster, Spacing::Unspaced));
            }
        }
        self.run.clear();
        self.run_class = Class::Separator;
    }
}
