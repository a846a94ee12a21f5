use proptest::prelude::*;
use serde_json::Value as Tree;

use super::*;

/// Top-level strings and numbers by key; the last of equal keys counts.
fn scanned(line: &[u8]) -> Result<Vec<(String, Option<String>)>, Flaw> {
    let mut fields: Vec<(String, Option<String>)> = Vec::new();
    scan(line, |key, value| {
        let key = key.unescape()?.0.into_owned();
        let value = match value {
            Value::Text(text) => Some(text.unescape()?.0.into_owned()),
            Value::Number(number) => Some(String::from_utf8_lossy(number).into_owned()),
            Value::Object(_) | Value::Null | Value::Other => None,
        };
        match fields.iter_mut().find(|(name, _)| *name == key) {
            Some(field) => field.1 = value,
            None => fields.push((key, value)),
        }
        Ok(())
    })?;
    Ok(fields)
}

/// The same, with a full parser.
fn parsed(line: &[u8]) -> Option<Vec<(String, Option<String>)>> {
    let Ok(Tree::Object(map)) = serde_json::from_slice::<Tree>(line) else {
        return None;
    };
    let fields = map.into_iter().map(|(key, value)| match value {
        Tree::String(text) => (key, Some(text)),
        Tree::Number(_) => (key, Some("number".to_owned())),
        _ => (key, None),
    });
    Some(fields.collect())
}

/// Numbers are compared only by kind, because a full parser rounds them.
fn without_numbers(line: &[u8]) -> Option<Vec<(String, Option<String>)>> {
    let mut numbers = Vec::new();
    let result = scan(line, |key, value| {
        if matches!(value, Value::Number(_)) {
            numbers.push(key.unescape()?.0.into_owned());
        }
        value.check()
    });
    result.ok()?;
    let mut fields = scanned(line).ok()?;
    for field in &mut fields {
        let is_number = field.1.as_deref().is_some_and(|v| v.parse::<f64>().is_ok());
        if is_number && numbers.contains(&field.0) {
            field.1 = Some("number".to_owned());
        }
    }
    Some(fields)
}

#[track_caller]
fn check(line: &str, fields: &[(&str, Option<&str>)]) {
    let expected: Vec<_> = fields
        .iter()
        .map(|(key, value)| (key.to_string(), value.map(str::to_owned)))
        .collect();
    assert_eq!(scanned(line.as_bytes()), Ok(expected));
}

#[test]
fn strings_numbers_and_the_rest() {
    check("{}", &[]);
    check(
        r#" { "text" : "a\nb" , "id":-1.5e3, "x":null,"y":{"text":[1,{"z":"]"}]} } "#,
        &[
            ("text", Some("a\nb")),
            ("id", Some("-1.5e3")),
            ("x", None),
            ("y", None),
        ],
    );
}

