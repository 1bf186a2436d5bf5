//! The section `[audit]` of the settings: who signs, and where the audit logs go.

use serde::Deserialize;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// The section.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveConfig {
    /// The private key that signs checkpoints; empty if it is derived from the service's own secret.
    pub signing_key_file: PathBuf,
    /// Keys that signed before; they are published and sign nothing.
    pub older_key_files: Vec<PathBuf>,
    /// How long entries may be without a checkpoint.
    #[serde(deserialize_with = "store::span")]
    pub checkpoint_every: Duration,
    /// How many entries may be without one.
    pub checkpoint_entries: u64,
    /// How often the service looks at audit logs in which nothing happened here.
    #[serde(deserialize_with = "store::span")]
    pub look_every: Duration,
    /// How long entries stay in the store at least.
    #[serde(deserialize_with = "store::span")]
    pub keep: Duration,
    /// Where the audit logs go.
    pub sinks: Vec<SinkConfig>,
}

/// One place the audit logs go to. Which of the optional keys it has depends on its kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkConfig {
    /// Its name, under which it is remembered how far it has got.
    pub name: String,
    /// Of what kind it is.
    pub kind: SinkKind,
    /// How long entries gather before they are sent; a full chunk goes at once.
    #[serde(default = "every", deserialize_with = "store::span")]
    pub every: Duration,
    /// The tenants whose audit logs go there; empty for all.
    #[serde(default)]
    pub tenants: Vec<String>,
    /// What it gets of arguments and results.
    #[serde(default)]
    pub contents: SinkContents,
    /// The folder.
    pub path: Option<PathBuf>,
    /// The address of an HTTP endpoint, of a collector with its whole path, or of an S3-compatible service.
    pub url: Option<String>,
    /// A file with the bearer token of an HTTP endpoint, or of a collector.
    pub token_file: Option<PathBuf>,
    /// The bucket.
    pub bucket: Option<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// What the names of objects begin with.
    pub prefix: Option<String>,
    /// A file with the id of the access key.
    pub access_key_file: Option<PathBuf>,
    /// A file with the access key itself.
    pub secret_key_file: Option<PathBuf>,
}

/// Kinds of sinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkKind {
    /// Files of JSON lines.
    Folder,
    /// An address that takes JSON lines by POST.
    Http,
    /// An S3-compatible bucket.
    S3,
    /// A collector that takes log records by OTLP over HTTP.
    Otlp,
}

/// What a sink gets of arguments and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SinkContents {
    /// What stands in the store: nobody but this service can read it.
    #[default]
    Sealed,
    /// They themselves beside each entry, for whoever reads the sink.
    Opened,
}

fn every() -> Duration {
    Duration::from_secs(60)
}

/// The longest time that entries may gather: retention and the warning of a lag depend on it.
const LONGEST: Duration = Duration::from_secs(60 * 60);

impl ArchiveConfig {
    /// What is wrong with the section, seen from here; files are read when the service starts.
    pub fn check(&self) -> Result<(), String> {
        // Whoever verifies expects a checkpoint by then.
        if self.checkpoint_every.is_zero() || self.checkpoint_every > LONGEST {
            return Err("audit.checkpoint_every is from 1ms to 1h".to_owned());
        }
        if !(1..=1_000).contains(&self.checkpoint_entries) {
            return Err("audit.checkpoint_entries is from 1 to 1000".to_owned());
        }
        if self.look_every.is_zero() || self.look_every > LONGEST {
            return Err("audit.look_every is from 1ms to 1h".to_owned());
        }
        let mut names = HashSet::new();
        for sink in &self.sinks {
            sink.check().map_err(|why| format!("audit.sinks, {}: {why}", sink.name))?;
            if !names.insert(&sink.name) {
                return Err(format!("audit.sinks: two have the name {}", sink.name));
            }
        }
        Ok(())
    }
}

