//! Generates spam: pages made for crawlers and not for readers, one kind of host for each
//! technique.
//!
//! | kind | pages |
//! |---|---|
//! | stuffed | random sequences of 5 to 50 distinct words |
//! | spun | a few sentences over and over, with some words exchanged |
//! | scraped | the text of a page of a plain host, with its own links |
//! | hidden | a little visible text, and much hidden text |
//! | farm | only links |
//! | wildcard | one page for all hosts, with a keyword exchanged, all hosts at one IP address |
//!
//! Links are those of any host: spam hosts are found, and link to each other, like others.

use crate::config::Kind;
use crate::graph::{Link, PageId};
use crate::prose::Prose;
use crate::random::{Random, key};
use crate::web::Web;

/// Ways to hide an element.
const WAYS: [&str; 6] = [
    "style=\"display:none\"",
    "style=\"visibility: hidden\"",
    "style=\"font-size:0px\"",
    "style=\"position:absolute;left:-9999px\"",
    "style=\"color:#ffffff;background-color:#fff\"",
    "hidden",
];

impl Web {
    /// Appends a page of a [spam](Kind::is_spam) host, with these links.
    pub(crate) fn render_spam(&self, id: PageId, links: &[Link], out: &mut Vec<u8>) {
        let page_key = key(self.host(id).key, u64::from(id.page));
        let mut random = Random::new(key(page_key, 8));
        out.extend_from_slice(b"<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>");
        Prose::new(self.vocabulary(), key(page_key, 9), None).words(4, out);
        out.extend_from_slice(b"</title></head>\n<body>\n");
        match self.host(id).kind {
            Kind::Stuffed => self.stuff(page_key, &mut random, out),
            Kind::Spun => self.spin(self.host(id).key, &mut random, out),
            Kind::Hidden => self.hide(page_key, &mut random, out),
            Kind::Farm => self.push_farm(id, out),
            Kind::Wildcard => self.push_wildcard(id, out),
            _ => {}
        }
        for (idx, link) in links.iter().enumerate() {
            self.push_link(id, link, key(page_key, 100 + idx as u64), "", out);
        }
        out.extend_from_slice(b"</body></html>\n");
    }

    /// Some words of the page, each followed by a space.
    fn some_words(&self, text_key: u64, n: usize) -> Vec<Vec<u8>> {
        let words = (0..n as u64).map(|i| {
            let mut word = Vec::new();
            Prose::new(self.vocabulary(), key(text_key, i), None).words(1, &mut word);
            word
        });
        words.collect()
    }

    fn stuff(&self, page_key: u64, random: &mut Random, out: &mut Vec<u8>) {
        let n_distinct = 5 + random.below(46) as usize;
        let words = self.some_words(page_key, n_distinct);
        for _ in 0..8 {
            out.extend_from_slice(b"<p>");
            for _ in 0..100 {
                out.extend_from_slice(&words[random.below(n_distinct as u64) as usize]);
            }
            out.extend_from_slice(b"</p>\n");
        }
    }

    /// Six sentences of the host, 14 words each, of which every fifth has two other forms.
    fn spin(&self, host_key: u64, random: &mut Random, out: &mut Vec<u8>) {
        let words = self.some_words(host_key, 6 * 14 * 3);
        for paragraph in 0..12 {
            out.extend_from_slice(b"<p>");
            for sentence in 0..6 {
                for place in 0..14 {
                    let form = match (place + sentence + paragraph) % 5 {
                        0 => random.below(3) as usize,
                        _ => 0,
                    };
                    out.extend_from_slice(&words[(sentence * 14 + place) * 3 + form]);
                }
                out.pop();
                out.extend_from_slice(b". ");
            }
            out.extend_from_slice(b"</p>\n");
        }
    }

    fn hide(&self, page_key: u64, random: &mut Random, out: &mut Vec<u8>) {
        let mut prose = Prose::new(self.vocabulary(), page_key, None);
        out.extend_from_slice(b"<p>");
        prose.sentences(4, out);
        let way = WAYS[random.below(WAYS.len() as u64) as usize];
        out.extend_from_slice(b"</p>\n<div ");
        out.extend_from_slice(way.as_bytes());
        out.push(b'>');
        for _ in 0..12 {
            out.extend_from_slice(b"<p>");
            prose.sentences(8, out);
            out.extend_from_slice(b"</p>\n");
        }
        out.extend_from_slice(b"</div>\n");
    }

    /// A hundred links to pages of the host, over and over, in addition to those that all hosts
    /// have.
    fn push_farm(&self, id: PageId, out: &mut Vec<u8>) {
        let n_pages = self.host(id).n_pages;
        for i in 0..100 {
            let form = key(key(self.host(id).key, u64::from(id.page)), 200 + i);
            let page = (form % u64::from(n_pages.max(1))) as u32;
            self.push_link(id, &Link::Own(page), form, "", out);
        }
    }

