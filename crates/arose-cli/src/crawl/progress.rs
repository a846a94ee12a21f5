//! The progress of a crawl.

use arose_crawl::Control;
use arose_crawl::counters::Counter;
use arose_dedup::report::html::counted;

use crate::output::say;
use crate::progress::Step;

/// Reports the progress of a crawl, and passes its messages on.
pub(crate) fn step_of(control: &Control) -> impl FnMut() -> Step + Send {
    move || {
        for message in control.take_messages() {
            say(format_args!("arose: {message}"));
        }
        let now = control.snapshot();
        let get = |counter| now.counters.get(counter);
        let topic = match now.topic {
            Some(_) => format!("{} on topic, ", get(Counter::OnTopic)),
            None => String::new(),
        };
        let duplicates = get(Counter::ExactDuplicates) + get(Counter::NearDuplicates);
        Step {
            stage: if now.is_paused { "paused" } else { "crawl" }.to_owned(),
            done: get(Counter::Pages),
            total: None,
            unit: "pages",
            share: None,
            note: format!(
                "{topic}{} queued on {}, {}, {}, {} failed",
                now.n_queued,
                counted(now.n_hosts, "host", "hosts"),
                counted(now.n_in_flight as u64, "open request", "open requests"),
                counted(duplicates, "duplicate", "duplicates"),
                get(Counter::Failures),
            ),
        }
    }
}
