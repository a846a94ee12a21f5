//! Tests of the HTTP/1.1 client with responses of every kind, over a pipe.

use std::time::Duration;

use super::*;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt;

const LIMITS: FetchLimits = FetchLimits {
    connect: Duration::from_secs(1),
    first_byte: Duration::from_secs(5),
    whole: Duration::from_secs(20),
    max_head: 4096,
    max_body: 10_000,
};

/// Returns the outcome of a response that is sent in pieces, one second apart, before the
/// connection ends.
fn answer(pieces: &[&[u8]], stays_open: bool) -> Result<(Message, Reuse), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (mut ours, mut theirs) = tokio::io::duplex(1 << 20);
        let server = async {
            for (index, piece) in pieces.iter().enumerate() {
                if index > 0 {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                let _ = theirs.write_all(piece).await;
            }
            if stays_open {
                tokio::time::sleep(Duration::from_secs(1000)).await;
            }
            drop(theirs);
        };
        let client = async {
            exchange(
                &mut ours,
                b"GET / HTTP/1.1\r\n\r\n",
                &LIMITS,
                Instant::now() + LIMITS.whole,
            )
            .await
        };
        tokio::select! {
            biased;
            result = client => result,
            () = async { server.await; std::future::pending().await } => unreachable!(),
        }
    })
}

#[track_caller]
fn check(bytes: &[u8], body: &[u8], cut: Option<Cut>, reuse: Reuse) {
    // The outcome is the same whether the bytes come together or in two parts, cut anywhere.
    for at in [
        0,
        bytes.len() / 3,
        bytes.len() / 2,
        bytes.len().saturating_sub(1),
    ] {
        let (message, reused) = answer(&[&bytes[..at], &bytes[at..]], false).unwrap();
        let shown = String::from_utf8_lossy(bytes);
        assert_eq!(message.body(), body, "{shown}");
        assert_eq!((message.cut, reused), (cut, reuse), "{shown}");
    }
}

#[track_caller]
fn check_failure(bytes: &[u8], failure: Failure) {
    assert_eq!(answer(&[bytes], false).unwrap_err(), failure);
}

#[test]
fn lengths() {
    let disconnect = Some(Cut::Disconnect);
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nrose",
        b"rose",
        None,
        Reuse::Yes,
    );
    check(
        b"HTTP/1.1 200 OK\nContent-Length: 4\n\nrose",
        b"rose",
        None,
        Reuse::Yes,
    );
    check(
        b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nrose",
        b"rose",
        None,
        Reuse::No,
    );
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nrose",
        b"rose",
        disconnect,
        Reuse::No,
    );
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nrose",
        b"ro",
        None,
        Reuse::No,
    );
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nrose",
        b"rose",
        None,
        Reuse::No,
    );
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\n\r\nrose",
        b"rose",
        None,
        Reuse::Yes,
    );
    check(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nrose",
        b"rose",
        None,
        Reuse::No,
    );
    check(
        b"HTTP/1.1 204 None\r\nContent-Length: 4\r\n\r\n",
        b"",
        None,
        Reuse::Yes,
    );
    check(b"HTTP/1.1 200\r\n\r\nrose", b"rose", None, Reuse::No);
}

#[test]
fn chunks() {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let check = |chunks: &[u8], body: &[u8], cut, reuse| {
        check(&[head, chunks].concat(), body, cut, reuse);
    };
    let disconnect = Some(Cut::Disconnect);
    check(
        b"2\r\nro\r\n2;x=y\r\nse\r\n0\r\n\r\n",
        b"rose",
        None,
        Reuse::Yes,
    );
    check(
        b"2\nro\n2\nse\n0\nTrailer: x\n\n",
        b"rose",
        None,
        Reuse::Yes,
    );
    check(b"2\r\nro\r\n2\r\nse\r\n", b"rose", disconnect, Reuse::No);
    check(b"2\r\nro\r\nzz\r\nse", b"ro", disconnect, Reuse::No);
    check(b"fffffffff\r\nrose", b"rose", disconnect, Reuse::No);
    check(b"ffffffffffffffffffff\r\nrose", b"", disconnect, Reuse::No);
    check(b"", b"", disconnect, Reuse::No);
}

#[test]
fn bodies_without_end_are_cut() {
    let long = vec![b'x'; 20_000];
    let body = &long[..LIMITS.max_body];
    let head = |field: &str| format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n").into_bytes();
    let length = Some(Cut::Length);
    check(
        &[head("A: b"), long.clone()].concat(),
        body,
        length,
        Reuse::No,
    );
    check(
        &[head("Content-Length: 20000"), long.clone()].concat(),
        body,
        length,
        Reuse::No,
    );
    let chunks = [
        head("Transfer-Encoding: chunked"),
        b"4e20\r\n".to_vec(),
        long.clone(),
    ]
    .concat();
    check(&chunks, body, length, Reuse::No);
}

#[test]
fn interim_answers_are_skipped() {
    let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    check(bytes, b"x", None, Reuse::Yes);
}

