//! A collector: each line of a chunk is one log record, by OTLP over HTTP.
//!
//! The body of a record is the line, byte for byte, so the bodies of one chunk in the order of their lines are the chunk
//! again, and verify. A chunk that was sent again has the same attributes: a receiver can drop what it has.

use super::{Chunk, SinkError, SinkSetupError, accepted, needed, secret};
use crate::config::SinkConfig;
use crate::lines::ExportLine;
use domain::Moment;
use egress::{HttpClient, Method};
use serde::Deserialize;
use std::fmt;
use store::EntryPlace;
use telemetry::names;
use telemetry::otlp::records::{RecordText, encode_records, rejected_records};

/// No further line is added to a request of so many bytes; collectors refuse large ones.
const MANY_BYTES: usize = 1 << 20;

pub(super) struct OtlpSink {
    client: HttpClient,
    url: String,
    token: Option<String>,
}

/// What a record tells of an entry besides its text.
#[derive(Deserialize)]
struct EntryTrace {
    trace: Option<String>,
}

impl OtlpSink {
    pub(super) fn open(config: &SinkConfig) -> Result<OtlpSink, SinkSetupError> {
        let token = config.token_file.as_deref().map(secret).transpose()?;
        let url = needed(config.url.as_ref(), "url")?.clone();
        Ok(OtlpSink { client: egress::operator_client(&egress::Config::default())?, url, token })
    }

    pub(super) async fn put(&self, chunk: &Chunk) -> Result<(), SinkError> {
        let text = String::from_utf8_lossy(&chunk.lines);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for (number, line) in text.lines().enumerate() {
            if bytes + line.len() > MANY_BYTES && !batch.is_empty() {
                self.send(std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            bytes += line.len();
            batch.push(record(chunk, number, line));
        }
        if batch.is_empty() { Ok(()) } else { self.send(batch).await }
    }

    async fn send(&self, batch: Vec<RecordText<'_>>) -> Result<(), SinkError> {
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let mut headers = vec![("Content-Type", "application/x-protobuf")];
        headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
        let answer = egress::upload(&self.client, Method::POST, &self.url, &headers, encode_records(batch)).await;
        let body = accepted(answer)?;
        // A collector may take a request and leave records of it out. An audit log with holes is none, so all of it is
        // sent again, and the lag tells of it.
        match rejected_records(&body) {
            Some(0) | None => Ok(()),
            Some(records) => Err(SinkError::LeftOut(records)),
        }
    }
}

fn record<'a>(chunk: &Chunk, number: usize, line: &'a str) -> RecordText<'a> {
    let (kind, at, trace) = match ExportLine::read(line) {
        Some(ExportLine::Entry(entry)) => {
            let trace = serde_json::from_str(entry.entry.get()).ok().and_then(|read: EntryTrace| read.trace);
            ("entry", EntryPlace::parse(&entry.id).map(|place| place.item.at), trace)
        }
        Some(ExportLine::Link(_)) => ("link", None, None),
        Some(ExportLine::Checkpoint(_)) => ("checkpoint", None, None),
        None => ("head", None, None),
    };
    let at: Moment = at.unwrap_or(chunk.at);
    let attributes = vec![
        (names::TENANT, chunk.tenant.to_string()),
        (names::AUDIT_CHUNK, chunk.path()),
        (names::AUDIT_LINE, (number + 1).to_string()),
        (names::AUDIT_KIND, kind.to_owned()),
    ];
    RecordText { at, trace, body: line, attributes }
}

/// Without the token.
impl fmt::Debug for OtlpSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpSink").field("url", &self.url).finish_non_exhaustive()
    }
}
