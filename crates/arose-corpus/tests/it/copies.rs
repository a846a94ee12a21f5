//! Tests of copies of Parquet rows: columns that no reader uses are bounded and may be damaged.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use arose_corpus::{Change, Config, Fields, Kept, Limits, Position, Reason, keep, rewrite};
use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_schema::Field;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

use crate::support::{Folder, damage, documents, items_with, texts};

/// A table with a short text in each row and another column.
fn table(other: ArrayRef, properties: WriterPropertiesBuilder) -> (Vec<u8>, ParquetMetaData) {
    let texts = (0..other.len()).map(|n| format!("text {n}"));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
    let batch = RecordBatch::try_from_iter([("text", texts), ("other", other)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    let metadata = writer.close().unwrap();
    (bytes, metadata)
}

fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_enabled(false)
}

fn strings(n: usize, value: impl Fn(usize) -> String) -> ArrayRef {
    Arc::new(StringArray::from_iter_values((0..n).map(value)))
}

/// The rows of all documents.
fn positions(path: &Path, config: &Config) -> Vec<Position> {
    let found = items_with(&[path], config.clone());
    assert_eq!(damage(&found), Vec::<&arose_corpus::Warning>::new());
    let documents = documents(&found);
    documents.iter().map(|document| document.position).collect()
}

/// Copies all rows in both ways, which must agree. Returns the result, and the texts of the copy.
#[track_caller]
fn copy(bytes: &[u8], config: &Config) -> (Kept, Vec<String>) {
    let folder = Folder::new();
    let path = folder.file("a.parquet", bytes);
    let positions = positions(&path, config);
    let mut copy = Vec::new();
    let kept = keep(&path, &positions, &mut copy, config).unwrap();
    let mut rewritten = Vec::new();
    let mut n_asked = 0;
    let lost = rewrite(&path, &mut rewritten, config, &mut |_| {
        n_asked += 1;
        Ok(Change::Keep)
    });
    assert_eq!(lost.unwrap(), kept.lost);
    assert_eq!(n_asked, positions.len());
    let read = |bytes: &[u8]| {
        let found = items_with(&[&folder.file("b.parquet", bytes)], Config::default());
        let texts = texts(&found);
        texts.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let texts = read(&copy);
    assert_eq!(read(&rewritten), texts);
    assert_eq!(kept.copied, texts.len() as u64);
    (kept, texts)
}

#[track_caller]
fn check_lost(kept: &Kept, reason: Reason, row: u64) {
    let lost = kept.lost.as_ref().expect("something is lost");
    assert_eq!((lost.reason, lost.position.offset), (reason, row), "{lost}");
}

/// A page of another column that decompresses to far more than its size: the text is read, but the
/// rows are not copied.
#[test]
fn issue_19_other_columns_that_expand_too_far() {
    for codec in [
        Compression::GZIP(Default::default()),
        Compression::ZSTD(Default::default()),
    ] {
        let other = strings(2, |_| "a".repeat(20 << 20));
        let (bytes, _) = table(other, properties().set_compression(codec));
        assert!(bytes.len() < 100_000, "{}", bytes.len());
        let (kept, _) = copy(&bytes, &Config::default());
        check_lost(&kept, Reason::Expansion, 0);
        assert_eq!((kept.copied, kept.missing), (0, 0));
    }
}

/// One text in many rows of another column is stored once, but would be written many times.
#[test]
fn issue_19_other_columns_of_one_text() {
    let config = Config {
        limits: Limits {
            table_bytes: 1 << 20,
            expansion: 4,
            ..Limits::default()
        },
        ..Config::default()
    };
    let other = strings(4000, |_| "b".repeat(4 << 10));
    let (bytes, _) = table(other, WriterProperties::builder());
    assert!(bytes.len() < 100_000, "{}", bytes.len());
    let (kept, texts) = copy(&bytes, &config);
    assert!(
        texts.len() < 1000,
        "{} rows of 4 KiB in {} bytes",
        texts.len(),
        bytes.len()
    );
    check_lost(&kept, Reason::Expansion, texts.len() as u64);
    // With the default limits they are copied.
    let (kept, texts) = copy(&bytes, &Config::default());
    assert_eq!((kept.lost, texts.len()), (None, 4000));
}

/// A text that is too long for a dictionary is written once per row, a few rows at a time.
#[test]
fn issue_19_other_columns_of_one_long_text() {
    let config = Config {
        block_bytes: NonZeroUsize::new(64 << 10).unwrap(),
        ..Config::default()
    };
    let other = strings(40, |_| "e".repeat(2 << 20));
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(1 << 30);
    let (bytes, _) = table(other, properties);
    assert!(bytes.len() < 3 << 20, "{}", bytes.len());
    let folder = Folder::new();
    let path = folder.file("a.parquet", &bytes);
    let mut copy = Vec::new();
    let kept = keep(&path, &positions(&path, &config), &mut copy, &config).unwrap();
    assert_eq!((kept.copied, kept.lost), (40, None));
    // A row group ends when 64 blocks wait, and a row is half as large.
    let copy = std::fs::File::open(folder.file("b.parquet", &copy)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(copy).unwrap();
    assert!(reader.metadata().num_row_groups() >= 10);
}

/// Pages of many columns are held side by side.
#[test]
fn issue_19_many_other_columns_that_expand() {
    let text = "c".repeat(12 << 20);
    let columns = (0..60).map(|n| {
        let name = if n == 0 { "text" } else { "other" };
        (format!("{name}{n}"), strings(1, |_| text.clone()))
    });
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = properties().set_compression(Compression::ZSTD(Default::default()));
    let mut writer =
        ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    let config = Config {
        fields: Fields {
            text: vec!["text0".to_owned()],
            ..Fields::default()
        },
        ..Config::default()
    };
    let folder = Folder::new();
    let path = folder.file("a.parquet", &bytes);
    let kept = keep(&path, &positions(&path, &config), Vec::new(), &config).unwrap();
    check_lost(&kept, Reason::Expansion, 0);
}

/// A list of equal numbers takes a few bytes, however long it is.
#[test]
fn issue_19_other_columns_of_long_lists() {
    let config = Config {
        limits: Limits {
            page_bytes: 1 << 20,
            ..Limits::default()
        },
        ..Config::default()
    };
    let mut lists = ListBuilder::new(Int64Builder::new());
    for n in [1000, 300_000, 10] {
        (0..n).for_each(|_| lists.values().append_value(7));
        lists.append(true);
    }
    let (bytes, _) = table(Arc::new(lists.finish()), WriterProperties::builder());
    assert!(bytes.len() < 10_000, "{}", bytes.len());
    let (kept, texts) = copy(&bytes, &config);
    check_lost(&kept, Reason::TooLarge, texts.len() as u64);
    let (kept, texts) = copy(&bytes, &Config::default());
    assert_eq!((kept.lost, texts.len()), (None, 3));
}

/// Damage in another column loses the rows from there to the end of the row group.
#[test]
fn issue_19_damage_in_other_columns() {
    let properties = properties()
        .set_max_row_group_row_count(Some(40))
        .set_write_batch_size(1)
        .set_data_page_row_count_limit(10);
    let other = strings(120, |n| format!("{n} {}", "d".repeat(100)));
    let (bytes, metadata) = table(other, properties);
    let (start, length) = metadata.row_group(1).column(1).byte_range();
    let mut broken = bytes.clone();
    let at = (start + length * 5 / 8) as usize;
    // A length that leads out of the page.
    let text = memchr::memmem::find(&broken[at..], b"\x67\0\0\0").unwrap() + at;
    broken[text..text + 4].fill(0xff);
    let (kept, texts) = copy(&broken, &Config::default());
    let row = texts.iter().position(|text| text == "text 80").unwrap();
    check_lost(&kept, Reason::BadParquet, row as u64);
    assert!((60..70).contains(&row), "{row}");
    let expected = (0..row).chain(80..120).map(|n| format!("text {n}"));
    assert_eq!(texts, expected.collect::<Vec<_>>());
    let (kept, texts) = copy(&bytes, &Config::default());
    assert_eq!((kept.lost, texts.len()), (None, 120));
}

/// Lists, structs and their texts are copied, with their types.
#[test]
fn nested_columns_are_copied() {
    let mut tags = ListBuilder::new(StringBuilder::new());
    for n in 0..50 {
        (0..n % 4).for_each(|i| tags.values().append_value(format!("tag {i} of {n}")));
        tags.append(n % 7 > 0);
    }
    let tags: ArrayRef = Arc::new(tags.finish());
    let names = strings(50, |n| format!("a name that is not short {n}"));
    let fields = [
        Field::new("tags", tags.data_type().clone(), true),
        Field::new("name", names.data_type().clone(), true),
    ];
    let other: ArrayRef = Arc::new(StructArray::new(
        fields.to_vec().into(),
        vec![tags, names],
        None,
    ));
    let (bytes, _) = table(Arc::clone(&other), properties());
    let folder = Folder::new();
    let path = folder.file("a.parquet", &bytes);
    let rows = |bytes: Vec<u8>| {
        let path = folder.file("b.parquet", &bytes);
        let file = std::fs::File::open(path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        batches[0].column(1).clone()
    };
    let mut copy = Vec::new();
    let config = Config::default();
    keep(&path, &positions(&path, &config), &mut copy, &config).unwrap();
    assert_eq!(&rows(copy), &other);
}

/// A text inside a struct can be replaced.
#[test]
fn texts_in_structs_are_rewritten() {
    let inner: ArrayRef = strings(3, |n| format!("inner {n}"));
    let field = Field::new("text", inner.data_type().clone(), true);
    let data: ArrayRef = Arc::new(StructArray::new(vec![field].into(), vec![inner], None));
    let (bytes, _) = table(data, properties());
    let config = Config {
        fields: Fields {
            text: vec!["other.text".to_owned()],
            ..Fields::default()
        },
        ..Config::default()
    };
    let folder = Folder::new();
    let path = folder.file("a.parquet", &bytes);
    let mut copy = Vec::new();
    let mut row = 0;
    let lost = rewrite(&path, &mut copy, &config, &mut |_| {
        row += 1;
        Ok(match row {
            1 => Change::Keep,
            2 => Change::Text("another".to_owned()),
            _ => Change::Drop,
        })
    });
    assert_eq!(lost.unwrap(), None);
    let found = items_with(&[&folder.file("b.parquet", &copy)], config);
    assert_eq!(texts(&found), ["inner 0", "another"]);
}
