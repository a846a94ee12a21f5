use std::io::Write;

use lopdf::{Stream, StringFormat, dictionary};

use super::*;
use crate::html::HtmlConfig;

/// A file with one page per program and a font `F1`.
fn file(programs: &[&[u8]], compress: bool) -> Vec<u8> {
    saved(document(programs, compress))
}

fn saved(mut document: Document) -> Vec<u8> {
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn document(programs: &[&[u8]], compress: bool) -> Document {
    let mut document = Document::with_version("1.5");
    let pages_id = document.new_object_id();
    let font = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier",
    });
    let resources = document.add_object(dictionary! {
        "Font" => dictionary! { "F1" => font },
    });
    let action = dictionary! {
        "S" => "URI",
        "URI" => Object::String(b"http://b.example/next".to_vec(), StringFormat::Literal),
    };
    let annotation = document.add_object(dictionary! {
        "Type" => "Annot", "Subtype" => "Link", "A" => action,
    });
    let mut kids = Vec::new();
    for program in programs {
        let stream = match compress {
            true => Stream::new(dictionary! { "Filter" => "FlateDecode" }, deflated(program)),
            false => Stream::new(dictionary! {}, program.to_vec()),
        };
        let content = document.add_object(stream);
        let page = document.add_object(dictionary! {
            "Type" => "Page", "Parent" => pages_id, "Contents" => content,
            "Annots" => vec![annotation.into()],
        });
        kids.push(page.into());
    }
    let count = kids.len() as i64;
    let pages = dictionary! {
        "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
    };
    document.objects.insert(pages_id, Object::Dictionary(pages));
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages_id });
    document.trailer.set("Root", catalog);
    let title = Object::String(b"A  title".to_vec(), StringFormat::Literal);
    let info = document.add_object(dictionary! { "Title" => title });
    document.trailer.set("Info", info);
    document
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn config() -> HtmlConfig {
    HtmlConfig {
        links: Links::Collect,
        ..HtmlConfig::default()
    }
}

const ROSE: &[u8] =
    b"BT /F1 12 Tf 50 700 Td (A rose) Tj 40 0 Td (is) Tj 0 -20 Td [(a r) 20 (ose)] TJ \
    T* [(is) -300 (a)] TJ (rose.) ' ET";

#[test]
fn text_title_and_links() {
    for compress in [false, true] {
        let page = read(
            &file(&[ROSE, b"BT /F1 9 Tf (Two) Tj ET"], compress),
            None,
            &config(),
        );
        let page = page.unwrap();
        assert_eq!(page.text, "A rose is\na rose\nis a\nrose.\nTwo");
        assert_eq!(page.title.as_deref(), Some("A title"));
        let links = page.metadata.unwrap().links;
        assert_eq!(links.len(), 2);
        assert_eq!(links[0].url, "http://b.example/next");
        assert!(page.details.is_empty());
    }
}

/// A scanned file has no text; only its bytes can be compared.
#[test]
fn files_without_text_are_none() {
    let error = read(&file(&[b"0 0 m 10 10 l S"], true), None, &config()).unwrap_err();
    assert_eq!(error.0, Reason::MediaType);
}

#[test]
fn links_only_if_wanted() {
    let page = read(&file(&[ROSE], true), None, &HtmlConfig::default()).unwrap();
    assert!(page.metadata.unwrap().links.is_empty());
}

/// Every missing or wrong part gives a text or a reason.
#[test]
fn damaged_files_are_told() {
    let whole = file(&[ROSE], true);
    let mut n_read = 0;
    for cut in (0..whole.len()).step_by(7) {
        n_read += usize::from(read(&whole[..cut], None, &config()).is_ok());
        let mut damaged = whole.clone();
        damaged[cut] ^= 0x55;
        let _ = read(&damaged, None, &config());
    }
    assert!(n_read < whole.len() / 7, "{n_read}");
    for bytes in [&b""[..], b"%PDF-1.7", b"%PDF-1.4\n%%EOF", b"no PDF at all"] {
        assert!(read(bytes, None, &config()).is_err());
    }
}

#[test]
fn encrypted_files_are_told() {
    let mut locked = document(&[ROSE], false);
    let secret = || Object::String(vec![7; 32], StringFormat::Literal);
    let encrypt = locked.add_object(dictionary! {
        "Filter" => "Standard", "V" => 1, "R" => 2, "Length" => 40, "P" => -4,
        "O" => secret(), "U" => secret(),
    });
    locked.trailer.set("Encrypt", encrypt);
    locked.trailer.set("ID", vec![secret(), secret()]);
    let error = read(&saved(locked), None, &config()).unwrap_err();
    assert_eq!(error, (Reason::BadPdf, ENCRYPTED.to_owned()));
}

/// A page that expands beyond its limit is left out, and the others are read.
#[test]
fn bombs_are_bounded() {
    let bomb = vec![b' '; PAGE_BYTES + 1];
    let page = read(&file(&[&bomb, ROSE], true), None, &config()).unwrap();
    assert!(page.text.starts_with("A rose"), "{}", page.text);
    assert_eq!(page.details.len(), 1);
    // Many pages just below the limit: the limit of all pages holds.
    let mut large = ROSE.to_vec();
    large.resize(PAGE_BYTES - 1, b' ');
    let programs = vec![&large[..]; 40];
    let page = read(&file(&programs, true), None, &config()).unwrap();
    let n_unread = page.details[0].split(' ').next().unwrap().parse::<usize>();
    // The font counts as well, so one page fewer fits than without it.
    assert_eq!(n_unread, Ok(40 - TOTAL_BYTES / PAGE_BYTES + 1));
}

/// Object streams that would expand to gigabytes are not expanded.
#[test]
fn object_streams_are_bounded() {
    let mut body = b"%PDF-1.5\n".to_vec();
    let bomb = deflated(&vec![b'1'; 8 << 20]);
    for n in 1..200 {
        let head = format!(
            "{n} 0 obj\n<</Type/Obj#53tm/N 1/First 4/Filter/FlateDecode/Length {}>>stream\n",
            bomb.len()
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&bomb);
        body.extend_from_slice(b"\nendstream\nendobj\n");
    }
    assert!(stream_limit(&body) < 1 << 20);
    assert!(read(&body, None, &config()).is_err());
}

#[test]
fn deep_nesting_ends() {
    for (open, close) in [("[", "]"), ("<</A", ">>"), ("(", ")")] {
        let deep = format!("BT {}{} Tj ET", open.repeat(100_000), close.repeat(100_000));
        let _ = read(&file(&[deep.as_bytes(), ROSE], true), None, &config());
        let body = format!(
            "%PDF-1.4\n1 0 obj\n{}{}\nendobj",
            open.repeat(100_000),
            close
        );
        assert!(read(body.as_bytes(), None, &config()).is_err());
    }
}
