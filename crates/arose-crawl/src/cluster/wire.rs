//! Messages of agents and how they are written.
//!
//! ```text
//! message = version zstd(body)
//! frame   = agent epoch number record*        a message of the log of a partition
//! record  = tag ...                           what happened, in the order of the journal
//! batch   = agent number n url*               URLs for the owner of a partition
//! word    = tag ...                           receipts of batches, and IP addresses
//! ```
//!
//! Numbers and texts are those of the journal. What comes from others is checked here: versions,
//! sizes, numbers; whether URLs are in scope is checked where they are queued.

use std::net::IpAddr;
use std::num::NonZeroU32;

use arose::digest::Digest;
use arose_dedup::index::{SiteTag, Sketch};

use super::address::{Ask, Grant, Return};
use super::bus::MAX_MESSAGE;
use super::twins::{Finding, NewPage, Page};
use crate::journal::{Decoder, Event, HostId, Kind, Place, push_number};

/// Version of all messages.
pub(crate) const VERSION: u8 = 1;

/// Bytes of a message before compression. Random text does not become longer than it was by more
/// than what is left to [`MAX_MESSAGE`].
pub(crate) const MAX_BODY: usize = 800 << 10;

/// URLs of a batch, and their bytes.
pub(crate) const MAX_BATCH: usize = 500;
pub(crate) const MAX_BATCH_BYTES: usize = 256 << 10;

/// Bytes of a URL of other agents.
const MAX_URL: usize = 64 << 10;

/// A URL on its way to another agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentUrl {
    pub(crate) url: String,
    pub(crate) found_on: String,
    pub(crate) depth: u32,
    pub(crate) n_redirects: u8,
    pub(crate) kind: Kind,
    pub(crate) class: u8,
    pub(crate) is_last: bool,
    pub(crate) of_repeat: bool,
    /// What it brings to the page that it leads to.
    pub(crate) mass: f32,
    pub(crate) trust: f32,
}

impl SentUrl {
    /// About how many bytes it takes.
    pub(crate) fn n_bytes(&self) -> usize {
        self.url.len() + self.found_on.len() + 20
    }

    fn write(&self, out: &mut Vec<u8>) {
        push_text(out, &self.url);
        push_text(out, &self.found_on);
        push_number(out, self.depth.into());
        push_number(out, self.n_redirects.into());
        let marks = u8::from(self.is_last) << 2 | u8::from(self.of_repeat) << 6;
        out.push(self.kind as u8 | marks | (self.class & 7) << 3);
        push_number(out, self.mass.to_bits().into());
        push_number(out, self.trust.to_bits().into());
    }

    fn read(decoder: &mut Decoder<'_>) -> Option<Self> {
        let mut text = || Some(decoder.text()?.to_owned()).filter(|text| text.len() <= MAX_URL);
        let (url, found_on) = (text()?, text()?);
        let depth = decoder.number()?.try_into().ok()?;
        let n_redirects = decoder.number()?.try_into().ok()?;
        let flags = decoder.byte()?;
        let mut float = || {
            let float = f32::from_bits(decoder.number()?.try_into().ok()?);
            Some(float).filter(|float| float.is_finite() && *float >= 0.0)
        };
        Some(Self {
            url,
            found_on,
            depth,
            n_redirects,
            kind: *Kind::ALL.get(usize::from(flags & 3))?,
            class: flags >> 3 & 7,
            is_last: flags >> 2 & 1 == 1,
            of_repeat: flags >> 6 & 1 == 1,
            mass: float()?,
            trust: float()?,
        })
    }
}

