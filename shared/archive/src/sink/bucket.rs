//! An S3-compatible bucket: each chunk is one object, `<prefix><tenant>/<day>/<chunk>.jsonl`, addressed by path.
//!
//! The digest of the object goes along as a checksum, which buckets with object lock demand.

use super::sigv4::{Credentials, SignedRequest, authorization};
use super::{Chunk, SinkError, SinkSetupError, accepted, needed, secret};
use crate::config::SinkConfig;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use domain::{Moment, json};
use egress::{HttpClient, Method, Url};
use sha2::{Digest, Sha256};
use std::fmt;

pub(super) struct BucketSink {
    client: HttpClient,
    /// The address up to the bucket, without a slash at its end.
    base: String,
    host: String,
    bucket: String,
    prefix: String,
    region: String,
    access_key: String,
    secret_key: String,
}

impl BucketSink {
    pub(super) fn open(config: &SinkConfig) -> Result<BucketSink, SinkSetupError> {
        let url = needed(config.url.as_ref(), "url")?;
        let parsed = Url::parse(url).map_err(|_| SinkSetupError::Lacks("a url"))?;
        let host = parsed.host_str().ok_or(SinkSetupError::Lacks("a host"))?;
        Ok(BucketSink {
            client: egress::operator_client(&egress::Config::default())?,
            base: url.trim_end_matches('/').to_owned(),
            // The port is a part of the header only where it is not the usual one.
            host: parsed.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
            bucket: needed(config.bucket.as_ref(), "bucket")?.clone(),
            prefix: config.prefix.clone().unwrap_or_default(),
            region: needed(config.region.as_ref(), "region")?.clone(),
            access_key: secret(needed(config.access_key_file.as_ref(), "access_key_file")?)?,
            secret_key: secret(needed(config.secret_key_file.as_ref(), "secret_key_file")?)?,
        })
    }

    pub(super) async fn put(&self, chunk: &Chunk, now: Moment) -> Result<(), SinkError> {
        let digest = Sha256::digest(&chunk.lines);
        let (body, checksum, at) = (json::hex(&digest), BASE64_STANDARD.encode(digest), basic(now));
        let url = format!("{}/{}/{}{}", self.base, self.bucket, self.prefix, chunk.path());
        // What is signed is what travels: everything behind the host.
        let path = url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or_default();
        let headers = [
            ("content-type", "application/x-ndjson"),
            ("host", self.host.as_str()),
            ("x-amz-checksum-sha256", checksum.as_str()),
            ("x-amz-content-sha256", body.as_str()),
            ("x-amz-date", at.as_str()),
        ];
        let credentials =
            Credentials { access_key: &self.access_key, secret_key: &self.secret_key, region: &self.region };
        let request = SignedRequest { method: "PUT", path, headers: &headers, body: &body, at: &at };
        let authorization = authorization(&credentials, &request);
        // The client writes the host by itself.
        let mut sent: Vec<(&str, &str)> = headers.into_iter().filter(|(name, _)| *name != "host").collect();
        sent.push(("authorization", &authorization));
        accepted(egress::upload(&self.client, Method::PUT, &url, &sent, chunk.lines.clone()).await).map(drop)
    }
}

/// `2013-05-24T00:00:00Z` as `20130524T000000Z`.
fn basic(at: Moment) -> String {
    let whole = Moment::from_secs(at.millis() / 1_000).to_string();
    whole.chars().filter(|c| !matches!(c, '-' | ':')).collect()
}

/// Without the keys.
impl fmt::Debug for BucketSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketSink").field("base", &self.base).field("bucket", &self.bucket).finish_non_exhaustive()
    }
}
