//! Plots as SVG, styled by the page, including dark mode.
//!
//! Sizes are those of a narrow screen, and a plot is stretched only a little, so its letters stay
//! readable everywhere. Every plot has a title and a description for screen readers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use super::html::{Count, counted};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 468.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 252.0;

/// Plots the number of clusters of each size, with logarithmic axes.
pub(super) fn cluster_sizes(f: &mut String, counts: &BTreeMap<u32, u64>) -> fmt::Result {
    let largest = counts.keys().next_back().copied().unwrap_or(1);
    let most = counts.values().copied().max().unwrap_or(1);
    let x = LogAxis::new(1.5, f64::from(largest));
    let y = LogAxis::new(0.75, most as f64);
    let n = counted(counts.values().sum(), "cluster", "clusters");
    let about = format!("{n}; the largest has {} documents.", Count(largest.into()));
    open(f, "Cluster sizes", &about)?;
    for tick in y.ticks() {
        let at = down(y.place(tick));
        horizontal(f, at, &short(tick))?;
    }
    for tick in x.ticks() {
        let at = across(x.place(tick));
        write!(
            f,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>"
        )?;
        below(f, at, &short(tick))?;
    }
    // Sizes at the same position are drawn once.
    let places: BTreeSet<(i64, i64)> = counts
        .iter()
        .map(|(&size, &count)| {
            let (x, y) = (across(x.place(size.into())), down(y.place(count as f64)));
            (x.round() as i64, y.round() as i64)
        })
        .collect();
    for (x, y) in places {
        write!(f, "<circle class=\"mark\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>")?;
    }
    close(f, "documents in the cluster", "clusters of this size")
}

/// Plots the number of pairs of each similarity: bars of one hundredth, the last for exactly 1.
pub(super) fn similarities(f: &mut String, histogram: &[u64]) -> fmt::Result {
    let last = histogram.len() - 1;
    let lowest = histogram.iter().position(|&n| n > 0).unwrap_or(last);
    let first = (lowest / 5 * 5).min(last.saturating_sub(10));
    let bars = &histogram[first..];
    let scale = Scale::new(bars);
    let n: u64 = bars.iter().sum();
    let n_equal = Count(histogram[last]);
    let about = format!(
        "{}; {n_equal} of similarity exactly 1.",
        counted(n, "pair", "pairs")
    );
    open(f, "Similarity of pairs", &about)?;
    for tick in scale.ticks() {
        horizontal(f, down(tick as f64 / scale.top), &short(tick as f64))?;
    }
    let step = (RIGHT - LEFT) / bars.len() as f64;
    for (i, &count) in bars.iter().enumerate() {
        let left = LEFT + step * i as f64;
        let hundredths = first + i;
        if hundredths.is_multiple_of(if bars.len() > 41 { 10 } else { 5 }) {
            let is_last = hundredths == last;
            let label = if is_last {
                "= 1".to_owned()
            } else {
                decimal(hundredths)
            };
            below(f, if is_last { left + step / 2.0 } else { left }, &label)?;
        }
        if count > 0 {
            let class = if hundredths == last { "equal" } else { "mark" };
            bar(f, class, left, step, count, &scale)?;
        }
    }
    close(f, "Jaccard similarity", "pairs")
}

/// A number of hundredths as a fraction.
pub(super) fn decimal(hundredths: usize) -> String {
    format!("{:.2}", hundredths as f64 / 100.0)
}

fn bar(
    f: &mut String,
    class: &str,
    left: f64,
    step: f64,
    count: u64,
    scale: &Scale,
) -> fmt::Result {
    let height = (count as f64 / scale.top).min(1.0) * (BOTTOM - TOP);
    // A nonzero value is never drawn as zero.
    let (height, width) = (height.max(1.5), (step - 1.5).max(1.0));
    let (x, y) = (left + 0.75, BOTTOM - height);
    write!(
        f,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\"/>"
    )?;
    match count as f64 > scale.top {
        true => cut(f, x, x + width, count),
        false => Ok(()),
    }
}