/// What the log of a partition says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Record<'b> {
    /// A host was met; its number at the owner.
    Host { id: HostId, origin: &'b str },
    /// An event of the owner's journal, about a host that was met.
    Event { place: Place, event: Event<'b> },
    /// URLs of other partitions that a page of this one leads to, sent in the batch of this number.
    Sent {
        batch: u64,
        target: u8,
        urls: Vec<SentUrl>,
    },
    /// Their receiver has committed the URLs that this epoch sent in this batch.
    Received { epoch: u64, batch: u64 },
    /// So many milliseconds a host had to be left alone when its partition was handed over.
    Rest { id: HostId, millis: u64 },
    /// A snapshot begins, which replaces all before it, if it is complete.
    Snapshot,
    /// It is complete.
    Complete,
    /// Fingerprints of URLs that are done, as bytes.
    Ended(&'b [u8]),
    /// Number of pages of a host that are done.
    Pages { id: HostId, n_done: u64 },
    /// URLs that this epoch sent in this batch, and nobody has confirmed.
    Unconfirmed {
        epoch: u64,
        batch: u64,
        target: u8,
        urls: Vec<SentUrl>,
    },
}

impl Record<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut put = |tag: u8, numbers: &[u64]| {
            out.push(tag);
            numbers.iter().for_each(|&number| push_number(out, number));
        };
        match self {
            Self::Host { id, origin } => {
                put(1, &[(*id).into()]);
                push_text(out, origin);
            }
            Self::Event { place, event } => {
                put(2, &[*place]);
                event.write(out);
            }
            Self::Sent {
                batch,
                target,
                urls,
            } => {
                put(3, &[*batch, (*target).into(), urls.len() as u64]);
                urls.iter().for_each(|url| url.write(out));
            }
            Self::Received { epoch, batch } => put(4, &[*epoch, *batch]),
            Self::Rest { id, millis } => put(5, &[(*id).into(), *millis]),
            Self::Snapshot => put(6, &[]),
            Self::Complete => put(7, &[]),
            Self::Ended(keys) => {
                put(8, &[keys.len() as u64]);
                out.extend_from_slice(keys);
            }
            Self::Pages { id, n_done } => put(9, &[(*id).into(), *n_done]),
            Self::Unconfirmed {
                epoch,
                batch,
                target,
                urls,
            } => {
                put(10, &[*epoch, *batch, (*target).into(), urls.len() as u64]);
                urls.iter().for_each(|url| url.write(out));
            }
        }
    }
}

/// The beginning of a message of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Title {
    pub(crate) agent: String,
    pub(crate) epoch: u64,
    /// Frames of this epoch before it.
    pub(crate) number: u64,
}

/// Makes a message of a log.
pub(crate) fn frame(title: &Title, records: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(records.len() + 64);
    push_text(&mut body, &title.agent);
    push_number(&mut body, title.epoch);
    push_number(&mut body, title.number);
    body.extend_from_slice(records);
    pack(&body)
}

/// Reads a message of a log: its title, and its records one after the other. None if it makes no
/// sense.
pub(crate) fn read_frame(
    message: &[u8],
    mut take: impl FnMut(Record<'_>) -> Option<()>,
) -> Option<Title> {
    let body = unpack(message)?;
    let mut decoder = Decoder::new(&body);
    let title = read_title(&mut decoder)?;
    while !decoder.is_at_end() {
        let record = match decoder.byte()? {
            1 => Record::Host {
                id: decoder.number()?.try_into().ok()?,
                origin: decoder.text()?,
            },
            2 => Record::Event {
                place: decoder.number()?,
                event: decoder.event()?,
            },
            3 => {
                let (batch, target) = (decoder.number()?, decoder.number()?.try_into().ok()?);
                let urls = read_urls(&mut decoder)?;
                Record::Sent {
                    batch,
                    target,
                    urls,
                }
            }
            4 => Record::Received {
                epoch: decoder.number()?,
                batch: decoder.number()?,
            },
            5 => Record::Rest {
                id: decoder.number()?.try_into().ok()?,
                millis: decoder.number()?,
            },
            6 => Record::Snapshot,
            7 => Record::Complete,
            8 => Record::Ended(decoder.slice()?),
            9 => Record::Pages {
                id: decoder.number()?.try_into().ok()?,
                n_done: decoder.number()?,
            },
            10 => Record::Unconfirmed {
                epoch: decoder.number()?,
                batch: decoder.number()?,
                target: decoder.number()?.try_into().ok()?,
                urls: read_urls(&mut decoder)?,
            },
            _ => return None,
        };
        take(record)?;
    }
    Some(title)
}

fn read_title(decoder: &mut Decoder<'_>) -> Option<Title> {
    Some(Title {
        agent: decoder.text()?.to_owned(),
        epoch: decoder.number()?,
        number: decoder.number()?,
    })
}

/// The title of a message of a log.
pub(crate) fn title_of(message: &[u8]) -> Option<Title> {
    read_title(&mut Decoder::new(&unpack(message)?))
}

/// URLs for the owner of a partition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    /// Who sent them, and the number by which it knows them.
    pub(crate) agent: String,
    pub(crate) number: u64,
    pub(crate) urls: Vec<SentUrl>,
}

