//! Tests of Parquet columns of every type, in every role, and of struct fields.

use std::path::PathBuf;
use std::sync::Arc;

use arose_corpus::{Config, Document, Limits, Position, Reason, keep};
use arrow_array::builder::{
    BinaryViewBuilder, Decimal128Builder, Decimal256Builder, StringDictionaryBuilder,
    StringViewBuilder,
};
use arrow_array::types::{Int8Type, Int32Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, DictionaryArray,
    Float16Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    LargeBinaryArray, LargeStringArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::{Folder, damage, documents, items_with, texts};

fn table(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn strings(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// Two rows of every type, the second of them null, with the text and the number of the first.
fn every_type() -> Vec<(ArrayRef, &'static str, Option<f64>)> {
    let mut decimal = Decimal128Builder::new()
        .with_precision_and_scale(10, 2)
        .unwrap();
    decimal.append_value(-1205);
    decimal.append_null();
    let mut wide = Decimal256Builder::new()
        .with_precision_and_scale(60, 3)
        .unwrap();
    wide.append_value(1_500.into());
    wide.append_null();
    let mut view = StringViewBuilder::new();
    view.append_value("a rose that is longer than a view");
    view.append_null();
    let mut bytes_view = BinaryViewBuilder::new();
    bytes_view.append_value(b"rose");
    bytes_view.append_null();
    let mut words = StringDictionaryBuilder::<Int8Type>::new();
    words.append_value("rose");
    words.append_null();
    let words: ArrayRef = Arc::new(words.finish());
    let large = LargeStringArray::from(vec![Some("rose")]);
    let keys = UInt16Array::from(vec![Some(0), None]);
    let large = DictionaryArray::<UInt16Type>::new(keys, Arc::new(large));
    let keys = Int32Array::from(vec![Some(0), None]);
    let numbers = DictionaryArray::<Int32Type>::new(keys, Arc::new(Int64Array::from(vec![7])));
    let half = Float16Array::from_iter([Some(Default::default()), None]);
    let micro = 1_715_997_490_250_000;
    vec![
        (strings(&[Some("rose"), None]), "rose", None),
        (
            Arc::new(LargeStringArray::from(vec![Some("rose"), None])),
            "rose",
            None,
        ),
        (
            Arc::new(view.finish()),
            "a rose that is longer than a view",
            None,
        ),
        (
            Arc::new(BinaryArray::from_opt_vec(vec![Some(b"rose"), None])),
            "rose",
            None,
        ),
        (
            Arc::new(LargeBinaryArray::from_opt_vec(vec![Some(b"rose"), None])),
            "rose",
            None,
        ),
        (Arc::new(bytes_view.finish()), "rose", None),
        (words, "rose", None),
        (Arc::new(large), "rose", None),
        (Arc::new(numbers), "7", Some(7.0)),
        (
            Arc::new(Int8Array::from(vec![Some(-8), None])),
            "-8",
            Some(-8.0),
        ),
        (
            Arc::new(Int16Array::from(vec![Some(-16), None])),
            "-16",
            Some(-16.0),
        ),
        (
            Arc::new(Int32Array::from(vec![Some(-32), None])),
            "-32",
            Some(-32.0),
        ),
        (
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None])),
            "-9223372036854775808",
            Some(i64::MIN as f64),
        ),
        (
            Arc::new(UInt8Array::from(vec![Some(8), None])),
            "8",
            Some(8.0),
        ),
        (
            Arc::new(UInt16Array::from(vec![Some(16), None])),
            "16",
            Some(16.0),
        ),
        (
            Arc::new(UInt32Array::from(vec![Some(32), None])),
            "32",
            Some(32.0),
        ),
        (
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
            "18446744073709551615",
            Some(u64::MAX as f64),
        ),
        (Arc::new(half), "0", Some(0.0)),
        (
            Arc::new(Float32Array::from(vec![Some(0.1), None])),
            "0.1",
            Some(0.1),
        ),
        (
            Arc::new(Float64Array::from(vec![Some(-2.5e-7), None])),
            "-0.00000025",
            Some(-2.5e-7),
        ),
        (Arc::new(decimal.finish()), "-12.05", Some(-12.05)),
        (Arc::new(wide.finish()), "1.500", Some(1.5)),
        (
            Arc::new(BooleanArray::from(vec![Some(true), None])),
            "true",
            Some(1.0),
        ),
        (
            Arc::new(Date32Array::from(vec![Some(1), None])),
            "1970-01-02",
            Some(86_400.0),
        ),
        (
            Arc::new(Date64Array::from(vec![Some(86_400_000), None])),
            "1970-01-02",
            Some(86_400.0),
        ),
        (
            Arc::new(TimestampSecondArray::from(vec![Some(60), None])),
            "1970-01-01T00:01:00Z",
            Some(60.0),
        ),
        (
            Arc::new(TimestampMillisecondArray::from(vec![Some(-500), None])),
            "1969-12-31T23:59:59.5Z",
            Some(-0.5),
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![Some(micro), None]).with_timezone("UTC")),
            "2024-05-18T01:58:10.25Z",
            Some(1_715_997_490.25),
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![Some(1), None])),
            "1970-01-01T00:00:00.000000001Z",
            Some(1e-9),
        ),
    ]
}

