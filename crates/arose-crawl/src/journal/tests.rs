//! Tests of the journal.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::event::Decoder;
use super::*;
use crate::order::{Level, Weight};

const WEIGHT: Weight = Weight {
    mass: Level::MOST,
    trust: Level::NONE,
};

const URL: Queued<'static> = Queued {
    host: 300,
    depth: 7,
    weight: WEIGHT,
    class: 5,
    is_last: true,
    of_repeat: true,
    n_redirects: 2,
    kind: Kind::Sitemap,
    rest: "/a?b",
    found_on: "http://h/c",
};

const EVENTS: [Event<'static>; 24] = [
    Event::Host("http://h:8080"),
    Event::Url(URL),
    Event::Done {
        host: 1,
        place: u64::MAX,
    },
    Event::Delay {
        host: 1,
        millis: 1500,
    },
    Event::NotBefore {
        host: 1,
        millis: 1 << 41,
    },
    Event::Trust {
        host: 1,
        trust: 0.125,
    },
    Event::Doublings { n: 3 },
    Event::Weight {
        host: 1,
        place: u64::MAX,
        weight: WEIGHT,
    },
    Event::Archive {
        file: 3,
        bytes: 1 << 30,
        index_bytes: 9,
    },
    Event::Counters("pages 3\n"),
    Event::Closed,
    Event::Rules {
        host: 2,
        date: 1 << 31,
        text: "User-agent: *\nDisallow: /\n",
    },
    Event::Unreachable { host: 2, since: 7 },
    Event::Pages { host: 2, n: 9 },
    Event::Lost { host: 2, place: 9 },
    Event::Found { host: 2 },
    Event::RobotsArchive {
        file: 1,
        bytes: 2,
        index_bytes: 3,
    },
    Event::Tried {
        host: 2,
        place: 1 << 40,
        n_tries: 255,
    },
    Event::Dropped { host: 2, place: 16 },
    Event::Deferred {
        host: 2,
        place: 1 << 40,
        tag: u32::MAX,
    },
    Event::UrlRule {
        key: u64::MAX,
        text: "{}",
    },
    Event::UrlContents(&[7; 32]),
    Event::Seen { n_urls: 1 << 33 },
    Event::Contents {
        row: 4,
        log: 5,
        bytes: 6,
    },
];

/// A journal and the events of its next frame.
#[derive(Debug)]
struct Pen {
    journal: Journal,
    batch: Batch,
}

impl Pen {
    fn new(journal: Journal) -> Self {
        let batch = journal.next_batch();
        Self { journal, batch }
    }

    fn push(&mut self, event: Event<'_>) -> Place {
        self.batch.push(event)
    }

    fn write(&mut self) -> Result<(), Error> {
        self.journal.append(&self.batch.take(), &[])
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.journal.sync()
    }
}

/// Opens a journal, or creates one. Returns all events in debug format.
fn reopen(path: &Path) -> Result<(Pen, Vec<String>), Error> {
    if !path.exists() {
        return Ok((Pen::new(Journal::create(path)?), Vec::new()));
    }
    let mut found = Vec::new();
    let mut journal = Journal::open(path, |frame| {
        found.extend(frame.events.iter().map(|(event, _)| format!("{event:?}")));
        Ok(true)
    })?;
    journal.cut()?;
    Ok((Pen::new(journal), found))
}

fn fresh() -> (tempfile::TempDir, PathBuf, Pen) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let journal = reopen(&path).unwrap().0;
    (folder, path, journal)
}

#[test]
fn events_come_back() {
    let (_folder, path, mut journal) = fresh();
    EVENTS.iter().for_each(|&event| {
        journal.push(event);
    });
    journal.write().unwrap();
    let expected: Vec<String> = EVENTS.iter().map(|event| format!("{event:?}")).collect();
    assert_eq!(reopen(&path).unwrap().1, expected);
}

