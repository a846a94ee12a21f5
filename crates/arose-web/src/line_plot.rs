//! A curve over time as SVG; the page provides style and dark mode.

use std::fmt::Write as _;

use arose_dedup::report::html::{Count, Text};

use crate::html::Markup;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 470.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 160.0;

/// Maximum number of points drawn; if there are more, points are skipped evenly.
const MAX_POINTS: usize = 400;

/// A figure with a title, drawn from points of seconds and values.
pub(crate) fn line_plot(title: &str, points: &[(f64, f64)]) -> Markup {
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let mut drawn: Vec<(f64, f64)> = points.iter().copied().step_by(step).collect();
    drawn.extend(points.last().filter(|last| drawn.last() != Some(last)));
    let last = drawn.last().map_or(0.0, |point| point.1);
    let top = nice(drawn.iter().map(|point| point.1).fold(1.0, f64::max));
    let (start, end) = match (drawn.first(), drawn.last()) {
        (Some(first), Some(last)) if last.0 > first.0 => (first.0, last.0),
        (Some(first), _) => (first.0, first.0 + 1.0),
        _ => (0.0, 1.0),
    };
    let x = |seconds: f64| LEFT + (RIGHT - LEFT) * (seconds - start) / (end - start);
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * value / top;
    let mut svg = format!(
        "<figure><figcaption>{} <b>{}</b></figcaption>\
         <svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        Text(title),
        number(last),
        Text(&format!(
            "{title}: {} now, at most {}",
            number(last),
            number(top)
        ))
    );
    for part in [0.0, 0.5, 1.0] {
        let (at, label) = (y(top * part), number(top * part));
        let text = at + 4.0;
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{}\" y=\"{text:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 6.0
        );
    }
    let path: Vec<String> = drawn
        .iter()
        .map(|point| format!("{:.1} {:.1}", x(point.0), y(point.1)))
        .collect();
    if !path.is_empty() {
        let _ = write!(svg, "<path class=\"curve\" d=\"M{}\"/>", path.join("L"));
    }
    let _ = write!(
        svg,
        "<text x=\"{LEFT}\" y=\"{0}\">{1}</text>\
         <text x=\"{RIGHT}\" y=\"{0}\" text-anchor=\"end\">{2}</text></svg></figure>",
        HEIGHT - 10.0,
        clock(start),
        clock(end)
    );
    Markup(svg)
}

/// A number for people, with about three digits.
pub(crate) fn number(value: f64) -> String {
    match value {
        ..10.0 if value.fract() != 0.0 => format!("{value:.1}"),
        ..10_000.0 => Count(value.round() as u64).to_string(),
        ..10_000_000.0 => format!("{:.0}k", value / 1e3),
        _ => format!("{:.0}M", value / 1e6),
    }
}

/// The smallest round number not below a value, whose half is round as well.
fn nice(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

/// Formats a time since the start.
fn clock(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    format!(
        "{}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_of_any_length() {
        for n in [0, 1, 2, 10_000] {
            let points: Vec<(f64, f64)> =
                (0..n).map(|i| (f64::from(i), f64::from(i % 7))).collect();
            let svg = line_plot("pages", &points).0;
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(svg.len() < 12_000);
        }
    }

    #[test]
    fn round_tops() {
        assert_eq!(
            [1.0, 3.5, 7.0, 20.0, 1234.0, 9999.0].map(nice),
            [1.0, 4.0, 8.0, 20.0, 1500.0, 10_000.0]
        );
        assert_eq!(clock(3725.0), "1:02:05");
    }
}