impl Batch {
    pub(crate) fn to_message(&self) -> Vec<u8> {
        let mut body = Vec::new();
        push_text(&mut body, &self.agent);
        push_number(&mut body, self.number);
        push_number(&mut body, self.urls.len() as u64);
        self.urls.iter().for_each(|url| url.write(&mut body));
        pack(&body)
    }

    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let body = unpack(message)?;
        let mut decoder = Decoder::new(&body);
        let batch = Self {
            agent: decoder.text()?.to_owned(),
            number: decoder.number()?,
            urls: read_urls(&mut decoder)?,
        };
        decoder.is_at_end().then_some(batch)
    }
}

fn read_urls(decoder: &mut Decoder<'_>) -> Option<Vec<SentUrl>> {
    let n_urls = usize::try_from(decoder.number()?).ok()?;
    if n_urls > MAX_BATCH {
        return None;
    }
    (0..n_urls).map(|_| SentUrl::read(decoder)).collect()
}

/// What agents say to each other without keeping it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Word {
    /// These batches were committed.
    Receipt(Vec<u64>),
    /// An agent asks for IP addresses.
    Asks(String, Vec<Ask>),
    Grants(Vec<Grant>),
    Recalls(Vec<IpAddr>),
    /// An agent returns IP addresses.
    Returns(String, Vec<Return>),
    /// An agent has fetched these pages, which are new to it.
    Pages(String, Vec<NewPage>),
    /// An agent has compared pages.
    Findings(String, Vec<Finding>),
}

impl Word {
    pub(crate) fn to_message(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let out = &mut body;
        match self {
            Self::Receipt(numbers) => {
                out.push(1);
                numbers.iter().for_each(|&number| push_number(out, number));
            }
            Self::Asks(agent, asks) => {
                out.push(2);
                push_text(out, agent);
                for ask in asks {
                    push_address(out, ask.address);
                    push_number(out, ask.sent);
                    out.push(ask.holds.into());
                }
            }
            Self::Grants(grants) => {
                out.push(3);
                for grant in grants {
                    push_address(out, grant.address);
                    let numbers = [grant.sent, grant.window, grant.rest];
                    numbers.iter().for_each(|&number| push_number(out, number));
                    out.push(grant.extends.into());
                }
            }
            Self::Recalls(addresses) => {
                out.push(4);
                addresses
                    .iter()
                    .for_each(|&address| push_address(out, address));
            }
            Self::Returns(agent, returns) => {
                out.push(5);
                push_text(out, agent);
                for back in returns {
                    push_address(out, back.address);
                    push_number(out, back.rest);
                }
            }
            Self::Pages(agent, pages) => {
                out.push(6);
                push_text(out, agent);
                for new in pages {
                    push_page(out, &new.page);
                    push_sketch(out, &new.sketch);
                }
            }
            Self::Findings(agent, findings) => {
                out.push(7);
                push_text(out, agent);
                for Finding { page, original } in findings {
                    push_page(out, page);
                    out.push(original.is_some().into());
                    if let Some((original, similarity)) = original {
                        push_page(out, original);
                        push_number(out, similarity.to_bits().into());
                    }
                }
            }
        }
        pack(&body)
    }

    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let body = unpack(message)?;
        let decoder = &mut Decoder::new(&body);
        Some(match decoder.byte()? {
            1 => Self::Receipt(read_all(decoder, Decoder::number)?),
            2 => {
                let agent = decoder.text()?.to_owned();
                let asks = read_all(decoder, |decoder| {
                    Some(Ask {
                        address: read_address(decoder)?,
                        sent: decoder.number()?,
                        holds: decoder.byte()? == 1,
                    })
                });
                Self::Asks(agent, asks?)
            }
            3 => Self::Grants(read_all(decoder, |decoder| {
                Some(Grant {
                    address: read_address(decoder)?,
                    sent: decoder.number()?,
                    window: decoder.number()?,
                    rest: decoder.number()?,
                    extends: decoder.byte()? == 1,
                })
            })?),
            4 => Self::Recalls(read_all(decoder, read_address)?),
            5 => {
                let agent = decoder.text()?.to_owned();
                let returns = read_all(decoder, |decoder| {
                    Some(Return {
                        address: read_address(decoder)?,
                        rest: decoder.number()?,
                    })
                });
                Self::Returns(agent, returns?)
            }
            6 => {
                let agent = decoder.text()?.to_owned();
                let pages = read_all(decoder, |decoder| {
                    Some(NewPage {
                        page: read_page(decoder)?,
                        sketch: read_sketch(decoder)?,
                    })
                });
                Self::Pages(agent, pages?)
            }
            7 => {
                let agent = decoder.text()?.to_owned();
                let findings = read_all(decoder, |decoder| {
                    let page = read_page(decoder)?;
                    let original = match decoder.byte()? {
                        0 => None,
                        _ => Some((read_page(decoder)?, read_similarity(decoder)?)),
                    };
                    Some(Finding { page, original })
                });
                Self::Findings(agent, findings?)
            }
            _ => return None,
        })
    }
}

