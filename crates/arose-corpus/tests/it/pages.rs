//! Tests of pages, footers and rows of hostile Parquet files.

use std::fs::File;
use std::sync::Arc;

use arose_corpus::{Config, Item, Limits, Loss, Reason};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData};
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::support::{Folder, damage, items_with, texts};

/// Rows of a column `text`, in one page compressed with `codec`.
fn packed(
    texts: &[&str],
    codec: Compression,
    version: WriterVersion,
    encoding: Encoding,
) -> Vec<u8> {
    let array: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, true)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![array]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_writer_version(version)
        .set_dictionary_enabled(encoding == Encoding::RLE_DICTIONARY)
        .set_data_page_size_limit(1 << 30)
        .set_dictionary_page_size_limit(1 << 30);
    let properties = match encoding {
        Encoding::RLE_DICTIONARY => properties,
        encoding => properties.set_encoding(encoding),
    };
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn codecs() -> [Compression; 6] {
    [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
    ]
}

/// A Thrift varint, and its end.
fn varint(bytes: &[u8], start: usize) -> (i64, usize) {
    let n = bytes[start..].iter().position(|b| b & 0x80 == 0).unwrap() + 1;
    let digits = bytes[start..start + n].iter().rev();
    let value = digits.fold(0_i64, |value, b| value << 7 | i64::from(b & 0x7f));
    (value >> 1, start + n)
}

/// A Thrift varint of exactly `n` bytes.
fn put_varint(value: i64, n: usize) -> Vec<u8> {
    let value = value << 1;
    let byte = |i: usize| (value >> (7 * i)) as u8 & 0x7f | if i + 1 < n { 0x80 } else { 0 };
    (0..n).map(byte).collect()
}

/// The same file with a first page that declares `claimed` decompressed bytes. Additional bytes in
/// its header are taken from the page.
fn claiming(mut file: Vec<u8>, claimed: i64) -> Vec<u8> {
    // "PAR1", the type of the page, then both sizes, each after a byte for its field.
    assert_eq!((file[4], file[6]), (0x15, 0x15));
    let (_, end) = varint(&file, 7);
    let (compressed, compressed_end) = varint(&file, end + 1);
    let longer = 5 - (end - 7);
    let size = put_varint(compressed - longer as i64, compressed_end - end - 1);
    file.splice(end + 1..compressed_end, size);
    let removed = file.len() - 8 - footer_length(&file) - 1;
    file.drain(removed + 1 - longer..=removed);
    file.splice(7..end, put_varint(claimed, 5));
    file
}

fn footer_length(file: &[u8]) -> usize {
    let length = file[file.len() - 8..][..4].try_into().unwrap();
    u32::from_le_bytes(length) as usize
}

#[test]
fn issue_19_pages_that_claim_gigabytes() {
    let folder = Folder::new();
    let long = "a rose ".repeat(3000);
    for codec in codecs() {
        for encoding in [Encoding::PLAIN, Encoding::RLE_DICTIONARY] {
            let file = packed(
                &[&long, "tulip"],
                codec,
                WriterVersion::PARQUET_1_0,
                encoding,
            );
            let name = format!("{codec:?} {encoding:?}");
            let (whole, _) = varint(&file, 7);
            let path = folder.file("a.parquet", &file);
            assert_eq!(
                texts(&items_with(&[&path], Config::default())).len(),
                2,
                "{name}"
            );
            for (claimed, reason) in [
                (2_000_000_000, Reason::TooLarge),
                (100_000_000, Reason::Expansion),
                (whole + 1, Reason::BadParquet),
            ] {
                let path = folder.file("b.parquet", &claiming(file.clone(), claimed));
                let found = items_with(&[&path], Config::default());
                assert!(texts(&found).is_empty(), "{name}");
                let [warning] = damage(&found)[..] else {
                    panic!("{name}: {found:?}");
                };
                assert_eq!(warning.reason, reason, "{name}, {claimed}: {warning}");
                assert_eq!(warning.loss, arose_corpus::Loss::File);
            }
        }
    }
}

/// Deflate and Brotli decompress all input, whatever the header says.
#[test]
fn issue_19_pages_larger_than_they_say() {
    let folder = Folder::new();
    let long = "a rose ".repeat(1 << 19);
    let config = Config {
        limits: Limits {
            page_bytes: 1 << 20,
            ..Limits::default()
        },
        ..Config::default()
    };
    for codec in [
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
    ] {
        let file = packed(&[&long], codec, WriterVersion::PARQUET_1_0, Encoding::PLAIN);
        let path = folder.file("a.parquet", &claiming(file.clone(), 1000));
        let found = items_with(&[&path], config.clone());
        let [warning] = damage(&found)[..] else {
            panic!("{codec:?}: {found:?}");
        };
        assert_eq!(warning.reason, Reason::Expansion, "{warning}");
        assert!(
            warning.detail.contains("more than the 1000 bytes"),
            "{warning}"
        );
        let path = folder.file("b.parquet", &file);
        let found = items_with(&[&path], config.clone());
        assert_eq!(damage(&found)[0].reason, Reason::TooLarge);
    }
}

