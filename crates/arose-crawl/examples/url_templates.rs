//! Memory and time of URL rules on many templates: `url_templates [N]`, 10 million by default.
//!
//! Each template has one page with a session ID and a parameter, as a hostile site makes them. A
//! thousand templates share a site.
#![expect(clippy::print_stdout, reason = "the results are its output")]

use std::time::Instant;

use arose::dust::{Config, Learner};

fn main() {
    let n = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let n: u64 = n.unwrap_or(10_000_000);
    let mut learner = Learner::new(Config::default());
    let start = Instant::now();
    let mut n_requests = 0;
    for number in 0..n {
        let (site, page) = (number / 1000, letters(number));
        let session = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let url = format!("http://s{site}.example/{page}/view?sid={session:x}&page=2");
        let mut wanted = vec![url];
        while let Some(url) = wanted.pop() {
            n_requests += 1;
            wanted.extend(learner.fetched(&url, Some(number)));
        }
        // A crawl takes these with each commit.
        if number % 1000 == 0 {
            learner.take_changed();
            learner.take_remembered();
            learner.take_errands();
        }
    }
    let took = start.elapsed().as_secs_f64();
    println!("{n} templates, {n_requests} requests, {took:.1} s");
    let n_rules = learner.rules().count();
    println!("{n_rules} rules, {} ignored", learner.n_ignored());
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
        println!("{line}");
    }
}

/// A number as letters: segments with digits count as variable.
fn letters(mut number: u64) -> String {
    let mut text = String::new();
    while number > 0 || text.is_empty() {
        text.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    text
}
