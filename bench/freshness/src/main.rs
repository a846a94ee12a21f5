//! Replays change histories and compares revisit policies at equal budgets.

mod histories;
mod policies;
mod replay;
mod scale;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use arose::freshness::{History, Posterior, Prior};
use clap::{Parser, Subcommand};

use histories::Page;
use policies::POLICIES;

#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Replay a file of change histories with every policy
    Replay {
        /// JSON Lines, compressed with zstd if the name ends in .zst
        file: PathBuf,
        /// Mean days between two visits of a page, one column each
        #[arg(long, value_delimiter = ',', default_value = "30,120,365")]
        every: Vec<f64>,
        /// Least freshness of the product's policy, one for each column; fail if it is missed
        #[arg(long, value_delimiter = ',')]
        least: Vec<f64>,
        /// Replay only the pages whose number has this remainder, as 0/2 or 1/2
        #[arg(long, default_value = "0/1")]
        part: String,
        /// Seconds since 1970: replay from then on, with the pages that existed then and were never
        /// deleted; without it, pages come and go as the file says
        #[arg(long)]
        start: Option<f64>,
        /// Days after which the past counts half; 0 for never
        #[arg(long, default_value_t = 0.0)]
        half_life: f64,
        /// Run one policy only, by its name
        #[arg(long)]
        policy: Option<String>,
    },
    /// Measure decisions per second on one core
    Decisions,
    /// Measure memory and CPU time of a schedule of many pages
    Scale {
        /// Pages
        #[arg(default_value_t = 10_000_000)]
        pages: u32,
    },
}

fn main() -> Result<()> {
    match Options::parse().command {
        Command::Replay {
            file,
            every,
            least,
            part,
            start,
            half_life,
            policy,
        } => {
            let pages = histories::read(&file, &part, start)?;
            compare(&pages, &every, &least, half_life, policy.as_deref())
        }
        Command::Decisions => {
            decisions();
            Ok(())
        }
        Command::Scale { pages } => scale::run(pages),
    }
}

fn compare(
    pages: &[Page],
    every: &[f64],
    least: &[f64],
    half_life: f64,
    only: Option<&str>,
) -> Result<()> {
    let n_changes: usize = pages.iter().map(|page| page.changes.len()).sum();
    println!("{} pages, {n_changes} changes\n", pages.len());
    let heads: Vec<String> = every.iter().map(|days| format!(" {days} d |")).collect();
    println!("| policy |{} longest gap | seconds |", heads.concat());
    println!("|---|{}---|---|", "---|".repeat(every.len()));
    let fresh_of = |name: &str| -> Result<Vec<f64>> {
        let start = Instant::now();
        let mut fresh = Vec::new();
        let mut gap = 0.0_f64;
        for &days in every {
            let mut policy = policies::new(name, pages, days, half_life)?;
            let replayed = replay::replay(pages, days, &mut *policy);
            fresh.push(replayed.fresh);
            gap = gap.max(replayed.longest_gap / days);
        }
        let cells: Vec<String> = fresh.iter().map(|fresh| format!(" {fresh:.4} |")).collect();
        let seconds = start.elapsed().as_secs_f64();
        println!("| {name} |{} {gap:.1} x | {seconds:.1} |", cells.concat());
        Ok(fresh)
    };
    let names = POLICIES
        .iter()
        .filter(|name| only.is_none_or(|only| only == **name));
    let all: Vec<(&str, Vec<f64>)> = names
        .map(|name| Ok((*name, fresh_of(name)?)))
        .collect::<Result<_>>()?;
    let of = |name: &str| {
        all.iter()
            .find(|(other, _)| *other == name)
            .map(|(_, fresh)| fresh)
    };
    for (column, least) in least.iter().enumerate() {
        let (Some(ours), Some(in_turn), Some(nutch)) = (
            of("prior + harmonic"),
            of("round robin"),
            of("Nutch's rule"),
        ) else {
            break;
        };
        let ours = ours[column];
        ensure!(ours >= *least, "{ours:.4} fresh, at least {least} expected");
        ensure!(ours > in_turn[column], "{ours:.4} is not above round robin");
        ensure!(
            ours > nutch[column] - 0.001,
            "{ours:.4} is below Nutch's rule"
        );
    }
    Ok(())
}

/// A decision: from what visits have told to the time of the next one.
fn decisions() {
    let histories: Vec<History> = (0..4096u32)
        .map(|i| History {
            unchanged: (i % 64) as f32 * 9.0,
            changed: (i / 64) as f32 * 5.0,
            n_changes: (i / 256) as f32,
        })
        .collect();
    let prior = Prior::default().learned(&histories, 10);
    let n = 1_000_000;
    let start = Instant::now();
    let mut sum = 0.0;
    for i in 0..n {
        let posterior = Posterior::new(&prior, &histories[i % histories.len()]);
        sum += posterior.wait(1.0 + (i % 97) as f64);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{:.0} decisions per second (mean {:.3} days)",
        n as f64 / seconds,
        sum / n as f64
    );
    let start = Instant::now();
    let learned = prior.learned(&histories, 10);
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{seconds:.4} s to learn a prior from 4,096 pages ({:.5})",
        learned.weights()[0]
    );
}
