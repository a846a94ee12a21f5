use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::document::{Item, Position};
use crate::format::warc::cut::{Blocks, RecordCutter};
use crate::format::warc::dialect::Dialect;
use crate::source::raw::Handle;
use crate::source::stream::Stream;

fn config(block_bytes: usize) -> Config {
    Config {
        block_bytes: NonZeroUsize::new(block_bytes).expect("some"),
        threads: NonZeroUsize::new(4).expect("some"),
        limits: Limits {
            record_bytes: 20_000,
            ..Limits::default()
        },
        ..Config::default()
    }
}

/// A file that can be opened twice.
struct OnDisk(tempfile::NamedTempFile);

impl OnDisk {
    fn new(bytes: &[u8]) -> Self {
        let mut file = tempfile::NamedTempFile::new().expect("a place for temporary files");
        file.write_all(bytes).expect("writable");
        Self(file)
    }

    fn open(&self) -> File {
        File::open(self.0.path()).expect("it was just written")
    }

    fn stream(&self, config: &Config) -> Stream {
        Stream::new(Handle::File(self.open()), &config.limits)
    }
}

fn noise(seed: u64, n_bytes: usize) -> Vec<u8> {
    let mut random = arose::mix::SplitMix::new(seed);
    (0..n_bytes)
        .map(|_| b' ' + (random.below(64)) as u8)
        .collect()
}

fn record(seed: u64, n_bytes: usize) -> Vec<u8> {
    let head = format!("WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: {n_bytes}\r\n\r\n");
    [
        head.into_bytes(),
        noise(seed, n_bytes),
        b"\r\n\r\n".to_vec(),
    ]
    .concat()
}

fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

/// Records of all sizes, most of them alone in their member. Some members are embedded in others,
/// so that bytes that look like a member are not always one.
fn archive(packing: FileCompression, seed: u64) -> Vec<u8> {
    let pack = |bytes: &[u8], level: u32| match packing {
        FileCompression::Zstd => zstd::encode_all(bytes, 1).expect("to memory"),
        _ => gzip(bytes, level),
    };
    let mut random = arose::mix::SplitMix::new(seed);
    let mut bytes = Vec::new();
    for n in 0..60 {
        let n_bytes = [30, 300, 1000, 9000][(random.below(4)) as usize];
        let one = record(seed + n, n_bytes);
        bytes.extend(match random.below(12) {
            0 => pack(&[&one[..], &record(seed + 100 + n, 50)].concat(), 6),
            1 => [pack(&one, 6), vec![0; 40]].concat(),
            2 => {
                let inner = pack(&one, 6);
                let head = format!(
                    "WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: {}\r\n\r\n",
                    inner.len()
                );
                pack(&[head.as_bytes(), &inner, b"\r\n\r\n"].concat(), 0)
            }
            3 => pack(b"", 6),
            _ => pack(&one, 6),
        });
    }
    bytes
}

/// All records and warnings of an archive.
fn records(mut cutter: RecordCutter, mut before_each: impl FnMut()) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        before_each();
        match cutter.record() {
            None => return seen,
            Some(Err(item @ Item::Skipped(_))) => seen.push(format!("{item:?}")),
            Some(Err(item)) => panic!("{item:?}"),
            Some(Ok(record)) => seen.push(format!(
                "{:?} {:?} {:?} {:?}",
                record.place.position, record.raw_head, record.block, record.warning
            )),
        }
    }
}

fn cutter(stream: Stream, config: &Config) -> RecordCutter {
    let source: Arc<Path> = Path::new("a").into();
    RecordCutter::new(&source, stream, Dialect::Warc, config, Blocks::All)
}

/// Reads the archive with and without help and compares the results. Before each record, the number
/// of ranges given by `helps` is decoded ahead.
fn check(bytes: &[u8], block_bytes: usize, helps: &[usize]) {
    let config = config(block_bytes);
    let file = OnDisk::new(bytes);
    let alone = records(cutter(file.stream(&config), &config), || {});
    let mut stream = file.stream(&config);
    let ahead = stream.read_ahead(file.open(), &config);
    let mut helps = helps.iter().cycle();
    let helped = records(cutter(stream, &config), || {
        let n = helps.next().copied().unwrap_or_default();
        let _ = (0..n).take_while(|_| ahead.help()).count();
    });
    assert_eq!(alone, helped);
}

#[test]
fn most_members_are_decoded_ahead() {
    let members: Vec<Vec<u8>> = (0..200).map(|n| gzip(&record(n, 800), 6)).collect();
    let file = OnDisk::new(&members.concat());
    let config = config(16_000);
    let ahead = file.stream(&config).read_ahead(file.open(), &config);
    let (mut offset, mut n_found) = (0, 0);
    let mut decoded = None;
    for (n, member) in members.iter().enumerate() {
        while ahead.help() {}
        if !decoded
            .as_ref()
            .is_some_and(|decoded: &Decoded| decoded.covers(offset))
        {
            decoded = ahead.take(offset);
        }
        let end = offset + member.len() as u64;
        if let Some((found_end, content)) = decoded.as_ref().and_then(|d| d.member(offset)) {
            assert_eq!((found_end, content), (end, &record(n as u64, 800)[..]));
            n_found += 1;
        }
        offset = end;
    }
    // Bytes that the stream had read to detect the compression count as started.
    let n_skipped = members.len() - n_found;
    assert!(
        n_skipped * members[0].len() <= 2 * crate::source::raw::CHUNK,
        "{n_skipped}"
    );
    assert!(n_found > 60, "{n_found}");
}

