//! Where chunks of audit logs go. A chunk that was sent twice is the same chunk under the same name.

mod bucket;
mod folder;
mod http;
mod otlp;
mod sigv4;

use crate::config::{SinkConfig, SinkKind};
use bucket::BucketSink;
use domain::{Moment, Tenant};
use folder::FolderSink;
use http::HttpSink;
use otlp::OtlpSink;
use std::path::Path;

/// Some lines of one audit log that go out together and verify by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Whose audit log it is.
    pub tenant: Tenant,
    /// Its name within the tenant and the day; names are in the order of the audit log.
    pub name: String,
    /// When its first entry was written; it is filed under that day.
    pub at: Moment,
    /// The lines.
    pub lines: Vec<u8>,
}

impl Chunk {
    /// The name of the chunk among those of all tenants: tenant, day and name.
    pub(crate) fn path(&self) -> String {
        let at = self.at.to_string();
        let day = at.split('T').next().unwrap_or_default();
        format!("{}/{day}/{}", self.tenant, self.name)
    }
}

/// Why a chunk was not taken. It is sent again, until it is.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The file system.
    #[error("the folder cannot be written")]
    Folder(#[source] std::io::Error),
    /// No answer.
    #[error("the sink did not answer")]
    NoAnswer(#[source] egress::FetchError),
    /// An answer that is no success.
    #[error("the sink answered with status {0}")]
    Status(u16),
    /// Taken, but for some records.
    #[error("the sink left out {0} records")]
    LeftOut(u64),
}

/// Why a sink cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SinkSetupError {
    /// A file with a secret.
    #[error("cannot read {path}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The client.
    #[error("cannot build the HTTP client")]
    Client(#[from] egress::ClientError),
    /// What the check of the settings should have found.
    #[error("a sink lacks {0}")]
    Lacks(&'static str),
}

/// One sink, ready.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) config: SinkConfig,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Folder(FolderSink),
    Http(HttpSink),
    Bucket(BucketSink),
    Otlp(OtlpSink),
}

impl Sink {
    pub(crate) fn open(config: &SinkConfig) -> Result<Sink, SinkSetupError> {
        let way = match config.kind {
            SinkKind::Folder => Way::Folder(FolderSink::new(needed(config.path.as_ref(), "path")?)),
            SinkKind::Http => Way::Http(HttpSink::open(config)?),
            SinkKind::S3 => Way::Bucket(BucketSink::open(config)?),
            SinkKind::Otlp => Way::Otlp(OtlpSink::open(config)?),
        };
        Ok(Sink { config: config.clone(), way })
    }

    /// Hands a chunk over; once this returns, the sink has it for good as far as it promises that.
    pub(crate) async fn put(&self, chunk: &Chunk, now: Moment) -> Result<(), SinkError> {
        match &self.way {
            Way::Folder(folder) => folder.put(chunk).await,
            Way::Http(http) => http.put(chunk).await,
            Way::Bucket(bucket) => bucket.put(chunk, now).await,
            Way::Otlp(collector) => collector.put(chunk).await,
        }
    }
}

fn needed<'a, T>(value: Option<&'a T>, what: &'static str) -> Result<&'a T, SinkSetupError> {
    value.ok_or(SinkSetupError::Lacks(what))
}

/// A secret from a file, without the line end that editors add.
fn secret(path: &Path) -> Result<String, SinkSetupError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|source| SinkSetupError::Unreadable { path: path.display().to_string(), source })?;
    Ok(text.trim().to_owned())
}

/// The body of an answer that is a success.
fn accepted(answer: Result<(u16, Vec<u8>), egress::FetchError>) -> Result<Vec<u8>, SinkError> {
    match answer {
        Ok((200..=299, body)) => Ok(body),
        Ok((status, _)) => Err(SinkError::Status(status)),
        Err(error) => Err(SinkError::NoAnswer(error)),
    }
}
