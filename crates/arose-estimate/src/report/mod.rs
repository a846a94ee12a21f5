//! The report of a study: one HTML file that loads nothing else.

mod plot;

use std::fmt::Write as _;

use arose_dedup::report::html::{Count, Text};

use super::study::Study;
use super::{Behaviour, Figure, Findings};

const STYLE: &str = include_str!("style.css");

/// The page.
pub(super) fn page(study: &Study) -> String {
    let names = study.engines.join(", ");
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Size and overlap: {}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<header>\n<p class=\"brand\">arose {}</p>\n<h1>Size and overlap of <bdi>{}</bdi></h1>\n\
         <p>Seed {}. Bars are 95% intervals, which contain the true value if the method has no bias. \
         Biases not covered by the intervals are listed below each table.</p>\n</header>\n<main>\n",
        Text(&names),
        env!("CARGO_PKG_VERSION"),
        Text(&names),
        study.seed
    );
    for findings in &study.findings {
        section(&mut out, study, findings);
    }
    refused(&mut out, study);
    out.push_str(
        "</main>\n<footer><p>The same estimates are in <code>estimates.json</code>; all queries and \
         responses are in <code>requests.jsonl</code>. This page loads nothing and runs no scripts.</p>\
         </footer>\n</body>\n</html>\n",
    );
    out
}

fn section(out: &mut String, study: &Study, findings: &Findings) {
    let _ = write!(
        out,
        "<section>\n<h2>{}</h2>\n<p>Unit: {}. Responses used: {}.</p>\n",
        title(findings),
        Text(&findings.counted),
        Count(findings.n_responses)
    );
    for warning in &findings.warnings {
        let _ = writeln!(out, "<p class=\"warning\">{}.</p>", Text(warning));
    }
    if let Some(shares) = coverage(study, findings) {
        out.push_str(&plot::coverage(&shares, &exactly(findings)));
    }
    figures(out, findings);
    for series in findings
        .series
        .iter()
        .filter(|series| series.points.len() > 1)
    {
        let figure = findings.figure(&series.name);
        out.push_str(&plot::course(
            series,
            figure.and_then(|figure| figure.interval),
        ));
    }
    engines(out, &findings.engines);
    biases(out, findings);
    out.push_str("</section>\n");
}

fn title(findings: &Findings) -> &'static str {
    match findings.method {
        "lower-bound" => "Claimed result counts",
        "overlap" => "Relative sizes, by sampled pages",
        "coverage" => "Shares of sampled pages in each search engine",
        "searches" => "Results of logged queries",
        "corpus-size" => "Number of pages, from queries alone",
        "pool" => "Means over uniformly sampled pages",
        _ => "Estimates",
    }
}

/// The share of the union in each search engine.
fn coverage<'a>(study: &'a Study, findings: &'a Findings) -> Option<Vec<(&'a str, &'a Figure)>> {
    let shares = study.engines.iter().map(|engine| {
        let figure = findings.figure(&format!("{engine} / union"))?;
        figure.value.map(|_| (engine.as_str(), figure))
    });
    shares.collect()
}

/// The shares of the union in exactly one search engine, exactly two, and so on.
fn exactly(findings: &Findings) -> Vec<f64> {
    let figures = findings.figures.iter();
    let shares = figures.filter(|figure| figure.name.starts_with("in exactly "));
    shares.filter_map(|figure| figure.value).collect()
}

fn figures(out: &mut String, findings: &Findings) {
    out.push_str(
        "<table>\n<thead><tr><th>estimate<th class=\"n\">value<th>95% interval<th class=\"n\">samples\
         </tr></thead>\n<tbody>\n",
    );
    for figure in &findings.figures {
        let value = figure.value.map_or("–".to_owned(), number);
        let interval = figure.interval.map_or(String::new(), |ends| {
            let [low, high] = ends.map(number);
            format!("{low} – {high} {}", plot::interval(figure))
        });
        let mut notes = figure.notes.clone();
        notes.extend(
            figure
                .refused
                .iter()
                .map(|reason| format!("not estimated: {reason}")),
        );
        notes.extend(figure.sampling.map(|ends| {
            let [low, high] = ends.map(number);
            format!("{low} – {high} if missing responses were like the others")
        }));
        notes.extend(
            figure
                .truth
                .map(|truth| format!("ground truth {}", number(truth))),
        );
        let _ = writeln!(
            out,
            "<tr><td><bdi>{}</bdi><small>{}</small><td class=\"n\">{value}<td>{interval}\
             <td class=\"n\">{}</tr>",
            Text(&figure.name),
            Text(&notes.join("; ")),
            Count(figure.n_samples),
        );
    }
    out.push_str("</tbody>\n</table>\n");
}

