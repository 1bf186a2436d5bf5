//! The query of a request, decoded once.

use crate::status::ApiStatus;
use crate::validate::Unknown;
use crate::write::WriteOptions;

/// Names and values in the order they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct UrlQuery(Vec<(String, String)>);

impl UrlQuery {
    pub(crate) fn parse(text: &str) -> UrlQuery {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name, true), decoded(value, true))
        });
        UrlQuery(pairs.collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// How a write is meant.
    pub(crate) fn options(&self, subresource: &'static str, agent: &str) -> Result<WriteOptions, ApiStatus> {
        for value in self.all("dryRun").filter(|value| !value.is_empty()) {
            if value != "All" {
                let message = format!(
                    "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"{value}\"]: supported values: \"All\""
                );
                let mut refused = ApiStatus::unprocessable();
                refused.message = message;
                return Err(refused);
            }
        }
        let unknown = match self.get("fieldValidation") {
            Some("Strict") => Unknown::Refuse,
            Some("Ignore") => Unknown::Ignore,
            _ => Unknown::Warn,
        };
        let manager = self.get("fieldManager").filter(|name| !name.is_empty());
        // Without a name the program that writes is taken, as the real server does.
        let fallback = agent.split('/').next().filter(|name| !name.is_empty()).unwrap_or("unknown");
        Ok(WriteOptions {
            dry_run: self.get("dryRun") == Some("All"),
            manager: manager.unwrap_or(fallback).to_owned(),
            force: self.is_true("force"),
            unknown,
            subresource,
        })
    }
}

/// Undoes percent-encoding; in queries a plus is a space.
pub(crate) fn decoded(text: &str, in_query: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[at], hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
                continue;
            }
            (b'+', _) if in_query => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}
