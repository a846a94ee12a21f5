//! The closing message: URLs that were not fetched, the reasons, and the command to run next.

use std::path::Path;

use arose_crawl::counters::{Counter, Failure, Refusal};
use arose_crawl::guard::Reason;
use arose_crawl::{End, Limit, Summary};

/// How the crawl ended and what was not fetched, one line each.
pub(super) fn lines(summary: &Summary, folder: &Path) -> Vec<String> {
    let dir = folder.display();
    let left = left(summary, &dir.to_string());
    let resume = format!("`arose crawl -o {dir}`");
    let end = match (summary.end, summary.limit) {
        (End::Done, _) if left.is_empty() => "everything in scope was fetched".to_owned(),
        (End::Done, _) => "nothing is left to fetch".to_owned(),
        (End::Stopped, _) => format!("stopped; resume with {resume}"),
        (End::Limit, Some(Limit::Pages)) => format!(
            "the maximum number of pages was reached; `arose crawl -o {dir} --pages N` fetches more"
        ),
        (End::Limit, Some(Limit::Bytes)) => format!(
            "`stop.bytes` was reached; resume with {resume} and a larger value in the settings"
        ),
        (End::Limit, _) => format!("the time limit was reached; resume with {resume}"),
        (End::Waiting, Some(Limit::Outage)) => {
            format!("no network for as long as `stop.outage` allows; resume with {resume}")
        }
        (End::Waiting, _) => format!("the remaining hosts must wait; resume later with {resume}"),
    };
    let bad = summary.bad_seeds.iter();
    let bad = bad.map(|seed| format!("bad seed `{}`: {}", seed.text, seed.reason));
    let known = (summary.n_known_seeds > 0).then(|| {
        let n = summary.n_known_seeds;
        format!("seeds met before: {n}; `arose crawl refresh {dir} URL` visits pages again")
    });
    let rest = bad.chain(known).chain(left);
    std::iter::once(end).chain(rest).collect()
}

/// A number of URLs, hosts or requests, what happened to them, and what changes it.
type Row = (u64, String, String);

/// The lines about URLs that were not fetched.
fn left(summary: &Summary, dir: &str) -> Vec<String> {
    let rows = failed(summary, dir).into_iter();
    let rows = rows.chain(held_back(summary, dir)).chain(rejected(summary));
    rows.filter(|(n, ..)| *n > 0)
        .map(|(n, what, remedy)| format!("{what}: {n}; {remedy}"))
        .collect()
}

/// Requests that failed, and URLs that robots.txt disallows.
fn failed(summary: &Summary, dir: &str) -> Vec<Row> {
    let counters = &summary.counters;
    // An earlier run may have had other settings.
    let in_run = |failure| counters.failed(failure) - summary.before.failed(failure);
    let tls = [
        Failure::Tls,
        Failure::ExpiredCertificate,
        Failure::UnknownIssuer,
        Failure::OtherName,
    ];
    let reasons = tls.into_iter().filter(|failure| in_run(*failure) > 0);
    let reasons: Vec<&str> = reasons.map(Failure::as_str).collect();
    vec![
        (
            summary.n_lost,
            "URLs lost for now".to_owned(),
            format!(
                "`arose crawl failures {dir}` has the reasons, and `arose crawl retry {dir}` requests them \
                 again"
            ),
        ),
        (
            counters.get(Counter::Lost),
            "URLs given up".to_owned(),
            format!("`arose crawl failures {dir}` lists them with the reasons"),
        ),
        (
            in_run(Failure::Forbidden),
            "refused requests to private IP addresses".to_owned(),
            format!("`arose crawl -o {dir} --allow-private` allows them"),
        ),
        (
            tls.into_iter().map(in_run).sum(),
            format!("failed secure connections ({})", reasons.join(", ")),
            "`network.certificates` and `network.ignore_certificates` in the settings accept more \
             certificates"
                .to_owned(),
        ),
        (
            counters.get(Counter::Disallowed),
            "URLs that robots.txt disallows".to_owned(),
            format!("`arose crawl failures {dir}` lists them"),
        ),
    ]
}

/// URLs that stay queued, or wait for a rule to be wrong.
fn held_back(summary: &Summary, dir: &str) -> Vec<Row> {
    vec![
        (
            summary.n_deferred_hosts,
            "hosts that require too long a delay".to_owned(),
            "`polite.defer_above` in the settings accepts longer ones".to_owned(),
        ),
        (
            summary.n_full_hosts,
            "hosts that reached their maximum number of pages".to_owned(),
            "`max_pages` of `[budget]` or of the host in the settings allows more".to_owned(),
        ),
        (
            summary.n_aside,
            "URLs put aside, one per day, where pages repeat others or look like spam".to_owned(),
            "`duplicates.stale_after` in the settings decides when".to_owned(),
        ),
        (
            summary.n_deferred,
            "URLs deferred because other URLs have the same pages".to_owned(),
            format!("`arose crawl rules {dir}` lists the rules and switches them off"),
        ),
    ]
}

/// Links that were not followed. They are not kept, so settings apply to pages fetched later.
fn rejected(summary: &Summary) -> Vec<Row> {
    let counters = &summary.counters;
    let links = |reasons: &[Reason]| -> u64 {
        let counts = reasons.iter().map(|reason| counters.rejected(*reason));
        counts.sum()
    };
    let row = |n, what: &str, remedy: &str| (n, what.to_owned(), remedy.to_owned());
    vec![
        row(
            links(&[Reason::OutOfScope]),
            "links out of scope",
            "`--scope`, `--host` and `--domain` change the scope",
        ),
        row(
            links(&[Reason::LinkDepth]),
            "links too far from the seeds",
            "`--depth` allows more",
        ),
        row(
            links(&[Reason::Blocked, Reason::Excluded, Reason::NotIncluded]),
            "links that the settings exclude",
            "`blocked`, `exclude` and `include` of `[scope]` decide",
        ),
        row(
            links(&[
                Reason::Length,
                Reason::PathDepth,
                Reason::Cycle,
                Reason::RepeatedSegment,
                Reason::Parameters,
            ]),
            "links that look like traps",
            "`max_url_bytes`, `max_path_depth`, `max_repeats` and `max_parameters` of `[scope]` allow more",
        ),
        row(
            counters.refused(Refusal::TooManyHosts),
            "URLs on further hosts of sites with too many hosts",
            "`budget.max_hosts` in the settings allows more",
        ),
        row(
            counters.refused(Refusal::Redirects),
            "redirects after too many others",
            "`fetch.max_redirects` in the settings allows more",
        ),
        row(
            counters.get(Counter::UnfollowedDuplicates),
            "duplicates whose links were not followed",
            "`--duplicate-links last` follows them",
        ),
        row(
            counters.get(Counter::QualityRejected),
            "pages whose links were not followed for their quality",
            "`quality.reject` in the settings decides",
        ),
        row(
            counters.get(Counter::OffTopic),
            "pages off topic whose links were not followed",
            "`hard = false` in the file of `--topic` follows them",
        ),
    ]
}
