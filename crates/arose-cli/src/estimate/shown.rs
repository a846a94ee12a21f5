//! Output of estimates, and progress.

use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use arose_dedup::report::html::counted;
use arose_estimate::engine::Progress;
use arose_estimate::{Figure, Findings};

use crate::output::{printable, write_json};
use crate::progress::Step;
use crate::read::Outcome;

/// Reports the progress of a study.
pub(crate) fn step_of(progress: &Progress) -> impl FnMut() -> Step + Send {
    move || {
        let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let wanted = get(&progress.n_wanted);
        Step {
            stage: "estimate".to_owned(),
            done: get(&progress.n_done),
            total: (wanted > 0).then_some(wanted),
            note: counted(get(&progress.n_requests), "request", "requests"),
            ..Step::default()
        }
    }
}

/// Prints findings. The outcome is `NothingFound` if no estimate has a value.
pub(crate) fn show(all: &[Findings], json: bool) -> anyhow::Result<Outcome> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match (json, all) {
        (true, [one]) => serde_json::to_value(one)
            .map_err(io::Error::from)
            .and_then(|value| write_json(&mut out, &value)),
        (true, all) => serde_json::to_value(all)
            .map_err(io::Error::from)
            .and_then(|value| write_json(&mut out, &value)),
        (false, all) => all
            .iter()
            .enumerate()
            .try_for_each(|(place, findings)| write_text(&mut out, findings, place)),
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    let mut figures = all.iter().flat_map(|findings| &findings.figures);
    Ok(match figures.any(|figure| figure.value.is_some()) {
        true => Outcome::Found,
        false => Outcome::NothingFound,
    })
}

fn write_text(out: &mut impl Write, findings: &Findings, place: usize) -> io::Result<()> {
    if place > 0 {
        writeln!(out)?;
    }
    writeln!(
        out,
        "{}: {}\n",
        findings.method,
        printable(&findings.counted)
    )?;
    write_figures(out, &findings.figures)?;
    if !findings.warnings.is_empty() {
        writeln!(out, "\nWarnings")?;
        for warning in &findings.warnings {
            write_wrapped(out, "  ", &printable(warning))?;
        }
    }
    if !findings.biases.is_empty() {
        writeln!(out, "\nBiases not covered by the intervals")?;
        for bias in &findings.biases {
            let line = format!("{}: {}", bias.name, bias.effect);
            write_wrapped(out, "  ", &line)?;
        }
    }
    Ok(())
}

fn write_figures(out: &mut impl Write, figures: &[Figure]) -> io::Result<()> {
    let width = figures
        .iter()
        .map(|figure| figure.name.chars().count())
        .max();
    let width = width.unwrap_or(0).clamp(8, 60);
    let has_truth = figures.iter().any(|figure| figure.truth.is_some());
    let truth = if has_truth { "      truth" } else { "" };
    writeln!(
        out,
        "  {:width$}      value{truth}   95% interval             samples",
        "estimate"
    )?;
    for figure in figures {
        let value = figure.value.map_or("-".to_owned(), number);
        let truth = match (has_truth, figure.truth) {
            (false, _) => String::new(),
            (true, truth) => format!("{:>11}", truth.map_or("-".to_owned(), number)),
        };
        let interval = figure.interval.map_or("-".to_owned(), |ends| {
            let [low, high] = ends.map(number);
            format!("{low} - {high}")
        });
        let line = format!(
            "  {:width$}{value:>11}{truth}   {interval:<22}{:>10}",
            printable(&figure.name),
            figure.n_samples
        );
        writeln!(out, "{}", line.trim_end())?;
        let mut notes = figure.notes.clone();
        notes.extend(figure.sampling.map(|ends| {
            let [low, high] = ends.map(number);
            format!("{low} - {high} if missing responses were like the others")
        }));
        notes.extend(
            figure
                .refused
                .iter()
                .map(|reason| format!("not estimated: {reason}")),
        );
        if !notes.is_empty() {
            write_wrapped(out, "      ", &printable(&notes.join("; ")))?;
        }
    }
    Ok(())
}

/// Writes text, wrapped between words.
fn write_wrapped(out: &mut impl Write, indent: &str, text: &str) -> io::Result<()> {
    let mut line = String::new();
    for word in text.split(' ') {
        let is_full = indent.len() + line.chars().count() + word.chars().count() >= 98;
        if is_full && !line.is_empty() {
            writeln!(out, "{indent}{line}")?;
            line = "  ".to_owned();
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{indent}{line}")
}

/// A number with about four significant digits.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        size if size >= 1.0 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}
