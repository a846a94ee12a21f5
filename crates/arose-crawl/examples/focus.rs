//! Plays focused crawls of Wikipedia articles: `focus ARTICLES [OPTION...]`.
//!
//! Plays a crawl for each of eight topics through the crawler's own frontier, with a model trained
//! on a few articles. Prints how many of the first fetched articles are on the topic.
//! `bench/focus/README.md` has the data, the options and the results.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "that is what it is for, and a measurement may stop at the first surprise"
)]

use std::collections::HashMap;
use std::io::Read;

use arose::focus::{Linear, PageScorer, Words};
use arose_crawl::focus::Focus;
use arose_crawl::rehearsal::{Focused, Rehearsal, SeenPage, Site};
use arose_crawl::settings::{Budget, Order};
use serde_json::Value;

/// Topics, and the number of articles fetched for each.
const TOPICS: [(&str, usize); 8] = [
    ("Science", 1000),
    ("Geography", 1000),
    ("People", 600),
    ("History", 500),
    ("Religion", 200),
    ("Music", 200),
    ("IT", 150),
    ("Mathematics", 100),
];

struct Article {
    title: String,
    topics: Vec<String>,
    links: Vec<u32>,
    words: Words,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments
        .first()
        .expect("usage: focus ARTICLES [OPTION...]");
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let explore = if has("--no-explore") { 0.0 } else { 0.05 };
    let articles = read(path);
    println!("{} articles", articles.len());
    let names: Vec<String> = TOPICS
        .iter()
        .map(|(name, _)| format!("{name:>11}"))
        .collect();
    println!("{:<20} {}  sum", "order", names.join(" "));
    let mut rows: [(&str, Vec<usize>); 3] = [
        ("breadth first", Vec::new()),
        ("focused", Vec::new()),
        ("own text", Vec::new()),
    ];
    for (topic, n) in TOPICS {
        let task = Task::new(&articles, topic, n);
        rows[0].1.push(task.breadth());
        rows[1].1.push(task.focused(explore, has("--hard")));
        rows[2].1.push(task.own_text());
    }
    for (name, found) in rows {
        let cells: Vec<String> = found.iter().map(|n| format!("{n:>11}")).collect();
        let sum: usize = found.iter().sum();
        println!("{name:<20} {}  {sum}", cells.join(" "));
    }
}

/// A topic, its model and its seeds.
struct Task<'a> {
    articles: &'a [Article],
    is_on: Vec<bool>,
    model: Linear,
    seeds: Vec<u32>,
    n: usize,
}

impl<'a> Task<'a> {
    fn new(articles: &'a [Article], topic: &str, n: usize) -> Self {
        let is_on: Vec<bool> = articles
            .iter()
            .map(|article| article.topics.iter().any(|one| one == topic))
            .collect();
        let on: Vec<usize> = (0..articles.len()).filter(|&at| is_on[at]).collect();
        let n_liked = if on.len() < 60 { 15 } else { 20 };
        let liked = on.iter().step_by((on.len() / 20).max(1)).take(n_liked);
        let liked: Vec<usize> = liked.copied().collect();
        let others = (0..articles.len()).filter(|&at| !is_on[at]).step_by(20);
        let words = |at: usize| articles[at].words.clone();
        let model = Linear::train(
            &liked.iter().map(|&at| words(at)).collect::<Vec<_>>(),
            &others.map(words).collect::<Vec<_>>(),
            18,
        );
        let seeds = liked.iter().filter(|&&at| articles[at].links.len() >= 5);
        Self {
            articles,
            model: model.unwrap(),
            seeds: seeds.take(3).map(|&at| at as u32).collect(),
            is_on,
            n,
        }
    }

    fn count(&self, pages: impl Iterator<Item = u32>) -> usize {
        let pages = pages.take(self.n);
        pages.filter(|&page| self.is_on[page as usize]).count()
    }

    fn breadth(&self) -> usize {
        let mut rehearsal = Rehearsal::new(Order::Breadth, unlimited(), 0);
        for &seed in &self.seeds {
            rehearsal.seed(seed, Site(0));
        }
        let links = |page: u32| self.articles[page as usize].links.clone();
        self.count(std::iter::from_fn(|| rehearsal.fetch(links, |_| Site(0))))
    }

    fn focused(&self, explore: f64, is_hard: bool) -> usize {
        let focus = Focus::new(Box::new(self.model.clone()), explore);
        let mut crawl = Focused::new(focus, unlimited(), 0, is_hard);
        for &seed in &self.seeds {
            crawl.seed(seed, Site(0));
        }
        let see = |page: u32| {
            let article = &self.articles[page as usize];
            let link = |&to: &u32| {
                let title = &self.articles[to as usize].title;
                (to, title.replace('_', " "), format!("/wiki/{title}"))
            };
            SeenPage {
                words: article.words.clone(),
                links: article.links.iter().map(link).collect(),
            }
        };
        let next = || crawl.fetch(see, |_| Site(0)).map(|(page, _)| page);
        self.count(std::iter::from_fn(next))
    }

    /// The result of a crawl that knows the texts of all articles it has links to.
    fn own_text(&self) -> usize {
        let mut model = self.model.clone();
        let scores: Vec<f32> = self
            .articles
            .iter()
            .map(|article| model.score(&article.words))
            .collect();
        let mut waiting = self.seeds.clone();
        let mut is_known = vec![false; self.articles.len()];
        waiting
            .iter()
            .for_each(|&seed| is_known[seed as usize] = true);
        let next = || {
            let best = waiting.iter().enumerate().max_by(|(_, a), (_, b)| {
                let score = |page: u32| scores[page as usize];
                score(**a).total_cmp(&score(**b))
            })?;
            let page = waiting.swap_remove(best.0);
            for &link in &self.articles[page as usize].links {
                if !std::mem::replace(&mut is_known[link as usize], true) {
                    waiting.push(link);
                }
            }
            Some(page)
        };
        self.count(std::iter::from_fn(next))
    }
}

fn unlimited() -> Budget {
    Budget {
        pages: u64::MAX,
        max_pages: u64::MAX,
        max_hosts: u32::MAX,
    }
}

fn read(path: &str) -> Vec<Article> {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    zstd::Decoder::new(file)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let title = |row: &Value| row["title"].as_str().unwrap().to_owned();
    let numbers: HashMap<String, u32> = rows.iter().map(title).zip(0..).collect();
    let strings = |row: &Value, name: &str| {
        let all = row[name].as_array().unwrap().iter();
        all.map(|one| one.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let article = |row: &Value| Article {
        title: title(row),
        topics: strings(row, "categories")
            .iter()
            .filter_map(|one| one.split('.').next().map(str::to_owned))
            .collect(),
        links: strings(row, "links")
            .iter()
            .map(|link| numbers[link])
            .collect(),
        words: Words::of(row["text"].as_str().unwrap()),
    };
    rows.iter().map(article).collect()
}
