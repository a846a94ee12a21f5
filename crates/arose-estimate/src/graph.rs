//! Link graphs to walk on: edge lists, adjacency lists, or the pages of a crawl.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use arose::estimate::links::Links;
use arose_corpus::html::Links as Collected;
use arose_corpus::{Config, Item, read};
use url::Url;

use crate::Error;

/// Format of a file of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Two names per line: a page and a page that it links to.
    Edges,
    /// Line `i` has the numbers of the pages that page `i` links to.
    Adjacency,
    /// The same, with each number except the first as its difference to the previous one.
    Gaps,
}

/// Pages and all their links.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    /// The pages that each page links to.
    pub links: Links,
    /// The host of each page, numbered.
    pub hosts: Vec<u32>,
    /// The name of each page; empty if pages have numbers only.
    pub names: Vec<String>,
}

impl Graph {
    /// Reads a file of links, uncompressed or compressed with zstd or gzip.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or a line is not in this format.
    pub fn open(path: &Path, form: Form) -> Result<Self, Error> {
        let lines = BufReader::new(decoded(path)?).lines();
        let mut graph = Builder::default();
        for (number, line) in lines.enumerate() {
            let line = line.map_err(Error::io("read", path))?;
            let added = match form {
                Form::Edges => graph.add_edge(&line),
                Form::Adjacency => graph.add_row(&line, |_, n| Some(n)),
                Form::Gaps => graph.add_row(&line, i64::checked_add),
            };
            added.map_err(|what| Error::Settings {
                path: path.to_owned(),
                what: format!("line {}: {what}", number + 1),
            })?;
        }
        graph.finished().map_err(|what| Error::Settings {
            path: path.to_owned(),
            what,
        })
    }

    /// Extracts the links of web pages, from archives or the directory of a crawl.
    ///
    /// Pages that are linked to but not in the input are omitted, because their links are unknown.
    ///
    /// # Errors
    ///
    /// If the pages cannot be read, or none has a URL.
    pub fn of_pages(paths: &[PathBuf], mut config: Config) -> Result<Self, Error> {
        config.html.links = Collected::Collect;
        let mut pages: Vec<(String, Vec<String>)> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        for item in read(paths, config)? {
            let Item::Document(document) = item else {
                continue;
            };
            let Some(url) = document.url.as_deref().and_then(|url| Url::parse(url).ok()) else {
                continue;
            };
            let links = document.page.map(|page| page.links).unwrap_or_default();
            let links = links.iter().filter_map(|link| url.join(&link.url).ok());
            let links = links.map(|link| page_name(&link)).collect();
            let name = page_name(&url);
            let next = pages.len() as u32;
            // If a page was fetched twice, the first time counts.
            if *numbers.entry(name.clone()).or_insert(next) == next {
                pages.push((name, links));
            }
        }
        if pages.is_empty() {
            let what = "no document has a URL and links";
            return Err(Error::Words {
                what: what.to_owned(),
            });
        }
        let mut graph = Builder::default();
        for (name, _) in &pages {
            graph.page(name);
        }
        for (place, (_, links)) in (0..).zip(&pages) {
            let targets = links.iter().filter_map(|link| numbers.get(link));
            let mut targets: Vec<u32> = targets.copied().filter(|&to| to != place).collect();
            targets.sort_unstable();
            targets.dedup();
            graph.rows[place as usize] = targets;
        }
        graph.finished().map_err(|what| Error::Words { what })
    }

    /// The page with a name or number.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        let page = match self.names.is_empty() {
            true => name
                .parse()
                .ok()
                .filter(|&page| page < self.links.n_pages()),
            false => self.names.iter().position(|own| own == name),
        };
        page.map(|page| page as u32)
    }
}

/// The texts of some pages, by name; if a page was fetched twice, the first time counts.
///
/// # Errors
///
/// If the pages cannot be read.
pub fn texts(
    paths: &[PathBuf],
    config: Config,
    wanted: &BTreeSet<&str>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut texts = BTreeMap::new();
    for item in read(paths, config)? {
        let Item::Document(document) = item else {
            continue;
        };
        let url = document.url.as_deref().and_then(|url| Url::parse(url).ok());
        if let Some(name) = url.map(|url| page_name(&url))
            && wanted.contains(name.as_str())
        {
            texts.entry(name).or_insert(document.text);
        }
    }
    Ok(texts)
}

/// A graph under construction.
#[derive(Default)]
struct Builder {
    rows: Vec<Vec<u32>>,
    hosts: Vec<u32>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    host_numbers: HashMap<String, u32>,
}

