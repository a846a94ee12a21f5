//! Lower bounds on size, from the result counts that search engines claim.
//!
//! *Question.* There is one search engine and no sample. What do its own counts say about its size?
//!
//! *Idea.* Query pages with any of the most frequent words of several languages: each list by
//! itself, and all lists joined. The largest claim is the bound. Contradictory claims show how
//! reliable they are ([`lower_bound`]).
//!
//! *Cost.* About two requests per list and search engine. *Error.* There is no interval, because
//! nothing is sampled. *Not for* comparing search engines.

use arose::estimate::Method;
use arose::estimate::lower_bound::{Claim, lower_bound};

use super::{Figure, Findings};
use crate::Error;
use crate::engine::{Panel, Question, Reply};

/// The most frequent words of some languages; the lists share no word.
pub const LANGUAGES: [(&str, [&str; 8]); 8] = [
    (
        "English",
        ["the", "of", "and", "to", "is", "that", "for", "with"],
    ),
    (
        "German",
        ["der", "die", "und", "den", "von", "das", "mit", "ist"],
    ),
    (
        "French",
        ["les", "et", "des", "est", "dans", "une", "pour", "qui"],
    ),
    (
        "Spanish",
        ["el", "los", "las", "del", "por", "con", "una", "como"],
    ),
    (
        "Italian",
        ["il", "che", "di", "della", "sono", "anche", "gli", "nel"],
    ),
    (
        "Portuguese",
        ["os", "da", "do", "em", "uma", "não", "ao", "pelo"],
    ),
    (
        "Dutch",
        ["het", "een", "van", "zijn", "niet", "voor", "aan", "ook"],
    ),
    (
        "Polish",
        ["nie", "się", "na", "jest", "że", "jak", "od", "przez"],
    ),
];

/// The bound of every search engine, from these lists of words.
///
/// # Errors
///
/// If a search engine can no longer respond.
pub fn run(panel: &mut Panel, lists: &[Vec<String>], seed: u64) -> Result<Findings, Error> {
    let mut findings = Findings::new(
        "lower-bound",
        "pages that a search engine claims to match; nothing was sampled",
        seed,
    );
    panel.expect(panel.n_engines() as u64);
    for engine in 0..panel.n_engines() {
        let claims = claims(panel, engine, lists)?;
        let name = format!("claimed by {}", panel.name(engine));
        findings.figures.push(match lower_bound(&claims) {
            Err(error) => Figure::refused(name, Method::LowerBound, error),
            Ok(bound) => {
                let n = claims.len() as u64;
                let mut figure = Figure::plain(name, Method::LowerBound, bound.claimed as f64, n);
                figure
                    .notes
                    .push("a lower bound, if the claim is true".to_owned());
                let noise = bound.noise;
                if noise.n_violations > 0 {
                    figure.notes.push(format!(
                        "{} of {} comparable claims contradict each other: some are wrong by at \
                         least {:.0}%; the claim lowered by that is {:.0}",
                        noise.n_violations,
                        noise.n_comparable,
                        100.0 * noise.least_error,
                        bound.cautious()
                    ));
                }
                figure
            }
        });
        panel.advance();
    }
    Ok(findings.finished(panel))
}

/// The claims of a search engine for the first half of each list, for each list, and for more and
/// more lists together.
fn claims(
    panel: &mut Panel,
    engine: usize,
    lists: &[Vec<String>],
) -> Result<Vec<Claim<String>>, Error> {
    let mut questions: Vec<Vec<String>> = Vec::new();
    let mut joined: Vec<String> = Vec::new();
    for list in lists {
        questions.push(list[..list.len().div_ceil(2)].to_vec());
        questions.push(list.clone());
        joined.extend(list.iter().cloned());
        questions.push(joined.clone());
    }
    questions.retain(|words| !words.is_empty());
    questions.dedup();
    let mut claims = Vec::new();
    for words in questions {
        if let Reply::Answer(hits) = &*panel.search(engine, &Question::any(&words))?
            && let Some(count) = hits.claimed
        {
            claims.push(Claim { words, count });
        }
    }
    Ok(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_share_no_word() {
        let mut words: Vec<&str> = LANGUAGES.iter().flat_map(|(_, words)| *words).collect();
        let n = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), n);
    }
}
