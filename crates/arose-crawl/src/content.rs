//! The duplicate-content checker: finds pages that were fetched before under another URL.
//!
//! *Question.* A quarter of the pages that a crawl fetches are duplicates: mirrors, session IDs in
//! URLs, the same text under two headings. Which pages, of which other pages, and by which rule?
//!
//! *Idea.* Three comparisons, in this order: same bytes (digest of the payload), same text (digest
//! of the normalized text), near-duplicate text. The last one uses a policy of `arose dedup`:
//! `jaccard` or, at the level `same`, `content`. So `arose dedup` has little left to drop from an
//! archive. The last two are lookups in the online index ([`arose_dedup::index`]), which
//! keeps a sketch of every page that is not a duplicate and survives the process. The first page
//! with a content is the original of all that follow. The index identifies it by its URL, its
//! digest and the time of its response. Short pages are never near duplicates.
//!
//! *Cost.* A page takes about 465 bytes on the disk. Under the policy `content`, it takes a record
//! of 1,260 bytes, 48 keys of 4.1 bytes and the keys of its counted word pairs in the log, and the
//! crawl three times the CPU time. *Error.* That of the policy, which `arose evaluate` measures.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use arose::digest::Digest;
use arose::rule::{Criterion, Remove};
use arose::simhash::Fingerprint384;
use arose::token::{Tokenizer, Tokens};
use arose_corpus::payload::Page;
use arose_dedup::Config;
use arose_dedup::index::{self, Committed, Index, Options, Seen, Settings, Sketch};

use crate::cluster::twins::NewPage;
use crate::pages;
use crate::settings::DuplicatePolicy;

/// Computes sketches; reuses its memory from page to page.
#[derive(Debug)]
pub(crate) struct Sketcher {
    tokenizer: Tokenizer,
    sketcher: index::Sketcher,
    tokens: Tokens,
    visible: String,
}

impl Sketcher {
    /// Makes one for the index of a crawl.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            tokenizer: Tokenizer::default(),
            sketcher: index::Sketcher::new(settings),
            tokens: Tokens::default(),
            visible: String::new(),
        }
    }

    /// Returns the sketch of a page of a host. As in `arose dedup`, near duplicates are found by
    /// their visible text. The digest also covers links and images, so equal text with other links
    /// is not an exact duplicate.
    pub(crate) fn page(&mut self, page: &Page, host: &str) -> Sketch {
        self.tokens.clear();
        let metadata = page.metadata.as_deref();
        let text = match metadata.and_then(|metadata| metadata.visibility.as_deref()) {
            Some(visibility) => {
                self.visible.clear();
                visibility.cut(&page.text, &mut self.visible);
                &self.visible
            }
            None => &page.text,
        };
        self.tokens.push_text(&self.tokenizer, text);
        let digest = page.content_digest();
        self.sketcher
            .sketch_of_tokens(&self.tokens, digest, Some(host))
    }

    /// Returns the sketch that shows whether another version of the last sketched page differs in
    /// more than noise.
    pub(crate) fn version(&self) -> pages::Sketch {
        pages::Sketch::of(Fingerprint384::of(&self.tokens.fingerprints))
    }

    /// Returns the sketch of a response that is not text: only equal bytes make duplicates.
    pub(crate) fn bytes(&self, body: &[u8]) -> Sketch {
        // Distinct from all digests of texts.
        let digest = Digest(Digest::of_bytes(body).0 ^ 1);
        Sketch::of_digest(digest)
    }
}

/// A page that was fetched before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Original {
    /// Its URL.
    pub(crate) url: String,
    /// The digest of its payload.
    pub(crate) payload: String,
    /// When it was fetched, in seconds since 1970.
    pub(crate) date: i64,
    /// The rule that matched.
    pub(crate) rule: &'static str,
    /// The similarity of the two pages, 1 for the same content.
    pub(crate) similarity: f64,
    /// With the policy `content`, the number of pages of the site that the decision is based on.
    pub(crate) site_pages: Option<u64>,
}

/// Returns the settings of the index of a crawl with this policy: those with which a run with that
/// policy decides.
pub(crate) fn settings_of(policy: DuplicatePolicy) -> Settings {
    let mut config = Config::default();
    config.policy.criterion = match policy {
        DuplicatePolicy::Jaccard => Criterion::jaccard(),
        DuplicatePolicy::Content => Criterion::Content(Remove::Same),
    };
    Settings::agreeing_with(&config)
}

