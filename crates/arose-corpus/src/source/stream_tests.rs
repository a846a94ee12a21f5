use std::io::{Cursor, Write};

use super::*;
use crate::format::warc::write::gzip;

fn piped(bytes: &[u8]) -> Stream {
    let pipe = Box::new(Cursor::new(bytes.to_vec()));
    Stream::new(Handle::Pipe(pipe), &Limits::default())
}

fn filed(bytes: &[u8]) -> Stream {
    let mut file = tempfile::tempfile().expect("a place for temporary files");
    file.write_all(bytes).expect("writable");
    let mut raw = Raw::new(Handle::File(file));
    assert!(raw.seek(0));
    let packing = FileCompression::sniff(raw.fill(CHUNK));
    Stream::unpack(raw, packing, &Limits::default())
}

/// Three members and their offsets.
fn members() -> (Vec<u8>, [u64; 3]) {
    let parts = [&b"one"[..], b"two and", b"three"].map(|part| gzip(&[part]).expect("to memory"));
    let second = parts[0].len() as u64;
    let third = second + parts[1].len() as u64;
    (parts.concat(), [0, second, third])
}

#[test]
fn positions_name_member_and_byte() {
    let (bytes, starts) = members();
    let mut stream = piped(&bytes);
    assert_eq!(stream.fill(100), b"onetwo andthree");
    for (ahead, member, inner) in [(0, 0, 0), (2, 0, 2), (3, 1, 0), (9, 1, 6), (10, 2, 0)] {
        let expected = Position {
            offset: starts[member],
            inner,
        };
        assert_eq!(stream.position(ahead), expected, "{ahead}");
    }
    assert_eq!(stream.member_starts(0).collect::<Vec<_>>(), [0, 3, 10]);
    stream.consume(4);
    assert_eq!(stream.position(0).offset, starts[1]);
    let (taken, index, places) = stream.take(7);
    assert_eq!((taken.as_slice(), index), (&b"wo andt"[..], 4));
    assert_eq!(places.at(10).offset, starts[2]);
    assert_eq!(stream.window(), b"hree");
}

#[test]
fn a_break_is_seen_after_the_bytes_before_it() {
    let (mut bytes, starts) = members();
    // The checksum of the second member.
    bytes[starts[2] as usize - 6] ^= 1;
    let mut stream = piped(&bytes);
    assert!(stream.fill(100).starts_with(b"one"));
    assert_eq!(stream.broken_member(), Some(starts[1]));
    let at_break = stream.resume().expect("broken");
    assert_eq!(at_break.reason, Reason::BadCompression);
    assert_eq!(stream.fill(100), b"three");
    assert!(stream.has_ended() && stream.resume().is_none());
}

#[test]
fn seeking_goes_to_a_byte_of_a_member() {
    let (bytes, starts) = members();
    let mut stream = filed(&bytes);
    stream.skip(14);
    let position = Position {
        offset: starts[1],
        inner: 4,
    };
    assert!(stream.seek(position));
    assert_eq!(stream.position(0), position);
    assert_eq!(stream.fill(100), b"andthree");
    assert!(!piped(&bytes).seek(position));
    let mut plain = filed(b"plain bytes");
    plain.skip(8);
    assert!(plain.seek(Position {
        offset: 2,
        inner: 0
    }));
    assert_eq!(plain.fill(5), b"ain bytes");
    assert_eq!(plain.position(3).offset, 5);
}

#[test]
fn zeros_after_a_member_are_padding() {
    let (mut bytes, _) = members();
    bytes.extend([0; 1000]);
    let mut stream = piped(&bytes);
    assert_eq!(stream.fill(100).len(), 15);
    assert!(stream.has_ended());
}

#[test]
fn memory_is_bounded_while_skipping() {
    let zeros = vec![b' '; 3 << 20];
    let mut stream = piped(&gzip(&[&zeros]).expect("to memory"));
    assert_eq!(stream.skip(u64::MAX), 3 << 20);
    assert!(
        stream.window.capacity() < 8 * CHUNK,
        "{}",
        stream.window.capacity()
    );
}
