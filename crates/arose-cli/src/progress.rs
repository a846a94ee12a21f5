//! The progress display of all commands: a bar on a terminal, a line every ten seconds elsewhere.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::options::How;
use crate::output::look;

/// Progress of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Step {
    /// The current stage, e.g. `verify`.
    pub(crate) stage: String,
    /// The amount that is done.
    pub(crate) done: u64,
    /// The total amount; none if unknown.
    pub(crate) total: Option<u64>,
    /// The unit of both, in the plural, e.g. `documents`; may be empty.
    pub(crate) unit: &'static str,
    /// The completed share of the stage, in 0..=1; none if unknown.
    pub(crate) share: Option<f64>,
    /// Further counts, e.g. `2 skipped`; may be empty.
    pub(crate) note: String,
}

/// Runs `work` while another thread shows its progress.
pub(crate) fn watch<T>(step: impl FnMut() -> Step + Send, work: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| show(step, &is_done));
        let _ends = OnDrop(|| {
            is_done.store(true, Ordering::Relaxed);
            watcher.thread().unpark();
        });
        work()
    })
}

/// Calls a function at the end, even if `work` panics; otherwise the watching thread would never
/// end.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn show(mut step: impl FnMut() -> Step, is_done: &AtomicBool) {
    let mut display = Display::new();
    while !is_done.load(Ordering::Relaxed) {
        std::thread::park_timeout(display.pause());
        if !is_done.load(Ordering::Relaxed) {
            display.tick(&mut step);
        }
    }
}

/// Whether a bar is on the terminal. It must be removed before anything else is written there.
static BAR: Mutex<bool> = Mutex::new(false);

/// Writes a line to standard error, above the bar if there is one. Errors are ignored: a closed
/// standard error does not stop the command.
pub(crate) fn write_line(line: &str) {
    let mut has_bar = BAR.lock().unwrap_or_else(PoisonError::into_inner);
    let clear = if std::mem::take(&mut *has_bar) {
        "\r\x1b[K"
    } else {
        ""
    };
    drop(writeln!(io::stderr(), "{clear}{line}"));
}

fn write_bar(bar: &str) {
    let mut has_bar = BAR.lock().unwrap_or_else(PoisonError::into_inner);
    *has_bar = !bar.is_empty();
    let mut err = io::stderr().lock();
    drop(write!(err, "\r\x1b[K{bar}").and_then(|()| err.flush()));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bar,
    Lines,
    Nothing,
}

/// A display that is redrawn when it is due.
pub(crate) struct Display {
    kind: Kind,
    next: Instant,
    stage: String,
    begin: Instant,
    /// Counts of the last seconds, oldest first, for the rate.
    recent: VecDeque<(Instant, u64)>,
}

impl Display {
    pub(crate) fn new() -> Self {
        let kind = match look().progress {
            How::Never => Kind::Nothing,
            How::Auto if io::stderr().is_terminal() => Kind::Bar,
            How::Auto | How::Lines => Kind::Lines,
        };
        let now = Instant::now();
        let mut display = Self {
            kind,
            next: now,
            stage: String::new(),
            begin: now,
            recent: VecDeque::from([(now, 0)]),
        };
        display.next = now + display.pause();
        display
    }

    fn pause(&self) -> Duration {
        match self.kind {
            Kind::Bar => Duration::from_millis(200),
            Kind::Lines => Duration::from_secs(10),
            Kind::Nothing => Duration::from_secs(1),
        }
    }

    /// Draws if the display is due.
    pub(crate) fn tick(&mut self, step: impl FnOnce() -> Step) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + self.pause();
        // Call this even if nothing is shown, because a crawl also delivers messages here.
        let step = step();
        let rate = self.rate(now, &step);
        let words = words(&step, rate, now - self.begin);
        match self.kind {
            Kind::Bar => write_bar(&with_bar(&step, &words, width())),
            Kind::Lines => write_line(&format!("arose: {}: {words}", step.stage)),
            Kind::Nothing => {}
        }
    }

    /// Items per second over the last ten seconds of the stage.
    fn rate(&mut self, now: Instant, step: &Step) -> f64 {
        if step.stage != self.stage {
            self.stage.clone_from(&step.stage);
            // The stage began between this call and the previous one.
            self.begin = self.recent.back().map_or(now, |(time, _)| *time);
            self.recent = VecDeque::from([(self.begin, 0)]);
        }
        self.recent.push_back((now, step.done));
        let is_old = |time: &Instant| now - *time > Duration::from_secs(10);
        while self.recent.len() > 2 && is_old(&self.recent[1].0) {
            self.recent.pop_front();
        }
        let (time, done) = self.recent[0];
        step.done.saturating_sub(done) as f64 / (now - time).as_secs_f64().max(0.001)
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if self.kind == Kind::Bar {
            write_bar("");
        }
    }
}

