//! Selects values from HTML or XML by short paths.
//!
//! A [`Path`] is a few nested elements, and the value to take from the innermost: `ol.results li`,
//! `a.title@href`, `#count`. Elements are named by tag, `.class` and `#id`. This is enough for
//! result pages, and takes one pass over the page without a tree.

use std::str::FromStr;

use arose_corpus::html::token::{Name, Token, Tokenizer};

/// Elements nested deeper than this are not distinguished.
const MAX_DEPTH: usize = 512;

/// Maximum number of characters taken from the text of an element.
const MAX_TEXT: usize = 4096;

/// Elements, and the value to take from them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Path {
    /// From outermost to innermost; empty for the current element.
    steps: Vec<Step>,
    /// The attribute to take; the text if none.
    attribute: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Step {
    tag: Option<String>,
    id: Option<String>,
    classes: Vec<String>,
}

/// An open element.
#[derive(Debug)]
struct Open {
    tag: String,
    id: Option<String>,
    classes: Vec<String>,
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (elements, attribute) = match text.rsplit_once('@') {
            Some((elements, attribute)) => (elements, Some(attribute.trim().to_lowercase())),
            None => (text, None),
        };
        if attribute.as_deref() == Some("") {
            return Err(format!("`{text}` has no attribute after `@`"));
        }
        let steps = elements.split_whitespace().map(str::parse);
        let steps: Vec<Step> = steps.collect::<Result<_, String>>()?;
        if steps.is_empty() && attribute.is_none() {
            return Err("a path needs an element or an attribute".to_owned());
        }
        Ok(Self { steps, attribute })
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut step = Self::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (kind, name) = match rest.chars().next() {
                Some(mark @ ('.' | '#')) => (mark, &rest[1..]),
                _ => (' ', rest),
            };
            let end = name.find(['.', '#']).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':');
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(format!(
                    "`{text}` is not an element; write nested tags, `.class` or `#id`"
                ));
            }
            match kind {
                '.' => step.classes.push(name.to_owned()),
                '#' => step.id = Some(name.to_owned()),
                _ => step.tag = Some(name.to_lowercase()),
            }
            rest = after;
        }
        Ok(step)
    }
}

impl Step {
    fn fits(&self, open: &Open) -> bool {
        self.tag.as_ref().is_none_or(|tag| *tag == open.tag)
            && self
                .id
                .as_ref()
                .is_none_or(|id| Some(id) == open.id.as_ref())
            && self
                .classes
                .iter()
                .all(|class| open.classes.contains(class))
    }
}

impl Path {
    /// Whether the innermost open element matches.
    fn fits(&self, open: &[Open]) -> bool {
        let Some((last, outer)) = self.steps.split_last() else {
            return false;
        };
        let Some((innermost, mut around)) = open.split_last() else {
            return false;
        };
        if !last.fits(innermost) {
            return false;
        }
        for step in outer.iter().rev() {
            let Some(place) = around.iter().rposition(|element| step.fits(element)) else {
                return false;
            };
            around = &around[..place];
        }
        true
    }
}

/// The content of a result page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Scraped {
    /// The text of the count.
    pub(super) count: Option<String>,
    /// One value for each result that has a value.
    pub(super) results: Vec<String>,
}

/// Extracts the results and the count from a page.
pub(super) fn scrape(page: &str, results: &Path, value: &Path, count: Option<&Path>) -> Scraped {
    let mut scraper = Scraper {
        paths: Paths {
            results,
            value,
            count,
        },
        open: Vec::new(),
        found: Scraped::default(),
        result: None,
        texts: Vec::new(),
    };
    let mut tokenizer = Tokenizer::new(page);
    while let Some(token) = tokenizer.next_token() {
        match token {
            Token::Start(name) => scraper.start(name, &tokenizer),
            Token::End(name) => scraper.end(name.raw),
            Token::Text(text) => scraper.text(&text.decoded()),
            Token::Comment(_) | Token::Doctype(_) => {}
        }
    }
    scraper.close(0);
    scraper.found
}

struct Paths<'a> {
    results: &'a Path,
    value: &'a Path,
    count: Option<&'a Path>,
}

struct Scraper<'a> {
    paths: Paths<'a>,
    open: Vec<Open>,
    found: Scraped,
    /// The current result: the number of elements around it, and its value.
    result: Option<(usize, Option<String>)>,
    /// Texts being collected, with the number of elements around each.
    texts: Vec<(usize, Purpose, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Count,
    Value,
}