#[test]
fn urls_are_read_back_before_and_after_they_are_written() {
    let (_folder, path, mut journal) = fresh();
    let mut draft = Draft::new(journal.batch.take());
    let long = format!("/{}", "x".repeat(2000));
    let url = Queued { rest: &long, ..URL };
    let places = [draft.push(Event::Url(URL)), draft.push(Event::Url(url))];
    assert_eq!(draft.read(places[0]), Some(URL));
    let batch = draft.take();
    let later = draft.push(Event::Url(URL));
    journal.journal.append(&batch, &[Event::Closed]).unwrap();
    draft.note_written(batch.end());
    journal.journal.append(&draft.take(), &[]).unwrap();
    assert_eq!(draft.read(places[1]), Some(url));
    assert_eq!((draft.read(places[0] + 1), draft.read(9)), (None, None));
    let pool = journal.journal.pool();
    let mut buffer = Vec::new();
    for (place, url) in places.into_iter().chain([later]).zip([URL, url, URL]) {
        assert_eq!(pool.read(place, &mut buffer).unwrap(), url);
        assert!(pool.read(place + 1, &mut buffer).is_err());
    }
    assert!(pool.read(9, &mut buffer).is_err());
    let mut found = Vec::new();
    let opened = Journal::open(&path, |frame| {
        let events = frame.events.iter();
        let urls = events.filter(|(event, _)| matches!(event, Event::Url(_)));
        found.extend(urls.map(|(_, place)| *place));
        Ok(true)
    });
    assert_eq!(found, [places[0], places[1], later]);
    let pool = opened.unwrap().pool();
    assert_eq!(pool.read(later, &mut buffer).unwrap(), URL);
}

/// Events are dropped from memory only when they are in the file, the oldest first.
#[test]
fn a_draft_keeps_what_is_not_written() {
    let mut draft = Draft::new(Batch::new(100, 0));
    let long = "x".repeat(100_000);
    let mut push = || {
        let url = Queued { rest: &long, ..URL };
        let place = draft.push(Event::Url(url));
        (place, draft.take().end())
    };
    let all: Vec<(Place, Place)> = (0..200).map(|_| push()).collect();
    assert!(all.iter().all(|&(place, _)| draft.read(place).is_some()));
    draft.note_written(all[9].1);
    let n_kept = all.iter().filter(|(place, _)| draft.read(*place).is_some());
    assert_eq!(n_kept.count(), 190);
    draft.note_written(all[199].1);
    let n_kept = all.iter().filter(|(place, _)| draft.read(*place).is_some());
    assert!((150..170).contains(&n_kept.count()));
}

