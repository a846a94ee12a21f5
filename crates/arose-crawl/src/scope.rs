//! The scope that seeds define: how far from them a crawl may go.
//!
//! A seed usually stands for its site and not for the whole web. So unless the settings list hosts
//! or domains, a URL is in scope if it shares its [`Reach`] with a seed: its registrable domain,
//! its host, or the path prefix of the seed. The seeds of all runs count; `seeds.txt` in the
//! directory of a crawl has the path prefix of each, once.

use std::collections::BTreeSet;
use std::path::Path;

use arose_dedup::disk;

use crate::error::{Context, Error};
use crate::settings::Reach;
use crate::url::{NormalUrl, Normalizer};

/// The file in the directory of a crawl.
const FILE: &str = "seeds.txt";

/// What seeds and URLs in scope have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    reach: Reach,
    roots: BTreeSet<String>,
}

impl Roots {
    fn new<'u>(reach: Reach, seeds: impl Iterator<Item = &'u NormalUrl>) -> Self {
        let roots = seeds.map(|seed| match reach {
            Reach::Web => String::new(),
            Reach::Site => seed.site().to_owned(),
            Reach::Host => seed.host().to_owned(),
            Reach::Prefix => directory(seed).to_owned(),
        });
        Self {
            reach,
            roots: roots.collect(),
        }
    }

    /// Whether a URL is within reach of a seed.
    pub(crate) fn contain(&self, url: &NormalUrl) -> bool {
        match self.reach {
            Reach::Web => true,
            Reach::Site => self.roots.contains(url.site()),
            Reach::Host => self.roots.contains(url.host()),
            Reach::Prefix => {
                let path = without_scheme(url).split('?').next().unwrap_or_default();
                let mut slashes = memchr::memchr_iter(b'/', path.as_bytes());
                slashes.any(|at| self.roots.contains(&path[..=at]))
            }
        }
    }
}

/// Returns host, port, path and query.
fn without_scheme(url: &NormalUrl) -> &str {
    url.as_str().split_once("://").map_or("", |(_, rest)| rest)
}

/// Returns host, port and the path up to its last slash.
fn directory(url: &NormalUrl) -> &str {
    let rest = without_scheme(url);
    let path = rest.split('?').next().unwrap_or_default();
    &path[..path.rfind('/').map_or(path.len(), |at| at + 1)]
}

/// The path prefixes of all seeds so far.
#[derive(Debug, Default)]
pub(crate) struct Seeded {
    /// As URLs.
    directories: BTreeSet<String>,
    has_changed: bool,
}

impl Seeded {
    /// Reads those of earlier runs in this directory.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.context("reading", &path)?,
        };
        Ok(Self {
            directories: text.lines().map(str::to_owned).collect(),
            has_changed: false,
        })
    }

    /// Adds a seed.
    pub(crate) fn add(&mut self, url: &NormalUrl) {
        let scheme = url
            .as_str()
            .split_once("://")
            .map_or("", |(scheme, _)| scheme);
        let directory = format!("{scheme}://{}", directory(url));
        self.has_changed |= self.directories.insert(directory);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }

    /// Returns what URLs in scope must have in common with them.
    pub(crate) fn roots(&self, reach: Reach, normalizer: &Normalizer) -> Roots {
        let urls = self.directories.iter();
        let urls = urls.filter_map(|url| normalizer.normalize(url, None).ok());
        // Local files have a separate list of directories.
        let urls: Vec<NormalUrl> = urls.filter(|url| !url.is_file()).collect();
        Roots::new(reach, urls.iter())
    }

    /// Returns those of local files, as URL paths.
    pub(crate) fn files(&self) -> Vec<String> {
        let urls = self.directories.iter();
        let paths = urls.filter_map(|url| url.strip_prefix("file://localhost"));
        paths.map(str::to_owned).collect()
    }

    /// Whether there are seeds, all of them local files.
    pub(crate) fn are_files(&self) -> bool {
        !self.is_empty() && self.files().len() == self.directories.len()
    }

    /// Saves them for the next run.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        if !self.has_changed {
            return Ok(());
        }
        let path = folder.join(FILE);
        let lines: String = self
            .directories
            .iter()
            .map(|url| format!("{url}\n"))
            .collect();
        disk::replace(&path, lines.as_bytes()).context("writing", &path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reach: Reach, url: &str, expected: bool) {
        let normalize = |text: &str| Normalizer::default().normalize(text, None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut seeded = Seeded::default();
        seeded.add(&normalize("https://docs.example.org/a/b.html?x=/y/"));
        seeded.add(&normalize("http://127.0.0.1:8080/"));
        seeded.write(folder.path()).unwrap();
        let seeded = Seeded::read(folder.path()).unwrap();
        let roots = seeded.roots(reach, &Normalizer::default());
        assert_eq!(roots.contain(&normalize(url)), expected, "{reach:?} {url}");
    }

    #[test]
    fn issue_22_scopes_reach_as_far_as_they_say() {
        for (url, [prefix, host, site, web]) in [
            ("http://docs.example.org/a/c", [true, true, true, true]),
            ("https://docs.example.org/a/", [true, true, true, true]),
            ("https://docs.example.org/a", [false, true, true, true]),
            ("https://docs.example.org/c?/a/", [false, true, true, true]),
            ("https://docs.example.org:444/a/", [false, true, true, true]),
            (
                "https://www.example.org/a/b.html",
                [false, false, true, true],
            ),
            ("https://example.com/a/b.html", [false, false, false, true]),
            ("http://127.0.0.1:8080/deep/er", [true, true, true, true]),
            ("http://127.0.0.2:8080/", [false, false, false, true]),
        ] {
            check(Reach::Prefix, url, prefix);
            check(Reach::Host, url, host);
            check(Reach::Site, url, site);
            check(Reach::Web, url, web);
        }
    }
}