/// Pages are the same however few rows are decoded at once, in both versions of the format.
#[test]
fn issue_19_batches_of_any_size() {
    let folder = Folder::new();
    let rows: Vec<String> = (0..300)
        .map(|n| format!("rose{n}").repeat(n % 50))
        .collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    for codec in codecs() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for encoding in [
                Encoding::PLAIN,
                Encoding::DELTA_BYTE_ARRAY,
                Encoding::DELTA_LENGTH_BYTE_ARRAY,
                Encoding::RLE_DICTIONARY,
            ] {
                let path = folder.file("a.parquet", &packed(&rows, codec, version, encoding));
                for (page_bytes, block_bytes) in [(512 << 20, 1 << 20), (80_000, 1), (200_000, 999)]
                {
                    let config = Config {
                        limits: Limits {
                            page_bytes,
                            ..Limits::default()
                        },
                        ..crate::support::config(1, block_bytes)
                    };
                    let found = items_with(&[&path], config);
                    assert!(texts(&found) == rows, "{codec:?} {version:?} {encoding:?}");
                }
            }
        }
    }
}

/// The same file with another footer.
fn with_footer(
    file: &[u8],
    change: impl Fn(Vec<RowGroupMetaData>) -> Vec<RowGroupMetaData>,
) -> Vec<u8> {
    let folder = Folder::new();
    let path = folder.file("a.parquet", file);
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&File::open(path).unwrap())
        .unwrap();
    let groups = change(metadata.row_groups().to_vec());
    let metadata = metadata.into_builder().set_row_groups(groups).build();
    let mut changed = file[..file.len() - 8 - footer_length(file)].to_vec();
    ParquetMetaDataWriter::new(&mut changed, &metadata)
        .finish()
        .unwrap();
    changed
}

/// The only item of a file that is rejected as a whole.
#[track_caller]
fn refused(file: &[u8], reason: Reason, detail: &str) {
    let folder = Folder::new();
    let path = folder.file("a.parquet", file);
    let mut items = arose_corpus::read(&[path], Config::default()).unwrap();
    let found: Vec<Item> = items.by_ref().take(10).collect();
    let [warning] = damage(&found)[..] else {
        panic!("{found:?}");
    };
    assert_eq!(warning.reason, reason, "{warning}");
    assert!(warning.detail.contains(detail), "{warning}");
    assert_eq!(warning.loss, Loss::File, "{warning}");
}

/// A run of nulls takes only a few bytes, however long it is.
#[test]
fn issue_19_null_rows_are_bounded_by_the_file() {
    let texts = StringArray::new_null(20_000_000);
    let batch = RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef)]).unwrap();
    let properties = WriterProperties::builder()
        .set_data_page_row_count_limit(usize::MAX)
        .set_max_row_group_row_count(None);
    let properties = Some(properties.build());
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), properties).unwrap();
    writer.write(&batch).unwrap();
    let file = writer.into_inner().unwrap();
    assert!(file.len() < 2000, "{}", file.len());
    refused(&file, Reason::Expansion, "20000000 rows in a file of");
}

#[test]
fn issue_19_footers_that_do_not_fit_the_file() {
    let none = Compression::UNCOMPRESSED;
    let rows = ["a rose ".repeat(1000), "tulip".to_owned()];
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let file = packed(&rows, none, WriterVersion::PARQUET_1_0, Encoding::PLAIN);
    // The same bytes as many row groups: their text would grow with the square of the file size.
    let many = with_footer(&file, |groups| vec![groups[0].clone(); 50]);
    refused(&many, Reason::BadParquet, "bytes in a file of");
    let claims = |n: i64| {
        with_footer(&file, |groups| {
            let group = groups[0].clone().into_builder().set_num_rows(n).build();
            vec![group.unwrap()]
        })
    };
    refused(
        &claims(1),
        Reason::BadParquet,
        "2 values in a column of 1 rows",
    );
    refused(&claims(1 << 40), Reason::Expansion, "rows in a file of");
}

/// Found by mutations of samples.
#[test]
fn issue_19_columns_of_negative_size() {
    let none = Compression::UNCOMPRESSED;
    let file = packed(&["rose"], none, WriterVersion::PARQUET_1_0, Encoding::PLAIN);
    let sized = |n: i64| {
        with_footer(&file, |groups| {
            let column = groups[0].column(0).clone().into_builder();
            let column = column.set_total_compressed_size(n).build().unwrap();
            let group = groups[0].clone().into_builder();
            vec![group.set_column_metadata(vec![column]).build().unwrap()]
        })
    };
    refused(&sized(-1), Reason::BadParquet, "a column of -1 bytes");
    refused(&sized(i64::MIN), Reason::BadParquet, "a column of");
}

/// A text that fills many rows is stored once; the rows together may not contain too much text.
#[test]
fn issue_19_equal_rows_are_bounded_by_the_file() {
    let text = (0..3000).fold(String::new(), |text, n| format!("{text} rose{n}"));
    let rows = vec![text.as_str(); 1000];
    let version = WriterVersion::PARQUET_1_0;
    let file = packed(
        &rows,
        Compression::UNCOMPRESSED,
        version,
        Encoding::RLE_DICTIONARY,
    );
    let folder = Folder::new();
    let path = folder.file("a.parquet", &file);
    assert_eq!(texts(&items_with(&[&path], Config::default())).len(), 1000);
    let config = Config {
        limits: Limits {
            expansion: 2,
            table_bytes: 10 * text.len() as u64,
            ..Limits::default()
        },
        ..Config::default()
    };
    let found = items_with(&[&path], config);
    let [warning] = damage(&found)[..] else {
        panic!("{found:?}");
    };
    assert_eq!(warning.reason, Reason::Expansion, "{warning}");
    assert_eq!(texts(&found).len() as u64, warning.position.offset);
    assert!((12..=14).contains(&warning.position.offset), "{warning}");
}
