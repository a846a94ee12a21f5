//! Duplicates across agents.
//!
//! *Question.* Each agent compares a page with those that it has fetched itself. Which of its pages
//! duplicate pages of other agents?
//!
//! *Idea.* Two pages that match have a key of their sketches in common ([`Index::keys`]), and a
//! hash of the key selects a partition. So an agent sends the sketch of every page that is new to
//! it to the owners of these partitions, and each of them compares it with those it has received
//! before. Of two pages that match, the one that was fetched later is the duplicate, whoever finds
//! that out, so of many equal pages the first one never counts as a duplicate. The agent that has
//! fetched the duplicate marks it in its archive, where the page already is.
//!
//! *Limits.* The sketches that an agent has received stay in its directory. When a partition gets
//! another owner, pages from before are found only by their other keys. Pages that were sent while
//! the owner was away are sent again a few times.

use std::path::Path;

use arose::mix::mix;
use arose_dedup::index::{self, Index, Settings, Sketch};

use crate::content::Name;

/// A page as agents name it to each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Page {
    pub(crate) url: String,
    pub(crate) payload: String,
    /// When it was fetched, in seconds since 1970.
    pub(crate) date: i64,
}

impl Page {
    fn is_before(&self, other: &Self) -> bool {
        (self.date, &self.url) < (other.date, &other.url)
    }
}

/// A page that is new to the agent that fetched it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewPage {
    pub(crate) page: Page,
    pub(crate) sketch: Sketch,
}

impl NewPage {
    pub(crate) fn of(name: Name<'_>, sketch: Sketch) -> Self {
        let page = Page {
            url: name.url.to_owned(),
            payload: name.payload.to_owned(),
            date: name.date,
        };
        Self { page, sketch }
    }
}

/// What a comparison has found about a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    pub(crate) page: Page,
    /// The page that it duplicates, and how similar they are.
    pub(crate) original: Option<(Page, f32)>,
}

/// Returns the partitions whose owners compare a page with these keys, in ascending order.
pub(crate) fn partitions_of(keys: &[u64]) -> Vec<u8> {
    let mut partitions: Vec<u8> = keys.iter().map(|key| (mix(*key) >> 56) as u8).collect();
    partitions.sort_unstable();
    partitions.dedup();
    partitions
}

/// The sketches that an agent has received.
#[derive(Debug)]
pub(crate) struct Twins {
    index: Index,
}

impl Twins {
    /// Opens the sketches in a directory, which is created if it is missing.
    pub(crate) fn open(folder: &Path, settings: Settings) -> Result<Self, index::Error> {
        let index = match Index::open_with(folder, index::Options::default()) {
            Err(index::Error::NoIndex { .. }) => Index::create(folder, settings)?,
            opened => opened?,
        };
        if *index.settings() == settings {
            return Ok(Self { index });
        }
        // Those of another crawl.
        drop(index);
        std::fs::remove_dir_all(folder).map_err(|source| index::Error::Io {
            what: "remove",
            path: folder.to_owned(),
            source,
        })?;
        let index = Index::create(folder, settings)?;
        Ok(Self { index })
    }

    /// Returns the partitions whose owners compare a page with this sketch.
    pub(crate) fn partitions(&self, sketch: &Sketch) -> Vec<u8> {
        partitions_of(&self.index.keys(sketch).unwrap_or_default())
    }

    /// Compares a page of an agent with those that were received before. Returns what is found,
    /// and about whose page.
    pub(crate) fn compare(
        &self,
        agent: &str,
        new: &NewPage,
    ) -> Result<Vec<(String, Finding)>, index::Error> {
        let matches = self.index.query(&new.sketch)?;
        let known = matches.iter().filter_map(|found| {
            let (name, agent) = found.name.rsplit_once(' ')?;
            let Name { url, payload, date } = Name::parse(name)?;
            let page = Page {
                url: url.to_owned(),
                payload: payload.to_owned(),
                date,
            };
            Some((page, agent, found.similarity as f32))
        });
        let known: Vec<_> = known.collect();
        let is_known = known.iter().any(|(page, ..)| page.url == new.page.url);
        // The first page of all.
        let first = known
            .into_iter()
            .filter(|(page, ..)| page.url != new.page.url)
            .reduce(|a, b| if b.0.is_before(&a.0) { b } else { a });
        let finding = |page: &Page, original| Finding {
            page: page.clone(),
            original,
        };
        if let Some((original, _, similarity)) = &first
            && original.is_before(&new.page)
        {
            let original = Some((original.clone(), *similarity));
            return Ok(vec![(agent.to_owned(), finding(&new.page, original))]);
        }
        if !is_known {
            let Page { url, payload, date } = &new.page;
            let name = format!("{payload} {date} {url} {agent}");
            self.index.insert(&name, &new.sketch)?;
        }
        let mut findings = vec![(agent.to_owned(), finding(&new.page, None))];
        if let Some((later, whose, similarity)) = &first {
            let original = Some((new.page.clone(), *similarity));
            findings.push(((*whose).to_owned(), finding(later, original)));
        }
        Ok(findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Sketcher, settings_of};
    use crate::settings::DuplicatePolicy;

    const TEXT: &str = "Once upon a midnight dreary, while I pondered, weak and weary, over many a \
        quaint and curious volume of forgotten lore, while I nodded, nearly napping, suddenly there";

    fn new_page(url: &str, date: i64, text: &str) -> NewPage {
        let mut sketcher = Sketcher::new(&settings_of(DuplicatePolicy::default()));
        let page = arose_corpus::payload::Page {
            text: text.to_owned(),
            ..Default::default()
        };
        NewPage {
            page: Page {
                url: url.to_owned(),
                payload: "sha1:X".to_owned(),
                date,
            },
            sketch: sketcher.page(&page, "h"),
        }
    }

    /// In whatever order pages come, and wherever they are compared, the earliest one stays, and
    /// every other one is marked.
    #[test]
    fn the_earliest_page_is_the_original() {
        let pages = [
            ("a", new_page("http://a/", 30, TEXT)),
            ("b", new_page("http://b/", 10, TEXT)),
            ("c", new_page("http://c/", 20, TEXT)),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]] {
            let folder = tempfile::tempdir().unwrap();
            let settings = settings_of(DuplicatePolicy::default());
            let twins = Twins::open(folder.path(), settings).unwrap();
            let mut marked = std::collections::BTreeSet::new();
            for at in order {
                let (agent, page) = &pages[at];
                for (whose, finding) in twins.compare(agent, page).unwrap() {
                    if let Some((original, similarity)) = finding.original {
                        assert!(original.is_before(&finding.page));
                        assert!(similarity > 0.99);
                        assert!(finding.page.url.contains(&whose));
                        marked.insert(whose);
                    }
                }
            }
            assert_eq!(marked.into_iter().collect::<Vec<_>>(), ["a", "c"]);
            // A page that is fetched again does not duplicate itself.
            let again = twins.compare("d", &pages[1].1).unwrap();
            assert!(
                again
                    .iter()
                    .all(|(whose, finding)| whose != "d" || finding.original.is_none())
            );
        }
    }

    #[test]
    fn pages_that_match_meet_in_a_partition() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings_of(DuplicatePolicy::default());
        let twins = Twins::open(folder.path(), settings).unwrap();
        let a = twins.partitions(&new_page("http://a/", 1, TEXT).sketch);
        let words = TEXT.replace("dreary", "weary");
        let b = twins.partitions(&new_page("http://b/", 2, &words).sketch);
        assert!(
            a.iter().any(|partition| b.contains(partition)),
            "{a:?} {b:?}"
        );
    }
}
