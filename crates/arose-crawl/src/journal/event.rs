//! Events of the journal and their encoding.
//!
//! ```text
//! event = tag number* (length bytes)?     numbers in groups of 7 bits, lowest first
//! ```

use arose::freshness::Quality;

use super::{HostId, Place};
use crate::order::{Level, Weight};

/// An event of a crawl.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Event<'b> {
    /// A host was met. Hosts are numbered in this order. Contains `scheme://host[:port]`.
    Host(&'b str),
    /// A URL was queued.
    Url(Queued<'b>),
    /// A URL needs no further request.
    Done { host: HostId, place: Place },
    /// A URL was requested this many times without success and is to be tried again.
    Tried {
        host: HostId,
        place: Place,
        n_tries: u8,
    },
    /// A URL must not be requested: robots.txt or the settings do not allow it.
    Dropped { host: HostId, place: Place },
    /// A host requires this many milliseconds between requests.
    Delay { host: HostId, millis: u64 },
    /// A host must not get requests before this time, in milliseconds since 1970.
    NotBefore { host: HostId, millis: u64 },
    /// The trust that other sites have given to the site whose first host this is.
    Trust { host: HostId, trust: f32 },
    /// The number of times that trust has become worth twice as many pages.
    Doublings { n: u64 },
    /// The standing of a queued URL by the links to it.
    Weight {
        host: HostId,
        place: Place,
        weight: Weight,
    },
    /// The archive is valid up to here: number of the file, bytes of it and of its index.
    Archive {
        file: u64,
        bytes: u64,
        index_bytes: u64,
    },
    /// The counters, one per line.
    Counters(&'b str),
    /// The crawl was stopped in good order: no request was open.
    Closed,
    /// The rules of a robots.txt that apply to this crawler, as a file for all crawlers, and when
    /// it was read, in seconds since 1970.
    Rules {
        host: HostId,
        date: u64,
        text: &'b str,
    },
    /// The robots.txt of a host has not been available since this time, in seconds since 1970; 0 if
    /// it is available again.
    Unreachable { host: HostId, since: u64 },
    /// Number of further pages of a host that were fetched.
    Pages { host: HostId, n: u64 },
    /// A URL is lost for now: no attempt got a response. With position 0, all URLs of the host are.
    Lost { host: HostId, place: Place },
    /// The lost URLs of a host are to be requested again.
    Found { host: HostId },
    /// Like [`Event::Archive`], for the archive of robots.txt files.
    RobotsArchive {
        file: u64,
        bytes: u64,
        index_bytes: u64,
    },
    /// Number of URLs of the seen set that were on disk.
    Seen { n_urls: u64 },
    /// All rows of the index of contents below this one belong to records in the archive, and this
    /// much of its log was on disk: its number, and bytes.
    Contents { row: u32, log: u64, bytes: u64 },
    /// A URL that was fetched before is queued to be visited again. Contains its page.
    Again { page: u32, queued: Queued<'b> },
    /// A page was visited. Contains its new state.
    Visited { page: u32, record: &'b [u8] },
    /// Number of pages of the page table that were on disk.
    Table { n_pages: u32 },
    /// A host reports pages as unchanged although they have changed.
    Untrusted { host: HostId },
    /// The quality of the announced changes of the site whose first host this is.
    Signals { host: HostId, quality: Quality },
    /// A URL waits until the rule of its site that defers it turns out to be wrong. Contains the
    /// URL that represents it at its host.
    Deferred {
        host: HostId,
        place: Place,
        tag: u32,
    },
    /// The state of a URL rule ([`crate::rules`]), identified by a number.
    UrlRule { key: u64, text: &'b str },
    /// Contents of URLs to remember: pairs of 8 bytes each.
    UrlContents(&'b [u8]),
    /// This many bytes of events were left out here; positions continue after them.
    Skip { n_bytes: u64 },
}

/// A queued URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queued<'b> {
    /// Its host.
    pub(crate) host: HostId,
    /// Link depth from a seed.
    pub(crate) depth: u32,
    /// Its standing by the links to it, which orders the URLs of a host.
    pub(crate) weight: Weight,
    /// Its priority in a sitemap ([`crate::order::class_of`]).
    pub(crate) class: u8,
    /// Whether it is queued after the others of its host.
    pub(crate) is_last: bool,
    /// Whether it was found on a page that repeats others.
    pub(crate) of_repeat: bool,
    /// Number of redirects that led here.
    pub(crate) n_redirects: u8,
    /// What it is expected to lead to.
    pub(crate) kind: Kind,
    /// Path and query.
    pub(crate) rest: &'b str,
    /// Where it was found: path and query of a page of the same host, or else a complete URL. Empty
    /// for seeds.
    pub(crate) found_on: &'b str,
}

/// What a URL is expected to lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page.
    Page,
    /// A list of pages.
    Sitemap,
    /// A part of a page: a style, an image, a script, a font.
    Requisite,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Page, Self::Sitemap, Self::Requisite];
}

impl Event<'_> {
    /// Returns the host of the event.
    pub(crate) fn host(&self) -> Option<HostId> {
        match *self {
            Event::Url(queued) | Event::Again { queued, .. } => Some(queued.host),
            Event::Done { host, .. }
            | Event::Tried { host, .. }
            | Event::Dropped { host, .. }
            | Event::Delay { host, .. }
            | Event::NotBefore { host, .. }
            | Event::Trust { host, .. }
            | Event::Weight { host, .. }
            | Event::Rules { host, .. }
            | Event::Unreachable { host, .. }
            | Event::Pages { host, .. }
            | Event::Lost { host, .. }
            | Event::Deferred { host, .. }
            | Event::Found { host }
            | Event::Signals { host, .. }
            | Event::Untrusted { host } => Some(host),
            Event::Host(_)
            | Event::Archive { .. }
            | Event::RobotsArchive { .. }
            | Event::Counters(_)
            | Event::Closed
            | Event::Doublings { .. }
            | Event::Seen { .. }
            | Event::Contents { .. }
            | Event::Visited { .. }
            | Event::Table { .. }
            | Event::UrlRule { .. }
            | Event::UrlContents(_)
            | Event::Skip { .. } => None,
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut put = |tag: u8, numbers: &[u64], bytes: Option<&[u8]>| {
            out.push(tag);
            numbers.iter().for_each(|&number| push_number(out, number));
            if let Some(bytes) = bytes {
                push_number(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
        };
        match *self {
            Event::Host(origin) => put(1, &[], Some(origin.as_bytes())),
            Event::Url(url) => {
                out.push(2);
                url.write(out);
            }
            Event::Again { page, queued } => {
                put(23, &[page.into()], None);
                queued.write(out);
            }
            Event::Visited { page, record } => put(24, &[page.into()], Some(record)),
            Event::Table { n_pages } => put(42, &[n_pages.into()], None),
            Event::Untrusted { host } => put(25, &[host.into()], None),
            Event::Signals { host, quality } => {
                let Quality {
                    announced,
                    missed,
                    wrong,
                    days,
                } = quality;
                let [a, m, w, d] = [announced, missed, wrong, days].map(|n| n.to_bits().into());
                put(26, &[host.into(), a, m, w, d], None);
            }
            Event::Done { host, place } => put(3, &[host.into(), place], None),
            Event::Delay { host, millis } => put(4, &[host.into(), millis], None),
            Event::NotBefore { host, millis } => put(5, &[host.into(), millis], None),
            Event::Trust { host, trust } => {
                put(6, &[host.into(), trust.to_bits().into()], None);
            }
            Event::Doublings { n } => put(14, &[n], None),
            Event::Weight {
                host,
                place,
                weight,
            } => {
                let levels = [weight.mass, weight.trust].map(|level| u64::from(level.bits()));
                put(22, &[host.into(), place, levels[0], levels[1]], None);
            }
            Event::Archive {
                file,
                bytes,
                index_bytes,
            } => put(7, &[file, bytes, index_bytes], None),
            Event::Counters(text) => put(8, &[], Some(text.as_bytes())),
            Event::Closed => put(9, &[], None),
            Event::Rules { host, date, text } => {
                put(10, &[host.into(), date], Some(text.as_bytes()));
            }
            Event::Unreachable { host, since } => put(11, &[host.into(), since], None),
            Event::Pages { host, n } => put(12, &[host.into(), n], None),
            Event::Lost { host, place } => put(30, &[host.into(), place], None),
            Event::Found { host } => put(31, &[host.into()], None),
            Event::RobotsArchive {
                file,
                bytes,
                index_bytes,
            } => put(13, &[file, bytes, index_bytes], None),
            Event::Tried {
                host,
                place,
                n_tries,
            } => put(20, &[host.into(), place, n_tries.into()], None),
            Event::Dropped { host, place } => put(21, &[host.into(), place], None),
            Event::Deferred { host, place, tag } => {
                put(27, &[host.into(), place, tag.into()], None);
            }
            Event::UrlContents(pairs) => put(29, &[], Some(pairs)),
            Event::UrlRule { key, text } => put(28, &[key], Some(text.as_bytes())),
            Event::Seen { n_urls } => put(40, &[n_urls], None),
            Event::Contents { row, log, bytes } => put(41, &[row.into(), log, bytes], None),
            Event::Skip { n_bytes } => put(50, &[n_bytes], None),
        }
    }
}

impl Queued<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let flags = u64::from(self.n_redirects) << 2 | self.kind as u64;
        for number in [self.host.into(), self.depth.into(), flags] {
            push_number(out, number);
        }
        // The same number of bytes for every weight, so that it can be changed in place.
        out.extend(self.weight.mass.bits().to_le_bytes());
        out.extend(self.weight.trust.bits().to_le_bytes());
        let marks = u8::from(self.is_last) << 3 | u8::from(self.of_repeat) << 4;
        out.push(self.class & 7 | marks);
        for text in [self.rest, self.found_on] {
            push_number(out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

pub(crate) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Decodes events; none if the bytes are malformed.
pub(crate) struct Decoder<'b> {
    pub(super) bytes: &'b [u8],
    pub(super) at: usize,
}

impl<'b> Decoder<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Whether all was read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn event(&mut self) -> Option<Event<'b>> {
        let tag = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(match tag {
            1 => Event::Host(self.text()?),
            2 => Event::Url(self.url()?),
            23 => Event::Again {
                page: self.number()?.try_into().ok()?,
                queued: self.url()?,
            },
            24 => Event::Visited {
                page: self.number()?.try_into().ok()?,
                record: self.slice()?,
            },
            25 => Event::Untrusted { host: self.host()? },
            26 => Event::Signals {
                host: self.host()?,
                quality: Quality {
                    announced: self.float()?,
                    missed: self.float()?,
                    wrong: self.float()?,
                    days: self.float()?,
                },
            },
            3 => Event::Done {
                host: self.host()?,
                place: self.number()?,
            },
            4 => Event::Delay {
                host: self.host()?,
                millis: self.number()?,
            },
            5 => Event::NotBefore {
                host: self.host()?,
                millis: self.number()?,
            },
            6 => Event::Trust {
                host: self.host()?,
                trust: f32::from_bits(self.number()?.try_into().ok()?),
            },
            14 => Event::Doublings { n: self.number()? },
            22 => Event::Weight {
                host: self.host()?,
                place: self.number()?,
                weight: Weight {
                    mass: Level::from_bits(self.number()?.try_into().ok()?),
                    trust: Level::from_bits(self.number()?.try_into().ok()?),
                },
            },
            7 => Event::Archive {
                file: self.number()?,
                bytes: self.number()?,
                index_bytes: self.number()?,
            },
            8 => Event::Counters(self.text()?),
            9 => Event::Closed,
            10 => Event::Rules {
                host: self.host()?,
                date: self.number()?,
                text: self.text()?,
            },
            11 => Event::Unreachable {
                host: self.host()?,
                since: self.number()?,
            },
            12 => Event::Pages {
                host: self.host()?,
                n: self.number()?,
            },
            13 => Event::RobotsArchive {
                file: self.number()?,
                bytes: self.number()?,
                index_bytes: self.number()?,
            },
            20 => Event::Tried {
                host: self.host()?,
                place: self.number()?,
                n_tries: self.number()?.try_into().ok()?,
            },
            21 => Event::Dropped {
                host: self.host()?,
                place: self.number()?,
            },
            27 => Event::Deferred {
                host: self.host()?,
                place: self.number()?,
                tag: self.number()?.try_into().ok()?,
            },
            28 => Event::UrlRule {
                key: self.number()?,
                text: self.text()?,
            },
            29 => Event::UrlContents(self.slice()?),
            30 => Event::Lost {
                host: self.host()?,
                place: self.number()?,
            },
            31 => Event::Found { host: self.host()? },
            40 => Event::Seen {
                n_urls: self.number()?,
            },
            41 => Event::Contents {
                row: self.number()?.try_into().ok()?,
                log: self.number()?,
                bytes: self.number()?,
            },
            42 => Event::Table {
                n_pages: self.number()?.try_into().ok()?,
            },
            50 => Event::Skip {
                n_bytes: self.number()?,
            },
            _ => return None,
        })
    }

    fn url(&mut self) -> Option<Queued<'b>> {
        let host = self.host()?;
        let depth = self.number()?.try_into().ok()?;
        let flags = self.number()?;
        let mut level = || {
            let bytes = [self.byte()?, self.byte()?];
            Some(Level::from_bits(u16::from_le_bytes(bytes)))
        };
        let weight = Weight {
            mass: level()?,
            trust: level()?,
        };
        let order = self.byte()?;
        Some(Queued {
            host,
            depth,
            weight,
            class: order & 7,
            is_last: order >> 3 & 1 == 1,
            of_repeat: order >> 4 & 1 == 1,
            n_redirects: (flags >> 2).try_into().ok()?,
            kind: *Kind::ALL.get((flags & 3) as usize)?,
            rest: self.text()?,
            found_on: self.text()?,
        })
    }

    /// A number that is not negative.
    fn float(&mut self) -> Option<f32> {
        let float = f32::from_bits(self.number()?.try_into().ok()?);
        Some(float).filter(|float| *float >= 0.0)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn host(&mut self) -> Option<HostId> {
        self.number()?.try_into().ok()
    }

    pub(crate) fn slice(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let slice = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(slice)
    }

    pub(crate) fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.slice()?).ok()
    }
}

/// Returns the URL at the beginning of some bytes, if it is complete.
pub(super) fn url_at(bytes: &[u8]) -> Option<Queued<'_>> {
    match (Decoder { bytes, at: 0 }).event() {
        Some(Event::Url(queued) | Event::Again { queued, .. }) => Some(queued),
        _ => None,
    }
}
