//! Phrase search that can be stopped.
//!
//! *Question.* A query searches for a phrase of 250 frequent words in long documents. How can it be
//! stopped, for example when its client is gone?
//!
//! *Idea.* The phrase query of the index library searches for the next match in one step, however
//! many documents that takes and however long they are. This one does the same, and checks whether
//! to continue. It checks before every document that has all words, before every word of the phrase
//! in it, and after [`SEEKS_PER_LOOK`] steps in the lists of documents. A document that has all
//! words contains the phrase if the positions of the words, each minus its place in the phrase,
//! have a number in common.
//!
//! *Cost.* The positions of a document are read once per distinct word, and compared once per place
//! of the phrase. Two steps cannot be stopped: reading the positions of one word in one document,
//! and comparing two lists of positions. Memory: 4 bytes per occurrence of a word of the phrase in
//! one document.

use std::fmt;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{Bm25Weight, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

use crate::collapse::GoOn;

/// Number of steps in lists of documents between two checks whether to continue.
const SEEKS_PER_LOOK: u32 = 1024;

/// Finds documents in which these words of one field, at least two, follow one another.
#[derive(Clone)]
pub(crate) struct Phrase {
    pub(crate) terms: Vec<Term>,
    pub(crate) go_on: GoOn,
}

impl fmt::Debug for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Phrase").field(&self.terms).finish()
    }
}

impl Query for Phrase {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let similarity = match scoring {
            EnableScoring::Enabled {
                statistics_provider,
                ..
            } => Some(Bm25Weight::for_terms(statistics_provider, &self.terms)?),
            EnableScoring::Disabled { .. } => None,
        };
        let phrase = self.clone();
        Ok(Box::new(PhraseWeight { phrase, similarity }))
    }
}

struct PhraseWeight {
    phrase: Phrase,
    similarity: Option<Bm25Weight>,
}

impl Weight for PhraseWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let Some(words) = Words::open(&self.phrase.terms, reader)? else {
            return Ok(Box::new(EmptyScorer));
        };
        let field = self.phrase.terms[0].field();
        let norms = match self.similarity {
            Some(_) => reader.fieldnorms_readers().get_field(field)?,
            None => None,
        };
        let mut scorer = PhraseScorer {
            words,
            starts: Vec::new(),
            doc: 0,
            similarity: self.similarity.as_ref().map(|it| it.boost_by(boost)),
            norms: norms.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1)),
            go_on: self.phrase.go_on.clone(),
        };
        scorer.seek(0);
        Ok(Box::new(scorer))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        let message = "scores of phrases are not explained";
        Err(TantivyError::InvalidArgument(message.to_owned()))
    }
}

/// The words of a phrase in a segment.
struct Words {
    /// The distinct words, those in the fewest documents first.
    lists: Vec<List>,
    /// Each place of the phrase with the number of its word, in word order.
    places: Vec<(u32, usize)>,
    n_seeks: u32,
}

/// The occurrences of a word.
struct List {
    postings: SegmentPostings,
    /// In the document `read`.
    positions: Vec<u32>,
    read: DocId,
}

impl Words {
    /// None if some word occurs in no document.
    fn open(terms: &[Term], reader: &SegmentReader) -> tantivy::Result<Option<Self>> {
        let mut distinct: Vec<&Term> = terms.iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut lists = Vec::with_capacity(distinct.len());
        for term in distinct {
            let inverted = reader.inverted_index(term.field())?;
            let read = IndexRecordOption::WithFreqsAndPositions;
            match inverted.read_postings(term, read)? {
                Some(postings) => lists.push((term, List::new(postings))),
                None => return Ok(None),
            }
        }
        lists.sort_by_key(|(_, list)| list.postings.size_hint());
        let number = |term: &Term| lists.iter().position(|(other, _)| *other == term);
        let places = (0..).zip(terms.iter().filter_map(number));
        let mut places: Vec<(u32, usize)> = places.collect();
        places.sort_by_key(|&(_, word)| word);
        Ok(Some(Self {
            places,
            lists: lists.into_iter().map(|(_, list)| list).collect(),
            n_seeks: 0,
        }))
    }

