//! Fetches result pages like the crawler: obeys robots.txt, sends one request at a time to each
//! host with a pause, and rejects private IP addresses unless they are allowed.

use std::cell::OnceCell;

use arose_crawl::Settings;
use arose_crawl::visit::{Download, Visits};

use super::answer::page_text;
use super::{Page, Reply, Requests};
use crate::Error;

/// Fetches the pages that search engines return. The search engines of a study share it, so that
/// the pauses of a host apply whichever search engine returned its pages.
pub struct Pages {
    settings: Settings,
    visits: OnceCell<Visits>,
}

impl Pages {
    /// Opens nothing before a page is needed.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            visits: OnceCell::new(),
        }
    }

    /// The fetcher of the crawler, opened when needed.
    ///
    /// # Errors
    ///
    /// If the settings cannot be used, e.g. because they have no contact for site owners.
    pub(super) fn visits(&self) -> Result<&Visits, Error> {
        if let Some(visits) = self.visits.get() {
            return Ok(visits);
        }
        let opened = Visits::open(self.settings.clone(), 0)?;
        Ok(self.visits.get_or_init(|| opened))
    }

    /// The text of a page. Every request, including robots.txt, is taken from `requests`.
    ///
    /// # Errors
    ///
    /// If no request is left, or the settings cannot be used.
    pub(super) fn fetch(&self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        let visits = self.visits()?;
        let n_before = visits.n_requests();
        visits.allow(requests.n_left());
        let download = visits.download(address);
        requests.spend(visits.n_requests() - n_before);
        Ok(match download {
            Download::Body(body) => Reply::Answer(Page {
                address: body.url.to_string(),
                text: page_text(&body.bytes, body.content_type.as_deref()),
            }),
            Download::Nothing(reason) | Download::Missing(reason) => Reply::Missing(reason),
            Download::Disallowed => Reply::Missing("disallowed by robots.txt".to_owned()),
            Download::Unasked => return Err(requests.spent()),
        })
    }
}