fn read(bytes: &[u8], config: Config) -> Vec<Document> {
    let folder = Folder::new();
    let path = folder.file("a.parquet", bytes);
    let found = items_with(&[&path], config);
    documents(&found).into_iter().cloned().collect()
}

#[test]
fn issue_19_every_type_in_every_role() {
    for (array, text, priority) in every_type() {
        let kind = array.data_type().clone();
        let mut config = Config::default();
        config.fields.priority = vec!["p".to_owned()];
        let columns = ["text", "id", "url", "title", "lang", "date", "p"];
        let columns = columns.map(|name| (name, Arc::clone(&array)));
        let found = read(&table(columns.to_vec()), config.clone());
        assert_eq!(found.len(), 1, "{kind}");
        let document = &found[0];
        assert_eq!(document.text, text, "{kind}");
        for role in [
            &document.id,
            &document.url,
            &document.title,
            &document.language,
        ] {
            assert_eq!(role.as_deref(), Some(text), "{kind}");
        }
        let is_near =
            |found: f64, expected: f64| (found - expected).abs() <= expected.abs() * 1e-12;
        match (document.priority, priority) {
            (Some(found), Some(expected)) => assert!(is_near(found, expected), "{kind}: {found}"),
            (found, expected) => assert_eq!(found, expected, "{kind}"),
        }
        if matches!(
            kind,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64
        ) {
            let expected = priority.map(|seconds| seconds.floor() as i64);
            assert_eq!(document.fetched, expected, "{kind}");
        }
        // If the text is null, there is another column, or none.
        let other = table(vec![
            ("id", array),
            ("text", strings(&[Some("a"), Some("b")])),
        ]);
        let found = read(&other, config);
        assert_eq!((found.len(), found[1].id.as_deref()), (2, None), "{kind}");
    }
}

/// `data: {text, page: {url}}`, with a null struct in the second row and a null text in the third.
fn nested() -> ArrayRef {
    let urls = StructArray::from(vec![(
        Arc::new(Field::new("url", DataType::Utf8, true)),
        strings(&[Some("u1"), Some("hidden"), Some("u3"), None]),
    )]);
    let fields: Fields = vec![
        Field::new("text", DataType::Utf8, true),
        Field::new("page", urls.data_type().clone(), true),
        Field::new("other", DataType::Utf8, true),
    ]
    .into();
    let arrays: Vec<ArrayRef> = vec![
        strings(&[Some("a"), Some("hidden"), None, Some("d")]),
        Arc::new(urls),
        strings(&[Some("x"); 4]),
    ];
    let valid = vec![true, false, true, true].into();
    Arc::new(StructArray::new(fields, arrays, Some(valid)))
}