/// Marks a bar that is too long to be drawn, with its value.
fn cut(f: &mut String, from: f64, to: f64, count: u64) -> fmt::Result {
    let (at, anchor) = match from > WIDTH / 2.0 {
        true => (from - 4.0, "end"),
        false => (to + 4.0, "start"),
    };
    write!(
        f,
        "<path class=\"break\" d=\"M{:.1} {} L{:.1} {}\"/>\
         <text class=\"note\" x=\"{at:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
        from - 2.0,
        TOP + 24.0,
        to + 2.0,
        TOP + 16.0,
        TOP + 11.0,
        Count(count)
    )
}

/// Draws parts of a whole in one bar; nothing if the whole is zero.
pub(super) fn shares(f: &mut String, title: &str, parts: &[(&str, u64)]) -> fmt::Result {
    let total: u64 = parts.iter().map(|(_, n)| n).sum();
    if total == 0 {
        return Ok(());
    }
    write!(
        f,
        "<svg class=\"shares\" role=\"img\" viewBox=\"0 0 1000 24\" preserveAspectRatio=\"none\">\
         <title>{title}</title>"
    )?;
    let mut x = 0.0;
    for (class, n) in parts {
        let width = 1000.0 * *n as f64 / total as f64;
        write!(
            f,
            "<rect class=\"{class}\" x=\"{x:.2}\" width=\"{width:.2}\" height=\"24\"/>"
        )?;
        x += width;
    }
    f.write_str("</svg>")
}

/// Draws a bar next to a number in a table, for the same value.
pub(super) fn inline_bar(f: &mut String, share: f64) -> fmt::Result {
    let width = 100.0 * share.clamp(0.0, 1.0);
    write!(
        f,
        "<svg class=\"bar\" aria-hidden=\"true\"><rect class=\"track\" width=\"100%\" height=\"100%\"/>\
         <rect class=\"mark\" width=\"{width:.2}%\" height=\"100%\"/></svg>"
    )
}

fn open(f: &mut String, title: &str, about: &str) -> fmt::Result {
    let name = title.to_ascii_lowercase().replace(' ', "-");
    write!(
        f,
        "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         aria-labelledby=\"{name}-title {name}-about\">\
         <title id=\"{name}-title\">{title}</title><desc id=\"{name}-about\">{about}</desc>"
    )
}

fn close(f: &mut String, x: &str, y: &str) -> fmt::Result {
    let (middle, centre) = (across(0.5), down(0.5));
    write!(
        f,
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\"/>\
         <text class=\"label\" x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{x}</text>\
         <text class=\"label\" transform=\"translate(13 {centre:.1}) rotate(-90)\" \
         text-anchor=\"middle\">{y}</text></svg>",
        HEIGHT - 8.0
    )
}

fn horizontal(f: &mut String, at: f64, label: &str) -> fmt::Result {
    write!(
        f,
        "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
         <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
        LEFT - 6.0,
        at + 4.0
    )
}

fn below(f: &mut String, at: f64, label: &str) -> fmt::Result {
    let y = BOTTOM + 17.0;
    write!(
        f,
        "<text x=\"{at:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>"
    )
}

/// Converts a share of the width to a coordinate.
fn across(share: f64) -> f64 {
    LEFT + share * (RIGHT - LEFT)
}

/// Converts a share of the height to a coordinate.
fn down(share: f64) -> f64 {
    BOTTOM - share * (BOTTOM - TOP)
}

/// Formats a number for an axis.
fn short(n: f64) -> String {
    match n {
        ..1000.0 => format!("{n}"),
        ..1e6 => format!("{}k", n / 1e3),
        ..1e9 => format!("{}M", n / 1e6),
        _ => format!("{}G", n / 1e9),
    }
}

/// A logarithmic axis.
struct LogAxis {
    from: f64,
    to: f64,
}

impl LogAxis {
    /// Creates an axis from `from` to a little beyond `largest`.
    fn new(from: f64, largest: f64) -> Self {
        let to = (largest * 1.3).max(10.0);
        Self { from, to }
    }

    /// Returns the position of a value, as a share of the axis.
    fn place(&self, value: f64) -> f64 {
        (value / self.from).ln() / (self.to / self.from).ln()
    }

    /// Returns powers of ten, and two and five times them if there are few.
    fn ticks(&self) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        let steps: &[f64] = match decades {
            ..2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let every = if decades > 6.0 { 2 } else { 1 };
        let powers = (0..20).step_by(every).map(|power| 10_f64.powi(power));
        let all = powers.flat_map(|power| steps.iter().map(move |step| step * power));
        all.filter(|&tick| tick >= self.from && tick <= self.to)
            .collect()
    }
}

