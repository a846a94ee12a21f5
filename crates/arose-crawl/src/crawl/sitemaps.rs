//! Sitemaps that robots.txt lists.

use super::*;
use crate::fingerprint::Fingerprint;
use crate::url::Url;

/// Maximum number of sitemaps read per robots.txt.
const MAX_SITEMAPS: usize = 100;

impl Crawl {
    pub(super) fn take_sitemaps(&mut self, id: HostId, sitemaps: &[String]) -> Result<(), Error> {
        let origin = &self.frontier.hosts[id as usize].origin;
        let base = Url::parse(origin).ok();
        let found_on: Arc<str> = format!("{origin}/robots.txt").into();
        for text in sitemaps.iter().take(MAX_SITEMAPS) {
            let url = self.shared.normalize(text, base.as_ref());
            // Pages of the web must not make the crawler read local files.
            let url = url.and_then(|url| match url.is_file() {
                true => Err(crate::guard::Reason::Scheme),
                false => Ok(url),
            });
            let mut counts = crate::guard::Counts::default();
            let judged = url.and_then(|url| {
                let candidate = crate::guard::Candidate {
                    url: &url,
                    link_depth: 0,
                    robots: None,
                };
                self.shared.guard.approve(&candidate).map(|()| url)
            });
            counts.add(judged.as_ref().map(|_| ()).map_err(|reason| *reason));
            self.counters.judge(&counts);
            if let Ok(url) = judged {
                let found = Found {
                    fingerprint: Fingerprint::of(&url),
                    url,
                    kind: Kind::Sitemap,
                    is_redirect: false,
                    class: 0,
                    is_repeat: false,
                    words: None,
                };
                let pending = Pending {
                    found,
                    depth: 0,
                    n_redirects: 0,
                    from: Some(id),
                    found_on: Arc::clone(&found_on),
                    is_last: false,
                    of_repeat: false,
                    gift: Gift::NONE,
                    is_again: false,
                    parent: Default::default(),
                    mark: None,
                };
                match self.refusal(&pending) {
                    Some(refusal) => {
                        self.counters.refuse(refusal);
                        self.send_away(&pending);
                    }
                    None => self.found.push(Item::Link(pending)),
                }
            }
        }
        Ok(())
    }
}
