//! Runs html5lib-tests and web-platform-tests on the tokenizer and the text extractor.
//!
//! Characters, names, attributes and comments are compared. Parse errors and the identifiers of a
//! doctype are not. The repository has most cases (`tests/suites`); the complete suites are also
//! read if they are installed. `known_differences.txt` lists the cases that differ for a reason.
//! The list must be exact, so a case that starts to pass must be removed from it.

use std::collections::BTreeMap;
use std::path::Path;

use arose_corpus::html::tag::Tag;
use arose_corpus::html::token::{State, Token, Tokenizer};
use arose_corpus::html::{HtmlConfig, extract};
use serde_json::{Value, json};

use crate::shared::{files, suites};

/// `file: case` of every known difference.
fn known_differences() -> Vec<&'static str> {
    include_str!("known_differences.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Compares the failures of the files whose name ends in `suffix` with the list.
#[track_caller]
fn check_against_known(failed: &[String], suffix: &str) {
    let marker = format!("{suffix}: ");
    let known: Vec<&str> = known_differences()
        .into_iter()
        .filter(|case| case.contains(&marker))
        .collect();
    for case in failed {
        assert!(known.contains(&case.as_str()), "new difference\n{case}");
    }
    for case in known {
        assert!(
            failed.iter().any(|found| found == case),
            "no longer a difference\n{case}"
        );
    }
}

#[test]
fn html5lib_tokenizer() {
    for folder in suites("html5lib/tokenizer") {
        check_tokenizer(&folder);
    }
}

fn check_tokenizer(folder: &Path) {
    let files = files(folder, "test");
    let mut failed = Vec::new();
    let mut n_cases = 0;
    for (file, text) in &files {
        let suite: Value = serde_json::from_str(text).unwrap();
        let tests = suite
            .get("tests")
            .or_else(|| suite.get("xmlViolationTests"))
            .unwrap();
        for test in tests.as_array().unwrap() {
            n_cases += 1;
            let unescape = test["doubleEscaped"].as_bool().unwrap_or(false);
            if !tokenizes(test, unescape) {
                failed.push(format!("{file}: {}", test["description"].as_str().unwrap()));
            }
        }
    }
    println!(
        "{n_cases} tokenizer cases, {} known differences",
        failed.len()
    );
    assert!(n_cases > 3000);
    check_against_known(&failed, ".test");
}

fn tokenizes(test: &Value, double_escaped: bool) -> bool {
    let prepare = |text: &str| {
        if double_escaped {
            unescape(text)
        } else {
            Some(text.to_owned())
        }
    };
    // Decoded text cannot contain lone surrogates.
    let Some(input) = prepare(test["input"].as_str().unwrap()) else {
        return true;
    };
    let mut expected = Vec::new();
    for token in test["output"].as_array().unwrap() {
        let Some(token) = prepare(&token.to_string()) else {
            return true;
        };
        let Ok(token) = serde_json::from_str::<Value>(&escape_controls(&token)) else {
            return true;
        };
        push_token(
            &mut expected,
            if token[0] == "DOCTYPE" {
                json!(["DOCTYPE"])
            } else {
                token
            },
        );
    }
    let last = test["lastStartTag"].as_str().unwrap_or("xmp");
    let default = vec![json!("Data state")];
    let states = test["initialStates"].as_array().unwrap_or(&default);
    states.iter().all(|state| {
        let state = match state.as_str().unwrap() {
            "Data state" => State::Data,
            "PLAINTEXT state" => State::Plaintext,
            "RCDATA state" => State::Escapable(last),
            "RAWTEXT state" => State::Raw(last),
            "Script data state" => State::Script,
            "CDATA section state" => State::Cdata,
            other => panic!("unknown state {other}"),
        };
        let found = tokens(&input, state);
        if found != expected && std::env::var_os("SHOW_DIFFERENCES").is_some() {
            println!("{input:?} {state:?}\n  expected {expected:?}\n  found    {found:?}");
        }
        found == expected
    })
}

/// JSON whose `\u` escapes were resolved may contain raw control characters, which are invalid.
fn escape_controls(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        match char {
            '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", char as u32)),
            _ => out.push(char),
        }
    }
    out
}

/// Resolves the `\uXXXX` escapes of a double-escaped case; none for a lone surrogate.
fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split("\\u");
    let mut out = parts
        .next()
        .unwrap_or_default()
        .trim_end_matches('\\')
        .to_owned();
    for part in parts {
        let code = u32::from_str_radix(part.get(..4)?, 16).ok()?;
        out.push(char::from_u32(code)?);
        out.push_str(part[4..].trim_end_matches('\\'));
    }
    Some(out)
}