fn by_path() -> Config {
    let mut config = Config::default();
    config.fields.text = vec!["data.text".to_owned()];
    config.fields.url = vec!["data.page.url".to_owned()];
    config.fields.priority = vec!["meta.score".to_owned()];
    config
}

#[test]
fn issue_19_fields_of_structs() {
    let scores: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.5, 2.5, 3.5]));
    let meta = StructArray::from(vec![(
        Arc::new(Field::new("score", DataType::Float32, true)),
        scores,
    )]);
    let columns = vec![("data", nested()), ("meta", Arc::new(meta) as ArrayRef)];
    let found = read(&table(columns.clone()), by_path());
    let found: Vec<_> = found
        .iter()
        .map(|d| {
            (
                d.text.as_str(),
                d.url.as_deref(),
                d.priority,
                d.position.offset,
            )
        })
        .collect();
    assert_eq!(
        found,
        [("a", Some("u1"), Some(0.5), 0), ("d", None, Some(3.5), 3)]
    );
    // A column with the whole name wins, wherever it is.
    let mut columns = columns;
    columns.push((
        "data.text",
        strings(&[Some("w"), Some("x"), Some("y"), Some("z")]),
    ));
    let found = read(&table(columns), by_path());
    let found: Vec<&str> = found
        .iter()
        .map(|document| document.text.as_str())
        .collect();
    assert_eq!(found, ["w", "x", "y", "z"]);
}

/// For a file without a text column, the warning lists its columns and their types.
#[test]
fn columns_that_hold_no_text_are_described() {
    let folder = Folder::new();
    let path = folder.file(
        "a.parquet",
        &table(vec![
            ("data", nested()),
            ("n", Arc::new(Int8Array::from(vec![1; 4]))),
        ]),
    );
    let found = items_with(&[&path], Config::default());
    let detail = &damage(&found)[0].detail;
    assert!(
        detail.ends_with("columns found: data (struct of text, page, other), n"),
        "{detail}"
    );
}

#[test]
fn issue_19_a_cell_beyond_the_limit() {
    let long = "x".repeat(2000);
    let config = Config {
        limits: Limits {
            record_bytes: 1000,
            ..Limits::default()
        },
        ..Config::default()
    };
    let values = [Some("a"), Some(&*long), Some("c")];
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    words.extend(values);
    for array in [strings(&values), Arc::new(words.finish())] {
        let folder = Folder::new();
        let path = folder.file("a.parquet", &table(vec![("text", array)]));
        let found = items_with(&[&path], config.clone());
        assert_eq!(texts(&found), ["a", "c"]);
        let warnings = damage(&found);
        assert_eq!(
            (warnings[0].reason, warnings[0].position.offset),
            (Reason::TooLarge, 1)
        );
        assert_eq!(warnings.len(), 1);
    }
}

/// Copies keep the types of their columns.
#[test]
fn kept_rows_keep_their_types() {
    let folder = Folder::new();
    let mut columns: Vec<(String, ArrayRef)> = every_type()
        .into_iter()
        .enumerate()
        .map(|(n, (array, _, _))| (format!("c{n}"), array))
        .collect();
    columns.push(("text".to_owned(), strings(&[Some("a"), Some("b")])));
    let columns = columns
        .iter()
        .map(|(name, array)| (name.as_str(), Arc::clone(array)));
    let path: PathBuf = folder.file("a.parquet", &table(columns.collect()));
    let mut copy = Vec::new();
    let second = Position {
        offset: 1,
        inner: 0,
    };
    keep(&path, &[second], &mut copy, &Config::default()).unwrap();
    let copy = folder.file("b.parquet", &copy);
    let schema = |path: &PathBuf| {
        let file = std::fs::File::open(path).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        Arc::clone(builder.schema())
    };
    assert_eq!(schema(&copy), schema(&path));
    assert_eq!(texts(&items_with(&[&copy], Config::default())), ["b"]);
}