    /// The same tags and words on all pages of all hosts, except for the keyword.
    fn push_wildcard(&self, id: PageId, out: &mut Vec<u8>) {
        let words = self.some_words(key(self.config().seed, 11), 120);
        let key_word = &self.some_words(self.host(id).key, 1)[0];
        for line in words.chunks(12) {
            out.extend_from_slice(b"<p>");
            for word in line.chunks(3) {
                word.iter().for_each(|word| out.extend_from_slice(word));
                out.extend_from_slice(key_word);
                out.extend_from_slice(key_word);
            }
            out.extend_from_slice(b"</p>\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Config;
    use crate::web::{Moment, Request};

    fn web() -> Web {
        Web::new(Config::spam(24)).unwrap()
    }

    fn page(web: &Web, host: u32, page: u32) -> String {
        let target = web.path(PageId { host, page });
        let request = Request {
            host: &web.hosts()[host as usize].name,
            target: &target,
            ..Request::default()
        };
        let reply = web.answer(&request, &Moment::default(), Vec::new());
        assert_eq!(reply.status, 200);
        String::from_utf8(reply.body).unwrap()
    }

    fn hosts(web: &Web, kind: Kind) -> Vec<u32> {
        let hosts = (0..).zip(web.hosts());
        let hosts = hosts.filter(|(_, host)| host.kind == kind);
        hosts.map(|(idx, _)| idx).collect()
    }

    /// The text between tags.
    fn words(html: &str) -> Vec<&str> {
        let pieces = html.split('<').filter_map(|piece| piece.split_once('>'));
        pieces
            .flat_map(|(_, text)| text.split_whitespace())
            .collect()
    }

    #[test]
    fn every_kind_is_there_and_its_pages_stay_the_same() {
        let (web, again) = (web(), web());
        for kind in Kind::SPAM {
            let found = hosts(&web, kind);
            // The first host of all is plain, whatever the random choice.
            assert!((1..=2).contains(&found.len()), "{kind:?}");
            let texts: BTreeSet<String> = (0..5).map(|n| page(&web, found[0], n)).collect();
            assert_eq!(texts.len(), 5, "{kind:?}");
            assert_eq!(page(&web, found[0], 3), page(&again, found[0], 3));
        }
    }

    #[test]
    fn pages_are_what_their_kind_says() {
        let web = web();
        let first = |kind| hosts(&web, kind)[0];
        let stuffed = page(&web, first(Kind::Stuffed), 1);
        let (_, body) = stuffed.split_once("<p>").unwrap();
        let (body, _) = body.rsplit_once("</p>").unwrap();
        let body = format!("<p>{body}");
        let distinct: BTreeSet<&str> = words(&body).into_iter().collect();
        assert!((5..=50).contains(&distinct.len()), "{}", distinct.len());
        let farm = page(&web, first(Kind::Farm), 1);
        assert!(farm.matches("<a href").count() > 100);
        assert!(!farm.contains("<p>"));
        let hidden = page(&web, first(Kind::Hidden), 1);
        let (seen, away) = hidden.split_once("<div ").unwrap();
        assert!(words(away).len() > 5 * words(seen).len());
    }

    #[test]
    fn scraped_pages_have_the_text_of_another_host() {
        let web = web();
        let host = hosts(&web, Kind::Scraped)[0];
        let original = web.scraped_host(host);
        assert_eq!(web.hosts()[original as usize].kind, Kind::Plain);
        let sentences = |host, number| -> BTreeSet<String> {
            let html = page(&web, host, number);
            let text = words(&html).join(" ");
            text.split(". ").map(str::to_owned).collect()
        };
        let (copy, whole) = (sentences(host, 7), sentences(original, 7));
        let n_shared = copy.intersection(&whole).count();
        assert!(
            n_shared * 10 > copy.len() * 6,
            "{n_shared} of {}",
            copy.len()
        );
    }

    #[test]
    fn wildcard_hosts_are_at_one_address_and_differ_in_a_word() {
        let web = web();
        let found = hosts(&web, Kind::Wildcard);
        let addresses = found.iter().map(|&host| web.hosts()[host as usize].address);
        assert_eq!(addresses.collect::<BTreeSet<_>>().len(), 1);
        let lines = |host| -> Vec<BTreeSet<String>> {
            let html = page(&web, host, 1);
            let lines = html.lines().filter(|line| line.starts_with("<p>"));
            lines
                .map(|line| words(line).into_iter().map(str::to_owned).collect())
                .collect()
        };
        for (a, b) in lines(found[0]).iter().zip(&lines(found[1])) {
            assert!(a.symmetric_difference(b).count() <= 2, "{a:?} {b:?}");
        }
    }
}
