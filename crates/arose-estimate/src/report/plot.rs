//! The plots of a report, as SVG without scripts.

use std::fmt::Write as _;

use arose_dedup::report::html::Text;

use super::super::{Figure, Series};
use super::number;

const WIDTH: f64 = 480.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 468.0;

/// The share of the union in each search engine, and in several.
pub(super) fn coverage(engines: &[(&str, &Figure)], exactly: &[f64]) -> String {
    let row = 26.0;
    let height = row * (engines.len() as f64 + 1.0) + 30.0;
    let mut svg = format!(
        "<figure><figcaption>Share of the union in each search engine</figcaption>\
         <svg class=\"plot\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\">\
         <title>Share of the union in each search engine</title>"
    );
    let x = |share: f64| LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT);
    for (place, (name, figure)) in engines.iter().enumerate() {
        let y = 6.0 + row * place as f64;
        let value = figure.value.unwrap_or(0.0);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"track\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{}\" height=\"16\"/>\
             <rect class=\"mark\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"16\"/>",
            LEFT - 6.0,
            y + 12.0,
            Text(&clipped(name)),
            RIGHT - LEFT,
            x(value) - LEFT
        );
        if let Some([low, high]) = figure.interval {
            let y = y + 8.0;
            let _ = write!(
                svg,
                "<line class=\"error\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                x(low),
                x(high)
            );
        }
    }
    let (y, mut at) = (6.0 + row * engines.len() as f64, 0.0);
    let total: f64 = exactly.iter().sum();
    for (fewer, share) in exactly.iter().enumerate().filter(|_| total > 0.0) {
        let share = share / total;
        let _ = write!(
            svg,
            "<rect class=\"held held{}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"16\">\
             <title>in exactly {}: {}</title></rect>",
            fewer.min(4),
            x(at),
            x(at + share) - x(at),
            fewer + 1,
            number(share)
        );
        at += share;
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">in exactly</text>\
         <text x=\"{LEFT}\" y=\"{:.1}\">one search engine, then two, and so on</text></svg></figure>",
        LEFT - 6.0,
        y + 12.0,
        y + 32.0
    );
    svg
}

fn clipped(name: &str) -> String {
    match name.chars().count() {
        ..=9 => name.to_owned(),
        _ => name.chars().take(8).chain(['…']).collect(),
    }
}

/// An estimate as the sample grew, with its final interval.
pub(super) fn course(series: &Series, interval: Option<[f64; 2]>) -> String {
    let (top, bottom, height) = (14.0, 180.0, 220.0);
    let values = series.points.iter().map(|point| point.1);
    let ends = interval.unwrap_or([f64::NAN; 2]);
    let finite = |value: &f64| value.is_finite();
    let all: Vec<f64> = values.chain(ends).filter(finite).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let pad = (0.1 * (high - low)).max(1e-9 * high.abs()).max(1e-12);
    let (low, high) = (low - pad, high + pad);
    let last = series.points.last().map_or(1, |point| point.0).max(1);
    let x = |n: u64| LEFT + (RIGHT - LEFT) * n as f64 / last as f64;
    let y = |value: f64| bottom - (bottom - top) * (value - low) / (high - low);
    let name = Text(&series.name);
    let mut svg = format!(
        "<figure><figcaption><bdi>{name}</bdi> as the sample grew</figcaption>\
         <svg class=\"plot\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\">\
         <title>{name} as the sample grew</title>"
    );
    if let Some([from, to]) = interval.filter(|ends| ends.iter().all(finite)) {
        let _ = writeln!(
            svg,
            "<rect class=\"band\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{}\" height=\"{:.1}\"/>",
            y(to),
            RIGHT - LEFT,
            y(from) - y(to)
        );
    }
    for part in [0.0, 0.5, 1.0] {
        let value = low + part * (high - low);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            y(value),
            y(value),
            LEFT - 6.0,
            y(value) + 4.0,
            number(value)
        );
    }
    let path: Vec<String> = series
        .points
        .iter()
        .filter(|point| point.1.is_finite())
        .map(|point| format!("{:.1} {:.1}", x(point.0), y(point.1)))
        .collect();
    if !path.is_empty() {
        let _ = write!(svg, "<path class=\"curve\" d=\"M{}\"/>", path.join("L"));
    }
    let _ = writeln!(
        svg,
        "<text x=\"{RIGHT}\" y=\"{:.1}\" text-anchor=\"end\">{last} samples</text></svg></figure>",
        bottom + 20.0
    );
    svg
}

/// A small bar that shows the position of the value in its interval.
pub(super) fn interval(figure: &Figure) -> String {
    let (Some(value), Some([low, high])) = (figure.value, figure.interval) else {
        return String::new();
    };
    if low >= high {
        return String::new();
    }
    let part = ((value - low) / (high - low)).clamp(0.0, 1.0);
    format!(
        "<svg class=\"whisker\" aria-hidden=\"true\" viewBox=\"0 0 60 10\"><line class=\"error\" \
         x1=\"2\" x2=\"58\" y1=\"5\" y2=\"5\"/><circle class=\"dot\" cx=\"{:.1}\" cy=\"5\" r=\"3\"/>\
         </svg>",
        2.0 + 56.0 * part
    )
}
