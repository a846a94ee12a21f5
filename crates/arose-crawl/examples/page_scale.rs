//! Measures the cost of many pages that are visited again: `page_scale DIR [PAGES]`.
//!
//! Creates the page table of a crawl in a directory and schedules a visit of each page in 30 days,
//! without network and journal. Prints the size of the table on disk, the memory of statistics and
//! schedule, and decisions (computed times of a next visit) per second of CPU time, first of all
//! pages and then during an hour of visits.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::error::Error;
use std::path::PathBuf;

use arose_crawl::rehearsal::Pages;
use mimalloc::MiMalloc;

/// As in the binary `arose`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Days between two visits of a page.
const EVERY: u32 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: page_scale DIR [PAGES]";
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let n_pages = arguments.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let before = resident()?;
    let mut pages = Pages::new(&folder, n_pages, EVERY)?;
    let (begun, decided) = (processor_seconds()?, pages.n_decisions());
    pages.decide();
    let seconds = processor_seconds()? - begun;
    let each = |n: u64| n as f64 / f64::from(n_pages);
    println!(
        "{n_pages} pages: {:.1} bytes each on disk, {:.1} in memory ({:.0} MB), \
         {:.0} decisions per second of CPU time",
        each(pages.table_bytes(&folder)?),
        each(resident()? - before),
        (resident()? - before) as f64 / 1e6,
        (pages.n_decisions() - decided) as f64 / seconds
    );
    let (begun, decided) = (processor_seconds()?, pages.n_decisions());
    let mut n_visits = 0;
    for _second in 0..3600 {
        n_visits += pages.tick(1)?;
    }
    let seconds = processor_seconds()? - begun;
    let n_decisions = pages.n_decisions() - decided;
    println!(
        "an hour: {n_visits} visits, {n_decisions} decisions, {:.0} per second of CPU time, \
         {:.1} bytes each in memory ({:.0} MB)",
        n_decisions as f64 / seconds.max(0.01),
        each(resident()? - before),
        (resident()? - before) as f64 / 1e6
    );
    Ok(())
}

/// Bytes of memory in use.
fn resident() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).ok_or("no resident pages")?;
    Ok(pages.parse::<u64>()? * 4096)
}

fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let fields = fields.split_whitespace().skip(11).take(2);
    let ticks: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<u64>() as f64 / 100.0)
}