#[test]
fn no_answers() {
    check_failure(b"", Failure::Closed);
    check_failure(b"SSH-2.0-OpenSSH\r\n", Failure::NotHttp);
    // Looks like an interim response but is not one.
    check_failure(b"JPTP/1.1 100 Continue\r\n\r\n", Failure::NotHttp);
    check_failure(
        b"HTTP/1.1\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
        Failure::NotHttp,
    );
    check_failure(b"HTTP/1.1 200 OK\r\nA: b\r\n", Failure::NotHttp);
    check_failure(b"HTTP/1.1 abc\r\n\r\n", Failure::NotHttp);
    check_failure(&b"HTTP/1.1 100 Go on\r\n\r\n".repeat(20), Failure::NotHttp);
    let long = [b"HTTP/1.1 200 OK\r\nA: ".to_vec(), vec![b'x'; 5000]].concat();
    check_failure(&long, Failure::LongHead);
}

/// One byte per second: the head must arrive within the time for the first byte, and everything
/// within the total time.
#[test]
fn slow_answers() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n";
    let drops: Vec<&[u8]> = head.chunks(1).collect();
    assert_eq!(answer(&drops, true).unwrap_err(), Failure::Slow);
    let mut pieces: Vec<&[u8]> = vec![head];
    pieces.extend([b"x".as_slice(); 50]);
    let (message, reuse) = answer(&pieces, true).unwrap();
    assert_eq!((message.cut, reuse), (Some(Cut::Time), Reuse::No));
    assert!((18..=21).contains(&message.body().len()));
    assert_eq!(answer(&[], true).unwrap_err(), Failure::Slow);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any bytes give an outcome, never a panic, and never exceed the limits.
    #[test]
    fn any_bytes_are_legal(
        head in "HTTP/1\\.[01] [0-9]{0,3} ?[a-z]{0,3}\r?\n((Content-Length|Transfer-Encoding|[a-z]{0,3}):? ?([0-9]{1,5}|chunked|[a-z]{0,4})\r?\n){0,3}\r?\n?",
        body in any::<Vec<u8>>(),
        flip in any::<Option<(prop::sample::Index, u8)>>(),
    ) {
        let mut bytes = [head.into_bytes(), body].concat();
        if let Some((at, value)) = flip {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok((message, _)) = answer(&[&bytes], false) {
            prop_assert!(message.body().len() <= LIMITS.max_body);
            prop_assert!(message.bytes.len() <= bytes.len());
        }
    }
}

/// Responses that are broken at random and sent in pieces give an outcome, never a panic, and never
/// exceed the limits. `FUZZ_INPUTS` and `FUZZ_SEED` choose how many and which.
#[test]
fn broken_responses_have_an_outcome() {
    const SAMPLES: [&[u8]; 8] = [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nrose",
        b"HTTP/1.0 200 OK\nContent-Length: 4, 4\nConnection: keep-alive\n\nrose",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nro\r\n2;x=y\r\nse\r\n0\r\nA: b\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 304 Same\r\n\r\n",
        b"HTTP/1.1 301 Moved\r\nLocation: /x\r\n folded\r\nRetry-After: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 204 None\r\nContent-Length: -1\r\n\r\nbody",
        b"HTTP/1.1 200\r\nConnection: close\r\n\r\nto the end",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
    ];
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |value| value.parse().unwrap())
    };
    let mut random = arose::mix::SplitMix::new(number("FUZZ_SEED", 1) ^ 4);
    let mut below = |n: usize| random.below(n as u64) as usize;
    for _ in 0..number("FUZZ_INPUTS", 20_000) {
        let mut bytes = SAMPLES[below(SAMPLES.len())].to_vec();
        for _ in 0..=below(8) {
            let at = below(bytes.len() + 1);
            let end = (at + below(32)).min(bytes.len());
            let other = SAMPLES[below(SAMPLES.len())];
            let from = below(other.len() + 1);
            let to = (from + below(32)).min(other.len());
            match below(5) {
                0 => drop(bytes.drain(at..end)),
                1 => drop(bytes.splice(at..end, other[from..to].iter().copied())),
                2 => bytes.extend_from_within(at..end),
                3 => bytes.insert(at, below(256) as u8),
                _ => {
                    let bit = 1 << below(8);
                    bytes.iter_mut().skip(at).take(1).for_each(|b| *b ^= bit);
                }
            }
        }
        let shown = bytes.escape_ascii();
        let whole = answer(&[&bytes], false);
        if let Ok((message, _)) = &whole {
            assert!(message.body().len() <= LIMITS.max_body, "{shown}");
            assert!(message.bytes.len() <= bytes.len(), "{shown}");
            let head = message.head().expect("it was parsed before");
            assert!((100..1000).contains(&head.status), "{shown}");
        }
        // The message is the same however the bytes arrive. Bytes after it are seen only if they
        // arrive with it, so the connection may count as usable or not.
        let at = below(bytes.len() + 1);
        let pieces = answer(&[&bytes[..at], &bytes[at..]], false);
        let outcome = |answer: Result<(Message, Reuse), Failure>| {
            answer.map(|(message, _)| (message.bytes, message.head_end, message.cut))
        };
        assert_eq!(outcome(whole), outcome(pieces), "{shown} at {at}");
    }
}

/// A body that must not be there is not read as one. The bytes after it are not read as the
/// response to the next request.
#[test]
fn bodies_that_must_not_be_there() {
    for status in ["204 None", "304 Same"] {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\n");
        let (message, reuse) = answer(&[format!("{head}body").as_bytes()], true).unwrap();
        assert_eq!((message.body(), reuse), (b"".as_slice(), Reuse::No));
        let (_, reuse) = answer(&[head.as_bytes()], true).unwrap();
        assert_eq!(reuse, Reuse::Yes);
    }
}