/// Completed URLs, and states of hosts that are out of date, are dropped. All others keep their
/// positions, including those queued during the rewrite. Until the successor is renamed, it does
/// not count.
#[test]
fn issue_22_a_successor_keeps_all_places() {
    let (_folder, path, mut pen) = fresh();
    let rules = |date| Event::Rules {
        host: 0,
        date,
        text: "",
    };
    pen.push(Event::Host("http://a"));
    pen.push(rules(50));
    let mut places = Vec::new();
    for n in 0..500 {
        let rest = format!("/{}", "y".repeat(n % 40));
        places.push(pen.push(Event::Url(Queued { rest: &rest, ..URL })));
        if n % 7 == 0 {
            pen.write().unwrap();
        }
    }
    let (host, n_tries) = (0, 2);
    for &place in places.iter().filter(|&&place| place % 3 != 0) {
        pen.push(Event::Done { host, place });
    }
    let tried = *places.iter().find(|&&place| place % 3 == 0).unwrap();
    pen.push(Event::Tried {
        host,
        place: tried,
        n_tries,
    });
    pen.push(rules(70));
    pen.push(Event::Counters(
        "pages 7
",
    ));
    pen.write().unwrap();
    pen.push(Event::Counters(
        "pages 8
",
    ));
    pen.write().unwrap();
    pen.sync().unwrap();
    let old = pen.journal.old(60).unwrap();
    let successor = old.rewrite(&path, &AtomicBool::new(false)).unwrap();
    let successor = successor.unwrap();
    places.retain(|place| place % 3 == 0);
    assert_eq!(successor.n_urls, places.len() as u64);
    places.push(pen.push(Event::Url(URL)));
    pen.write().unwrap();
    let (n_before, pool) = (pen.journal.n_bytes(), pen.journal.pool());
    pen.journal.give_way(successor).unwrap();
    assert!(pen.journal.n_bytes() < n_before * 2 / 3);
    assert!(!new_path(&path).exists());
    places.push(pen.push(Event::Url(URL)));
    pen.write().unwrap();
    let mark = pen.journal.mark();
    let (pen, found) = reopen(&path).unwrap();
    assert_eq!((pen.journal.mark(), mark), (76, 76));
    let has = |event: Event<'_>| found.contains(&format!("{event:?}"));
    let n_pages = 500 + 2 - places.len() as u64;
    assert!(has(Event::Pages { host, n: n_pages }) && has(rules(70)) && !has(rules(50)));
    assert!(has(Event::Counters("pages 8\n")) && !has(Event::Counters("pages 7\n")));
    let place = tried;
    assert!(has(Event::Tried {
        host,
        place,
        n_tries
    }));
    let mut buffer = Vec::new();
    for pool in [pool, pen.journal.pool()] {
        for &place in &places {
            assert_eq!(pool.read(place, &mut buffer).unwrap().host, URL.host);
        }
    }
    let mut found = Vec::new();
    let all = |frame: &Frame<'_>| {
        let events = frame.events.iter();
        let urls = events.filter(|(event, _)| matches!(event, Event::Url(_)));
        found.extend(urls.map(|(_, place)| *place));
        Ok(true)
    };
    Journal::open(&path, all).unwrap();
    assert_eq!(found, places);
}

/// When told to stop, a rewrite leaves the journal as it was.
#[test]
fn a_rewrite_can_be_stopped() {
    let (_folder, path, mut pen) = fresh();
    pen.push(Event::Host("http://a"));
    pen.write().unwrap();
    pen.sync().unwrap();
    let old = pen.journal.old(0).unwrap();
    assert!(
        old.rewrite(&path, &AtomicBool::new(true))
            .unwrap()
            .is_none()
    );
    assert!(new_path(&path).exists());
    assert_eq!(reopen(&path).unwrap().1.len(), 1);
    assert!(!new_path(&path).exists());
}

/// Returns a journal with one frame per event, and the ends of the frames.
fn written() -> (tempfile::TempDir, PathBuf, Vec<usize>) {
    let (folder, path, mut journal) = fresh();
    let mut ends = vec![journal.journal.end as usize];
    for event in EVENTS {
        journal.push(event);
        journal.write().unwrap();
        ends.push(journal.journal.end as usize);
    }
    (folder, path, ends)
}

/// Wherever a crash cuts the file, complete frames count and others do not.
#[test]
fn a_cut_journal_keeps_its_whole_frames() {
    let (_folder, path, ends) = written();
    let whole = std::fs::read(&path).unwrap();
    for length in ends[0]..=whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let (mut journal, found) = reopen(&path).unwrap();
        let n_whole = ends.iter().filter(|&&end| end <= length).count();
        assert_eq!(found.len(), n_whole - 1, "{length}");
        journal.push(Event::Closed);
        journal.write().unwrap();
        assert_eq!(reopen(&path).unwrap().1.len(), found.len() + 1);
    }
}

/// A flipped bit is damage and not the result of a crash, synced or not: it is reported, and
/// nothing is changed. Only the last frame of an unsynced file may be partial.
#[test]
fn a_flipped_bit_is_damage() {
    for is_synced in [false, true] {
        let (_folder, path, ends) = written();
        if is_synced {
            let mut journal = reopen(&path).unwrap().0;
            journal.sync().unwrap();
            assert!(journal.journal.is_synced());
        }
        let whole = std::fs::read(&path).unwrap();
        let last = match is_synced {
            false => ends[ends.len() - 2],
            true => whole.len(),
        };
        for at in ends[0]..last {
            let mut bad = whole.clone();
            bad[at] ^= 4;
            std::fs::write(&path, &bad).unwrap();
            let error = reopen(&path).unwrap_err().to_string();
            let start = ends.iter().rev().find(|&&end| end <= at).unwrap();
            let expected = format!("is damaged at byte {start}: ");
            assert!(error.contains(&expected), "{at}: {error}");
            assert_eq!(std::fs::read(&path).unwrap(), bad);
        }
        if is_synced {
            std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
            assert!(reopen(&path).is_err());
        }
    }
}

