//! The progress of `arose dedup` and `arose passages`, as a line.

use std::time::{Duration, Instant};

use arose_dedup::{Progress, Snapshot};

/// Says where a run is, with the rate of the stage it is in.
pub(crate) fn line_of(progress: &Progress) -> impl FnMut() -> String + Send {
    let mut stage = (progress.look().stage, Instant::now());
    move || {
        let now = progress.look();
        if now.stage != stage.0 {
            stage = (now.stage, Instant::now());
        }
        progress_line(&now, stage.1.elapsed())
    }
}

fn progress_line(now: &Snapshot, elapsed: Duration) -> String {
    let rate = now.done as f64 / elapsed.as_secs_f64().max(0.001);
    let left = now.share.filter(|share| *share > 0.0).map(|share| {
        let seconds = elapsed.as_secs_f64() * (1.0 - share) / share;
        format!(", {seconds:.0} s left")
    });
    let skipped = match now.skipped {
        0 => String::new(),
        n => format!(", {n} skipped"),
    };
    let total = now
        .total
        .map_or(String::new(), |total| format!(" of {total}"));
    let left = left.unwrap_or_default();
    format!(
        "{}: {}{total}, {rate:.0} per second{left}{skipped}",
        now.stage, now.done
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(done: u64, total: Option<u64>, share: Option<f64>, skipped: u64, expected: &str) {
        let now = Snapshot {
            stage: "write",
            done,
            total,
            share,
            skipped,
        };
        assert_eq!(progress_line(&now, Duration::from_secs(10)), expected);
    }

    #[test]
    fn progress_tells_rate_time_left_and_what_was_skipped() {
        check(0, None, None, 0, "write: 0, 0 per second");
        check(500, None, None, 2, "write: 500, 50 per second, 2 skipped");
        let line = "write: 500 of 2000, 50 per second, 30 s left";
        check(500, Some(2000), Some(0.25), 0, line);
        let line = "write: 500, 50 per second, 40 s left, 7 skipped";
        check(500, None, Some(0.2), 7, line);
        let line = "write: 2000 of 2000, 200 per second, 0 s left";
        check(2000, Some(2000), Some(1.0), 0, line);
    }
}
