//! Fetches result pages like the crawler: obeys robots.txt, sends one request at a time to each
//! host with a pause, and refuses private IP addresses unless they are allowed.

use std::cell::OnceCell;

use arose_crawl::Settings;
use arose_crawl::visit::{Download, Visits};

use super::answer::page_text;
use super::{Page, Reply, Requests};
use crate::Error;

/// Fetches the pages that search engines return. The engines of one study share it, so that a host
/// has its pauses whichever engine returned its pages.
pub struct Pages {
    settings: Settings,
    visits: OnceCell<Visits>,
}

impl Pages {
    /// Nothing is opened before a page is needed.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            visits: OnceCell::new(),
        }
    }

    /// Whatever fetching needs.
    ///
    /// # Errors
    ///
    /// When the settings cannot be used, as when they name no contact for site owners.
    pub(super) fn visits(&self) -> Result<&Visits, Error> {
        if let Some(visits) = self.visits.get() {
            return Ok(visits);
        }
        let opened = Visits::open(self.settings.clone(), 0)?;
        Ok(self.visits.get_or_init(|| opened))
    }

    /// The text of a page; every request, robots.txt included, is taken from `requests`.
    ///
    /// # Errors
    ///
    /// When no request is left, or the settings cannot be used.
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