    /// The first document at or after `target` that has all words; none if the search was stopped.
    fn next_document(&mut self, target: DocId, go_on: &GoOn) -> Option<DocId> {
        let mut candidate = target;
        loop {
            let mut is_in_all = true;
            for list in &mut self.lists {
                self.n_seeks += 1;
                if self.n_seeks.is_multiple_of(SEEKS_PER_LOOK) && !go_on() {
                    return None;
                }
                // A document that a list has passed is not visited again.
                let found = list.postings.seek(candidate.max(list.postings.doc()));
                if found != candidate {
                    candidate = found;
                    is_in_all = false;
                    break;
                }
            }
            if is_in_all || candidate == TERMINATED {
                return Some(candidate);
            }
        }
    }

    /// The positions at which the phrase starts in a document that has all words; none if the
    /// search was stopped.
    fn find_starts(&mut self, doc: DocId, starts: &mut Vec<u32>, go_on: &GoOn) -> Option<()> {
        for (i, &(place, word)) in self.places.iter().enumerate() {
            if !go_on() {
                return None;
            }
            let positions = self.lists[word].positions_in(doc);
            match i {
                0 => {
                    starts.clear();
                    starts.extend(positions.iter().filter_map(|at| at.checked_sub(place)));
                }
                _ => keep_common(starts, positions, place),
            }
            if starts.is_empty() {
                break;
            }
        }
        Some(())
    }
}

impl List {
    fn new(postings: SegmentPostings) -> Self {
        Self {
            postings,
            positions: Vec::new(),
            read: TERMINATED,
        }
    }

    fn positions_in(&mut self, doc: DocId) -> &[u32] {
        if self.read != doc {
            self.postings.positions(&mut self.positions);
            self.read = doc;
        }
        &self.positions
    }
}

/// Keeps the starts for which `start + place` is one of the positions; both ascend.
fn keep_common(starts: &mut Vec<u32>, positions: &[u32], place: u32) {
    let mut positions = positions.iter().peekable();
    starts.retain(|start| {
        let wanted = start + place;
        while positions.next_if(|&&at| at < wanted).is_some() {}
        positions.peek() == Some(&&wanted)
    });
}

struct PhraseScorer {
    words: Words,
    /// The positions at which the phrase starts in the document.
    starts: Vec<u32>,
    doc: DocId,
    similarity: Option<Bm25Weight>,
    norms: FieldNormReader,
    go_on: GoOn,
}

impl PhraseScorer {
    /// The first document at or after `target` that has the phrase; none if the search was stopped.
    fn find(&mut self, mut target: DocId) -> Option<DocId> {
        loop {
            let doc = self.words.next_document(target, &self.go_on)?;
            if doc == TERMINATED {
                return Some(doc);
            }
            self.words.find_starts(doc, &mut self.starts, &self.go_on)?;
            if !self.starts.is_empty() {
                return Some(doc);
            }
            target = doc + 1;
        }
    }
}

impl DocSet for PhraseScorer {
    fn advance(&mut self) -> DocId {
        match self.doc {
            TERMINATED => TERMINATED,
            doc => self.seek(doc + 1),
        }
    }

    /// A stopped search ends here; the collector notices that it was stopped.
    fn seek(&mut self, target: DocId) -> DocId {
        self.doc = match target {
            TERMINATED => TERMINATED,
            target => self.find(target).unwrap_or(TERMINATED),
        };
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.words.lists[0].postings.size_hint()
    }

    fn cost(&self) -> u64 {
        // Positions take more time to read than documents.
        u64::from(self.size_hint()) * 10 * self.words.places.len() as u64
    }
}

impl Scorer for PhraseScorer {
    fn score(&mut self) -> Score {
        let norm = self.norms.fieldnorm_id(self.doc);
        let n = self.starts.len() as u32;
        self.similarity.as_ref().map_or(1.0, |it| it.score(norm, n))
    }
}