/// A page that was never written is a hole, after which nothing counts. Before the end of the
/// synced part, a hole is damage.
#[test]
fn a_hole_is_a_torn_end() {
    let (_folder, path, mut journal) = fresh();
    let rest = "x".repeat(300);
    for n in 0..20 {
        journal.push(Event::Url(Queued { rest: &rest, ..URL }));
        journal.write().unwrap();
        if n == 9 {
            journal.sync().unwrap();
        }
    }
    let whole = std::fs::read(&path).unwrap();
    for page in 0..whole.len() / 512 {
        let mut torn = whole.clone();
        torn[page * 512..][..512].fill(0);
        if page == 0 {
            torn[..48].copy_from_slice(&whole[..48]);
        }
        std::fs::write(&path, &torn).unwrap();
        match ((page * 512) as u64) < journal.journal.synced {
            true => assert!(reopen(&path).is_err(), "{page}"),
            false => assert!((10..20).contains(&reopen(&path).unwrap().1.len())),
        }
    }
}

/// One of the two notes of how much was synced may be partial, but not both.
#[test]
fn one_note_is_enough() {
    let (_folder, path, mut journal) = fresh();
    for _ in 0..2 {
        journal.push(Event::Closed);
        journal.write().unwrap();
        journal.sync().unwrap();
    }
    let whole = std::fs::read(&path).unwrap();
    for slot in [16, 32] {
        let mut torn = whole.clone();
        torn[slot + 3] ^= 1;
        std::fs::write(&path, &torn).unwrap();
        assert_eq!(reopen(&path).unwrap().1.len(), 2);
        torn[48 - slot + 3] ^= 1;
        std::fs::write(&path, &torn).unwrap();
        let error = reopen(&path).unwrap_err().to_string();
        assert!(error.contains("damaged at byte 16"), "{error}");
    }
}

#[test]
fn whole_frames_are_salvaged_from_around_the_damage() {
    let (_folder, path, ends) = written();
    let whole = std::fs::read(&path).unwrap();
    let salvaged = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let mut n_events = 0;
        let n_lost = salvage(&File::open(&path).unwrap(), &path, |frame| {
            n_events += frame.events.len();
            Ok(())
        });
        (n_events, n_lost.unwrap())
    };
    assert_eq!(salvaged(&whole), (EVENTS.len(), 0));
    for pair in ends.windows(2) {
        let mut bad = whole.clone();
        bad[pair[0] + 5] ^= 1;
        let n_lost = (pair[1] - pair[0]) as u64;
        assert_eq!(salvaged(&bad), (EVENTS.len() - 1, n_lost));
    }
    assert_eq!(salvaged(&[]), (0, 0));
    assert_eq!(salvaged(&[7; 400]), (0, 352));
}

#[test]
fn other_files_and_versions_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let open = || reopen(&path).unwrap_err().to_string();
    std::fs::write(&path, [7; 60]).unwrap();
    assert!(open().contains("not the journal"));
    std::fs::write(&path, b"arosejrn\x02\0\0\0\0\0\0\0").unwrap();
    assert!(open().contains("version 2, not 9"));
    std::fs::write(&path, b"").unwrap();
    assert!(open().contains("damaged at byte 0"));
}

proptest! {
    #[test]
    fn any_bytes_are_legal(bytes in any::<Vec<u8>>()) {
        let mut reader = Decoder { bytes: &bytes, at: 0 };
        while reader.event().is_some() {}
        prop_assert!(reader.at <= bytes.len());
    }
}
