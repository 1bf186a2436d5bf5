//! What a measurement leaves behind besides its table: JSON for programs, a chart for people.
//!
//! Charts are plain SVG without a script, so that they can stand in a page of the docs.

use anyhow::Context;
use serde_json::Value;
use std::path::Path;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 330.0;
const BAR: f64 = 16.0;
const HEIGHT: f64 = 260.0;
/// Colours that differ in brightness too.
const COLOURS: [&str; 6] = ["#1b4f72", "#2e86c1", "#85c1e9", "#7d6608", "#b7950b", "#641e16"];

/// Writes the figures where they were asked for.
pub(crate) fn keep(json: Option<&Path>, figures: &Value, chart: Option<&Path>, drawn: &str) -> anyhow::Result<()> {
    let written = |file: &Path, text: &str| {
        std::fs::write(file, text).with_context(|| format!("{} could not be written", file.display()))
    };
    if let Some(file) = json {
        written(file, &(serde_json::to_string_pretty(figures).context("the figures are no JSON")? + "\n"))?;
    }
    chart.map_or(Ok(()), |file| written(file, drawn))
}

/// Bars on a scale of powers of ten: what is compared differs by factors.
pub(crate) fn bars(title: &str, unit: &str, rows: &[(String, f64)]) -> String {
    let values = || rows.iter().map(|(_, value)| *value).filter(|value| *value > 0.0);
    let low = values().fold(f64::INFINITY, f64::min).log10().floor();
    let high = values().fold(f64::NEG_INFINITY, f64::max).log10().ceil().max(low + 1.0);
    let scale = (WIDTH - LEFT - 90.0) / (high - low);
    let height = 56.0 + rows.len() as f64 * (BAR + 6.0);
    let mut text = head(title, height);
    for (place, (label, value)) in rows.iter().enumerate() {
        let y = 40.0 + place as f64 * (BAR + 6.0);
        let length = if *value > 0.0 { (value.log10() - low) * scale } else { 0.0 };
        let (x, middle) = (LEFT - 8.0, y + BAR - 4.0);
        let colour = COLOURS[usize::from(!label.starts_with("quartermaster"))];
        text += &(format!(r#"<text x="{x}" y="{middle}" text-anchor="end">{}</text>"#, escaped(label)) + "\n");
        text += &(format!(r#"<rect x="{LEFT}" y="{y}" width="{length:.1}" height="{BAR}" fill="{colour}"/>"#) + "\n");
        let beside = LEFT + length + 6.0;
        text += &(format!(r#"<text x="{beside:.1}" y="{middle}">{} {unit}</text>"#, short(*value)) + "\n");
    }
    text + "</svg>\n"
}

/// One line for each series, over a number that grows by powers of ten.
pub(crate) fn lines(title: &str, across: &str, series: &[(String, Vec<(f64, f64)>)]) -> String {
    let points = || series.iter().flat_map(|(_, points)| points);
    let (left, right, top, bottom) = (70.0, WIDTH - 250.0, 40.0, HEIGHT - 40.0);
    let least = points().map(|(x, _)| *x).fold(f64::INFINITY, f64::min).max(1.0).log10();
    let most = points().map(|(x, _)| *x).fold(1.0, f64::max).log10().max(least + 1.0);
    let highest = points().map(|(_, y)| *y).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let at = |x: f64, y: f64| {
        let across = left + (x.max(1.0).log10() - least) / (most - least) * (right - left);
        (across, bottom - y / highest * (bottom - top))
    };
    let mut text = head(title, HEIGHT);
    text += &(format!(r##"<path d="M{left} {top} V{bottom} H{right}" fill="none" stroke="#555"/>"##) + "\n");
    text += &(format!(r#"<text x="8" y="{top}">{}</text><text x="8" y="{bottom}">0</text>"#, short(highest)) + "\n");
    text +=
        &(format!(r#"<text x="{right}" y="{}" text-anchor="end">{}</text>"#, bottom + 30.0, escaped(across)) + "\n");
    for (place, (name, points)) in series.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        let path: Vec<String> = points.iter().map(|(x, y)| at(*x, *y)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        text += &(format!(r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#, path.join(" "))
            + "\n");
        for (x, _) in points {
            let (middle, below) = (at(*x, 0.0).0, bottom + 14.0);
            text += &(format!(r#"<text x="{middle:.1}" y="{below}" text-anchor="middle">{}</text>"#, short(*x)) + "\n");
        }
        let (beside, y) = (right + 12.0, top + 18.0 * place as f64);
        text += &(format!(r#"<text x="{beside}" y="{y}" fill="{colour}">{}</text>"#, escaped(name)) + "\n");
    }
    text + "</svg>\n"
}

fn head(title: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"20\" font-size=\"14\">{}</text>\n",
        escaped(title)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// A number with as many digits as tell something.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000_000.0 => format!("{:.1} M", value / 1_000_000.0),
        size if size >= 10_000.0 => format!("{:.0} k", value / 1_000.0),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 || size == 0.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_longer_for_more_and_text_cannot_leave_its_place() {
        let drawn = bars("a < b", "/s", &[("quartermaster <x>".into(), 1000.0), ("peer".into(), 10.0)]);
        assert!(drawn.contains("a &lt; b") && drawn.contains("quartermaster &lt;x>"));
        let widths: Vec<f64> = drawn
            .lines()
            .filter_map(|line| line.strip_prefix("<rect x=")?.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert!(widths.len() == 2 && widths[0] > widths[1], "{widths:?}");
    }

    #[test]
    fn lines_go_up_where_figures_do() {
        let drawn = lines("t", "sessions", &[("a".into(), vec![(1.0, 1.0), (1000.0, 2.0)])]);
        let points = drawn.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        let ys: Vec<f64> = points.split(' ').map(|point| point.split(',').nth(1).unwrap().parse().unwrap()).collect();
        assert!(ys[0] > ys[1], "up is a smaller number: {ys:?}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 0.25, 3.21, 456.7, 45_678.0, 2_500_000.0].map(short),
            ["0.0", "0.250", "3.2", "457", "46 k", "2.5 M"]
        );
    }
}