/// Columns of the terminal.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse().ok());
    let size = || rustix::termios::tcgetwinsize(io::stderr()).ok();
    columns
        .or_else(|| size().map(|size| usize::from(size.ws_col)))
        .filter(|columns| *columns > 0)
        .unwrap_or(80)
}

/// Counts, rate and time left.
fn words(step: &Step, rate: f64, elapsed: Duration) -> String {
    let mut words = match step.total {
        Some(total) => format!("{} of {total}", step.done),
        None => step.done.to_string(),
    };
    if !step.unit.is_empty() {
        words += &format!(" {}", step.unit);
    }
    words += &match rate {
        rate if rate > 0.0 && rate < 9.5 => format!(", {rate:.1} per second"),
        rate => format!(", {rate:.0} per second"),
    };
    if let Some(share) = share(step).filter(|share| *share > 0.0) {
        let seconds = elapsed.as_secs_f64() * (1.0 - share) / share;
        words += &format!(", {} left", in_words(seconds));
    }
    if !step.note.is_empty() {
        words += &format!(", {}", step.note);
    }
    words
}

fn share(step: &Step) -> Option<f64> {
    let counted = |total: u64| (total > 0).then(|| step.done as f64 / total as f64);
    let share = step.share.or_else(|| counted(step.total?));
    share.map(|share| share.clamp(0.0, 1.0))
}

/// Seconds, minutes or hours.
fn in_words(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A line for a terminal, not wider than `width`.
fn with_bar(step: &Step, words: &str, width: usize) -> String {
    const N_CELLS: usize = 20;
    let bar = share(step).map(|share| {
        let n = (share * N_CELLS as f64) as usize;
        let percent = share * 100.0;
        let (full, rest) = ("=".repeat(n), " ".repeat(N_CELLS - n));
        format!(" [{full}{rest}] {percent:3.0}%")
    });
    let line = format!("{}{}  {words}", step.stage, bar.unwrap_or_default());
    line.chars().take(width.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(done: u64, total: Option<u64>, share: Option<f64>, note: &str) -> Step {
        Step {
            stage: "write".to_owned(),
            done,
            total,
            unit: "",
            share,
            note: note.to_owned(),
        }
    }

    #[track_caller]
    fn check(step: Step, expected: &str) {
        assert_eq!(words(&step, 50.0, Duration::from_secs(10)), expected);
    }

    #[test]
    fn issue_32_progress_tells_rate_time_left_and_further_counts() {
        check(step(0, None, None, ""), "0, 50 per second");
        check(
            step(500, None, None, "2 skipped"),
            "500, 50 per second, 2 skipped",
        );
        let expected = "500 of 2000, 50 per second, 30 s left";
        check(step(500, Some(2000), None, ""), expected);
        let expected = "500, 50 per second, 40 s left, 7 skipped";
        check(step(500, None, Some(0.2), "7 skipped"), expected);
        let expected = "1 of 1000, 50 per second, 2.8 h left";
        check(step(1, Some(1000), None, ""), expected);
        let slow = words(&step(2, None, None, ""), 0.2, Duration::from_secs(10));
        assert_eq!(slow, "2, 0.2 per second");
    }

    #[test]
    fn issue_32_bars_fit_the_terminal() {
        let half = step(5, Some(10), None, "");
        let line = with_bar(&half, "5 of 10", 80);
        assert_eq!(line, "write [==========          ]  50%  5 of 10");
        assert_eq!(with_bar(&half, "5 of 10", 12), "write [====");
        let unknown = step(5, None, None, "");
        assert_eq!(with_bar(&unknown, "5", 80), "write  5");
    }

    #[test]
    fn issue_32_rates_are_of_the_last_ten_seconds_of_a_stage() {
        let mut display = Display::new();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        display.recent = VecDeque::from([(start, 0)]);
        let look = |done| step(done, None, None, "");
        assert_eq!(display.rate(at(5), &look(100)), 20.0);
        assert_eq!(display.rate(at(10), &look(400)), 40.0);
        // The first five seconds are no longer in the window.
        assert_eq!(display.rate(at(16), &look(1200)), 100.0);
        let next = Step {
            stage: "verify".to_owned(),
            ..look(60)
        };
        assert_eq!(display.rate(at(18), &next), 30.0);
    }
}
