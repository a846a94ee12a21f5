//! Live progress: a line that changes on a terminal, a line every ten seconds elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use arose_crawl::counters::Counter;
use arose_crawl::{Control, Snapshot};

/// Progress being shown.
pub(crate) struct Shown {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Shown {
    /// Shows no more.
    pub(crate) fn end(self) {
        drop(self.end);
        // Whatever became of it, the crawl has ended.
        let _ = self.thread.join();
    }
}

/// Shows how the crawl does until told to end.
pub(crate) fn start(control: &Arc<Control>) -> Shown {
    let (end, ended) = channel();
    let control = Arc::clone(control);
    let thread = std::thread::spawn(move || {
        let is_terminal = std::io::stderr().is_terminal();
        let every = Duration::from_secs(if is_terminal { 1 } else { 10 });
        let mut before = Snapshot::default();
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(every) {
            for message in control.take_messages() {
                eprintln!("arose: {message}");
            }
            let now = control.snapshot();
            let line = line(&before, &now);
            let mut err = std::io::stderr().lock();
            let _ = match is_terminal {
                true => write!(err, "\r{line}\x1b[K").and_then(|()| err.flush()),
                false => writeln!(err, "{line}"),
            };
            before = now;
        }
        if is_terminal {
            eprint!("\r\x1b[K");
        }
    });
    Shown { end, thread }
}

fn line(before: &Snapshot, now: &Snapshot) -> String {
    let seconds = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
    let n_fetched = now.n_fetched.saturating_sub(before.n_fetched);
    let rate = if seconds > 0.0 {
        n_fetched as f64 / seconds
    } else {
        0.0
    };
    let get = |counter| now.counters.get(counter);
    let duplicates = get(Counter::ExactDuplicates) + get(Counter::NearDuplicates);
    let paused = if now.is_paused { "paused; " } else { "" };
    format!(
        "{paused}{} pages, {rate:.0}/s; {} queued on {} hosts; {} in flight; {duplicates} duplicates; {} failed",
        get(Counter::Pages),
        now.n_queued,
        now.n_hosts,
        now.n_in_flight,
        get(Counter::Failures),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_last_interval() {
        let at = |seconds, n_fetched| Snapshot {
            elapsed: Duration::from_secs(seconds),
            n_fetched,
            ..Snapshot::default()
        };
        assert!(line(&at(1, 100), &at(3, 500)).starts_with("0 pages, 200/s; 0 queued on 0 hosts"));
        assert!(line(&at(1, 100), &at(1, 100)).contains(" 0/s;"));
    }
}
