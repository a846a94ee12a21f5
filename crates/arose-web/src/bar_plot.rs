//! Bars for classes of things as SVG; the page provides style and dark mode.

use std::fmt::Write as _;

use arose_dedup::report::html::Text;

use crate::html::Markup;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 190.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 160.0;

/// A class of things: its label, its value as text, and the height of its bar.
pub(crate) type Bar = (String, String, f64);

/// A figure with a title, and a bar for each class. The highest bar, or `full` if that is more, has
/// the whole height.
pub(crate) fn bar_plot(title: &str, bars: &[Bar], full: f64) -> Markup {
    let is_height = |height: &f64| height.is_finite() && *height > 0.0;
    let heights = bars.iter().map(|(.., height)| *height).filter(is_height);
    let full = heights.fold(full, f64::max).max(f64::MIN_POSITIVE);
    let told: Vec<String> = bars
        .iter()
        .map(|(label, value, _)| format!("{label}: {value}"))
        .collect();
    let mut svg = format!(
        "<figure><figcaption>{}</figcaption>\
         <svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\
         <line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\"/>",
        Text(title),
        Text(&told.join(", "))
    );
    let step = WIDTH / bars.len().max(1) as f64;
    for (at, (label, value, height)) in bars.iter().enumerate() {
        let share = match is_height(height) {
            true => height / full,
            false => 0.0,
        };
        let (middle, tall) = ((at as f64 + 0.5) * step, (BOTTOM - TOP) * share);
        let top = BOTTOM - tall;
        let _ = write!(
            svg,
            "<rect class=\"column\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" \
             height=\"{tall:.1}\"/>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            middle - 0.35 * step,
            0.7 * step,
            top - 6.0,
            Text(value),
            HEIGHT - 10.0,
            Text(label)
        );
    }
    svg.push_str("</svg></figure>");
    Markup(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_of_any_height() {
        let bar = |height: f64| ("<1>".to_owned(), height.to_string(), height);
        for heights in [
            vec![],
            vec![0.0, 0.0],
            vec![1.0, 4.0, 2.0],
            vec![f64::NAN, f64::INFINITY, -1.0, 1e300],
        ] {
            let bars: Vec<Bar> = heights.into_iter().map(bar).collect();
            let svg = bar_plot("pages", &bars, 0.0).0;
            let columns: Vec<&str> = svg.split("class=\"column\"").skip(1).collect();
            assert_eq!(columns.len(), bars.len());
            for column in columns {
                let tall = column.split("height=\"").nth(1).unwrap();
                let tall: f64 = tall.split('"').next().unwrap().parse().unwrap();
                assert!((0.0..=BOTTOM - TOP).contains(&tall), "{svg}");
            }
            assert!(!svg.contains("<1>"), "{svg}");
        }
        let half = bar_plot("share", &[bar(0.5)], 1.0).0;
        assert!(half.contains("height=\"68.0\""), "{half}");
    }
}