/// A page as the index identifies it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name<'a> {
    pub(crate) url: &'a str,
    pub(crate) payload: &'a str,
    pub(crate) date: i64,
}

impl Name<'_> {
    /// Returns the name as stored in the index.
    fn key(&self) -> String {
        format!("{} {} {}", self.payload, self.date, self.url)
    }

    pub(crate) fn parse(key: &str) -> Option<Name<'_>> {
        let mut parts = key.splitn(3, ' ');
        Some(Name {
            payload: parts.next()?,
            date: parts.next()?.parse().ok()?,
            url: parts.next()?,
        })
    }
}

/// All pages that are not duplicates.
#[derive(Debug)]
pub(crate) struct Contents {
    index: Index,
    /// Claims for pages that were compared and may not be in the archive yet. Maps rows to numbers
    /// of pages; the row of a claim is at most the row that its page gets. Locked only to change a
    /// number.
    claims: Mutex<BTreeMap<u32, u32>>,
    /// Pages that are not duplicates and of which other agents are to be told, if there are any.
    /// Locked only to add to them and to take them.
    new_pages: OnceLock<Mutex<Vec<NewPage>>>,
}

/// While a page has a claim, it counts as not archived.
pub(crate) type Claim = u32;

impl Contents {
    /// Opens the index in a directory, of which this much was on the disk, or creates an empty one
    /// with these settings.
    pub(crate) fn open(
        folder: &Path,
        committed: Committed,
        settings: Settings,
    ) -> Result<Self, index::Error> {
        let options = Options {
            committed: Some(committed),
            ..Options::default()
        };
        let index = match Index::open_with(folder, options) {
            Err(index::Error::NoIndex { .. }) => Index::create(folder, settings),
            opened => opened,
        };
        Ok(Self {
            index: index?,
            claims: Mutex::default(),
            new_pages: OnceLock::new(),
        })
    }

    /// Returns the settings of sketches and of the policy.
    pub(crate) fn settings(&self) -> &Settings {
        self.index.settings()
    }

    /// Keeps pages that are not duplicates until they are taken, to tell other agents of them.
    pub(crate) fn share(&self) {
        self.new_pages.get_or_init(Mutex::default);
    }

    /// Takes the pages that were found not to be duplicates since the last call.
    pub(crate) fn take_new(&self) -> Vec<NewPage> {
        let pages = self.new_pages.get().map(|pages| pages.lock());
        let pages = pages.map(|pages| pages.unwrap_or_else(PoisonError::into_inner));
        pages.map_or(Vec::new(), |mut pages| std::mem::take(&mut *pages))
    }

    /// Takes a claim. Call this before a page is compared, and [`Self::give_back`] when its record
    /// is in the archive.
    pub(crate) fn claim(&self) -> Result<Claim, index::Error> {
        let mut claims = self.claims();
        let row = self.index.next_row()?;
        *claims.entry(row).or_default() += 1;
        Ok(row)
    }

    pub(crate) fn give_back(&self, claim: Claim) {
        let mut claims = self.claims();
        if let Some(n) = claims.get_mut(&claim) {
            *n -= 1;
            if *n == 0 {
                claims.remove(&claim);
            }
        }
    }

    /// Returns the row below which all pages are in the archive.
    pub(crate) fn archived_below(&self) -> Result<u32, index::Error> {
        let claims = self.claims();
        let next = self.index.next_row()?;
        let first = claims.keys().next().copied();
        Ok(first.map_or(next, |first| first.min(next)))
    }

    fn claims(&self) -> MutexGuard<'_, BTreeMap<u32, u32>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names that the index has for the pages from a row on.
    pub(crate) fn names_from(&self, row: u32) -> Result<Vec<String>, index::Error> {
        self.index.names_from(row)
    }

    /// Forgets a page whose record a crash cut off.
    pub(crate) fn forget(&self, key: &str) -> Result<(), index::Error> {
        self.index.remove(key).map(|_| ())
    }

    /// Returns how much of the log is on the disk.
    pub(crate) fn committed(&self) -> Result<Committed, index::Error> {
        self.index.committed()
    }

