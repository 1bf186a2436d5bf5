//! What the instruments count, and how it reads.

use super::*;
use crate::names::metrics::{METRICS, MetricKind, MetricName};

static NAMES: [MetricName; 2] = [
    MetricName {
        prometheus: "a_total",
        otlp: "a",
        unit: "",
        kind: MetricKind::Counter,
        labels: &["one", "two"],
        buckets: &[],
        help: "A.",
    },
    MetricName {
        prometheus: "b_seconds",
        otlp: "b",
        unit: "s",
        kind: MetricKind::Histogram,
        labels: &["one"],
        buckets: &[0.5, 2.0],
        help: "B.",
    },
];

#[test]
fn every_name_has_one_instrument() {
    let instruments: Vec<&str> = ALL.iter().map(|instrument| instrument.read().name.prometheus).collect();
    assert_eq!(instruments, METRICS.iter().map(|name| name.prometheus).collect::<Vec<_>>());
}

#[test]
fn a_counter_reads_as_prometheus_wants_it() {
    let counter = Counter::<2>::new(&NAMES[0]);
    counter.add(["x", ""], 2);
    counter.add(["x", ""], 1);
    counter.add(["\"q\"\\\n", "y"], 0);
    let read = [counter.read()];
    let expected = "# HELP a_total A.\n# TYPE a_total counter\na_total{one=\"\\\"q\\\"\\\\\\n\",two=\"y\"} 0\na_total{one=\"x\"} 3\n";
    assert_eq!(text::write(&read, TextFormat::Prometheus), expected);
    let open = expected.replace("# HELP a_total", "# HELP a").replace("# TYPE a_total", "# TYPE a") + "# EOF\n";
    assert_eq!(text::write(&read, TextFormat::OpenMetrics), open);
}

#[test]
fn a_histogram_counts_up_to_the_end_of_each_bucket() {
    let histogram = Histogram::<1>::new(&NAMES[1]);
    for value in [0.5, 0.6, 2.0, 2.5] {
        histogram.observe([""], value);
    }
    let expected = "# HELP b_seconds B.\n# TYPE b_seconds histogram\nb_seconds_bucket{le=\"0.5\"} 1\n\
                    b_seconds_bucket{le=\"2\"} 3\nb_seconds_bucket{le=\"+Inf\"} 4\nb_seconds_sum 5.6\nb_seconds_count 4\n";
    assert_eq!(text::write(&[histogram.read()], TextFormat::Prometheus), expected);
    assert!(text::write(&[histogram.read()], TextFormat::OpenMetrics).contains("le=\"2.0\""));
}

#[test]
fn a_clock_that_went_back_adds_nothing_to_the_sum() {
    let histogram = Histogram::<1>::new(&NAMES[1]);
    histogram.observe([""], -3.0);
    histogram.observe([""], f64::NAN);
    let SeriesReading::Buckets(counts, sum) = &histogram.read().series[0].1 else { panic!() };
    assert_eq!((counts.iter().sum::<u64>(), *sum), (2, 0.0));
}

#[test]
fn a_metric_has_a_bound_and_counts_the_rest_together() {
    let counter = Counter::<2>::new(&NAMES[0]);
    for number in 0..3_000 {
        counter.add([&number.to_string(), ""], 1);
    }
    let series = counter.read().series;
    assert!(series.len() <= 2_001, "{}", series.len());
    let other = series.iter().find(|(labels, _)| labels[0] == "_other").unwrap();
    assert_eq!(other.0[1], "", "a label that is not there stays away");
    let sum: f64 = series.iter().map(|(_, value)| if let SeriesReading::Number(n) = value { *n } else { 0.0 }).sum();
    assert_eq!(sum, 3_000.0);
}

#[test]
fn a_gauge_counts_what_is_there_and_forgets_what_is_replaced() {
    static GAUGE: Gauge<1> = Gauge::new(&GAUGE_NAME);
    static GAUGE_NAME: MetricName = MetricName {
        prometheus: "c",
        otlp: "c",
        unit: "",
        kind: MetricKind::Gauge,
        labels: &["one"],
        buckets: &[],
        help: "C.",
    };
    let numbers = || text::write(&[GAUGE.read()], TextFormat::Prometheus);
    let (first, second) = (GAUGE.enter(["x"]), GAUGE.enter(["x"]));
    assert!(numbers().ends_with("c{one=\"x\"} 2\n"));
    drop(first);
    assert!(numbers().ends_with("c{one=\"x\"} 1\n"));
    drop(second);
    GAUGE.replace([(["y"], 2.5)]);
    assert!(numbers().ends_with("c gauge\nc{one=\"y\"} 2.5\n"), "{}", numbers());
}

#[test]
fn a_client_that_asks_for_open_metrics_gets_it() {
    let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
    assert_eq!(TextFormat::accepted(accept), TextFormat::OpenMetrics);
    assert_eq!(TextFormat::accepted("text/plain"), TextFormat::Prometheus);
    assert_eq!(TextFormat::accepted(""), TextFormat::Prometheus);
}
