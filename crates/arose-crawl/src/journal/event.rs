//! Events of the journal and how they are written.
//!
//! ```text
//! event = tag number* (length bytes)?     numbers in groups of 7 bits, lowest first
//! ```

use arose::freshness::Quality;

use super::{HostId, Place};
use crate::order::{Level, Weight};

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Event<'b> {
    /// A host was met; hosts are numbered in this order. Its `scheme://host[:port]`.
    Host(&'b str),
    /// A URL was queued.
    Url(Queued<'b>),
    /// A URL needs no further request.
    Done { host: HostId, place: Place },
    /// A URL was requested this many times without success, and is to be tried again.
    Tried {
        host: HostId,
        place: Place,
        n_tries: u8,
    },
    /// A URL is not to be requested: robots.txt or the settings do not allow it.
    Dropped { host: HostId, place: Place },
    /// A host asks for so many milliseconds between requests.
    Delay { host: HostId, millis: u64 },
    /// A host is to be left alone until then, in milliseconds since 1970.
    NotBefore { host: HostId, millis: u64 },
    /// The site whose first host this is has been trusted so much by others.
    Trust { host: HostId, trust: f32 },
    /// So often trust has become worth twice as many pages.
    Doublings { n: u64 },
    /// So much is known of a queued URL by the links to it.
    Weight {
        host: HostId,
        place: Place,
        weight: Weight,
    },
    /// So far the archive is valid: number of the file, bytes of it and of its index.
    Archive {
        file: u64,
        bytes: u64,
        index_bytes: u64,
    },
    /// The counters, a line each.
    Counters(&'b str),
    /// The crawl was left in good order: nothing was in flight.
    Closed,
    /// What a host's robots.txt says to us, as a file for everybody, and when it was read, in
    /// seconds since 1970.
    Rules {
        host: HostId,
        date: u64,
        text: &'b str,
    },
    /// A host's robots.txt is not available since then, in seconds since 1970; 0 if it is again.
    Unreachable { host: HostId, since: u64 },
    /// So many more pages of a host were fetched.
    Pages { host: HostId, n: u64 },
    /// A URL is lost for now: no try got a response. With place 0, all URLs of the host are.
    Lost { host: HostId, place: Place },
    /// What is lost at a host is asked for again.
    Found { host: HostId },
    /// As [`Event::Archive`], of the archive of robots.txt files.
    RobotsArchive {
        file: u64,
        bytes: u64,
        index_bytes: u64,
    },
    /// So many URLs of the seen set were on the disk.
    Seen { n_urls: u64 },
    /// All rows of the index of contents below this one are of records in the archive, and so much
    /// of its log was on the disk: its number, and bytes.
    Contents { row: u32, log: u64, bytes: u64 },
    /// A URL that was fetched before is queued to be visited again: which page it is.
    Again { page: u32, queued: Queued<'b> },
    /// A page was visited, and this is what is known of it since.
    Visited { page: u32, slot: &'b [u8] },
    /// So many pages of the page table were on the disk.
    Table { n_pages: u32 },
    /// A host says that pages have not changed when they have.
    Untrusted { host: HostId },
    /// How good the announcements of changes were of the site whose first host this is.
    Signals { host: HostId, quality: Quality },
    /// A URL waits until the rule of its site that defers it turns out to be wrong; what stands
    /// for it at its host.
    Deferred {
        host: HostId,
        place: Place,
        tag: u32,
    },
    /// What is known of a URL rule ([`crate::rules`]), which a number stands for.
    UrlRule { key: u64, text: &'b str },
    /// What is remembered of contents of URLs: pairs of 8 bytes each.
    UrlContents(&'b [u8]),
    /// So many bytes of events were left out here; places go on behind them.
    Skip { n_bytes: u64 },
}

/// A queued URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queued<'b> {
    /// Whose it is.
    pub(crate) host: HostId,
    /// Links from a seed.
    pub(crate) depth: u32,
    /// What is known of it by the links to it; orders the URLs of a host.
    pub(crate) weight: Weight,
    /// What a sitemap says of its priority ([`crate::order::class_of`]).
    pub(crate) class: u8,
    /// Whether it goes behind the others of its host.
    pub(crate) is_last: bool,
    /// Redirects that led here.
    pub(crate) n_redirects: u8,
    /// What it is.
    pub(crate) kind: Kind,
    /// Path and query.
    pub(crate) rest: &'b str,
    /// Where it was found: path and query of a page of the same host, or else a whole URL. Nothing
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
    /// What a page needs to be shown: a style, a picture, a script, a font.
    Requisite,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Page, Self::Sitemap, Self::Requisite];
}

impl Event<'_> {
    /// The host that it is about.
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
            Event::Visited { page, slot } => put(24, &[page.into()], Some(slot)),
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
        // As many bytes for every weight: it may change where the rest stays.
        out.extend(self.weight.mass.bits().to_le_bytes());
        out.extend(self.weight.trust.bits().to_le_bytes());
        out.push(self.class & 7 | u8::from(self.is_last) << 3);
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

/// Reads events; nothing where the bytes are none.
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
                slot: self.slice()?,
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

    fn slice(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let slice = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(slice)
    }

    pub(crate) fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.slice()?).ok()
    }
}

/// The URL at the beginning of some bytes, if there is a whole one.
pub(super) fn url_at(bytes: &[u8]) -> Option<Queued<'_>> {
    match (Decoder { bytes, at: 0 }).event() {
        Some(Event::Url(queued) | Event::Again { queued, .. }) => Some(queued),
        _ => None,
    }
}
