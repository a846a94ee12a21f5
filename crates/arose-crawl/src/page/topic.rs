//! The data that a focus needs of a page: its score, its words, and the words of its links.

use std::collections::HashSet;

use arose::focus::Words;
use arose::token::{Tokenizer, fingerprint};
use arose_corpus::{html, payload};

use super::{Job, Reader, Report};
use crate::archive::Note;
use crate::fingerprint::Fingerprint;
use crate::focus::{Judged, PageText};

/// The data of a response for a focus.
#[derive(Debug)]
pub(crate) struct OnTopic {
    /// The fingerprint of its URL.
    pub(crate) key: u128,
    /// The archive record that the scores belong to.
    pub(crate) note: Note,
    /// The words of the page and its verdict; `None` if it has no text.
    pub(crate) page: Option<(Words, Judged)>,
    /// New words of anchors, so that people can read the learned model.
    pub(crate) names: Vec<(u64, Box<str>)>,
}

/// Maximum number of words that a reader remembers as reported.
const MAX_NAMES: usize = 50_000;

/// Maximum number of new words per page.
const MAX_PAGE_NAMES: usize = 200;

impl Reader {
    /// Returns the data that a focus needs of every response; `None` if there is no focus.
    pub(super) fn on_topic(&self, job: &Job, payload: &str) -> Option<Box<OnTopic>> {
        self.shared.judge.as_ref()?;
        job.ticket?;
        Some(Box::new(OnTopic {
            key: Fingerprint::of(&job.url).key(),
            note: Note::new(job.url.as_str(), job.date, payload),
            page: None,
            names: Vec::new(),
        }))
    }

    /// Judges a page.
    pub(super) fn judge_topic(&mut self, job: &Job, page: &payload::Page, report: &mut Report) {
        let Some(judge) = self.shared.judge.clone() else {
            return;
        };
        let Some(on_topic) = &mut report.on_topic else {
            return;
        };
        let title = page.title.as_deref().unwrap_or_default();
        let words = match title {
            "" => Words::of(&page.text),
            title => Words::of(&format!("{title}\n{}", page.text)),
        };
        let page = PageText {
            url: job.url.as_str(),
            title,
            text: &page.text,
        };
        let verdict = judge.judge(page, &words);
        on_topic.page = Some((words, verdict));
    }

    /// Collects words of anchors that were not reported before.
    pub(super) fn name_words(&mut self, metadata: &html::Metadata, report: &mut Report) {
        let (Some(anchors), Some(on_topic)) = (&metadata.anchors, &mut report.on_topic) else {
            return;
        };
        let named = &mut self.named;
        for (anchor, _) in anchors.iter() {
            if named.len() >= MAX_NAMES || on_topic.names.len() >= MAX_PAGE_NAMES {
                return;
            }
            Tokenizer::default().for_each(anchor, |word| {
                let word_key = fingerprint(word.as_bytes());
                if word.chars().any(char::is_alphabetic) && named.insert(word_key) {
                    on_topic.names.push((word_key, word.into()));
                }
            });
        }
    }
}

/// Words that were reported.
pub(super) type Named = HashSet<u64>;
