//! The variables that every program with OpenTelemetry understands, as settings of this one.
//!
//! They lie over the defaults and below the settings file and `QM_…`: what was written for this service wins over what is
//! set for everything on a machine. A value that cannot be used is an error, like any other setting that cannot.

use super::SettingsError;
use toml::{Table, Value};

/// The signals that have variables of their own, and the section of each.
const SIGNALS: [(&str, &str); 3] = [("TRACES", "otlp_traces"), ("METRICS", "otlp_metrics"), ("LOGS", "otlp_logs")];

/// What the variables say, as a layer of settings.
pub(super) fn layer(environment: &[(String, String)]) -> Result<Table, SettingsError> {
    let mut layer = OtelLayer::default();
    let find = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim());
    for (name, value) in environment {
        // An empty variable counts as one that is not set.
        if let (Some(name), false) = (name.strip_prefix("OTEL_"), value.trim().is_empty()) {
            layer.take(name, value.trim())?;
        }
    }
    if let Some(sampler) = find("OTEL_TRACES_SAMPLER").filter(|sampler| !sampler.is_empty()) {
        layer
            .telemetry
            .insert("sample_ratio".to_owned(), Value::Float(ratio(sampler, find("OTEL_TRACES_SAMPLER_ARG"))?));
    }
    let OtelLayer { telemetry } = layer;
    Ok(if telemetry.is_empty() { Table::new() } else { Table::from_iter([("telemetry".to_owned(), telemetry.into())]) })
}

#[derive(Default)]
struct OtelLayer {
    telemetry: Table,
}

impl OtelLayer {
    fn take(&mut self, name: &str, text: &str) -> Result<(), SettingsError> {
        match name {
            "SDK_DISABLED" => {
                // By the standard's own rule everything but true means no.
                let disabled = text.eq_ignore_ascii_case("true");
                self.set("otlp_enabled", Value::Boolean(!disabled));
            }
            "SERVICE_NAME" => self.set("service_name", Value::String(text.to_owned())),
            "RESOURCE_ATTRIBUTES" => self.set("resource_attributes", Value::String(text.to_owned())),
            "METRIC_EXPORT_INTERVAL" => self.set("metrics_every_ms", millis(name, text)?),
            _ => {
                if let Some(rest) = name.strip_prefix("EXPORTER_OTLP_") {
                    return self.exporter(name, rest, text);
                }
                for (signal, section) in SIGNALS {
                    if name.strip_suffix("_EXPORTER") == Some(signal) {
                        let export = match text {
                            "otlp" => true,
                            "none" => false,
                            _ => return Err(wrong(name, "otlp or none")),
                        };
                        self.set_in(section, "export", Value::Boolean(export));
                    }
                }
            }
        }
        Ok(())
    }

    /// `ENDPOINT`, or `TRACES_ENDPOINT` for one signal.
    fn exporter(&mut self, name: &str, rest: &str, text: &str) -> Result<(), SettingsError> {
        let own = SIGNALS
            .iter()
            .find_map(|(signal, section)| Some((*section, rest.strip_prefix(signal)?.strip_prefix('_')?)));
        let (section, key) = own.map_or((None, rest), |(section, key)| (Some(section), key));
        let (key, value) = match key {
            "ENDPOINT" => ("endpoint", Value::String(text.to_owned())),
            "HEADERS" => ("headers", Value::String(text.to_owned())),
            "TIMEOUT" => ("timeout_ms", millis(name, text)?),
            "PROTOCOL" if matches!(text, "grpc" | "http/protobuf") => ("protocol", Value::String(text.to_owned())),
            "PROTOCOL" => return Err(wrong(name, "grpc or http/protobuf")),
            // Compression, certificates and the like are not offered; they are no mistake either.
            _ => return Ok(()),
        };
        match section {
            Some(section) => self.set_in(section, key, value),
            None => self.set(&format!("otlp_{key}"), value),
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: Value) {
        self.telemetry.insert(key.to_owned(), value);
    }

    fn set_in(&mut self, section: &str, key: &str, value: Value) {
        let section = self.telemetry.entry(section.to_owned()).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(section) = section {
            section.insert(key.to_owned(), value);
        }
    }
}

/// The share of traces that a standard sampler keeps.
fn ratio(sampler: &str, argument: Option<&str>) -> Result<f64, SettingsError> {
    match sampler.strip_prefix("parentbased_").unwrap_or(sampler) {
        "always_on" => Ok(1.0),
        "always_off" => Ok(0.0),
        "traceidratio" => {
            let argument = argument.filter(|argument| !argument.is_empty()).map_or(Ok(1.0), str::parse);
            let share = argument.ok().filter(|share| (0.0..=1.0).contains(share));
            share.ok_or_else(|| wrong("TRACES_SAMPLER_ARG", "a number between 0 and 1"))
        }
        _ => {
            let known = "always_on, always_off, traceidratio, or one of these with parentbased_ before it";
            Err(wrong("TRACES_SAMPLER", known))
        }
    }
}

fn millis(name: &str, text: &str) -> Result<Value, SettingsError> {
    text.parse().map(Value::Integer).map_err(|_| wrong(name, "a number of milliseconds"))
}

fn wrong(name: &str, wanted: &str) -> SettingsError {
    SettingsError::Wrong(format!("OTEL_{name} must be {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(environment: &[(&str, &str)]) -> Result<Table, String> {
        let environment: Vec<_> = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        layer(&environment).map_err(|error| error.to_string())
    }

    #[test]
    fn the_standard_variables_become_settings() {
        let layer = of(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20a"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "500"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4317"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "900"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging"),
            ("OTEL_SERVICE_NAME", "tools"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_METRIC_EXPORT_INTERVAL", ""),
            ("HOME", "/root"),
        ]);
        let wanted: Table = r#"
            [telemetry]
            otlp_endpoint = "http://collector:4318"
            otlp_headers = "authorization=Bearer%20a"
            otlp_protocol = "http/protobuf"
            otlp_timeout_ms = 500
            resource_attributes = "deployment.environment.name=staging"
            service_name = "tools"
            sample_ratio = 0.25
            [telemetry.otlp_traces]
            endpoint = "http://traces:4317"
            protocol = "grpc"
            [telemetry.otlp_logs]
            timeout_ms = 900
            [telemetry.otlp_metrics]
            export = false
        "#
        .parse()
        .unwrap();
        assert_eq!(layer.unwrap(), wanted);
        assert_eq!(of(&[("HOME", "/root"), ("OTEL_SERVICE_NAME", " ")]).unwrap(), Table::new());
        assert_eq!(of(&[("OTEL_SDK_DISABLED", "TRUE")]).unwrap()["telemetry"]["otlp_enabled"], Value::Boolean(false));
    }

    #[test]
    fn a_value_that_cannot_be_used_is_named() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "-"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
        ] {
            assert!(of(&[(name, value)]).unwrap_err().starts_with(name), "{name}");
        }
        let sampler = [("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "7")];
        assert!(of(&sampler).unwrap_err().starts_with("OTEL_TRACES_SAMPLER_ARG"));
    }
}