#[test]
fn nested_objects_are_handed_out() {
    let mut objects = Vec::new();
    let line = br#"{"a":{ "b":[{"c":1}] },"d":[{}],"e":{}}"#;
    let result = scan(line, |_, value| {
        if let Value::Object(object) = value {
            objects.push(String::from_utf8_lossy(object).into_owned());
        }
        Ok(())
    });
    assert_eq!(result, Ok(()));
    assert_eq!(objects, [r#"{ "b":[{"c":1}] }"#, "{}"]);
}

/// Every prefix of a value is open, and the value itself is complete whatever follows.
#[test]
fn extents() {
    let value = r#"{"a": [1.5e-3, true, null, "x\"\u00e9"], "b": {"c": -0}, "d": false}"#;
    for n in 1..value.len() {
        assert_eq!(extent(&value.as_bytes()[..n]), Extent::Open, "{n}");
    }
    for rest in ["", " ", "{", ",", "x", "\n}"] {
        let bytes = format!("{value}{rest}");
        let whole = Extent::Whole(value.len());
        assert_eq!(extent(bytes.as_bytes()), whole, "{rest}");
    }
    for (bytes, at) in [
        ("{\"a\": NaN}", 6),
        ("{\"a\" 1}", 6),
        ("{\"a\": 1 {", 10),
        ("{\"a\": 1] ", 8),
        ("{\"a\": \"\\x\" }", 10),
        ("{a", 2),
        ("x", 0),
    ] {
        let found = extent(format!("{bytes}  ").as_bytes());
        assert!(matches!(found, Extent::Flawed(..)), "{bytes}: {found:?}");
        let Extent::Flawed(found, _) = found else {
            continue;
        };
        assert!(found.abs_diff(at) <= 1, "{bytes}: {found}");
    }
    let deep = "{\"a\":".repeat(1000);
    let found = extent(deep.as_bytes());
    assert!(matches!(found, Extent::Flawed(..)), "{found:?}");
}

#[test]
fn escapes() {
    check(
        r#"{"t\u0065xt":"\"\\\/\b\f\n\r\t\u00e9\ud83c\udf39"}"#,
        &[("text", Some("\"\\/\u{8}\u{c}\n\r\té🌹"))],
    );
}

#[test]
fn lone_surrogates_and_bad_bytes_are_replaced_and_told() {
    for line in [
        &br#"{"t":"a\ud800b"}"#[..],
        b"{\"t\":\"a\xffb\"}",
        b"{\"t\":\"a\\n\xffb\"}",
    ] {
        let mut seen = None;
        let result = scan(line, |_, value| {
            if let Value::Text(text) = value {
                seen = Some(text.unescape()?);
            }
            Ok(())
        });
        assert_eq!(result, Ok(()));
        let (text, is_lossy) = seen.expect("one field");
        assert!(is_lossy && text.contains('\u{fffd}'), "{text}");
    }
}

/// The next backslash may be at any byte of a word.
#[test]
fn runs_are_copied() {
    for n in 0..80 {
        // Bytes that differ from a backslash in one bit, and bytes that the subtraction could
        // borrow from.
        for filler in [b'a', b']', b'[', b'^', b'"', 0, 1, 0xff, b'\\' ^ 0x80] {
            let mut bytes = vec![filler; n];
            let mut out = vec![0; n + 12];
            assert_eq!(copy_run(&bytes, &mut out), n);
            assert_eq!(out[..n], bytes);
            bytes.extend([b'\\', b']', b'\\', filler]);
            assert_eq!(copy_run(&bytes, &mut out), n);
            assert_eq!(out[..n], bytes[..n]);
        }
    }
}

#[test]
fn the_closing_quote_follows_an_even_number_of_backslashes() {
    check(
        r#"{"a":"\\\\\"","b":"\\"}"#,
        &[("a", Some(r#"\\""#)), ("b", Some(r"\"))],
    );
    for open in [r#"{"a":"\"}"#, r#"{"a":"\\\"}"#, r#"{"a\":1}"#] {
        assert!(scanned(open.as_bytes()).is_err(), "{open}");
    }
}

/// Bad escapes are flaws in wanted and unwanted values alike.
#[test]
fn flawed_escapes_are_found_everywhere() {
    for line in [
        r#"{"a":"\x"}"#,
        r#"{"a\x":1}"#,
        r#"{"a":["\u12"]}"#,
        r#"{"a":{"b":"\ud83c\u"}}"#,
        r#"{"a":{"\x":1}}"#,
    ] {
        assert!(parsed(line.as_bytes()).is_none(), "{line}");
        assert!(
            scan(line.as_bytes(), |_, value| value.check()).is_err(),
            "{line}"
        );
    }
}

#[test]
fn hexadecimal_digits() {
    for code in 0..=0xffff_u32 {
        assert_eq!(hex4(format!("{code:04x}").as_bytes()), Some(code));
        assert_eq!(hex4(format!("{code:04X}..").as_bytes()), Some(code));
    }
    for bad in [&b"123"[..], b"12g4", b"+123", b"12 4", b"\xff123"] {
        assert_eq!(hex4(bad), None);
    }
}

#[test]
fn refused() {
    for line in [
        "",
        "[1]",
        "42",
        "\"text\"",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":01}",
        "{\"a\":1} x",
        "{\"a\":\"b}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":[1}}",
        "{\"a\":[1,]}",
        "{\"a\":{\"b\":1,}}",
        "{\"a\":-}",
        "{\"a\":1.}",
        "{\"a\":nul}",
        "{a:1}",
        "{\"a\":{]}",
        "{\"a\":[}",
        "{\"a\":[1 2]}",
        "{\"a\":[,1]}",
    ] {
        assert!(scanned(line.as_bytes()).is_err(), "{line}");
        assert!(parsed(line.as_bytes()).is_none(), "{line}");
    }
}

#[test]
fn nesting_has_a_limit() {
    let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
    assert!(scanned(nested(126).as_bytes()).is_ok());
    assert!(scanned(nested(128).as_bytes()).is_err());
    assert!(scanned(nested(1_000_000).as_bytes()).is_err());
}

fn tree() -> impl Strategy<Value = Tree> {
    let text = proptest::collection::vec(any::<char>(), 0..12)
        .prop_map(|letters| letters.into_iter().collect::<String>());
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::from),
        any::<i64>().prop_map(Tree::from),
        (-1e9..1e9f64).prop_map(Tree::from),
        text.clone().prop_map(Tree::from),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Tree::from),
            proptest::collection::vec((text.clone(), inner), 0..5)
                .prop_map(|fields| Tree::Object(fields.into_iter().collect())),
        ]
    })
}

