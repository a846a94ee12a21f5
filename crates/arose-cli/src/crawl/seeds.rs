//! Seeds from the command line.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail};
use arose_crawl::Seeds;
use arose_crawl::sitemap;

/// Reads the seeds that the arguments give: URLs, files of URLs or sitemaps, standard input.
pub(super) fn read(arguments: &[String]) -> anyhow::Result<Seeds> {
    let mut seeds = Seeds::default();
    for argument in arguments {
        if argument == "-" {
            let input = std::io::stdin().lock();
            read_lines(input, &mut seeds).context("cannot read standard input")?;
        } else if !argument.contains("://") && Path::new(argument).is_file() {
            let path = Path::new(argument);
            read_file(path, &mut seeds)
                .with_context(|| format!("cannot read the seeds {}", path.display()))?;
        } else if is_file_name(argument) {
            bail!("no such file: `{argument}`; a seed is a URL, a host name or a file of URLs");
        } else {
            add(argument, &mut seeds);
        }
    }
    Ok(seeds)
}

/// Whether an argument names a file, and no host does: a path, or a name that ends like a list.
fn is_file_name(argument: &str) -> bool {
    let is_path = ["/", "./", "../", "~"]
        .iter()
        .any(|start| argument.starts_with(start));
    let kinds = [
        ".txt", ".csv", ".tsv", ".list", ".xml", ".gz", ".json", ".jsonl",
    ];
    let is_list = kinds.iter().any(|kind| argument.ends_with(kind)) && !argument.contains('/');
    !argument.contains("://") && (is_path || is_list)
}

fn read_file(path: &Path, seeds: &mut Seeds) -> anyhow::Result<()> {
    let mut input = BufReader::new(std::fs::File::open(path)?);
    let head = input.fill_buf()?;
    let is_sitemap = head.trim_ascii_start().starts_with(b"<") || head.starts_with(&[0x1f, 0x8b]);
    if !is_sitemap {
        return read_lines(input, seeds);
    }
    let limits = sitemap::Limits::default();
    let mut bytes = Vec::new();
    input.take(limits.max_bytes + 1).read_to_end(&mut bytes)?;
    let sitemap = sitemap::parse(&bytes, limits);
    seeds
        .pages
        .extend(sitemap.pages.into_iter().map(|entry| entry.url));
    seeds
        .sitemaps
        .extend(sitemap.sitemaps.into_iter().map(|entry| entry.url));
    Ok(())
}

/// One URL per line; empty lines and lines that begin with `#` are skipped. Any bytes are legal.
fn read_lines(mut input: impl BufRead, seeds: &mut Seeds) -> anyhow::Result<()> {
    const MAX_LINE: u64 = 1 << 16;
    let mut line = Vec::new();
    loop {
        line.clear();
        let n_bytes = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        if n_bytes == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if !text.is_empty() && !text.starts_with('#') {
            add(text, seeds);
        }
    }
}

/// Adds a URL; a host without a scheme gets `http`.
fn add(text: &str, seeds: &mut Seeds) {
    let url = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let is_sitemap = [".xml", ".xml.gz"].iter().any(|end| path.ends_with(end));
    match is_sitemap {
        true => seeds.sitemaps.push(url),
        false => seeds.pages.push(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_of_every_kind() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        std::fs::write(
            &list,
            b"# seeds\n\nhttp://h/a\r\n\xff\xfe\nhttp://h/s.xml?x\n",
        )
        .unwrap();
        let map = folder.path().join("map.xml");
        std::fs::write(&map, "<urlset><url><loc>http://h/b</loc></url></urlset>").unwrap();
        let arguments = [
            list.display().to_string(),
            map.display().to_string(),
            "h.org".to_owned(),
        ];
        let seeds = read(&arguments).unwrap();
        assert_eq!(
            seeds.pages,
            [
                "http://h/a",
                "http://\u{fffd}\u{fffd}",
                "http://h/b",
                "http://h.org"
            ]
        );
        assert_eq!(seeds.sitemaps, ["http://h/s.xml?x"]);
        for missing in ["missing.txt", "./missing", "missing.xml"] {
            let error = read(&[missing.to_owned()]).err().unwrap().to_string();
            assert!(
                error.starts_with("no such file: `missing") || error.contains("./"),
                "{error}"
            );
        }
        assert!(read(&["example.org/sitemap.xml".to_owned()]).is_ok());
    }
}
