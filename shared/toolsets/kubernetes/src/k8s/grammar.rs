//! The small values a call is made of, each parsed by its own grammar.
//!
//! A name goes into a path and a selector into a query, so what could bend either is refused here, before policy sees
//! the call: `/`, `%`, `..`, blanks, control characters and a leading dash. A value that got through needs no check later.

use domain::{Code, Failure};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use target::checked_text;
pub use target::grammar::{Label, is_label, is_subdomain};

checked_text!(
    /// A namespace, or `*` for every namespace the tenant may see. Only tools that read take it.
    Namespaces, |text| text == "*" || is_label(text), "a namespace is 1 to 63 of a-z, 0-9 and '-'; '*' means all",
    { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^(\\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$" }
);

checked_text!(
    /// The name of an object. Whether capitals and `:` are right depends on the kind: see [`ObjectName::fits`].
    ObjectName, is_name, "a name is 1 to 253 of letters, digits, '.', '-' and ':', beginning with a letter or digit and without '..'",
    { "type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[A-Za-z0-9]([A-Za-z0-9.:_-]*[A-Za-z0-9:_])?$" }
);

checked_text!(
    /// How a caller names a kind; discovery says what it is.
    KindText, is_kind, "a kind is Deployment, deployments, deploy, rollouts.argoproj.io or apps/v1/Deployment; a subresource or a name is no part of it",
    { "type": "string", "minLength": 1, "maxLength": 253,
      "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?(v[0-9]+((alpha|beta)[0-9]+)?/)?[A-Za-z][A-Za-z0-9-]*(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" }
);

checked_text!(
    /// A span of time such as `15m`.
    Span, is_span, "a span is a whole number and s, m, h or d, such as 15m, at most 30d",
    { "type": "string", "maxLength": 6, "pattern": "^[1-9][0-9]{0,4}[smhd]$" }
);

checked_text!(
    /// An OCI reference: `[host[:port]/]path[:tag][@digest]`.
    Image, is_image, "an image is [registry/]path[:tag][@sha256:digest]",
    { "type": "string", "minLength": 1, "maxLength": 512, "pattern": "^[A-Za-z0-9][A-Za-z0-9._:/@-]*$" }
);

impl ObjectName {
    /// Wants the name to be one that objects of this API group can have: RBAC allows `:` and capitals, nobody else.
    pub fn fits(&self, group: &str) -> Result<&str, Failure> {
        let text = self.as_str();
        if group == "rbac.authorization.k8s.io" || is_subdomain(text) {
            return Ok(text);
        }
        Err(Failure::new(Code::InvalidArgument, "only RBAC objects have capitals, ':' or '_' in their names")
            .next("spell the name with a-z, 0-9, '-' and '.'"))
    }
}

impl Namespaces {
    /// Whether every namespace is meant.
    pub fn is_all(&self) -> bool {
        self.0 == "*"
    }
}

impl Span {
    /// How long it is.
    pub fn duration(&self) -> Duration {
        span(&self.0).unwrap_or_default()
    }
}

impl Image {
    /// The registry it is pulled from; a first part without dot, colon or `localhost` belongs to the path.
    pub fn registry(&self) -> &str {
        match self.0.split_once('/') {
            Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
            Some(_) | None => "docker.io",
        }
    }
}

/// A port number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Port(#[schemars(range(min = 1, max = 65_535))] u16);

impl Port {
    /// The number.
    pub fn number(self) -> u16 {
        self.0
    }
}

checked_text!(
    /// The path of an HTTP request: absolute, printable, without `..`, fragment or encoded slash tricks.
    HttpPath, is_http_path, "a path begins with '/', has no '..', '#', blanks or control characters, and at most 1024 bytes",
    { "type": "string", "maxLength": 1024, "pattern": "^/[!-~]*$" }
);

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    (1..=253).contains(&text.len())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'_'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'_'))
        && !text.contains("..")
}

/// `v1`, `v2beta1` and the like.
pub fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else { return false };
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    match rest.split_once("alpha").or_else(|| rest.split_once("beta")) {
        Some((major, minor)) => digits(major) && digits(minor),
        None => digits(rest),
    }
}

fn is_kind(text: &str) -> bool {
    let mut parts = text.rsplitn(3, '/');
    let (last, version, group) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let word = last.split('.').next().unwrap_or_default();
    let word_fits = word.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && word.len() <= 63
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let tail_fits = last.len() == word.len() || is_subdomain(&last[word.len() + 1..]);
    // With a version before it, the word stands alone: `apps/v1/Deployment`.
    let alone = version.is_none() || last == word;
    text.len() <= 253
        && word_fits
        && tail_fits
        && alone
        && version.is_none_or(is_version)
        && group.is_none_or(is_subdomain)
}

fn is_span(text: &str) -> bool {
    span(text).is_some()
}

fn span(text: &str) -> Option<Duration> {
    const MOST: u64 = 30 * 24 * 60 * 60;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number =
        (1..=5).contains(&digits.len()) && !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let secs = digits.parse::<u64>().ok().filter(|_| number)? * unit;
    (secs <= MOST).then(|| Duration::from_secs(secs))
}

fn is_image(text: &str) -> bool {
    let (rest, digest) = text.split_once('@').map_or((text, None), |(rest, digest)| (rest, Some(digest)));
    let (path, tag) = match rest.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        Some(_) | None => (rest, None),
    };
    let part = |p: &str| {
        !p.is_empty()
            && p.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && p.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
    };
    // Only the first of several parts is a host, and only a host has a port.
    let (path, port) = match path.split_once('/').and_then(|(host, rest)| Some((host.split_once(':')?, rest))) {
        Some(((_, port), rest)) => (rest, Some(port)),
        None => (path, None),
    };
    let port_fits = |p: &str| (1..=5).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit());
    let tag_fits = |t: &str| {
        (1..=128).contains(&t.len())
            && t.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && !t.starts_with(['.', '-'])
    };
    let digest_fits = |d: &str| {
        d.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let mut parts = path.split('/');
    text.len() <= 512
        && parts.all(part)
        && !text.contains("..")
        && port.is_none_or(port_fits)
        && tag.is_none_or(tag_fits)
        && digest.is_none_or(digest_fits)
}

fn is_http_path(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    text.starts_with('/')
        && text.len() <= 1_024
        && text.bytes().all(|b| b.is_ascii_graphic())
        && !text.contains(['#', '\\'])
        && !lower.contains("..")
        && !["%2e", "%2f", "%5c", "%00"].iter().any(|trick| lower.contains(trick))
}

#[cfg(test)]
mod tests;