/// A piece of a JSON string.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -!#-\\[\\]-~]{0,40}",
        2 => "[é玫🌹]{1,9}",
        2 => proptest::sample::select(vec!["\\n", "\\r\\n", "\\\"", "\\\\", "\\/", "\\t", "\\b", "\\f"])
            .prop_map(str::to_owned),
        4 => proptest::collection::vec(any::<char>(), 1..9).prop_map(|letters| {
            let mut units = [0; 2];
            let units = letters.iter().flat_map(|letter| letter.encode_utf16(&mut units).to_vec());
            units.map(|unit| format!("\\u{unit:04x}")).collect()
        }),
        1 => any::<u16>().prop_map(|unit| format!("\\u{unit:04X}")),
    ]
}

proptest! {
    #[test]
    fn agrees_with_a_full_parser_on_objects(fields in proptest::collection::vec((".{0,6}", tree()), 0..6)) {
        let object = Tree::Object(fields.into_iter().collect());
        for line in [object.to_string(), serde_json::to_string_pretty(&object).expect("no maps with odd keys")] {
            prop_assert_eq!(without_numbers(line.as_bytes()), parsed(line.as_bytes()));
        }
    }

    /// A scanner that skips values must not accept input that a parser would reject.
    #[test]
    fn agrees_with_a_full_parser_on_mutations(
        fields in proptest::collection::vec(("[a-c]{1,2}", tree()), 1..4),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), "[\\[\\]{}\",:0-9eE.+\\-tfn a-c\\\\]"), 1..3),
    ) {
        let object = Tree::Object(fields.into_iter().collect());
        let mut line = object.to_string().into_bytes();
        for (index, letter) in edits {
            let at = index.index(line.len());
            line[at] = letter.as_bytes()[0];
        }
        // Overwritten bytes may break a letter. This scanner tolerates that, a full parser does
        // not.
        prop_assume!(std::str::from_utf8(&line).is_ok());
        prop_assume!(!String::from_utf8_lossy(&line).to_lowercase().contains("\\ud"));
        prop_assume!(!line.iter().any(|&b| b < 0x20));
        // A number beyond the range of `f64` is not an error here.
        let ours = without_numbers(&line);
        if let Some(theirs) = parsed(&line) {
            prop_assert_eq!(ours, Some(theirs));
        } else if let Some(fields) = ours {
            let is_huge = String::from_utf8_lossy(&line).to_lowercase().contains('e');
            prop_assert!(is_huge, "accepted {:?}", fields);
        }
    }

    /// Strings of all mixtures of letters and escapes, some of them broken.
    #[test]
    fn strings_agree_with_a_full_parser(
        parts in proptest::collection::vec(part(), 0..40),
        edit in proptest::option::of((any::<proptest::sample::Index>(), "[0-9a-gu\\\\\"nx]")),
    ) {
        let mut line = format!("{{\"a\":\"{}\"}}", parts.concat()).into_bytes();
        if let Some((index, letter)) = edit {
            let at = index.index(line.len());
            line[at] = letter.as_bytes()[0];
        }
        prop_assume!(std::str::from_utf8(&line).is_ok());
        let mut is_lossy = false;
        let ours = scan(&line, |_, value| {
            if let Value::Text(text) = value {
                // A check must give the same result as unescaping.
                assert_eq!(text.check().err(), text.unescape().err());
                is_lossy |= text.unescape()?.1;
            }
            Ok(())
        });
        match parsed(&line) {
            Some(fields) => {
                prop_assert!(ours.is_ok() && !is_lossy);
                prop_assert_eq!(scanned(&line), Ok(fields));
            }
            // Lone surrogates are tolerated here.
            None => prop_assert!(ours.is_err() || is_lossy),
        }
    }

    #[test]
    fn any_bytes(line in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut object = b"{\"a\":".to_vec();
        object.extend(&line);
        let _ = scanned(&line);
        let _ = scanned(&object);
    }
}