/// Reads the same until the end.
fn read_all<'b, T>(
    decoder: &mut Decoder<'b>,
    mut read: impl FnMut(&mut Decoder<'b>) -> Option<T>,
) -> Option<Vec<T>> {
    let mut all = Vec::new();
    while !decoder.is_at_end() {
        all.push(read(decoder)?);
    }
    Some(all)
}

fn push_page(out: &mut Vec<u8>, page: &Page) {
    push_text(out, &page.url);
    push_text(out, &page.payload);
    push_number(out, page.date.max(0).unsigned_abs());
}

/// A page whose URL and digest can be part of a name in an index.
fn read_page(decoder: &mut Decoder<'_>) -> Option<Page> {
    let mut word = || {
        let text = decoder.text()?;
        let is_word = text.len() <= MAX_URL && !text.contains(' ');
        is_word.then(|| text.to_owned())
    };
    let (url, payload) = (word()?, word()?);
    let date = decoder.number()?.try_into().ok()?;
    Some(Page { url, payload, date })
}

fn push_sketch(out: &mut Vec<u8>, sketch: &Sketch) {
    out.extend(sketch.digest.0.to_le_bytes());
    push_number(out, sketch.site.map_or(0, |site| site.0.get().into()));
    out.push(sketch.is_short.into());
    push_number(out, 8 * sketch.words.len() as u64);
    out.extend(sketch.words.iter().flat_map(|word| word.to_le_bytes()));
}

fn read_sketch(decoder: &mut Decoder<'_>) -> Option<Sketch> {
    let mut digest = [0; 16];
    for byte in &mut digest {
        *byte = decoder.byte()?;
    }
    let site = u32::try_from(decoder.number()?).ok()?;
    let is_short = decoder.byte()? == 1;
    let (words, []) = decoder.slice()?.as_chunks() else {
        return None;
    };
    Some(Sketch {
        digest: Digest(u128::from_le_bytes(digest)),
        site: NonZeroU32::new(site).map(SiteTag),
        is_short,
        words: words.iter().map(|word| u64::from_le_bytes(*word)).collect(),
        pairs: None,
    })
}

fn read_similarity(decoder: &mut Decoder<'_>) -> Option<f32> {
    let similarity = f32::from_bits(decoder.number()?.try_into().ok()?);
    (0.0..=1.0).contains(&similarity).then_some(similarity)
}

fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    push_text(out, &address.to_string());
}

