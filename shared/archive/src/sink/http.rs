//! An HTTP endpoint: each chunk is one POST of JSON lines.
//!
//! The `Idempotency-Key` is the path of the chunk, the same each time it is sent: a receiver that has it may drop it.

use super::{Chunk, SinkError, SinkSetupError, accepted, needed, secret};
use crate::config::SinkConfig;
use egress::{HttpClient, Method};
use std::fmt;

pub(super) struct HttpSink {
    client: HttpClient,
    url: String,
    token: Option<String>,
}

impl HttpSink {
    pub(super) fn open(config: &SinkConfig) -> Result<HttpSink, SinkSetupError> {
        let token = config.token_file.as_deref().map(secret).transpose()?;
        let url = needed(config.url.as_ref(), "url")?.clone();
        Ok(HttpSink { client: egress::operator_client(&egress::Config::default())?, url, token })
    }

    pub(super) async fn put(&self, chunk: &Chunk) -> Result<(), SinkError> {
        let (path, bearer) = (chunk.path(), self.token.as_ref().map(|token| format!("Bearer {token}")));
        let mut headers = vec![("Content-Type", "application/x-ndjson"), ("Idempotency-Key", path.as_str())];
        headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
        let answer = egress::upload(&self.client, Method::POST, &self.url, &headers, chunk.lines.clone()).await;
        accepted(answer).map(drop)
    }
}

/// Without the token.
impl fmt::Debug for HttpSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSink").field("url", &self.url).finish_non_exhaustive()
    }
}
