//! The text that Prometheus reads, in its own format and in OpenMetrics.

use super::family::SeriesReading;
use super::instrument::MetricReading;
use crate::names::metrics::MetricKind;
use std::fmt::Write;

/// In which format metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// The classic text format.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl TextFormat {
    /// What a client that sends this `Accept` header is answered in.
    pub fn accepted(accept: &str) -> TextFormat {
        if accept.contains("application/openmetrics-text") { TextFormat::OpenMetrics } else { TextFormat::Prometheus }
    }

    /// The media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            TextFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            TextFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Everything that was read, as text.
pub(super) fn write(metrics: &[MetricReading], format: TextFormat) -> String {
    let mut text = String::with_capacity(32 * 1024);
    for metric in metrics {
        metric_text(&mut text, metric, format);
    }
    if format == TextFormat::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

/// Writing to a string cannot fail, so what it returns says nothing.
fn metric_text(text: &mut String, MetricReading { name, series }: &MetricReading, format: TextFormat) {
    if series.is_empty() {
        return;
    }
    let full = name.prometheus;
    // OpenMetrics names the family of a counter without its suffix.
    let family = match format {
        TextFormat::OpenMetrics => full.trim_end_matches("_total"),
        TextFormat::Prometheus => full,
    };
    let kind = match name.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    writeln!(text, "# HELP {family} {}\n# TYPE {family} {kind}", name.help).ok();
    for (values, reading) in series {
        let labels = labels(name.labels, values);
        match reading {
            SeriesReading::Number(number) => {
                writeln!(text, "{full}{} {number}", braced(&labels, None)).ok();
            }
            SeriesReading::Buckets(counts, sum) => {
                let ends = name.buckets.iter().map(|end| end.to_string()).chain(["+Inf".to_owned()]);
                let mut so_far = 0;
                for (end, count) in ends.zip(counts) {
                    so_far += count;
                    // OpenMetrics wants numbers that are no integers in buckets to look like it.
                    let end =
                        if format == TextFormat::OpenMetrics && !end.contains(['.', 'I']) { end + ".0" } else { end };
                    writeln!(text, "{full}_bucket{} {so_far}", braced(&labels, Some(&end))).ok();
                }
                writeln!(
                    text,
                    "{full}_sum{} {sum}\n{full}_count{} {so_far}",
                    braced(&labels, None),
                    braced(&labels, None)
                )
                .ok();
            }
        }
    }
}

/// The labels of a series that it has, as they stand between the braces.
fn labels(names: &[&str], values: &[String]) -> String {
    let pairs = names.iter().zip(values).filter(|(_, value)| !value.is_empty());
    pairs.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect::<Vec<_>>().join(",")
}

fn braced(labels: &str, end: Option<&str>) -> String {
    match (labels.is_empty(), end) {
        (true, None) => String::new(),
        (false, None) => format!("{{{labels}}}"),
        (true, Some(end)) => format!("{{le=\"{end}\"}}"),
        (false, Some(end)) => format!("{{{labels},le=\"{end}\"}}"),
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
