//! Times an index of pages beside reading them: `index_cost POLICY [HOSTS [PAGES]]`.
//!
//! The pages are like those of the rig `many` of the crawl benchmark: about 1,600 words in
//! sentences that all hosts share. Each host in turn has a page, as in a crawl, and each page is
//! looked up and inserted. Prints the CPU time per page and the peak memory. The policy `none` only
//! makes the pages.

use std::fs;

use arose::mix::SplitMix;
use arose::rule::{Criterion, Remove};
use arose_dedup::Config;
use arose_dedup::index::{Index, Seen, Settings, Sketcher};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let policy = args.first().map_or("content", String::as_str);
    let number = |at: usize, default: u64| args.get(at).map_or(Ok(default), |arg| arg.parse());
    let (n_hosts, n_pages) = (number(1, 2000)?, number(2, 45)?);
    let mut config = Config::default();
    config.policy.criterion = match policy {
        "jaccard" => Criterion::jaccard(),
        _ => Criterion::Content(Remove::Same),
    };
    let settings = Settings::agreeing_with(&config);
    let folder = tempfile::tempdir()?;
    let index = Index::create(folder.path(), settings)?;
    let sketcher = Sketcher::new(&settings);
    let mut random = SplitMix::new(7);
    let sentences = sentences(&mut random);
    let start = cpu_seconds()?;
    let mut n_new = 0;
    for page in 0..n_pages {
        for host in 0..n_hosts {
            let text = text(&sentences, &mut random);
            if policy == "none" {
                continue;
            }
            let host = format!("host{host}.example");
            let url = format!("http://{host}/p{page}.html");
            let sketch = sketcher.sketch(&text, Some(&host)).of_page(&url);
            n_new += u64::from(index.query_or_insert(&url, &sketch)? == Seen::New);
        }
    }
    let micros = (cpu_seconds()? - start) * 1e6 / (n_hosts * n_pages) as f64;
    print(&format!(
        "{policy}: {micros:.1} µs per page, {n_new} new, {}",
        peak()?
    ));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example")]
fn print(line: &str) {
    println!("{line}");
}

/// Sentences of words whose frequencies follow Zipf's law.
fn sentences(random: &mut SplitMix) -> Vec<String> {
    let zipf = |random: &mut SplitMix| {
        let share = random.below(1 << 32) as f64 / (1_u64 << 32) as f64;
        format!("word{}", 8000_f64.powf(share) as u64)
    };
    let sentence = |_| {
        let n = 8 + random.below(11);
        let words: Vec<String> = (0..n).map(|_| zipf(random)).collect();
        words.join(" ") + ". "
    };
    (0..6000).map(sentence).collect()
}

fn text(sentences: &[String], random: &mut SplitMix) -> String {
    let n = 60 + random.below(130);
    let one = |_| sentences[random.below(sentences.len() as u64) as usize].as_str();
    (0..n).map(one).collect()
}

/// User and system time of this process.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}

fn peak() -> Result<String, Box<dyn std::error::Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    Ok(line.unwrap_or_default().to_owned())
}