    /// Like [`Contents::judge`]. Also stores the payload of a near duplicate, by the sketch of its
    /// bytes. A page with exactly the same payload then duplicates that page and not the one that
    /// both resemble.
    pub(crate) fn judge_payload(
        &self,
        name: Name<'_>,
        sketch: &Sketch,
        bytes: impl FnOnce() -> Sketch,
    ) -> Result<Option<Original>, index::Error> {
        let original = self.judge(name, sketch)?;
        if let (None, Some(pages)) = (&original, self.new_pages.get()) {
            let page = NewPage::of(name, sketch.clone());
            pages
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(page);
        }
        if original
            .as_ref()
            .is_none_or(|original| original.payload == name.payload)
        {
            return Ok(original);
        }
        let same = self.judge(name, &bytes())?;
        Ok(same
            .filter(|same| same.payload == name.payload)
            .or(original))
    }

    /// Returns the page that this one duplicates. If there is none, adds this page to the index.
    ///
    /// After a crash, a page that is already in the index may be fetched again. It does not
    /// duplicate itself.
    pub(crate) fn judge(
        &self,
        name: Name<'_>,
        sketch: &Sketch,
    ) -> Result<Option<Original>, index::Error> {
        let Seen::Known(matches) = self.index.query_or_insert(&name.key(), sketch)? else {
            return Ok(None);
        };
        let original = matches.iter().find_map(|found| {
            let other = Name::parse(&found.name)?;
            (other.url != name.url).then(|| Original {
                url: other.url.to_owned(),
                payload: other.payload.to_owned(),
                date: other.date,
                rule: found.rule.as_str(),
                similarity: found.similarity,
                site_pages: found.content.map(|scores| scores.n_site_pages),
            })
        });
        let is_itself = matches
            .iter()
            .any(|found| Name::parse(&found.name).is_some_and(|other| other.url == name.url));
        Ok(original.filter(|_| !is_itself))
    }

    /// Returns when the whole index is on the disk.
    pub(crate) fn sync(&self) -> Result<(), index::Error> {
        self.index.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Once upon a midnight dreary, while I pondered, weak and weary, over many a \
        quaint and curious volume of forgotten lore, while I nodded, nearly napping, suddenly there";

    fn page(text: &str) -> Page {
        Page {
            text: text.to_owned(),
            ..Page::default()
        }
    }

    fn name(url: &str) -> Name<'_> {
        Name {
            url,
            payload: "sha1:X",
            date: 7,
        }
    }

