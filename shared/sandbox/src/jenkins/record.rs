//! What came by: every request, for tests to look at.

use http::{HeaderMap, Method, header};

/// How many requests are remembered.
const REMEMBERED: usize = 10_000;
/// How many bytes of bodies are remembered, all together.
const REMEMBERED_BODIES: usize = 16 * 1024 * 1024;

/// One request as it came in. A credential is noted and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// `GET`, `POST` and so on.
    pub method: String,
    /// The path as it was sent, still encoded.
    pub path: String,
    /// The query as it was sent, without the question mark.
    pub query: String,
    /// Names in lower case and values; `authorization` is left out.
    pub headers: Vec<(String, String)>,
    /// Whether there was an `authorization`.
    pub authorized: bool,
    /// The body as text.
    pub body: String,
}

impl RecordedRequest {
    /// `POST /job/a/build?delay=0sec`.
    pub fn line(&self) -> String {
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("{} {}{mark}{}", self.method, self.path, self.query)
    }

    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The requests that came by and the writes that were carried out.
#[derive(Debug, Default)]
pub(super) struct RequestRecord {
    pub(super) requests: Vec<RecordedRequest>,
    pub(super) writes: Vec<String>,
    bodies: usize,
}

impl RequestRecord {
    pub(super) fn note(&mut self, method: &Method, uri: &http::Uri, headers: &HeaderMap, body: &[u8]) {
        if self.requests.len() == REMEMBERED {
            return;
        }
        let kept = headers.iter().filter(|(name, _)| *name != header::AUTHORIZATION);
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        self.bodies += body.len();
        let body = if self.bodies > REMEMBERED_BODIES { &[] } else { body };
        self.requests.push(RecordedRequest {
            method: method.to_string(),
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            headers: kept.map(|(name, value)| (name.to_string(), text(value))).collect(),
            authorized: headers.contains_key(header::AUTHORIZATION),
            body: String::from_utf8_lossy(body).into_owned(),
        });
    }

    pub(super) fn note_write(&mut self, line: String) {
        if self.writes.len() < REMEMBERED {
            self.writes.push(line);
        }
    }
}