fn tokens(input: &str, state: State<'_>) -> Vec<Value> {
    let mut tokenizer = Tokenizer::in_state(input, state);
    let mut out = Vec::new();
    while let Some(token) = tokenizer.next_token() {
        let clean = |text: &str| {
            text.replace("\r\n", "\n")
                .replace('\r', "\n")
                .replace('\0', "\u{fffd}")
        };
        let token = match token {
            Token::Text(text) => json!(["Character", text.decoded()]),
            Token::Comment(text) => json!(["Comment", clean(text)]),
            Token::Doctype(_) => json!(["DOCTYPE"]),
            Token::End(name) => json!(["EndTag", clean(&name.raw.to_ascii_lowercase())]),
            Token::Start(name) => {
                let mut attributes = serde_json::Map::new();
                for attribute in tokenizer.attributes() {
                    let name = clean(&attribute.name.to_ascii_lowercase());
                    attributes
                        .entry(name)
                        .or_insert_with(|| json!(attribute.value()));
                }
                let name_text = clean(&name.raw.to_ascii_lowercase());
                match name.self_closing {
                    true => json!(["StartTag", name_text, attributes, true]),
                    false => json!(["StartTag", name_text, attributes]),
                }
            }
        };
        push_token(&mut out, token);
    }
    out
}

/// Appends a token; characters join the characters before them.
fn push_token(tokens: &mut Vec<Value>, token: Value) {
    if let Some(last) = tokens.last_mut()
        && last[0] == "Character"
        && token[0] == "Character"
    {
        last[1] = json!(format!(
            "{}{}",
            last[1].as_str().unwrap(),
            token[1].as_str().unwrap()
        ));
        return;
    }
    tokens.push(token);
}

/// No text that a browser puts into its tree is lost.
#[test]
fn tree_construction_loses_no_text() {
    for folder in suites("wpt/tree-construction") {
        check_trees(&folder);
    }
}

fn check_trees(folder: &Path) {
    let files = files(folder, "dat");
    let mut failed = Vec::new();
    let mut n_cases = 0;
    for (file, text) in &files {
        for case in text.split("#data\n").skip(1) {
            let Some((data, rest)) = case.split_once("\n#errors") else {
                continue;
            };
            let Some((_, tree)) = rest.split_once("\n#document\n") else {
                continue;
            };
            n_cases += 1;
            let found = extract(data, None, &HtmlConfig::default()).text;
            if let Some(missing) = first_missing(&tree_text(tree), &found) {
                if std::env::var_os("SHOW_DIFFERENCES").is_some() {
                    println!("{file}: {data:?} lost {missing:?}\n{tree}");
                }
                failed.push(format!("{file}: {}", data.escape_debug()));
            }
        }
    }
    println!("{n_cases} tree cases, {} known differences", failed.len());
    assert!(n_cases > 1000);
    check_against_known(&failed, ".dat");
}

/// The text nodes of a dumped tree, without invisible ones.
fn tree_text(tree: &str) -> String {
    let mut text = String::new();
    let mut hidden_below: Option<usize> = None;
    let mut in_text = false;
    for line in tree.lines() {
        let Some(node) = line.strip_prefix("| ") else {
            // A text node with line ends continues.
            if in_text && hidden_below.is_none() {
                text.push_str(line.trim_end_matches('"'));
            }
            continue;
        };
        let depth = node.len() - node.trim_start().len();
        if hidden_below.is_some_and(|limit| depth <= limit) {
            hidden_below = None;
        }
        let node = node.trim_start();
        in_text = node.starts_with('"');
        if in_text && hidden_below.is_none() {
            text.push_str(node.trim_start_matches('"').trim_end_matches('"'));
        } else if let Some(name) = node.strip_prefix('<') {
            let name = name.trim_end_matches('>').rsplit(' ').next().unwrap();
            let tag = Tag::from_name(name);
            let hides = matches!(
                tag,
                Tag::Script
                    | Tag::Style
                    | Tag::Noscript
                    | Tag::Iframe
                    | Tag::Noembed
                    | Tag::Noframes
                    | Tag::Template
            );
            if hides && hidden_below.is_none() {
                hidden_below = Some(depth);
            }
        }
    }
    text
}

/// A character that occurs more often in `expected` than in `found`, except whitespace and quotes,
/// which delimit text nodes in the dump.
fn first_missing(expected: &str, found: &str) -> Option<char> {
    let mut counts = BTreeMap::new();
    for char in found.chars() {
        *counts.entry(char).or_insert(0i64) += 1;
    }
    for char in expected
        .chars()
        .filter(|c| !c.is_ascii_whitespace() && *c != '"')
    {
        let count = counts.entry(char).or_insert(0);
        *count -= 1;
        if *count < 0 {
            return Some(char);
        }
    }
    None
}
