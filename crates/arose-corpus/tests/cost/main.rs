//! Tests of cost: time and memory for hostile input grow in proportion to its size.
//!
//! Every [generator](generators) makes input of any size. Each is read at three sizes, each twice
//! the previous one, through all its [ways](ways) into the crate. The test checks:
//!
//! - CPU time: at most 2.2 times as much for twice the input;
//! - peak of allocated bytes: at most [`PER_BYTE`] times the input plus [`CONSTANT`], and at most
//!   2.2 times as much for twice the input.
//!
//! Time is CPU time, the smallest of several rounds. Three things make it steady on a busy machine:
//!
//! - The process keeps to one core. On two, one case took eight times as long in some rounds as in
//!   others. Threads that share the allocator are a likely cause, but this was not measured.
//! - The allocator returns no memory (`MALLOC_TRIM_THRESHOLD_` and similar settings, in a child
//!   process), so that buffers need not be faulted in again in every round.
//! - In rounds after the first, the smaller inputs are read two and four times for each reading of
//!   the largest. All measurements then take about as long, and disturbances affect them equally.
//!
//! The counting allocator counts old and new memory together while a vector grows, which is the
//! maximum that any allocator would need. This test is a separate binary, since it counts the
//! allocations of the whole process. The number of documents that wait between threads depends on
//! the scheduler, unless the consumer first lets the other threads go as far as they can; see
//! [`ways::Consumer`]. The peak is therefore the largest of any schedule, and the same in every
//! round.
//!
//! `COST_ONLY=word` runs the cases whose name contains the word; `COST_BYTES` sets the smallest
//! size.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "the figures are shown")]

mod generators;
mod ways;

use std::process::Command;

use peak_alloc::PeakAlloc;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use generators::{GENERATORS, Generator};
use ways::Way;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Maximum peak of allocated bytes per byte of input, without the input itself.
const PER_BYTE: usize = 8;

/// Memory allocated for any input: buffers of decoders, one block of each kind, and 16,384 blocks
/// of a page in mode `content`.
const CONSTANT: usize = 8 << 20;

/// Maximum growth of time and memory for twice the input.
const GROWTH: f64 = 2.2;

/// Smaller differences are not significant: a thread is started, or a buffer doubles.
const SECONDS_SLACK: f64 = 0.002;
const BYTES_SLACK: usize = 1 << 20;

/// Number of rounds after which a time that looks too long is accepted as such.
const MAX_ROUNDS: usize = 40;

/// The cost of a case at one size.
#[derive(Clone, Copy)]
struct Cost {
    n_bytes: usize,
    seconds: f64,
    peak: usize,
}

/// Set in the child process that measures.
const CHILD: &str = "COST_CHILD";

/// Keeps freed memory with the process, in one place.
const MALLOC: [(&str, &str); 4] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TOP_PAD_", "67108864"),
    ("MALLOC_TRIM_THRESHOLD_", "17179869184"),
];

#[test]
fn hostile_input_costs_in_proportion_to_its_size() {
    if std::env::var_os(CHILD).is_some() {
        return measure_all();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(std::env::args_os().skip(1))
        .env(CHILD, "1")
        .envs(MALLOC)
        .status();
    assert!(child.unwrap().success(), "see above");
}

fn measure_all() {
    let only = std::env::var("COST_ONLY").unwrap_or_default();
    let smallest = std::env::var("COST_BYTES").map_or(SMALLEST, |n| n.parse().unwrap());
    let (mut failures, mut n_cases) = (Vec::new(), 0);
    stay_on_one_core();
    for generator in GENERATORS {
        for way in generator.ways {
            let name = format!("{} by {way:?}", generator.name);
            if name.contains(&only) {
                n_cases += 1;
                failures.extend(check(&name, generator, *way, smallest));
            }
        }
    }
    println!("{n_cases} cases of {} generators", GENERATORS.len());
    assert!(GENERATORS.len() >= 40, "{}", GENERATORS.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The smallest of the three sizes.
const SMALLEST: usize = 128 << 10;

/// Measures one case. Returns what is wrong with it.
fn check(name: &str, generator: &Generator, way: Way, smallest: usize) -> Vec<String> {
    let inputs = [1, 2, 4].map(|times| way.wrap((generator.make)(times * smallest)));
    let mut costs = inputs.each_ref().map(|input| measure(way, input));
    let mut rounds = 1;
    while rounds < MAX_ROUNDS && costs.windows(2).any(|pair| is_slower(pair[0], pair[1])) {
        for ((cost, input), times) in costs.iter_mut().zip(&inputs).zip([4, 2, 1]) {
            let runs: Vec<Cost> = (0..times).map(|_| measure(way, input)).collect();
            let total: f64 = runs.iter().map(|run| run.seconds).sum();
            let seconds = total / f64::from(times);
            cost.peak = runs.iter().map(|run| run.peak).fold(cost.peak, usize::max);
            cost.seconds = match rounds {
                1 => seconds,
                _ => cost.seconds.min(seconds),
            };
        }
        rounds += 1;
    }
    let show = |cost: &Cost| {
        let times = cost.peak as f64 / cost.n_bytes as f64;
        format!("{:.1} ms, peak {times:.1}x", cost.seconds * 1e3)
    };
    let shown = costs.each_ref().map(show).join("; ");
    println!(
        "{name}: {} bytes: {shown} ({rounds} rounds)",
        inputs[2].len()
    );
    let mut wrong = Vec::new();
    for pair in costs.windows(2) {
        if is_slower(pair[0], pair[1]) {
            wrong.push(format!("{name}: time grows too fast: {shown}"));
        }
        if is_larger(pair[0], pair[1]) {
            wrong.push(format!("{name}: memory grows too fast: {shown}"));
        }
    }
    if costs
        .iter()
        .any(|cost| cost.peak > PER_BYTE * cost.n_bytes + CONSTANT)
    {
        wrong.push(format!("{name}: too much memory: {shown}"));
    }
    wrong
}

fn is_larger(less: Cost, more: Cost) -> bool {
    let allowed = (less.peak as f64 * GROWTH) as usize + BYTES_SLACK;
    more.peak > allowed
}

fn is_slower(less: Cost, more: Cost) -> bool {
    more.seconds > GROWTH * less.seconds + SECONDS_SLACK
}

/// Reads an input once.
fn measure(way: Way, input: &[u8]) -> Cost {
    let owned = way.prepare(input);
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let start = seconds();
    way.run(owned);
    let seconds = seconds() - start;
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    Cost {
        n_bytes: input.len(),
        seconds,
        peak,
    }
}

/// Keeps this thread, and those it will start, on one of the allowed cores.
fn stay_on_one_core() {
    let allowed = sched_getaffinity(None).unwrap();
    let core = (0..CpuSet::MAX_CPU).find(|&core| allowed.is_set(core));
    let mut one = CpuSet::new();
    one.set(core.unwrap());
    sched_setaffinity(None, &one).unwrap();
}

/// CPU time of this process.
fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