/// A linear scale for bars, which one outlier may exceed.
struct Scale {
    top: f64,
}

impl Scale {
    fn new(bars: &[u64]) -> Self {
        let mut sorted = bars.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let (largest, second) = match sorted[..] {
            [largest, second, ..] => (largest, second),
            _ => (1, 1),
        };
        let is_outlier = second > 0 && largest / second >= 5;
        let top = if is_outlier { second * 3 / 2 } else { largest };
        Self {
            top: (top.max(4) as f64) * 1.05,
        }
    }

    /// Three to six round numbers.
    fn ticks(&self) -> Vec<u64> {
        let mut step = 1.0;
        for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
            if self.top / step < 6.0 {
                break;
            }
            step *= factor;
        }
        let n = (self.top / step) as u64;
        (0..=n).map(|i| i * step as u64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(pairs: &[(u32, u64)]) -> String {
        let mut svg = String::new();
        cluster_sizes(&mut svg, &pairs.iter().copied().collect()).unwrap();
        svg
    }

    /// Every coordinate must be a number within the drawing.
    #[track_caller]
    fn check(svg: &str, n_marks: usize) {
        for name in [
            "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height",
        ] {
            for value in svg.split(&format!(" {name}=\"")).skip(1) {
                let value: f64 = value.split('"').next().unwrap().parse().expect("a number");
                assert!((0.0..=WIDTH).contains(&value), "{name} {value}: {svg}");
            }
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(
            svg.matches("<circle").count() + svg.matches("<rect").count(),
            n_marks
        );
        assert_eq!(svg.matches("<title").count(), 1);
    }

    #[test]
    fn no_cluster_one_cluster_many_clusters() {
        check(&sizes(&[]), 0);
        check(&sizes(&[(2, 1)]), 1);
        check(&sizes(&[(2, 1), (u32::MAX, u64::MAX - 1)]), 2);
        let many: Vec<(u32, u64)> = (2..5000)
            .map(|size| (size, 5000 / u64::from(size)))
            .collect();
        let svg = sizes(&many);
        let n = svg.matches("<circle").count();
        assert!((100..1000).contains(&n), "{n} of 4998 are drawn apart");
        check(&svg, n);
    }

    fn pairs(at: &[(usize, u64)]) -> String {
        let mut histogram = [0; 101];
        for &(i, n) in at {
            histogram[i] = n;
        }
        let mut svg = String::new();
        similarities(&mut svg, &histogram).unwrap();
        svg
    }

    #[test]
    fn histograms() {
        check(&pairs(&[]), 0);
        check(&pairs(&[(100, 1)]), 1);
        check(&pairs(&[(0, 7), (99, 9), (100, 3)]), 3);
        check(&pairs(&[(80, 10), (85, 12), (100, u64::MAX / 8)]), 3);
    }

    #[test]
    fn an_outlier_breaks_the_scale_and_is_named() {
        let svg = pairs(&[(80, 10), (85, 12), (100, 12_345)]);
        assert!(svg.contains("class=\"break\"") && svg.contains(">12,345</text>"));
        assert!(!pairs(&[(80, 10), (100, 49)]).contains("class=\"break\""));
    }

    #[test]
    fn round_ticks() {
        let ticks = |top: f64| Scale { top }.ticks();
        assert_eq!(ticks(4.2), [0, 1, 2, 3, 4]);
        assert_eq!(ticks(9.0), [0, 2, 4, 6, 8]);
        assert_eq!(ticks(105.0), [0, 20, 40, 60, 80, 100]);
        assert_eq!(LogAxis::new(1.5, 6.0).ticks(), [2.0, 5.0, 10.0]);
        assert_eq!(
            LogAxis::new(0.75, 50_000.0).ticks(),
            [1.0, 10.0, 100.0, 1e3, 1e4]
        );
    }

    #[test]
    fn parts_fill_the_whole() {
        let mut svg = String::new();
        shares(&mut svg, "x", &[("kept", 1), ("near", 3)]).unwrap();
        assert!(svg.contains("x=\"250.00\" width=\"750.00\""), "{svg}");
        svg.clear();
        shares(&mut svg, "x", &[("kept", 0)]).unwrap();
        assert_eq!(svg, "");
    }
}
