//! Counters in the text format of Prometheus, served by a small HTTP server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use arose_crawl::counters::Counter;
use arose_crawl::{Control, Snapshot, Turns};

/// Responds to every request at `address` with the counters, one request at a time.
pub(super) fn serve(address: SocketAddr, control: &Arc<Control>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address);
    let listener = listener.with_context(|| format!("cannot serve metrics at {address}"))?;
    let control = Arc::clone(control);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Ignore clients that send a malformed request.
            let _ = answer(stream, &control.snapshot());
        }
    });
    Ok(())
}

fn answer(mut stream: TcpStream, snapshot: &Snapshot) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut request = [0; 4096];
    let _ = stream.read(&mut request)?;
    let body = text(snapshot);
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, label: &str, value: f64| {
        let head = format!("# TYPE arose_crawl_{name} {kind}\n");
        if !text.contains(&head) {
            text.push_str(&head);
        }
        text.push_str(&format!("arose_crawl_{name}{label} {value}\n"));
    };
    for counter in Counter::ALL {
        let name = format!("{}_total", counter.as_str());
        metric(&name, "counter", "", snapshot.counters.get(counter) as f64);
    }
    for (reason, value) in snapshot.counters.rejections() {
        let label = format!("{{reason=\"{reason}\"}}");
        metric("rejections_total", "counter", &label, value as f64);
    }
    for (rule, value) in snapshot.counters.quality_rejections() {
        let label = format!("{{rule=\"{rule}\"}}");
        metric("quality_rejections_total", "counter", &label, value as f64);
    }
    for (kind, value) in snapshot.counters.failures() {
        let label = format!("{{kind=\"{kind}\"}}");
        metric("failure_kinds_total", "counter", &label, value as f64);
    }
    metric("queue", "gauge", "", snapshot.n_queued as f64);
    metric("deferred", "gauge", "", snapshot.n_deferred as f64);
    metric("active_rules", "gauge", "", snapshot.n_active_rules as f64);
    metric("hosts", "gauge", "", snapshot.n_hosts as f64);
    metric("in_flight", "gauge", "", snapshot.n_in_flight as f64);
    metric("in_flight_limit", "gauge", "", snapshot.limit as f64);
    metric("memory_bytes", "gauge", "", snapshot.memory as f64);
    metric("pages_for_trust", "gauge", "", snapshot.pages_for_trust);
    for site in &snapshot.sites {
        let label = format!("{{site=\"{}\"}}", escaped(&site.name));
        metric("site_trust", "gauge", &label, site.trust);
        metric("site_share", "gauge", &label, site.share);
        metric("site_pages", "gauge", &label, site.n_pages as f64);
    }
    for site in &snapshot.poor_sites {
        let label = format!("{{site=\"{}\"}}", escaped(&site.name));
        metric("site_low_quality", "gauge", &label, site.n_low as f64);
        metric("site_read", "gauge", &label, site.n_pages as f64);
        metric(
            "site_bad",
            "gauge",
            &label,
            f64::from(u8::from(site.is_bad)),
        );
    }
    if let Some(freshness) = &snapshot.freshness {
        metric("revisited_pages", "gauge", "", freshness.n_pages as f64);
        metric("fresh", "gauge", "", freshness.fresh);
        for (days, n, fresh) in &freshness.by_age {
            let label = format!("{{days=\"{}\"}}", bound(*days));
            metric("pages_by_age", "gauge", &label, *n as f64);
            metric("fresh_by_age", "gauge", &label, *fresh);
        }
        for (rate, n) in &freshness.by_rate {
            let label = format!("{{changes_per_day=\"{}\"}}", bound(*rate));
            metric("pages_by_rate", "gauge", &label, *n as f64);
        }
        for (name, n, fresh, rate) in &freshness.sites {
            let label = format!("{{site=\"{}\"}}", escaped(name));
            metric("site_revisited_pages", "gauge", &label, *n as f64);
            metric("site_fresh", "gauge", &label, *fresh);
            metric("site_changes_per_day", "gauge", &label, *rate);
        }
    }
    if let Some(topic) = &snapshot.topic {
        let rate = topic.n_fitting as f64 / topic.n_pages.max(1) as f64;
        metric("harvest_rate", "gauge", "", rate);
        if let Some(&last) = topic.harvest.last() {
            metric("harvest_rate_last_thousand", "gauge", "", f64::from(last));
        }
    }
    if let Some(next) = snapshot.next.first() {
        metric("next_mass", "gauge", "", next.mass);
        metric("next_priority", "gauge", "", next.priority);
    }
    // Without the URLs, which would make new time series every second.
    for (rank, waiting) in (1..).zip(&snapshot.next) {
        let site = escaped(&waiting.site.name);
        let label = format!("{{rank=\"{rank}\",site=\"{site}\"}}");
        metric("waiting_mass", "gauge", &label, waiting.mass);
        metric("waiting_share", "gauge", &label, waiting.site.share);
        metric("waiting_priority", "gauge", &label, waiting.priority);
    }
    push_turns(&mut text, &snapshot.turns);
    text
}