fn read_address(decoder: &mut Decoder<'_>) -> Option<IpAddr> {
    decoder.text()?.parse().ok()
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn pack(body: &[u8]) -> Vec<u8> {
    let mut message = vec![VERSION];
    // Compression into memory cannot fail.
    let packed = zstd::bulk::compress(body, 1).unwrap_or_default();
    message.extend(packed);
    message
}

fn unpack(message: &[u8]) -> Option<Vec<u8>> {
    let (version, packed) = message.split_first()?;
    if *version != VERSION || packed.len() > MAX_MESSAGE {
        return None;
    }
    zstd::bulk::decompress(packed, MAX_BODY + (64 << 10)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(n: u32) -> SentUrl {
        SentUrl {
            url: format!("http://h{n}.test/a?b={n}"),
            found_on: "http://x.test/".to_owned(),
            depth: n,
            n_redirects: 2,
            kind: Kind::Sitemap,
            class: 5,
            is_last: n % 2 == 1,
            of_repeat: n % 4 == 1,
            mass: 0.5,
            trust: 0.0,
        }
    }

    fn page(url: &str) -> Page {
        Page {
            url: url.to_owned(),
            payload: "sha1:ABC".to_owned(),
            date: 1 << 31,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let batch = Batch {
            agent: "a-1".to_owned(),
            number: 1 << 62,
            urls: (0..500).map(url).collect(),
        };
        assert_eq!(Batch::read(&batch.to_message()), Some(batch.clone()));
        let address = IpAddr::from([127, 0, 0, 1]);
        let (sent, window, rest) = (1 << 40, 10_000, 7);
        let words = [
            Word::Receipt(vec![1, 1 << 62]),
            Word::Asks(
                "a-1".to_owned(),
                vec![Ask {
                    address,
                    sent,
                    holds: true,
                }],
            ),
            Word::Grants(vec![Grant {
                address,
                sent,
                window,
                rest,
                extends: true,
            }]),
            Word::Recalls(vec![address, IpAddr::from([0; 16])]),
            Word::Returns("b".to_owned(), vec![Return { address, rest }]),
            Word::Pages(
                "a-1".to_owned(),
                vec![NewPage {
                    page: page("http://a/"),
                    sketch: Sketch {
                        digest: Digest(u128::MAX - 7),
                        site: NonZeroU32::new(9).map(SiteTag),
                        is_short: true,
                        words: vec![1, u64::MAX],
                        pairs: None,
                    },
                }],
            ),
            Word::Findings(
                "a-1".to_owned(),
                [None, Some((page("http://c/"), 0.5))]
                    .map(|original| Finding {
                        page: page("http://b/"),
                        original,
                    })
                    .into(),
            ),
        ];
        for word in words {
            assert_eq!(Word::read(&word.to_message()), Some(word));
        }
        let records = [
            Record::Host {
                id: 3,
                origin: "http://h.test",
            },
            Record::Event {
                place: 77,
                event: Event::Done { host: 3, place: 60 },
            },
            Record::Sent {
                batch: 9,
                target: 255,
                urls: vec![url(1), url(2)],
            },
            Record::Received { epoch: 4, batch: 9 },
            Record::Rest { id: 3, millis: 900 },
        ];
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write(&mut bytes));
        let title = Title {
            agent: "a-1".to_owned(),
            epoch: 4,
            number: 2,
        };
        let message = frame(&title, &bytes);
        let mut n_read = 0;
        let read = read_frame(&message, |record| {
            assert_eq!(record, records[n_read]);
            n_read += 1;
            Some(())
        });
        assert_eq!((read, n_read), (Some(title.clone()), 5));
        assert_eq!(title_of(&message), Some(title));
    }

    #[test]
    fn other_versions_and_too_many_urls_are_refused() {
        let mut message = Word::Receipt(vec![1]).to_message();
        message[0] = VERSION + 1;
        assert_eq!(Word::read(&message), None);
        let batch = Batch {
            agent: "a".to_owned(),
            number: 1,
            urls: (0..501).map(url).collect(),
        };
        assert_eq!(Batch::read(&batch.to_message()), None);
        // A bomb.
        assert_eq!(unpack(&pack(&vec![0; 64 << 20])), None);
    }

    proptest! {
        /// Whatever comes over the bus, nothing panics.
        #[test]
        fn foreign_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for message in [body.clone(), pack(&body)] {
                let _ = read_frame(&message, |_| Some(()));
                let _ = Batch::read(&message);
                let _ = Word::read(&message);
            }
        }
    }
}