impl Scraper<'_> {
    fn start(&mut self, name: Name<'_>, tokenizer: &Tokenizer<'_>) {
        if self.open.len() >= MAX_DEPTH {
            return;
        }
        if let Some(sibling) = self.unclosed_sibling(name.raw) {
            self.close(sibling);
        }
        let depth = self.open.len();
        let classes = tokenizer.attribute("class").unwrap_or_default();
        self.open.push(Open {
            tag: name.raw.to_lowercase(),
            id: tokenizer.attribute("id").map(Into::into),
            classes: classes.split_whitespace().map(str::to_owned).collect(),
        });
        if let Some(count) = self.paths.count
            && self.found.count.is_none()
            && count.fits(&self.open)
        {
            self.take(count, Purpose::Count, depth, tokenizer);
        }
        let is_result = self.result.is_none() && self.paths.results.fits(&self.open);
        if is_result {
            self.result = Some((depth, None));
        }
        let value = self.paths.value;
        let is_value = match value.steps.is_empty() {
            true => is_result,
            false => value.fits(&self.open),
        };
        if is_value && matches!(self.result, Some((_, None))) {
            self.take(value, Purpose::Value, depth, tokenizer);
        }
        if name.self_closing || name.tag.is_void() {
            self.close(depth);
        }
    }

    /// The open item, row or cell that a new one of its kind ends, since authors omit their end
    /// tags.
    fn unclosed_sibling(&self, name: &str) -> Option<usize> {
        let name = name.to_ascii_lowercase();
        let (kin, list): (&[&str], &[&str]) = match &name[..] {
            "li" => (&["li"], &["ul", "ol", "menu"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl"]),
            "tr" => (&["tr"], &["table"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            _ => return None,
        };
        let is_near = |open: &Open| kin.contains(&&open.tag[..]) || list.contains(&&open.tag[..]);
        let place = self.open.iter().rposition(is_near)?;
        kin.contains(&&self.open[place].tag[..]).then_some(place)
    }

    /// Takes an attribute immediately, or starts to collect text.
    fn take(&mut self, path: &Path, purpose: Purpose, depth: usize, tokenizer: &Tokenizer<'_>) {
        match &path.attribute {
            None => self.texts.push((depth, purpose, String::new())),
            Some(attribute) => {
                if let Some(value) = tokenizer.attribute(attribute) {
                    self.give(purpose, &value);
                }
            }
        }
    }

    fn give(&mut self, purpose: Purpose, value: &str) {
        let value = value.trim().to_owned();
        match (purpose, &mut self.result) {
            (Purpose::Count, _) => self.found.count = Some(value),
            (Purpose::Value, Some((_, place @ None))) => *place = Some(value),
            (Purpose::Value, _) => {}
        }
    }

    fn text(&mut self, text: &str) {
        for (_, _, collected) in &mut self.texts {
            if collected.len() < MAX_TEXT {
                collected.push_str(text);
            }
        }
    }

    fn end(&mut self, name: &str) {
        let is_it = |open: &Open| open.tag.eq_ignore_ascii_case(name);
        if let Some(depth) = self.open.iter().rposition(is_it) {
            self.close(depth);
        }
    }

    /// Closes all elements at this depth and deeper.
    fn close(&mut self, depth: usize) {
        self.open.truncate(depth);
        while self
            .texts
            .last()
            .is_some_and(|(around, ..)| *around >= depth)
        {
            if let Some((_, purpose, text)) = self.texts.pop() {
                self.give(purpose, &text);
            }
        }
        if self
            .result
            .as_ref()
            .is_some_and(|(around, _)| *around >= depth)
            && let Some((_, value)) = self.result.take()
        {
            self.found.results.extend(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, paths: [&str; 3], count: Option<&str>, results: &[&str]) {
        let [list, value, total] = paths.map(|path| path.parse::<Path>().unwrap());
        let found = scrape(page, &list, &value, Some(&total));
        assert_eq!(found.count.as_deref(), count, "{page}");
        assert_eq!(found.results, results, "{page}");
    }

    #[test]
    fn lists_of_links() {
        let page = "<p id=n>About <b>1,234</b> results</p><ol class='a hits'>\
            <li class=hit><img src=x><a href='/1?a=1&amp;b=2'>One</a> <a href=/other>cached</a>\
            <li class=hit><a href=/2>Two</a></ol><li class=hit><a href=/advert>no</a>";
        check(
            page,
            ["ol.hits li.hit", "a@href", "p#n"],
            Some("About 1,234 results"),
            &["/1?a=1&b=2", "/2"],
        );
    }

    #[test]
    fn attributes_of_the_result_itself() {
        let page =
            "<results Matches=\"5\"><hits><hit url=\"/a\"><t/></hit><hit url=\"/b\"/></hits>";
        check(
            page,
            ["hit", "@url", "results@matches"],
            Some("5"),
            &["/a", "/b"],
        );
    }

    #[test]
    fn texts_of_results() {
        let page = "<item><loc> http://a/ </loc></item><item><x/></item><item><loc>b</loc>";
        check(page, ["item", "loc", "total"], None, &["http://a/", "b"]);
    }

    #[test]
    fn deep_and_broken_pages_end() {
        let page = format!("{}<a class=r href=1>", "<div>".repeat(100_000));
        check(&page, ["a.r", "@href", "#n"], None, &[]);
        check("<a class=r href=1", ["a.r", "@href", "#n"], None, &[]);
        check("</a></b><a class=r>", ["a.r", "@href", "#n"], None, &[]);
    }

    #[test]
    fn paths_that_are_none() {
        for path in ["", "@", "a@", "a..b", "a > b", "li#"] {
            assert!(path.parse::<Path>().is_err(), "{path}");
        }
    }
}
