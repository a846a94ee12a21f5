//! Tests of xz and bzip2: consecutive streams, damage, expansion, positions and copies.

use arose_corpus::{Config, Position, Reason, fetch, keep};

use crate::support::{
    Folder, Pack, bzip2, check_damage, config, damage, documents, items, items_with, noise, piped,
    response, texts, xz,
};

const PACKINGS: [(&str, Pack); 2] = [("xz", xz), ("bz2", bzip2)];

fn line(n: u64) -> String {
    format!("{{\"id\":{n},\"text\":\"{}\"}}\n", noise(n, 40))
}

fn lines(n: u64) -> Vec<u8> {
    (0..n).map(line).collect::<String>().into_bytes()
}

#[test]
fn issue_19_files_and_pipes() {
    let folder = Folder::new();
    for (ending, pack) in PACKINGS {
        let path = folder.file(&format!("a.jsonl.{ending}"), &pack(&lines(50)));
        assert_eq!(documents(&items(&[&path])).len(), 50, "{ending}");
        let found = piped("-", &pack(&lines(50)), Config::default());
        assert_eq!(documents(&found).len(), 50, "{ending}");
        let page = folder.file(&format!("a.html.{ending}"), &pack(b"<p>rose</p>"));
        assert_eq!(texts(&items(&[&page])), ["rose"], "{ending}");
        let archive = [response(1, "one"), response(2, "two")].concat();
        let path = folder.file(&format!("a.warc.{ending}"), &pack(&archive));
        assert_eq!(documents(&items(&[&path])).len(), 2, "{ending}");
    }
    // In a directory, names are enough.
    assert_eq!(documents(&items(&[folder.path()])).len(), 2 * (50 + 1 + 2));
}

/// Consecutive streams, with the zero bytes that xz allows between them, with any number of
/// threads.
#[test]
fn many_streams() {
    for (ending, pack) in PACKINGS {
        let folder = Folder::new();
        let whole = lines(400);
        let mut packed: Vec<u8> = whole.chunks(5000).flat_map(pack).collect();
        packed.extend([0; 8]);
        packed.extend(pack(b"{\"id\":400,\"text\":\"last\"}\n"));
        packed.extend(pack(b""));
        let path = folder.file(&format!("a.jsonl.{ending}"), &packed);
        let one = items_with(&[&path], config(1, 1 << 20));
        assert_eq!(documents(&one).len(), 401, "{ending}");
        assert_eq!(damage(&one).len(), 0, "{ending}");
        for threads in [2, 4] {
            let found = items_with(&[&path], config(threads, 4000));
            assert_eq!(found, one, "{ending} by {threads} threads");
        }
        let chosen: Vec<_> = documents(&one).into_iter().step_by(37).collect();
        let positions: Vec<Position> = chosen.iter().map(|document| document.position).collect();
        let again = fetch(&path, &positions, &Config::default()).expect("it exists");
        assert_eq!(
            again.iter().flatten().collect::<Vec<_>>(),
            chosen,
            "{ending}"
        );
    }
}

#[test]
fn damage_costs_one_stream() {
    for (ending, pack) in PACKINGS {
        let members: Vec<Vec<u8>> = (0..5)
            .map(|n| pack(&response(n, &noise(n as u64, 200))))
            .collect();
        let start = (members[0].len() + members[1].len()) as u64;
        for at in (0..members[2].len()).step_by(11) {
            let mut archive = members.concat();
            archive[start as usize + at] ^= 0x55;
            let found = piped("a.warc", &archive, Config::default());
            let urls: Vec<_> = documents(&found)
                .iter()
                .filter_map(|d| d.url.clone())
                .collect();
            for other in [0, 1, 3, 4] {
                let url = format!("http://x/{other}");
                assert!(
                    urls.contains(&url),
                    "{ending}, byte {at}: {:?}",
                    damage(&found)
                );
            }
            assert!(
                urls.len() <= 5,
                "{ending}, byte {at}: {urls:?} {:?}",
                damage(&found)
            );
            let n_damage = damage(&found).len();
            assert_eq!(
                n_damage,
                5 - urls.len(),
                "{ending}, byte {at}: {:?}",
                damage(&found)
            );
        }
        let mut cut = members.concat();
        cut.truncate(cut.len() - 30);
        let last = (cut.len() + 30 - members[4].len()) as u64;
        check_damage(
            &piped("a.warc", &cut, Config::default()),
            Reason::Truncated,
            last,
        );
    }
}

#[test]
fn bombs_are_stopped() {
    for (ending, pack) in PACKINGS {
        // One block of bzip2, and several.
        for n_bytes in [24 << 20, 60 << 20] {
            let bomb = pack(&vec![b' '; n_bytes]);
            assert!(bomb.len() < 100_000, "{ending}");
            let bytes = [bomb, pack(&lines(3))].concat();
            let found = piped("a.jsonl", &bytes, Config::default());
            check_damage(&found, Reason::Expansion, 0);
            assert_eq!(documents(&found).len(), 3, "{ending}");
        }
    }
}

/// A header that requests a dictionary of 1 GiB is rejected before it is allocated.
#[test]
fn memory_of_xz_is_limited() {
    use liblzma::stream::{Check, Filters, LzmaOptions, Stream};
    use std::io::Write;
    let mut options = LzmaOptions::new_preset(0).expect("a preset");
    options.dict_size(1 << 30);
    let mut filters = Filters::new();
    filters.lzma2(&options);
    let stream = Stream::new_stream_encoder(&filters, Check::Crc32).expect("valid");
    let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    encoder.write_all(&lines(3)).expect("to memory");
    let packed = encoder.finish().expect("to memory");
    let found = piped("a.jsonl.xz", &packed, Config::default());
    check_damage(&found, Reason::BadCompression, 0);
    assert!(damage(&found)[0].detail.contains("256 MiB"), "{found:?}");
}

#[test]
fn copies_are_compressed_alike() {
    for (ending, pack) in PACKINGS {
        let folder = Folder::new();
        let archive: Vec<u8> = (0..6)
            .flat_map(|n| response(n, &noise(n as u64, 30)))
            .collect();
        for (name, bytes) in [
            ("a.jsonl", lines(9)),
            ("a.csv", b"id,text\n1,a\n2,b\n3,c\n".to_vec()),
            ("a.warc", archive),
        ] {
            let name = format!("{name}.{ending}");
            let path = folder.file(&name, &pack(&bytes));
            let before = items(&[&path]);
            let chosen: Vec<_> = documents(&before).into_iter().step_by(2).collect();
            let positions: Vec<Position> =
                chosen.iter().map(|document| document.position).collect();
            let mut copy = Vec::new();
            let kept = keep(&path, &positions, &mut copy, &Config::default()).expect("readable");
            assert_eq!(
                (kept.copied, kept.missing),
                (chosen.len() as u64, 0),
                "{name}"
            );
            assert_eq!(copy[..3], pack(b"x")[..3], "{name}");
            let after = items(&[&folder.file(&format!("kept-{name}"), &copy)]);
            let after: Vec<&str> = documents(&after).iter().map(|d| d.text.as_str()).collect();
            let chosen: Vec<&str> = chosen.iter().map(|d| d.text.as_str()).collect();
            assert_eq!(after, chosen, "{name}");
        }
    }
}