fn engines(out: &mut String, engines: &[Behaviour]) {
    if engines.is_empty() {
        return;
    }
    out.push_str(
        "<details>\n<summary>Behaviour of the search engines</summary>\n<table>\n<thead><tr><th>engine\
         <th class=\"n\">searches<th class=\"n\">missing<th class=\"n\">empty<th class=\"n\">cut\
         <th class=\"n\">repeating<th class=\"n\">fetches<th class=\"n\">missing\
         <th class=\"n\">changed<th class=\"n\">counts wrong</tr></thead>\n<tbody>\n",
    );
    for Behaviour { name, health, .. } in engines {
        let _ = write!(out, "<tr><td><bdi>{}</bdi>", Text(name));
        for n in [
            health.n_searches,
            health.n_missing,
            health.n_empty,
            health.n_cut,
            health.n_repeating,
            health.n_fetches,
            health.n_fetches_missing,
        ] {
            let _ = write!(out, "<td class=\"n\">{}", Count(n));
        }
        let controls = &health.controls;
        let _ = writeln!(
            out,
            "<td class=\"n\">{} of {}<td class=\"n\">{} of {}</tr>",
            controls.n_changed,
            controls.n_repeated,
            controls.n_violations + health.n_contradicting,
            controls.n_comparable + health.n_searches
        );
    }
    out.push_str("</tbody>\n</table>\n</details>\n");
}

fn biases(out: &mut String, findings: &Findings) {
    if findings.biases.is_empty() {
        return;
    }
    out.push_str("<h3>Biases not covered by the intervals</h3>\n<dl>\n");
    for bias in &findings.biases {
        let _ = writeln!(out, "<dt>{}<dd>{}", Text(bias.name), Text(bias.effect));
    }
    out.push_str("</dl>\n");
}

fn refused(out: &mut String, study: &Study) {
    if study.refused.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>Not estimated</h2>\n<dl>\n");
    for one in &study.refused {
        let _ = writeln!(out, "<dt>{}<dd>{}", Text(&one.method), Text(&one.reason));
    }
    out.push_str("</dl>\n</section>\n");
}

/// A number with four significant digits.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 10_000.0 => Count(value.abs().round() as u64).to_string(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulate::{Part, SimulationSettings, run};
    use super::*;

    #[test]
    fn a_page_of_everything_loads_nothing() {
        let settings = SimulationSettings {
            n_samples: 30,
            shares: vec![0.5, 0.4],
            parts: vec![Part::Overlap, Part::CorpusSize, Part::LowerBound],
            ..SimulationSettings::default()
        };
        let study = Study {
            engines: vec!["a".to_owned(), "b".to_owned()],
            seed: 1,
            findings: run(&settings).unwrap(),
            refused: vec![super::super::study::Refused {
                method: "<script>".to_owned(),
                reason: "none & \"none\"".to_owned(),
            }],
        };
        let page = page(&study);
        for part in [
            "b / a",
            "Biases not covered by the intervals",
            "class=\"plot\"",
            "&lt;script&gt;",
        ] {
            assert!(page.contains(part), "{part}");
        }
        for part in ["<script", "http://", "https://", "NaN", "inf\""] {
            assert!(!page.contains(part), "{part}");
        }
    }

    #[test]
    fn numbers_are_short() {
        for (value, expected) in [
            (0.51234, "0.512"),
            (2.34567, "2.35"),
            (98.76, "98.8"),
            (978.06, "978"),
            (1_234_567.8, "1,234,568"),
        ] {
            assert_eq!(number(value), expected);
        }
    }
}
