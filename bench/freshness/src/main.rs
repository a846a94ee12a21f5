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
use replay::Pace;

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
        /// Least freshness of the product's policy when the visits of a step are made, one for each
        /// column; fail if it is missed
        #[arg(long, value_delimiter = ',')]
        least: Vec<f64>,
        /// Days of a step
        #[arg(long, default_value_t = 1.0)]
        step: f64,
        /// Draw when the first pages were visited last, within the mean interval before the
        /// beginning; several values give several replays and their mean
        #[arg(long, value_delimiter = ',', default_value = "1,2")]
        seed: Vec<u64>,
        /// Let all first pages be visited at the beginning, in the order of the file, instead
        #[arg(long)]
        at_once: bool,
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
            step,
            seed,
            at_once,
        } => {
            let pages = histories::read(&file, &part, start)?;
            let seeds = match at_once {
                true => vec![None],
                false => seed.into_iter().map(Some).collect(),
            };
            let compared = Compared {
                pages: &pages,
                every: &every,
                half_life,
                step,
                seeds: &seeds,
            };
            compared.run(&least, policy.as_deref())
        }
        Command::Decisions => {
            decisions();
            Ok(())
        }
        Command::Scale { pages } => scale::run(pages),
    }
}

/// What is replayed, and how.
struct Compared<'a> {
    pages: &'a [Page],
    every: &'a [f64],
    half_life: f64,
    step: f64,
    seeds: &'a [Option<u64>],
}

impl Compared<'_> {
    fn run(&self, least: &[f64], only: Option<&str>) -> Result<()> {
        let n_changes: usize = self.pages.iter().map(|page| page.changes.len()).sum();
        println!("{} pages, {n_changes} changes\n", self.pages.len());
        let heads: Vec<String> = self
            .every
            .iter()
            .map(|days| format!(" {days} d |"))
            .collect();
        let heads = heads.concat();
        println!("Over all time, and after the visits of each step:\n");
        println!("| policy |{heads}{heads} longest gap | seconds |");
        println!("|---|{}---|---|", "---|".repeat(2 * self.every.len()));
        let names = POLICIES
            .iter()
            .filter(|name| only.is_none_or(|only| only == **name));
        let all: Vec<(&str, Vec<f64>)> = names
            .map(|name| Ok((*name, self.row(name)?)))
            .collect::<Result<_>>()?;
        check(&all, least)
    }

    /// Prints the row of a policy; returns its freshness after visits.
    fn row(&self, name: &str) -> Result<Vec<f64>> {
        let start = Instant::now();
        let (mut fresh, mut after) = (Vec::new(), Vec::new());
        let mut gap = 0.0_f64;
        let n = self.seeds.len() as f64;
        for &every in self.every {
            let (mut sum, mut sum_after) = (0.0, 0.0);
            for &seed in self.seeds {
                let mut policy = policies::new(name, self.pages, every, self.half_life)?;
                let pace = Pace {
                    every,
                    step: self.step,
                    seed,
                };
                let replayed = replay::replay(self.pages, pace, &mut *policy);
                sum += replayed.fresh;
                sum_after += replayed.fresh_after_visits;
                gap = gap.max(replayed.longest_gap / every);
            }
            fresh.push(sum / n);
            after.push(sum_after / n);
        }
        let cells = fresh.iter().chain(&after);
        let cells: Vec<String> = cells.map(|fresh| format!(" {fresh:.4} |")).collect();
        let seconds = start.elapsed().as_secs_f64();
        println!("| {name} |{} {gap:.1} x | {seconds:.1} |", cells.concat());
        Ok(after)
    }
}

/// Compares the product's policy with what it must reach, with round robin and with Nutch's rule.
fn check(all: &[(&str, Vec<f64>)], least: &[f64]) -> Result<()> {
    let of = |name: &str| {
        let found = all.iter().find(|(other, _)| *other == name);
        found.map(|(_, fresh)| fresh)
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
