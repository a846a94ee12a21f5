//! A web of topics, for crawlers that search for one.
//!
//! *Question.* Pages of the web link mostly to pages of their own topic, and the text of a link
//! often describes its target. How well does a crawler use that? *Idea.* Of nine pages of a host,
//! one is a *hub* without a topic, which links to all of them. The others have one of eight topics
//! each, by their numbers. A page of a topic has words of the topic in its text, and half of its
//! links lead to pages of the same topic. Half of the links to a page of a topic have a word of it
//! in their text. All pages can be reached from the home page.

use crate::config::Kind;
use crate::graph::{Link, PageId};
use crate::prose::Prose;
use crate::random::{Random, key};
use crate::web::Web;

/// Number of topics.
pub const N_TOPICS: u32 = 8;

/// Hubs and pages of each topic alternate with this period.
const PERIOD: u32 = N_TOPICS + 1;

/// Number of random links of a page: to its own topic, and to any page.
const N_OWN: usize = 5;
const N_OTHER: usize = 5;

const STEMS: [&str; N_TOPICS as usize] = [
    "violin", "market", "planet", "garden", "engine", "harbor", "castle", "doctor",
];
const ENDS: [&str; 16] = [
    "al", "ber", "cen", "dor", "eth", "fil", "gor", "hem", "ist", "jun", "kal", "lom", "mir",
    "nol", "opt", "pex",
];

/// The words of a topic.
#[must_use]
pub fn topic_words(topic: u32) -> Vec<String> {
    let stem = STEMS[(topic % N_TOPICS) as usize];
    ENDS.iter().map(|end| format!("{stem}{end}")).collect()
}

impl Web {
    /// The topic of a page of a [topic](Kind::Topic) host; none for hubs and other hosts.
    #[must_use]
    pub fn topic(&self, id: PageId) -> Option<u32> {
        let has_topics = self.host(id).kind == Kind::Topic;
        let topic = (id.page % PERIOD).checked_sub(1);
        topic.filter(|_| has_topics)
    }

    /// The pages that a page of a [topic](Kind::Topic) host links to, in order.
    #[must_use]
    pub fn topic_links(&self, id: PageId) -> Vec<PageId> {
        let n_pages = self.host(id).n_pages;
        let mut random = Random::new(key(key(self.host(id).key, id.page.into()), 21));
        let own = |page: u32| PageId { page, ..id };
        let mut links = vec![own(0)];
        links.push(own(id.page.saturating_add(PERIOD)));
        match self.topic(id) {
            None => {
                links.extend((1..PERIOD).map(|n| own(id.page.saturating_add(n))));
                links.extend(
                    self.next_topic_host(id.host)
                        .map(|host| PageId { host, page: 0 }),
                );
            }
            Some(topic) => {
                let turn = |random: &mut Random| {
                    let page = random.below(u64::from(n_pages / PERIOD).max(1)) as u32;
                    self.drawn(id, page * PERIOD + topic + 1, random)
                };
                links.extend((0..N_OWN).map(|_| turn(&mut random)));
            }
        }
        links.extend((0..N_OTHER).map(|_| {
            let page = random.below(n_pages.into()) as u32;
            self.drawn(id, page, &mut random)
        }));
        links.retain(|link| link.page < self.host(*link).n_pages && *link != id);
        links
    }

    /// A page with this number, on the host of a page or the next one.
    fn drawn(&self, id: PageId, page: u32, random: &mut Random) -> PageId {
        let is_away = random.below(4) == 0;
        let other = self.next_topic_host(id.host).filter(|_| is_away);
        PageId {
            host: other.unwrap_or(id.host),
            page,
        }
    }

    /// The next host with topics, cyclically; none if there is no other.
    fn next_topic_host(&self, host: u32) -> Option<u32> {
        let n = self.hosts().len() as u32;
        let mut others = (1..n).map(|step| (host + step) % n);
        others.find(|&other| self.hosts()[other as usize].kind == Kind::Topic)
    }

    pub(crate) fn links_of_topic(&self, id: PageId) -> Vec<Link> {
        let links = self.topic_links(id).into_iter();
        let links = links.map(|link| match link.host == id.host {
            true => Link::Own(link.page),
            false => Link::Page(link),
        });
        links.collect()
    }

    /// Appends the page.
    pub(crate) fn render_topic(&self, id: PageId, out: &mut Vec<u8>) {
        let text = key(key(self.host(id).key, id.page.into()), 22);
        let mut random = Random::new(key(text, 1));
        let mut prose = Prose::new(self.vocabulary(), text, None);
        out.extend_from_slice(b"<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>");
        prose.words(3, out);
        out.extend_from_slice(
            b"</title></head>\n<body>\n<ul class=\"menu\"><li><a href=\"/\">Home</a></ul>\n",
        );
        for link in self.topic_links(id) {
            out.extend_from_slice(b"<p>");
            prose.sentences(3, out);
            if let Some(topic) = self.topic(id) {
                for _ in 0..3 {
                    push_word(topic, &mut random, out);
                    prose.words(1, out);
                }
            }
            self.push_topic_link(id, link, &mut random, out);
            out.extend_from_slice(b"</p>\n");
        }
        out.extend_from_slice(b"</body></html>\n");
    }

    fn push_topic_link(&self, id: PageId, to: PageId, random: &mut Random, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<a href=\"");
        if to.host != id.host {
            self.push_origin(&self.host(to).name, out);
        }
        self.push_path(to, out);
        out.extend_from_slice(b"\">");
        Prose::new(self.vocabulary(), random.next(), None).words(1, out);
        if let (Some(topic), 0) = (self.topic(to), random.below(2)) {
            push_word(topic, random, out);
        }
        out.extend_from_slice(b"</a>\n");
    }
}

fn push_word(topic: u32, random: &mut Random, out: &mut Vec<u8>) {
    let end = ENDS[random.below(ENDS.len() as u64) as usize];
    out.extend_from_slice(STEMS[(topic % N_TOPICS) as usize].as_bytes());
    out.extend_from_slice(end.as_bytes());
    out.push(b' ');
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Config, PageCount, truth::Visit};

    /// Every page can be reached, and most links stay with their topic.
    #[test]
    fn topics_hang_together() {
        let web = Web::new(Config {
            kinds: vec![(Kind::Topic, 1)],
            pages: PageCount::Fixed(200),
            ..Config::plain(4)
        })
        .unwrap();
        let visit = Visit {
            seeds: vec![web.url(PageId { host: 1, page: 0 })],
            max_redirects: 5,
            minute: None,
        };
        assert_eq!(web.reachable(&visit).len(), 600);
        let pages = web.reachable(&visit);
        let of_topic: Vec<PageId> = pages
            .iter()
            .copied()
            .filter(|&id| web.topic(id) == Some(3))
            .collect();
        let links: Vec<PageId> = of_topic
            .iter()
            .flat_map(|&id| web.topic_links(id))
            .collect();
        let n_same = links
            .iter()
            .filter(|&&link| web.topic(link) == Some(3))
            .count();
        assert!(
            2 * n_same > links.len() && n_same < links.len(),
            "{n_same} {}",
            links.len()
        );
        let words: BTreeSet<String> = (0..N_TOPICS).flat_map(topic_words).collect();
        assert_eq!(words.len(), 128);
        let mut page = Vec::new();
        web.render_topic(of_topic[0], &mut page);
        let text = String::from_utf8(page).unwrap();
        assert!(
            topic_words(3).iter().any(|word| text.contains(word)),
            "{text}"
        );
    }
}
