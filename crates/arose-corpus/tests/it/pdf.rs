//! Tests of PDF files: passed by name, in directories, in archives, damaged.

use arose_corpus::{Item, Loss, Reason};

use crate::support::{Folder, items, texts};

/// A file with one page per line of text.
fn pdf(lines: &[&str]) -> Vec<u8> {
    let mut objects = vec![
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        {
            let kids: Vec<String> = (0..lines.len())
                .map(|n| format!("{} 0 R", 4 + 2 * n))
                .collect();
            let n = lines.len();
            format!(
                "<</Type/Pages/Count {n}/Kids[{}]/Resources<</Font<</F1 3 0 R>>>>>>",
                kids.join(" ")
            )
        },
        "<</Type/Font/Subtype/Type1/BaseFont/Courier>>".to_owned(),
    ];
    for (n, line) in lines.iter().enumerate() {
        let program = format!("BT /F1 12 Tf 72 720 Td ({line}) Tj ET");
        objects.push(format!(
            "<</Type/Page/Parent 2 0 R/Contents {} 0 R>>",
            5 + 2 * n
        ));
        objects.push(format!(
            "<</Length {}>>stream\n{program}\nendstream",
            program.len()
        ));
    }
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (n, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend_from_slice(format!("{} 0 obj\n{object}\nendobj\n", n + 1).as_bytes());
    }
    let start = file.len();
    let n = objects.len() + 1;
    file.extend_from_slice(format!("xref\n0 {n}\n0000000000 65535 f \n").as_bytes());
    for place in places {
        file.extend_from_slice(format!("{place:010} 00000 n \n").as_bytes());
    }
    let end = format!("trailer\n<</Size {n}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n");
    file.extend_from_slice(end.as_bytes());
    file
}

#[test]
fn issue_27_files_and_directories() {
    let folder = Folder::new();
    let path = folder.file("a.pdf", &pdf(&["A rose is", "a rose."]));
    // The content decides, not the name.
    let other = folder.file("b.txt", &pdf(&["Another rose."]));
    for paths in [vec![&*path, &*other], vec![folder.path()]] {
        assert_eq!(
            texts(&items(&paths)),
            ["A rose is\na rose.", "Another rose."]
        );
    }
}

/// A file that cannot be read is reported as lost, and the rest is read.
#[test]
fn issue_27_damaged_files_are_told() {
    let folder = Folder::new();
    let whole = pdf(&["A rose."]);
    folder.file("a.pdf", &whole[..40]);
    folder.file("b.pdf", &whole);
    let found = items(&[folder.path()]);
    let [Item::Skipped(warning), Item::Document(document)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((warning.reason, warning.loss), (Reason::BadPdf, Loss::File));
    assert_eq!(document.text, "A rose.");
}

#[test]
fn issue_27_records_of_archives() {
    let body = pdf(&["A rose."]);
    let mut http = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n".to_vec();
    http.extend_from_slice(&body);
    let mut archive = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Target-URI: http://a.example/x.pdf\r\nWARC-Date: 2026-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        http.len()
    )
    .into_bytes();
    archive.extend_from_slice(&http);
    archive.extend_from_slice(b"\r\n\r\n");
    let folder = Folder::new();
    let found = items(&[&folder.file("a.warc", &archive)]);
    let [Item::Document(document)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(document.text, "A rose.");
}
