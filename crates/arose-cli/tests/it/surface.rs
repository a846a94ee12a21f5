//! The public items of each library, as a list that is reviewed.
//!
//! `surface.txt` of a crate has a line per public item. To write the lists again after a change,
//! and review them before committing: `AROSE_SURFACE=write cargo test -p arose-cli --test it
//! surface`.
//!
//! The lists are made from the sources. The lint `unreachable_pub` ensures that an item marked
//! `pub` is reachable from outside, and rustfmt ensures that items have a uniform layout.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const CRATES: [&str; 7] = [
    "arose",
    "arose-corpus",
    "arose-crawl",
    "arose-dedup",
    "arose-estimate",
    "arose-search",
    "arose-web",
];

/// The block that a line is inside of.
struct Block {
    indent: usize,
    kind: Kind,
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Module,
    Struct,
    Enum,
    Trait,
    Impl,
    Other,
}

fn crates() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    folder.canonicalize().unwrap()
}

/// Source files, with the names of their modules.
fn sources(src: &Path) -> Vec<(String, String)> {
    let mut folders = vec![src.to_owned()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let module = path.strip_prefix(src).unwrap().with_extension("");
            let module = module.to_str().unwrap().replace('/', "::");
            let module = module.trim_end_matches("::mod").to_owned();
            let is_test = module.split("::").any(|part| part == "tests");
            if path.extension().is_some_and(|kind| kind == "rs") && !is_test {
                let module = if module == "lib" {
                    String::new()
                } else {
                    module
                };
                sources.push((module, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources.sort();
    sources
}

/// The first words of an item, up to its body.
fn head(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let line = line.split("//").next().unwrap_or_default().trim();
        if !text.is_empty() && !line.is_empty() && !text.ends_with('(') && !line.starts_with(')') {
            text.push(' ');
        }
        text.push_str(line);
        let is_use = text.starts_with("pub use ");
        let is_open =
            text.matches('(').count() > text.matches(')').count() || is_use && !text.ends_with(';');
        if !is_open && text.ends_with(['{', ';', ',', '}']) {
            break;
        }
    }
    let body = text.find(" {").unwrap_or(text.len());
    let text = match text.strip_prefix("pub use ") {
        Some(_) => text.replace("{ ", "{").replace(", }", "}"),
        None => text[..body].to_owned(),
    };
    let text = text.trim_end_matches([';', ',']).replace(",)", ")");
    let is_value = text.starts_with("pub const ") || text.starts_with("pub static ");
    match text.split_once(" = ") {
        Some((before, _)) if is_value => before.to_owned(),
        _ => text,
    }
}

/// The kind and name of the block that a line opens.
fn opened(line: &str) -> (Kind, String) {
    let words = line.trim_start().trim_start_matches("pub ");
    let words = words.trim_start_matches("unsafe ");
    let first = |text: &str| -> String {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let is_public = line.trim_start().starts_with("pub ");
    for (word, kind) in [
        ("struct ", Kind::Struct),
        ("enum ", Kind::Enum),
        ("trait ", Kind::Trait),
        ("mod ", Kind::Module),
    ] {
        if let Some(rest) = words.strip_prefix(word) {
            let kind = if is_public { kind } else { Kind::Other };
            return (kind, first(rest));
        }
    }
    let Some(rest) = words.strip_prefix("impl").filter(|_| !is_public) else {
        return (Kind::Other, String::new());
    };
    // The parameters, the trait, and the parameters of the type are left out.
    let rest = match rest.starts_with('<') {
        true => rest.split_once("> ").map_or(rest, |(_, rest)| rest),
        false => rest.trim_start(),
    };
    match rest.split_once(" for ") {
        Some((_, target)) => (Kind::Other, first(target)),
        None => (Kind::Impl, first(rest.rsplit("::").next().unwrap_or(rest))),
    }
}

/// Whether a line of a block starts a public item without `pub`.
fn is_public_in(kind: Kind, line: &str) -> bool {
    match kind {
        Kind::Enum => line.starts_with(|c: char| c.is_ascii_uppercase()),
        Kind::Trait => ["fn ", "type ", "const ", "unsafe fn "]
            .iter()
            .any(|start| line.starts_with(start)),
        _ => false,
    }
}

/// The public items of a file, and trait implementations by type.
fn scan(
    module: &str,
    text: &str,
    items: &mut BTreeSet<String>,
    traits: &mut Vec<(String, String)>,
) {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks: Vec<Block> = Vec::new();
    let mut derived = String::new();
    let mut is_raw = false;
    for (n, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        let was_raw = is_raw;
        is_raw = match line.split_once("r#\"") {
            _ if is_raw => !line.contains("\"#"),
            Some((_, rest)) => !rest.contains("\"#"),
            None => false,
        };
        if was_raw || trimmed.is_empty() || trimmed.starts_with("//") {
            continue;
        }
        while blocks.last().is_some_and(|b| indent <= b.indent) {
            blocks.pop();
        }
        if let Some(list) = trimmed.strip_prefix("#[derive(") {
            derived = list.split(')').next().unwrap_or_default().to_owned();
            continue;
        }
        if trimmed.starts_with("#[") {
            continue;
        }
        let block = blocks.last();
        let is_direct = block.is_none_or(|b| indent == b.indent + 4);
        let is_public =
            trimmed.starts_with("pub ") || block.is_some_and(|b| is_public_in(b.kind, trimmed));
        let is_hidden = blocks.iter().any(|b| b.kind == Kind::Other);
        if is_public && is_direct && !is_hidden {
            let names = blocks.iter().map(|b| b.name.as_str());
            let path: Vec<&str> = [module].into_iter().chain(names).collect();
            let path = path.join("::");
            let mut item = head(&lines[n..]);
            let is_type = item.starts_with("pub struct ") || item.starts_with("pub enum ");
            if is_type && !derived.is_empty() {
                write!(item, ": {derived}").unwrap();
            }
            let path = path.trim_start_matches("::").trim_end_matches("::");
            items.insert(format!("{path}: {}", item.trim_start_matches("pub ")));
        }
        derived.clear();
        let head = head(&lines[n..]);
        if indent == 0 && trimmed.starts_with("impl") && head.contains(" for ") {
            traits.push((opened(&head).1, head.clone()));
        }
        // Items whose body starts on a later line end at a line that opens it.
        if line.ends_with('{') || (!line.ends_with([';', '}', ',']) && indent == 0) {
            let (kind, name) = opened(&head);
            blocks.push(Block { indent, kind, name });
        }
    }
}

fn surface(name: &str) -> String {
    let mut items = BTreeSet::new();
    let mut traits = Vec::new();
    for (module, text) in sources(&crates().join(name).join("src")) {
        scan(&module, &text, &mut items, &mut traits);
    }
    let is_public = |target: &str| {
        ["struct", "enum", "trait"].iter().any(|word| {
            items.iter().any(|item| {
                let rest = item.split_once(&format!(": {word} {target}"));
                rest.is_some_and(|(_, rest)| !rest.starts_with(|c: char| c.is_alphanumeric()))
            })
        })
    };
    let public: Vec<String> = traits
        .into_iter()
        .filter(|(target, _)| is_public(target))
        .map(|(_, head)| head)
        .collect();
    items.extend(public);
    items
        .into_iter()
        .fold(String::new(), |all, item| all + &item + "\n")
}

#[test]
fn issue_32_public_items_are_those_in_the_lists() {
    let is_written = std::env::var("AROSE_SURFACE").is_ok_and(|value| value == "write");
    for name in CRATES {
        let path = crates().join(name).join("surface.txt");
        let now = surface(name);
        if is_written {
            fs::write(&path, &now).unwrap();
            continue;
        }
        let then = fs::read_to_string(&path).unwrap_or_default();
        let (old, new): (BTreeSet<&str>, BTreeSet<&str>) =
            (then.lines().collect(), now.lines().collect());
        let gone: Vec<String> = old
            .difference(&new)
            .map(|item| format!("- {item}"))
            .collect();
        let more: Vec<String> = new
            .difference(&old)
            .map(|item| format!("+ {item}"))
            .collect();
        assert!(
            gone.is_empty() && more.is_empty(),
            "the public items of {name} changed; if that is meant, run `AROSE_SURFACE=write cargo test \
             -p arose-cli --test it surface`\n{}\n{}",
            gone.join("\n"),
            more.join("\n")
        );
    }
}

/// Names that several modules of a crate may share, as those of the standard library share `Error`.
const SHARED: [&str; 1] = ["Error"];

/// The name of the public struct, enum, trait or type alias in a line of a list.
fn public_type(item: &str) -> Option<&str> {
    let (path, item) = item.split_once(": ")?;
    // The types of a trait belong to it.
    let last = path.rsplit("::").next()?;
    let (word, rest) = item.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type"].contains(&word);
    let name = rest
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next();
    name.filter(|_| is_type && !last.starts_with(char::is_uppercase))
}

/// The names of the public structs, enums, traits and type aliases in a list that occur twice.
fn repeated_names(list: &str) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    let names = list.lines().filter_map(public_type);
    names.filter(|name| !seen.insert(*name)).collect()
}

#[test]
fn issue_32_public_names_are_unique_in_a_crate() {
    for name in CRATES {
        let list = surface(name);
        let mut repeated = repeated_names(&list);
        repeated.retain(|name| !SHARED.contains(name));
        assert!(
            repeated.is_empty(),
            "{name}: names that occur twice: {repeated:?}"
        );
    }
    let list =
        "a: struct Pair<T>: Debug\na::Pair: a: T\nb: enum Pair\nb: struct Pairs\nb: fn pair()";
    assert_eq!(repeated_names(list), BTreeSet::from(["Pair"]));
}

/// The name of the type that a line defines at the top level of a module, unless it is public.
fn hidden_type(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ").map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let words = ["struct ", "enum ", "trait ", "type "];
    let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

#[test]
fn issue_32_hidden_types_have_no_names_of_public_ones() {
    let mut n_hidden = 0;
    let mut repeated = Vec::new();
    for name in CRATES {
        let list = surface(name);
        let public: BTreeSet<&str> = list.lines().filter_map(public_type).collect();
        for (module, text) in sources(&crates().join(name).join("src")) {
            let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
            for hidden in text.lines().filter_map(hidden_type) {
                n_hidden += 1;
                if public.contains(hidden) && !SHARED.contains(&hidden) {
                    repeated.push(format!("{name}: {module}::{hidden}"));
                }
            }
        }
    }
    assert!(n_hidden > 500, "only {n_hidden} types were found");
    assert!(repeated.is_empty(), "{}", repeated.join("\n"));
    assert_eq!(hidden_type("pub(super) struct Pair<T> {"), Some("Pair"));
    assert_eq!(hidden_type("type Pair = (u32, u32);"), Some("Pair"));
    assert_eq!(hidden_type("    type Pair = u32;"), None);
    assert_eq!(hidden_type("pub struct Pair;"), None);
}

#[test]
fn issue_32_the_scan_sees_every_kind_of_item() {
    let text = r##"//! A module.
pub use crate::token::{
    A, B,
};

/// A struct.
#[derive(Debug, Clone)]
pub struct Pair<T> {
    /// A field.
    pub a: T,
    b: u32,
}

pub(crate) struct Hidden {
    pub field: u8,
}

pub enum Shape {
    /// A variant.
    Round(f64),
    Square {
        side: f64,
    },
}

pub trait Area {
    fn area(&self) -> f64;
}

impl<T> Pair<T> {
    pub const N: usize = 2;

    pub fn new(
        a: T,
        b: u32,
    ) -> Self {
        let pub_b = b;
        Self { a, b }
    }

    fn own(&self) {}
}

impl Area for Shape {
    fn area(&self) -> f64 {
        0.0
    }
}

impl Area for Hidden {
    fn area(&self) -> f64 {
        0.0
    }
}

pub mod inner {
    pub fn f() {}
}

fn not() {}

#[cfg(test)]
mod tests {
    pub fn g() {}
}
"##;
    let (mut items, mut traits) = (BTreeSet::new(), Vec::new());
    scan("m", text, &mut items, &mut traits);
    let expected = [
        "m: enum Shape",
        "m: mod inner",
        "m: struct Pair<T>: Debug, Clone",
        "m: trait Area",
        "m: use crate::token::{A, B}",
        "m::Area: fn area(&self) -> f64",
        "m::Pair: a: T",
        "m::Pair: const N: usize",
        "m::Pair: fn new(a: T, b: u32) -> Self",
        "m::Shape: Round(f64)",
        "m::Shape: Square",
        "m::inner: fn f()",
    ];
    assert_eq!(
        items.iter().map(|item| &item[..]).collect::<Vec<_>>(),
        expected
    );
    let traits: Vec<&str> = traits.iter().map(|(target, _)| &target[..]).collect();
    assert_eq!(traits, ["Shape", "Hidden"]);
}
