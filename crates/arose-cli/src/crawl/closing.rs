//! The closing message: URLs that were not fetched, the reasons, and the command to run next.

use std::path::Path;

use arose_crawl::counters::{Counter, Counters, Failure, Refusal};
use arose_crawl::{End, Summary};

/// How the crawl ended and what was not fetched, one line each.
pub(super) fn lines(summary: &Summary, folder: &Path) -> Vec<String> {
    let dir = folder.display();
    let left = left(summary, &dir.to_string());
    let end = match summary.end {
        End::Done if left.is_empty() => "everything in scope was fetched".to_owned(),
        End::Done => "nothing is left to fetch".to_owned(),
        End::Stopped => format!("stopped; resume with `arose crawl -o {dir}`"),
        End::Limit => format!(
            "a limit of this run was reached; resume with `arose crawl -o {dir}` and a higher one"
        ),
        End::Waiting => {
            format!("the remaining hosts must wait; resume later with `arose crawl -o {dir}`")
        }
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

/// The lines about URLs that were not fetched.
fn left(summary: &Summary, dir: &str) -> Vec<String> {
    let counters = &summary.counters;
    let get = |counter| counters.get(counter);
    let refused = counters.failed(Failure::Forbidden);
    let rows = [
        (
            summary.n_lost,
            "URLs lost for now",
            format!("`arose crawl retry {dir}` fetches them"),
        ),
        (
            get(Counter::Lost),
            "URLs given up",
            format!("`arose crawl failures {dir}` lists them with the reasons"),
        ),
        (
            refused,
            "refused requests to private IP addresses",
            "`--allow-private` allows them".to_owned(),
        ),
        (tls(counters), "failed secure connections", tls_remedy(dir)),
        (
            counters
                .rejections()
                .find(|(reason, _)| *reason == "out-of-scope")
                .map_or(0, |(_, n)| n),
            "links out of scope",
            "`--scope`, `--host` and `--domain` change the scope".to_owned(),
        ),
        (
            get(Counter::Disallowed),
            "URLs that robots.txt disallows",
            format!("`arose crawl failures {dir}` lists them"),
        ),
        (
            get(Counter::DeferredHosts),
            "hosts that require too long a delay",
            "`polite.defer_above` in the settings accepts longer ones".to_owned(),
        ),
        (
            summary.n_full_hosts,
            "hosts that reached their maximum number of pages",
            "`budget.max_pages` in the settings allows more".to_owned(),
        ),
        (
            counters.refused(Refusal::TooManyHosts),
            "URLs on further hosts of sites with too many hosts",
            "`budget.max_hosts` in the settings allows more".to_owned(),
        ),
        (
            summary.n_aside,
            "URLs put aside where earlier pages had nothing new",
            "`duplicates.stale_after` in the settings decides when".to_owned(),
        ),
        (
            get(Counter::UnfollowedDuplicates),
            "duplicates whose links were not followed",
            "`--duplicate-links last` follows them".to_owned(),
        ),
    ];
    let rows = rows.into_iter().filter(|(n, ..)| *n > 0);
    rows.map(|(n, what, remedy)| format!("{what}: {n}; {remedy}"))
        .collect()
}

fn tls(counters: &Counters) -> u64 {
    let failures = [
        Failure::Tls,
        Failure::ExpiredCertificate,
        Failure::UnknownIssuer,
        Failure::OtherName,
    ];
    failures
        .map(|failure| counters.failed(failure))
        .iter()
        .sum()
}

fn tls_remedy(dir: &str) -> String {
    format!(
        "`arose crawl failures {dir}` has the reasons; `network.certificates` and \
         `network.ignore_certificates` in the settings accept more certificates"
    )
}