    #[test]
    fn originals_survive_and_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contents");
        let mut sketcher = Sketcher::new(&settings_of(DuplicatePolicy::default()));
        let sketch = sketcher.page(&page(TEXT), "h");
        let contents = Contents::open(
            &path,
            Committed::default(),
            settings_of(DuplicatePolicy::default()),
        )
        .unwrap();
        assert_eq!(contents.judge(name("http://h/1"), &sketch).unwrap(), None);
        drop(contents);
        let contents = Contents::open(
            &path,
            Committed::default(),
            settings_of(DuplicatePolicy::default()),
        )
        .unwrap();
        let found = contents
            .judge(name("http://h/2"), &sketch)
            .unwrap()
            .unwrap();
        assert_eq!(
            (found.url.as_str(), found.date, found.rule),
            ("http://h/1", 7, "exact")
        );
        // The same page again, after a crash.
        assert_eq!(contents.judge(name("http://h/1"), &sketch).unwrap(), None);
        let other = sketcher.page(&page("something else"), "h");
        assert_eq!(contents.judge(name("http://h/3"), &other).unwrap(), None);
    }

    /// A page with the same text as another in other bytes, and then the same bytes again.
    #[test]
    fn payloads_of_duplicates_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let contents = Contents::open(
            folder.path(),
            Committed::default(),
            settings_of(DuplicatePolicy::default()),
        )
        .unwrap();
        let mut sketcher = Sketcher::new(&settings_of(DuplicatePolicy::default()));
        let sketch = sketcher.page(&page(TEXT), "h");
        let judge = |url, payload: &str| {
            let date = 7;
            let name = Name { url, payload, date };
            let bytes = || sketcher.bytes(payload.as_bytes());
            let found = contents.judge_payload(name, &sketch, bytes).unwrap();
            found.map(|original| original.url)
        };
        assert_eq!(judge("http://h/1", "sha1:A"), None);
        assert_eq!(judge("http://h/2", "sha1:B").as_deref(), Some("http://h/1"));
        assert_eq!(judge("http://h/3", "sha1:B").as_deref(), Some("http://h/2"));
        assert_eq!(judge("http://h/4", "sha1:A").as_deref(), Some("http://h/1"));
    }

    /// Pages that were compared and not archived hold back the archived row, in any order.
    #[test]
    fn claims_hold_back_what_counts_as_archived() {
        let folder = tempfile::tempdir().unwrap();
        let contents = Contents::open(
            folder.path(),
            Committed::default(),
            settings_of(DuplicatePolicy::default()),
        )
        .unwrap();
        let sketcher = Sketcher::new(&settings_of(DuplicatePolicy::default()));
        let claims: Vec<Claim> = (0..3)
            .map(|n: u8| {
                let claim = contents.claim().unwrap();
                let url = format!("http://h/{n}");
                let judged = contents.judge(name(&url), &sketcher.bytes(&[n]));
                assert_eq!(judged.unwrap(), None);
                claim
            })
            .collect();
        contents.give_back(claims[2]);
        contents.give_back(claims[1]);
        assert_eq!(contents.archived_below().unwrap(), 0);
        contents.give_back(claims[0]);
        assert_eq!(contents.archived_below().unwrap(), 3);
        let names = contents.names_from(1).unwrap();
        assert_eq!(Name::parse(&names[0]).unwrap().url, "http://h/1");
        contents.forget(&names[0]).unwrap();
        assert_eq!(contents.names_from(0).unwrap().len(), 2);
    }

    #[test]
    fn bytes_are_not_text() {
        let folder = tempfile::tempdir().unwrap();
        let contents = Contents::open(
            folder.path(),
            Committed::default(),
            settings_of(DuplicatePolicy::default()),
        )
        .unwrap();
        let sketcher = Sketcher::new(&settings_of(DuplicatePolicy::default()));
        let judge = |url: &str, body: &[u8]| {
            contents
                .judge(name(url), &sketcher.bytes(body))
                .unwrap()
                .is_some()
        };
        assert!(!judge("http://h/1", b"one"));
        assert!(judge("http://h/2", b"one"));
        assert!(!judge("http://h/3", b"two"));
    }

    /// With the policy `content`, pages with the same template are not duplicates once the template
    /// is known. The same text in another template is a duplicate. A page that is fetched again is
    /// one page of its site.
    #[test]
    fn issue_24_content_at_the_level_same() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings_of(DuplicatePolicy::Content);
        let contents = Contents::open(folder.path(), Committed::default(), settings).unwrap();
        let mut sketcher = Sketcher::new(contents.settings());
        let words = |seed: usize, n: usize| {
            let words = (0..n).map(|i| format!("w{seed}x{i}"));
            words.collect::<Vec<_>>().join(" ")
        };
        let mut judge = |site: usize, number: usize, url: usize| {
            let text = format!("{} {}", words(site, 400), words(1000 + number, 30));
            let url = format!("http://shop{site}.example/{url}");
            let host = format!("shop{site}.example");
            let sketch = sketcher.page(&page(&text), &host).of_page(&url);
            contents.judge(name(&url), &sketch).unwrap()
        };
        let n_early = (0..80).filter(|&n| judge(0, n, n).is_some()).count();
        assert!((1..20).contains(&n_early), "{n_early}");
        (0..80).for_each(|n| drop(judge(1, 100 + n, n)));
        let mut n_found = 0;
        for n in 60..80 {
            let Some(found) = judge(1, n, 100 + n) else {
                continue;
            };
            assert_eq!(found.url, format!("http://shop0.example/{n}"));
            let n_before = (n + 20) as u64;
            assert_eq!((found.rule, found.site_pages), ("same", Some(n_before)));
            // The same page again.
            let again = judge(1, n, 100 + n).unwrap();
            assert_eq!(again.site_pages, Some(n_before + 1));
            n_found += 1;
        }
        assert!(n_found >= 14, "{n_found}");
    }
}
