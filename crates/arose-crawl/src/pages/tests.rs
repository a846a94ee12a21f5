use std::collections::BTreeMap;

use arose::freshness::{History, PageStatistics, Pages, Posterior};

use super::*;
use crate::fingerprint::Fingerprint;
use crate::journal::Kind;

fn record(n: u64) -> Record {
    let history = History {
        unchanged: 3.5,
        changed: (n % 1000) as f32,
        n_changes: (n % 5) as f32,
    };
    Record {
        fingerprint: Fingerprint { host: n, rest: !n },
        statistics: PageStatistics::new(1_700_000_000 + (n % 1000) as u32, 10.0)
            .with_history(history),
        first: 7,
        due: 9,
        position: Position {
            file: 3,
            offset: 0xABCD_1234_5678,
        },
        status: 404,
        n_versions: 12,
        kind: Kind::Sitemap,
        state: State::Missing(2),
        depth: 200,
        digest: n ^ 77,
    }
}

#[test]
fn records_survive_being_written() {
    for n in [0, 1, 77, u64::MAX] {
        let record = record(n);
        assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
    }
    assert_eq!(record(1).to_bytes().len(), 64);
    assert_eq!(Record::from_bytes(&[0; 64]), None);
    for state in [
        State::Live,
        State::Missing(1),
        State::Gone,
        State::Forbidden,
    ] {
        let record = Record { state, ..record(1) };
        assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
    }
}

#[test]
fn tables_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let open = |n_stored, journaled| Table::open(folder.path(), n_stored, journaled);
    let mut table = open(0, BTreeMap::new()).unwrap();
    for n in [0, 1, 2, 5, 4097, 4098] {
        table.put(n, record(n.into()));
    }
    assert_eq!(
        (table.n_pages(), table.get(5).unwrap()),
        (4099, Some(record(5)))
    );
    table.sync().unwrap();
    assert_eq!((table.n_stored(), table.get(3).unwrap()), (4099, None));
    drop(table);
    // The journal has newer data, and more.
    let journaled = [(1, record(100)), (5000, record(101))]
        .into_iter()
        .collect();
    let table = open(4099, journaled).unwrap();
    let mut pages = Vec::new();
    table
        .each(|page, record| pages.push((page, record.fingerprint.host)))
        .unwrap();
    let expected = [
        (0, 0),
        (1, 100),
        (2, 2),
        (5, 5),
        (4097, 4097),
        (4098, 4098),
        (5000, 101),
    ];
    assert_eq!(pages, expected);
    assert_eq!(table.get(4098).unwrap(), Some(record(4098)));
    assert!(open(4100, BTreeMap::new()).is_err());
}

#[test]
fn sketches_survive_being_written() {
    for sketch in [
        Sketch([1, 2, 3, 4, 5, u64::MAX]),
        Sketch([0, 0, 0, 0, 0, 1]),
    ] {
        let text = sketch.to_text().unwrap();
        assert_eq!(text.len(), 64);
        assert_eq!(Sketch::from_text(&text), sketch);
    }
    assert_eq!(Sketch::default().to_text(), None);
    for text in ["", "AAAA", "no base64!", &"A".repeat(68)] {
        assert_eq!(Sketch::from_text(text), Sketch::default());
    }
}

#[test]
fn noise_is_no_change() {
    let sketch = Sketch([0xF0F0, 2, 3, 4, 5, 6]);
    let with_bits = |n: u32| Sketch([0xF0F0 ^ ((1 << n) - 1), 2, 3, 4, 5, 6]);
    assert!(sketch.is_alike(&sketch) && sketch.is_alike(&with_bits(12)));
    assert!(!sketch.is_alike(&with_bits(13)));
    assert!(!Sketch::default().is_alike(&Sketch::default()));
}

/// Memory of a page, with its entry in the schedule.
#[test]
fn pages_take_24_bytes() {
    assert_eq!(size_of::<PageStatistics>() + size_of::<u64>(), 24);
}

/// A site of a thousand pages has a prior of its own, so the change rate of its new pages is that
/// of its other pages. Smaller sites share one.
#[test]
fn issue_25_large_sites_have_a_prior_of_their_own() {
    let mut known = PageStates::default();
    let mut put = |page: PageId, site, history| {
        let record = Record {
            statistics: PageStatistics::new(1_700_000_000, 1.0).with_history(history),
            state: State::Live,
            ..record(page.into())
        };
        known.put(page, &record, site);
    };
    let often = History {
        unchanged: 5.0,
        changed: 15.0,
        n_changes: 15.0,
    };
    let never = History {
        unchanged: 300.0,
        changed: 0.0,
        n_changes: 0.0,
    };
    // Two large sites, and two that are a page too small. The last page of each is new.
    let sites = [
        (0, 1000, often),
        (1, 1000, never),
        (2, 999, often),
        (3, 999, never),
    ];
    let mut new = Vec::new();
    let mut page = 0;
    for (site, n, history) in sites {
        for _ in 1..n {
            put(page, site, history);
            page += 1;
        }
        put(page, site, History::default());
        new.push(page);
        page += 1;
    }
    known.learn();
    let rate = |page: PageId| Posterior::new(known.prior(page), &History::default()).rate();
    let rates: Vec<f64> = new.into_iter().map(rate).collect();
    assert!(rates[0] > 0.9 && rates[1] < 0.02, "{rates:?}");
    assert_eq!(rates[2], rates[3]);
    assert!(rates[1] < rates[2] && rates[2] < rates[0], "{rates:?}");
}
