//! Tests of the rules of the workspace: which crate may import which, and the form of files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// From top to bottom: a crate imports only crates below it.
const ORDER: [&[&str]; 8] = [
    &["arose-python"],
    &["arose-cli"],
    &["arose-web", "arose-estimate"],
    &["arose-crawl"],
    &["arose-search"],
    &["arose-dedup"],
    &["arose-corpus"],
    &["arose"],
];

/// Licences that are compatible with those of this project.
const LICENCES: [&str; 12] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
    "bzip2-1.0.6",
];

/// Maximum number of lines of a source file, except tests.
const MAX_LINES: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The packages of this workspace.
fn packages() -> Vec<Value> {
    packages_by(&["--no-deps"])
}

fn packages_by(options: &[&str]) -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(options)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn dependencies(package: &Value) -> BTreeSet<&str> {
    let all = package["dependencies"].as_array().unwrap().iter();
    let normal = all.filter(|dependency| dependency["kind"].is_null());
    normal
        .map(|dependency| dependency["name"].as_str().unwrap())
        .collect()
}

fn level(name: &str) -> Option<usize> {
    ORDER.iter().position(|names| names.contains(&name))
}

/// Whether an SPDX expression is satisfied by the accepted licences. Parentheses are ignored, which
/// never accepts too much.
fn is_accepted(licence: &str) -> bool {
    let licence = licence.replace(['(', ')'], "").replace('/', " OR ");
    let mut all = licence.split(" AND ");
    all.all(|any| any.split(" OR ").any(|one| LICENCES.contains(&one.trim())))
}

#[test]
fn licences_and_sources() {
    let all = packages_by(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    assert!(all.len() > 100, "{} packages", all.len());
    for package in all {
        let name = &package["name"];
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(is_accepted(licence), "{name} has the licence `{licence}`");
        if let Some(source) = package["source"].as_str() {
            assert!(source.starts_with("registry+"), "{name} is from {source}");
        }
    }
    for (licence, expected) in [
        ("MIT", true),
        ("GPL-3.0-only OR MIT", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0-only", false),
        ("", false),
    ] {
        assert_eq!(is_accepted(licence), expected, "{licence}");
    }
}

#[test]
fn imports_go_from_top_to_bottom() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let own = level(name);
        for import in dependencies(&package) {
            if let Some(imported) = level(import) {
                assert!(
                    own.is_none_or(|own| own < imported),
                    "{name} may not import {import}"
                );
            }
            // Only the command has a demo on a synthetic web; no other crate is built on one.
            assert!(
                import != "testweb" || name == "arose-cli",
                "{name} is a product and testweb is for tests"
            );
            // A tool that checks the product must not share its errors.
            assert!(
                name != "testweb" || level(import).is_none(),
                "testweb may not import {import}"
            );
        }
        assert!(
            own.is_some() || name == "testweb",
            "{name} has no place in the order of crates"
        );
    }
}

#[test]
fn algorithms_have_few_dependencies() {
    let packages = packages();
    let arose = packages
        .iter()
        .find(|package| package["name"] == "arose")
        .unwrap();
    let dependencies = dependencies(arose);
    assert!(dependencies.len() < 8, "{dependencies:?}");
}

/// Versions are written once, in the workspace, and directories are named after their crate.
#[test]
fn manifests() {
    for package in packages() {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
        let folder = manifest.parent().unwrap();
        assert_eq!(
            folder.file_name().unwrap().to_str(),
            package["name"].as_str()
        );
        let text = fs::read_to_string(&manifest).unwrap();
        let tables = text
            .split("\n[")
            .filter(|table| table.split(']').next().unwrap().ends_with("dependencies"));
        for line in tables
            .flat_map(|table| table.lines().skip(1))
            .filter(|line| !line.is_empty())
        {
            assert!(line.contains("workspace"), "{}: {line}", manifest.display());
        }
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{}",
            manifest.display()
        );
    }
}

/// All Rust files with their text, below `crates` and `bench`.
fn sources() -> Vec<(PathBuf, String)> {
    let mut folders = vec![root().join("crates"), root().join("bench/src")];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                sources.push((path, text));
            }
        }
    }
    assert!(sources.len() > 20, "the walk found too few files");
    sources
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
        || path.to_string_lossy().ends_with("tests.rs")
}

#[test]
fn files_explain_themselves_and_stay_short() {
    for (path, text) in sources().iter().filter(|(path, _)| !is_test(path)) {
        assert!(
            text.starts_with("//!"),
            "{} does not begin by saying what it holds",
            path.display()
        );
        let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
        // Tables are as long as their content.
        let is_table = path.to_string_lossy().ends_with("_table.rs");
        let n_lines = if is_table { 0 } else { code.lines().count() };
        assert!(
            n_lines <= MAX_LINES,
            "{} has {n_lines} lines",
            path.display()
        );
    }
}

#[test]
fn names_say_what_is_held() {
    for (path, _) in sources() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let vague = [
            "util", "utils", "helper", "helpers", "common", "manager", "misc",
        ];
        assert!(!vague.contains(&name), "{}", path.display());
    }
}

/// Written in pieces, so that this file does not match itself.
#[test]
fn nothing_is_left_lying_about() {
    let left = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("db", "g!("),
        concat!("#[ign", "ore"),
        concat!("fn te", "st_"),
        concat!("FIX", "ME"),
    ];
    for (path, text) in sources() {
        for pattern in left {
            assert!(
                !text.contains(pattern),
                "{} contains {pattern}",
                path.display()
            );
        }
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), number + 1);
            assert!(
                !line.contains('\t') && line.trim_end() == line,
                "white space at {place}"
            );
            // rustfmt formats code; this checks comments, except for tables and links.
            let is_prose = line.trim_start().starts_with("//");
            let is_long =
                line.chars().count() > 100 && !line.contains("](") && !line.contains(" | ");
            assert!(!(is_prose && is_long), "{place} is too wide");
        }
    }
}

/// Only the kernels of `arose` contain unsafe code; every other crate forbids it.
#[test]
fn unsafe_code_stays_in_one_module() {
    for (path, text) in sources() {
        let is_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
        let is_algorithms = path.ends_with("arose/src/lib.rs");
        if is_root {
            let expected = if is_algorithms {
                "#![deny(unsafe_code)]"
            } else {
                "#![forbid(unsafe_code)]"
            };
            assert!(
                text.contains(expected),
                "{} lacks {expected}",
                path.display()
            );
        }
        let is_kernel = path.parent().unwrap().ends_with("arose/src/simd");
        let has_unsafe = text
            .lines()
            .any(|line| line.contains(concat!("uns", "afe {")));
        assert!(
            is_kernel || !has_unsafe,
            "{} holds unsafe code",
            path.display()
        );
    }
}
