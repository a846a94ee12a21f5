//! What a focus wants to know of a page: its score, its words, and what its links are called.

use std::collections::HashSet;

use arose::focus::Words;
use arose::token::{Tokenizer, fingerprint};
use arose_corpus::{html, payload};

use super::{Job, Reader, Report};
use crate::archive::Note;
use crate::fingerprint::Fingerprint;
use crate::focus::{PageText, Verdict};

/// What a focus knows of a response.
#[derive(Debug)]
pub(crate) struct OnTopic {
    /// Stands for its URL.
    pub(crate) key: u128,
    /// Where the scores are noted.
    pub(crate) note: Note,
    /// The words of the page, and what was said of it; none if it has no text.
    pub(crate) page: Option<(Words, Verdict)>,
    /// Words of anchors that are new here, so that people can read what was learned.
    pub(crate) names: Vec<(u64, Box<str>)>,
}

/// Names of words that a reader remembers to have told.
const MAX_NAMES: usize = 50_000;

/// Names of one page.
const MAX_PAGE_NAMES: usize = 200;

impl Reader {
    /// What a focus wants of every response; none if there is no focus.
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

    /// Takes down words of anchors that were not told before.
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

/// Words that were told.
pub(super) type Named = HashSet<u64>;