/// The upper bound of a histogram bucket, in the format of Prometheus.
fn bound(bound: f64) -> String {
    match bound.is_finite() {
        true => bound.to_string(),
        false => "+Inf".to_owned(),
    }
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The durations of turns of the event loop, as a histogram.
fn push_turns(text: &mut String, turns: &Turns) {
    const NAME: &str = "arose_crawl_turn_seconds";
    text.push_str(&format!("# TYPE {NAME} histogram\n"));
    for (ms, n) in turns.up_to() {
        let bound = ms as f64 / 1000.0;
        text.push_str(&format!("{NAME}_bucket{{le=\"{bound}\"}} {n}\n"));
    }
    let (n, total) = (turns.n(), turns.total().as_secs_f64());
    text.push_str(&format!(
        "{NAME}_bucket{{le=\"+Inf\"}} {n}\n{NAME}_sum {total}\n{NAME}_count {n}\n"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose_crawl::{SiteQuality, SiteStanding, Standing};

    #[test]
    fn each_metric_has_its_type_once() {
        let text = text(&Snapshot::default());
        assert_eq!(
            text.matches("# TYPE arose_crawl_rejections_total counter\n")
                .count(),
            1
        );
        assert!(text.contains("\narose_crawl_rejections_total{reason=\"robots\"} 0\n"));
        assert!(text.contains("\narose_crawl_pages_total 0\n"));
        assert!(text.contains("\narose_crawl_pages_for_trust 0\n"));
        let histogram = "# TYPE arose_crawl_turn_seconds histogram\n\
                         arose_crawl_turn_seconds_bucket{le=\"0.001\"} 0\n";
        assert!(text.contains(histogram), "{text}");
    }

    #[test]
    fn what_is_believed_of_pages() {
        let text = text(&Snapshot {
            freshness: Some(arose_crawl::Freshness {
                n_pages: 9,
                fresh: 0.5,
                by_age: vec![(7.0, 4, 0.75), (f64::INFINITY, 5, 0.3)],
                by_rate: vec![(0.1, 9)],
                sites: vec![("a.org".to_owned(), 9, 0.5, 0.01)],
            }),
            ..Snapshot::default()
        });
        for line in [
            "arose_crawl_fresh 0.5",
            "arose_crawl_fresh_by_age{days=\"7\"} 0.75",
            "arose_crawl_fresh_by_age{days=\"+Inf\"} 0.3",
            "arose_crawl_pages_by_rate{changes_per_day=\"0.1\"} 9",
            "arose_crawl_site_fresh{site=\"a.org\"} 0.5",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
        }
    }

    #[test]
    fn sites_and_what_is_next() {
        let site = |name: &str| SiteStanding {
            name: name.to_owned(),
            trust: 1.5,
            n_pages: 7,
            share: 0.25,
        };
        let text = text(&Snapshot {
            sites: vec![site("a.org"), site("b\"c.org")],
            poor_sites: vec![SiteQuality {
                name: "spam.org".to_owned(),
                n_pages: 30,
                n_low: 29,
                is_bad: true,
            }],
            next: vec![Standing {
                mass: 4.0,
                priority: 1.0,
                site: site("a.org"),
                ..Standing::default()
            }],
            ..Snapshot::default()
        });
        assert_eq!(
            text.matches("# TYPE arose_crawl_site_share gauge\n")
                .count(),
            1
        );
        assert!(text.contains("arose_crawl_site_share{site=\"a.org\"} 0.25\n"));
        assert!(text.contains("arose_crawl_site_trust{site=\"b\\\"c.org\"} 1.5\n"));
        assert!(text.contains("arose_crawl_site_low_quality{site=\"spam.org\"} 29\n"));
        assert!(text.contains("arose_crawl_site_read{site=\"spam.org\"} 30\n"));
        assert!(text.contains("arose_crawl_site_bad{site=\"spam.org\"} 1\n"));
        assert!(text.contains("arose_crawl_next_mass 4\n"), "{text}");
        for line in ["mass{LABEL} 4", "share{LABEL} 0.25", "priority{LABEL} 1"] {
            let line = line.replace("{LABEL}", "{rank=\"1\",site=\"a.org\"}");
            assert!(
                text.contains(&format!("arose_crawl_waiting_{line}\n")),
                "{text}"
            );
        }
    }
}