#[test]
fn memory_is_bounded() {
    let packed = gzip(&vec![b' '; 100_000], 6).repeat(40);
    let file = OnDisk::new(&packed);
    let config = config(1 << 16);
    let ahead = Ahead::new(file.open(), FileCompression::Gzip, None, 0, &config);
    let n_ranges = (0..).take_while(|_| ahead.help()).count();
    assert_eq!(n_ranges, packed.len().div_ceil(1 << 14).min(8));
    let ranges = ahead.lock();
    for decoded in ranges.begun.values().flatten() {
        assert!(decoded.bytes.len() < ahead.most_bytes + crate::source::raw::CHUNK);
    }
}

#[test]
fn a_range_nobody_began_is_left_to_the_reader() {
    let file = OnDisk::new(&archive(FileCompression::Gzip, 1));
    let ahead = Ahead::new(file.open(), FileCompression::Gzip, None, 0, &config(4000));
    assert!(ahead.take(0).is_none());
    assert!(ahead.help());
    assert!(ahead.take(10).is_none(), "the first range is the reader's");
    assert!(ahead.take(1000).is_some_and(|decoded| decoded.covers(1000)));
    assert!(ahead.take(1000).is_none(), "it is handed out once");
}

/// The reader waits for a range that another thread is decoding.
#[test]
fn threads_meet() {
    let bytes = archive(FileCompression::Gzip, 5).repeat(20);
    let file = OnDisk::new(&bytes);
    let config = config(8000);
    let alone = records(cutter(file.stream(&config), &config), || {});
    let mut stream = file.stream(&config);
    let ahead = stream.read_ahead(file.open(), &config);
    let board = Board::default();
    board.post(Some(&ahead));
    drop(ahead);
    let board = &board;
    let is_done = AtomicBool::new(false);
    let helped = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    if !board.help() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let helped = records(cutter(stream, &config), || {});
        is_done.store(true, Ordering::Relaxed);
        helped
    });
    assert!(alone.len() > 1000);
    assert_eq!(alone, helped);
    assert!(!board.help(), "the stream is gone");
}

#[test]
fn seeking_back_and_forth() {
    let members: Vec<Vec<u8>> = (0..100).map(|n| gzip(&record(n, 500), 6)).collect();
    let file = OnDisk::new(&members.concat());
    let config = config(4000);
    let mut stream = file.stream(&config);
    let ahead = stream.read_ahead(file.open(), &config);
    for n in [90_usize, 3, 60, 61, 0, 99] {
        let offset = members[..n].iter().map(|member| member.len() as u64).sum();
        while ahead.help() {}
        assert!(stream.seek(Position { offset, inner: 0 }));
        let expected = record(n as u64, 500);
        assert_eq!(&stream.fill(expected.len())[..expected.len()], expected);
        assert_eq!(stream.position(0).offset, offset);
    }
}

/// How an archive is damaged.
#[derive(Debug, Clone)]
enum Harm {
    Change(Index, u8),
    Cut(Index),
    Drop(Index, usize),
    Repeat(Index, usize),
}

impl Harm {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let n_bytes = bytes.len();
        let reach = |at: usize, n: &usize| at..(at + n).min(n_bytes);
        match self {
            _ if bytes.is_empty() => {}
            Harm::Change(at, byte) => bytes[at.index(n_bytes)] = *byte,
            Harm::Cut(at) => bytes.truncate(at.index(n_bytes)),
            Harm::Drop(at, n) => drop(bytes.drain(reach(at.index(n_bytes), n))),
            Harm::Repeat(at, n) => {
                let at = at.index(n_bytes);
                let part = bytes[reach(at, n)].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
}

fn harm() -> impl Strategy<Value = Harm> {
    let place = any::<Index>;
    prop_oneof![
        6 => (place(), any::<u8>()).prop_map(|(at, byte)| Harm::Change(at, byte)),
        1 => place().prop_map(Harm::Cut),
        2 => (place(), 1..3000usize).prop_map(|(at, n)| Harm::Drop(at, n)),
        2 => (place(), 1..3000usize).prop_map(|(at, n)| Harm::Repeat(at, n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn help_changes_nothing(
        seed in any::<u64>(),
        harms in proptest::collection::vec(harm(), 0..6),
        block_bytes in 1000..60_000usize,
        helps in proptest::collection::vec(0..4usize, 1..8),
    ) {
        for packing in [FileCompression::Gzip, FileCompression::Zstd] {
            let mut bytes = archive(packing, seed >> 1);
            harms.iter().for_each(|harm| harm.apply(&mut bytes));
            check(&bytes, block_bytes, &helps);
        }
    }
}
