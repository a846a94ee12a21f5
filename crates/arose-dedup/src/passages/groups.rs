//! Small groups of classes without ties, compared with each other token by token.
//!
//! A window of such a group contains the selected gram once, so two windows can only be equal if
//! it has the same position in them. Two classes are aligned at their grams and compared to the
//! left and to the right as far as they agree. The windows they have in common are those within. So
//! the windows of a class with the same places are found without looking at each window.

use super::classes::Class;
use super::place_set::PlaceSet;
use super::runs::Run;
use super::spool::SpoolScan;
use super::text::TextReader;
use crate::Error;

/// The classes of a group and the tokens of their first members.
pub(crate) struct Group {
    pub(crate) classes: Vec<Class>,
    /// The number of tokens in a window.
    n_tokens: u32,
    tokens: Vec<Vec<u64>>,
    /// Windows that two classes have in common, as offsets from the first window of one of them,
    /// class by class.
    common: Vec<Common>,
    ends: Vec<u32>,
}

/// Windows of a class that another class of the group has too.
#[derive(Debug, Clone, Copy, Default)]
struct Common {
    /// Offsets from the first window of the class.
    from: u32,
    to: u32,
    /// The offset of `from` in the other class.
    from_there: u32,
}

impl Group {
    pub(crate) fn new(n_tokens: usize) -> Self {
        Self {
            classes: Vec::new(),
            n_tokens: n_tokens as u32,
            tokens: Vec::new(),
            common: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Reads a group of `n_classes` and compares its classes.
    pub(crate) fn read(
        &mut self,
        n_classes: u32,
        classes: &mut SpoolScan<'_, Class>,
        reader: &TextReader,
    ) -> Result<(), Error> {
        let n_classes = n_classes as usize;
        self.classes.clear();
        while self.classes.len() < n_classes {
            let class = classes.next()?;
            self.classes
                .push(class.expect("as many classes as the group says"));
        }
        self.tokens
            .resize_with(self.tokens.len().max(n_classes), Vec::new);
        for (class, tokens) in self.classes.iter().zip(&mut self.tokens) {
            tokens.resize((class.n_windows - 1 + self.n_tokens) as usize, 0);
            reader.tokens_at(class.tokens_at, tokens)?;
        }
        self.common.clear();
        self.common.resize(n_classes * n_classes, Common::default());
        for a in 0..n_classes {
            for b in 0..a {
                let (from, n_windows) = self.shared(a, b);
                for (one, other, i) in [(a, b, 0), (b, a, 1)] {
                    self.common[one * n_classes + other] = Common {
                        from: from[i],
                        to: from[i] + n_windows,
                        from_there: from[1 - i],
                    };
                }
            }
        }
        Ok(())
    }

    /// Returns the first window that two classes have in common, in both, and the number of such
    /// windows.
    fn shared(&self, a: usize, b: usize) -> ([u32; 2], u32) {
        let [(left_a, right_a), (left_b, right_b)] =
            [a, b].map(|i| self.tokens[i].split_at(self.classes[i].lead as usize));
        let before = left_a.iter().rev().zip(left_b.iter().rev());
        let n_before = before.take_while(|(a, b)| a == b).count() as u32;
        let after = right_a.iter().zip(right_b);
        let n_after = after.take_while(|(a, b)| a == b).count() as u32;
        let from = [a, b].map(|i| self.classes[i].lead - n_before);
        (from, (n_before + n_after + 1).saturating_sub(self.n_tokens))
    }

    /// Puts the runs of a class into `runs`, with starts relative to its first window.
    pub(crate) fn runs(&mut self, index: usize, runs: &mut Vec<Run>) {
        runs.clear();
        let class = &self.classes[index];
        let common = &mut self.common[index * self.classes.len()..][..self.classes.len()];
        common[index] = Common {
            from: 0,
            to: class.n_windows,
            from_there: 0,
        };
        self.ends.clear();
        let shared = common.iter().filter(|common| common.from < common.to);
        self.ends
            .extend(shared.flat_map(|common| [common.from, common.to]));
        self.ends.sort_unstable();
        self.ends.dedup();
        for ends in self.ends.windows(2) {
            let (start, end) = (ends[0], ends[1]);
            let mut run = Run {
                doc: 0,
                start,
                n_windows: end - start,
                times: 1,
                step: 0,
                first_doc: u32::MAX,
                first_token: u32::MAX,
                count: 0,
                set: 0,
            };
            let there = common.iter().zip(&self.classes);
            for (common, other) in
                there.filter(|(common, _)| common.from <= start && end <= common.to)
            {
                let offset = common.from_there + (start - common.from);
                let first = (other.doc, other.first + offset);
                (run.first_doc, run.first_token) = first.min((run.first_doc, run.first_token));
                run.count += other.n_members;
                run.set = PlaceSet(run.set).and(PlaceSet(other.set).shifted(offset)).0;
            }
            if run.count > 1 {
                runs.push(run);
            }
        }
    }
}
