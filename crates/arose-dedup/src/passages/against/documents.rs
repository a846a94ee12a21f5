//! Fifth stage: `documents.parquet`, and the spans cut from the corpus.

use std::path::Path;

use arose_corpus::Position;
use serde::{Deserialize, Serialize};

use super::MatchRemoval;
use super::items::{PAIRS, covered, ranges};
use super::matches::{COMMON, SPANS_OF_DOCS, Span};
use crate::names::NameScan;
use crate::passages::anchors::Search;
use crate::passages::config::PassagesConfig;
use crate::passages::cut::{Cut, DROP, DecisionWriter, KEEP};
use crate::passages::documents::Groups;
use crate::passages::read::Read;
use crate::passages::sheet::{Cell, ColumnKind, Head, Sheet};
use crate::passages::text::{TextRecord, Texts};
use crate::source::path_text;
use crate::{Error, Progress};

const HEADS: [Head; 14] = [
    ("doc", ColumnKind::Number, false),
    ("id", ColumnKind::Text, false),
    ("url", ColumnKind::Text, true),
    ("source", ColumnKind::Text, false),
    ("position", ColumnKind::Text, false),
    ("tokens", ColumnKind::Number, false),
    ("covered", ColumnKind::Number, false),
    ("share", ColumnKind::Share, false),
    ("common", ColumnKind::Number, false),
    ("spans", ColumnKind::Number, false),
    ("items", ColumnKind::Number, false),
    ("removed", ColumnKind::Number, false),
    ("left", ColumnKind::Number, false),
    ("kept", ColumnKind::Flag, false),
];

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Documents {
    /// Number of documents that contain an item.
    pub(crate) n_found: u64,
    pub(crate) covered: u64,
    pub(crate) removed: u64,
    pub(crate) removed_bytes: u64,
    pub(crate) n_changed: u64,
    pub(crate) n_dropped: u64,
}

/// Paths of the results of earlier stages.
pub(crate) struct Stages<'a> {
    pub(crate) read: &'a Path,
    pub(crate) matches: &'a Path,
    pub(crate) items: &'a Path,
    pub(crate) out: &'a Path,
}

pub(crate) fn run(
    stages: &Stages<'_>,
    read: &Read,
    search: &Search,
    config: &PassagesConfig,
    is_found: MatchRemoval,
    folder: &Path,
    progress: &Progress,
) -> Result<Documents, Error> {
    let texts = Texts::new(stages.read);
    let mut reader = texts.reader()?;
    let mut spans = Groups::<Span>::open(&stages.matches.join(SPANS_OF_DOCS))?;
    let mut pairs = Groups::<[u32; 2]>::open(&stages.items.join(PAIRS))?;
    let mut names = NameScan::open(stages.read)?;
    let mut docs = texts.docs()?;
    progress.expect(docs.left());
    let mut sheet = Sheet::create(&stages.out.join("documents.parquet"), &HEADS)?;
    let mut decisions = DecisionWriter::create(folder, search.allowance)?;
    let remove = config.removal();
    let mut found = Documents::default();
    let mut doc = 0;
    while let Some(record) = docs.next()? {
        let own = spans.of(doc, |span| span.doc)?;
        let n_items = pairs.of(doc, |pair| pair[0])?.len();
        let here = ranges(&own, 0);
        let (cut, kind) = match is_found {
            MatchRemoval::Drop if here.is_empty() => (Cut::default(), KEEP),
            MatchRemoval::Drop => (Cut::whole(&record), DROP),
            MatchRemoval::Cut => {
                let cut = Cut::of(&here, &record, &mut reader, config.text, &remove)?;
                let kind = cut.kind(&record, &remove);
                (cut, kind)
            }
        };
        found.add(&own, &cut, kind);
        decisions.push(doc, &record, kind, &cut)?;
        let name = names.next()?;
        let TextRecord {
            n_tokens,
            offset,
            inner,
            source,
            ..
        } = record;
        let n_covered = covered(&own, 0);
        let share = f64::from(n_covered) / f64::from(n_tokens.max(1));
        let number = |n: u32| Cell::Number(u64::from(n));
        sheet.push(&[
            number(doc),
            Cell::Text(&name.id),
            Cell::MaybeText(name.url.as_deref()),
            Cell::Text(&path_text(&read.sources[source as usize].path)),
            Cell::Text(&Position { offset, inner }.to_string()),
            number(n_tokens),
            number(n_covered),
            Cell::Share(Some(share)),
            number(covered(&own, COMMON)),
            Cell::Number(here.len() as u64),
            Cell::Number(n_items as u64),
            number(cut.n_tokens),
            number(n_tokens - cut.n_tokens),
            Cell::Flag(kind != DROP),
        ])?;
        doc += 1;
        progress.advance(1)?;
    }
    sheet.finish()?;
    decisions.push_nulls(stages.read)?;
    decisions.finish(folder)?;
    Ok(found)
}

impl Documents {
    fn add(&mut self, spans: &[Span], cut: &Cut, kind: u32) {
        let n_covered = covered(spans, 0);
        self.n_found += u64::from(n_covered > 0);
        self.covered += u64::from(n_covered);
        self.removed += u64::from(cut.n_tokens);
        let bytes = cut.bytes.iter().map(|range| range.end - range.start);
        self.removed_bytes += bytes.map(u64::from).sum::<u64>();
        self.n_changed += u64::from(cut.n_tokens > 0);
        self.n_dropped += u64::from(kind == DROP);
    }
}