impl SinkConfig {
    fn check(&self) -> Result<(), String> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(1..=32).contains(&self.name.len()) || !self.name.bytes().all(plain) {
            return Err("a name has 1 to 32 lower-case letters, digits and `-`".to_owned());
        }
        if self.every.is_zero() || self.every > LONGEST {
            return Err("every is from 1ms to 1h".to_owned());
        }
        let (needed, allowed): (&[&str], &[&str]) = match self.kind {
            SinkKind::Folder => (&["path"], &[]),
            SinkKind::Http | SinkKind::Otlp => (&["url"], &["token_file"]),
            SinkKind::S3 => (&["url", "bucket", "region", "access_key_file", "secret_key_file"], &["prefix"]),
        };
        for (key, given) in self.optional() {
            if needed.contains(&key) && !given {
                return Err(format!("{key} is missing"));
            }
            if given && !needed.contains(&key) && !allowed.contains(&key) {
                return Err(format!("{key} is not a key of this kind"));
            }
        }
        if self.path.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err("path is absolute".to_owned());
        }
        if let Some(url) = &self.url {
            egress::check_operator_address(url).map_err(|error| format!("url: {error}"))?;
            if self.kind == SinkKind::S3 && url.contains(['?', '#']) {
                return Err("url of a bucket has neither query nor fragment".to_owned());
            }
        }
        let bucket = |byte: u8| plain(byte) || byte == b'.';
        if self.bucket.as_ref().is_some_and(|name| !(3..=63).contains(&name.len()) || !name.bytes().all(bucket)) {
            return Err("bucket has 3 to 63 lower-case letters, digits, `-` and `.`".to_owned());
        }
        let region = |name: &String| name.is_empty() || !name.bytes().all(plain);
        if self.region.as_ref().is_some_and(region) {
            return Err("region has lower-case letters, digits and `-`".to_owned());
        }
        let object = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
        if self.prefix.as_ref().is_some_and(|prefix| prefix.starts_with('/') || !prefix.bytes().all(object)) {
            return Err("prefix has letters, digits, `-`, `_`, `.` and `/`, and does not begin with `/`".to_owned());
        }
        Ok(())
    }

    /// The keys that not every kind has, and whether this one has them.
    fn optional(&self) -> [(&'static str, bool); 8] {
        [
            ("path", self.path.is_some()),
            ("url", self.url.is_some()),
            ("token_file", self.token_file.is_some()),
            ("bucket", self.bucket.is_some()),
            ("region", self.region.is_some()),
            ("prefix", self.prefix.is_some()),
            ("access_key_file", self.access_key_file.is_some()),
            ("secret_key_file", self.secret_key_file.is_some()),
        ]
    }

    /// Whether the audit log of this tenant goes there.
    pub(crate) fn takes(&self, tenant: &domain::Tenant) -> bool {
        self.tenants.is_empty() || self.tenants.iter().any(|name| name == tenant.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(sinks: &Value) -> Result<(), String> {
        let mut section = json!({ "signing_key_file": "", "older_key_files": [], "checkpoint_every": "1h",
            "checkpoint_entries": 1000, "look_every": "10m", "keep": "90d" });
        section["sinks"] = sinks.clone();
        let config: ArchiveConfig = serde_json::from_value(section).map_err(|error| error.to_string())?;
        config.check()
    }

    #[test]
    fn each_kind_of_sink_has_its_keys_and_no_others() {
        let folder = json!({ "name": "disk", "kind": "folder", "path": "/var/audit" });
        let http = json!({ "name": "siem", "kind": "http", "url": "https://siem.example/in", "token_file": "t", "every": "5s" });
        let bucket = json!({ "name": "cold", "kind": "s3", "url": "https://s3.example", "bucket": "audit-1", "region": "eu-1",
            "access_key_file": "a", "secret_key_file": "b", "prefix": "qm/", "tenants": ["acme"] });
        let collector =
            json!({ "name": "otel", "kind": "otlp", "url": "https://otel.example:4318/v1/logs", "contents": "opened" });
        check(&json!([folder, http, bucket, collector])).unwrap();
        let with = |sink: &Value, key: &str, value: Value| {
            let mut bent = sink.clone();
            bent[key] = value;
            check(&json!([bent])).unwrap_err()
        };
        for (sink, key, value, why) in [
            (&folder, "path", json!("var/audit"), "absolute"),
            (&folder, "url", json!("https://x.example"), "not a key of this kind"),
            (&folder, "path", Value::Null, "path is missing"),
            (&folder, "name", json!("Disk"), "lower-case"),
            (&folder, "name", json!(""), "lower-case"),
            (&folder, "every", json!("0s"), "1ms to 1h"),
            (&folder, "every", json!("2h"), "1ms to 1h"),
            (&folder, "kind", json!("tape"), "tape"),
            (&folder, "paht", json!("/x"), "paht"),
            (&collector, "bucket", json!("audit-1"), "not a key of this kind"),
            (&collector, "url", Value::Null, "url is missing"),
            (&collector, "contents", json!("some"), "some"),
            (&http, "url", json!("http://siem.example/in"), "https is required"),
            (&http, "url", json!("https://a:b@siem.example/in"), "password"),
            (&bucket, "bucket", json!("A"), "bucket"),
            (&bucket, "region", json!(""), "region"),
            (&bucket, "prefix", json!("/x"), "prefix"),
            (&bucket, "url", json!("https://s3.example/?x"), "query"),
            (&bucket, "secret_key_file", Value::Null, "secret_key_file is missing"),
        ] {
            let told = with(sink, key, value.clone());
            assert!(told.contains(why), "{key} {value}: {told}");
        }
        assert!(check(&json!([folder, folder])).unwrap_err().contains("two have the name disk"));
    }
}