impl Builder {
    /// The number of a name; a new number if necessary.
    fn page(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.rows.len() as u32;
        self.numbers.insert(name.to_owned(), number);
        self.rows.push(Vec::new());
        self.names.push(name.to_owned());
        let url = Url::parse(name).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or(name);
        let next = self.host_numbers.len() as u32;
        let host = *self.host_numbers.entry(host.to_owned()).or_insert(next);
        self.hosts.push(host);
        number
    }

    fn add_edge(&mut self, line: &str) -> Result<(), String> {
        let mut names = line.split_whitespace();
        match (names.next(), names.next(), names.next()) {
            (None, ..) => Ok(()),
            (Some(name), ..) if name.starts_with('#') => Ok(()),
            (Some(from), Some(to), None) => {
                let (from, to) = (self.page(from), self.page(to));
                self.rows[from as usize].push(to);
                Ok(())
            }
            _ => Err("expected two names separated by whitespace".to_owned()),
        }
    }

    fn add_row(
        &mut self,
        line: &str,
        next: impl Fn(i64, i64) -> Option<i64>,
    ) -> Result<(), String> {
        let (mut row, mut last) = (Vec::new(), 0);
        for (place, text) in line.split_whitespace().enumerate() {
            let number: i64 = text
                .parse()
                .map_err(|_| format!("`{text}` is not a number"))?;
            last = match place {
                0 => number,
                _ => next(last, number).ok_or("number too large")?,
            };
            row.push(u32::try_from(last).map_err(|_| format!("no page {last}"))?);
        }
        self.rows.push(row);
        Ok(())
    }

    fn finished(self) -> Result<Graph, String> {
        let n = self.rows.len();
        if n == 0 {
            return Err("no page".to_owned());
        }
        let mut targets = self.rows.iter().flatten();
        if let Some(target) = targets.find(|&&target| target as usize >= n) {
            return Err(format!(
                "a page links to {target}, but there are only {n} pages"
            ));
        }
        Ok(Graph {
            links: self.rows.into_iter().collect(),
            hosts: match self.hosts.is_empty() {
                true => (0..n as u32).collect(),
                false => self.hosts,
            },
            names: self.names,
        })
    }
}

fn page_name(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

/// A file, decompressed if its first bytes say that it is compressed.
fn decoded(path: &Path) -> Result<Box<dyn Read>, Error> {
    let open = || File::open(path).map_err(Error::io("open", path));
    let mut head = [0; 4];
    let n = open()?.read(&mut head).map_err(Error::io("read", path))?;
    let file = open()?;
    Ok(match head[..n] {
        [0x28, 0xB5, 0x2F, 0xFD] => {
            Box::new(zstd::Decoder::new(file).map_err(Error::io("decompress", path))?)
        }
        [0x1F, 0x8B, ..] => Box::new(flate2::read::MultiGzDecoder::new(file)),
        _ => Box::new(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn check(text: &str, form: Form) -> Result<Graph, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("links.txt");
        fs::write(&path, text).unwrap();
        Graph::open(&path, form).map_err(|error| error.to_string())
    }

    #[test]
    fn three_forms_of_one_graph() {
        let links: Links = [vec![1, 2], vec![], vec![0]].into_iter().collect();
        let edges = check("# links\na b\na c\nc a\n", Form::Edges).unwrap();
        assert_eq!(edges.links, links);
        assert_eq!(edges.names, ["a", "b", "c"]);
        assert_eq!(check("1 2\n\n0\n", Form::Adjacency).unwrap().links, links);
        assert_eq!(check("1 1\n\n0\n", Form::Gaps).unwrap().links, links);
    }

    #[test]
    fn pages_of_one_host() {
        let graph = check("http://a/1 http://a/2\nhttp://a/2 http://b/\n", Form::Edges).unwrap();
        assert_eq!(graph.hosts, [0, 0, 1]);
        assert_eq!(graph.find("http://b/"), Some(2));
        assert_eq!(graph.links.reachable(&[1]), [false, true, true]);
    }

    #[test]
    fn files_that_hold_no_graph() {
        for (text, form, part) in [
            ("", Form::Edges, "no page"),
            ("a b\na\n", Form::Edges, "line 2"),
            ("1\nx\n", Form::Gaps, "line 2: `x`"),
            ("7\n", Form::Adjacency, "links to 7"),
            ("5 -9\n", Form::Gaps, "no page -4"),
        ] {
            let error = check(text, form).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
