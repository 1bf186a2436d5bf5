//! An answer of a cluster, read no further than it is wanted.

use crate::client::connection::NoClusterAnswer;
use http::StatusCode;
use http_body_util::BodyExt;
use kube::client::Body;
use std::time::Duration;
use target::TargetSlot;
use tokio::time::{Instant, timeout_at};

/// The head of an answer; the body follows. Holds its slot until it is dropped.
pub(in crate::client) struct ClusterResponse {
    pub(in crate::client) status: StatusCode,
    pub(in crate::client) retry_after: Option<Duration>,
    pub(in crate::client) content_type: Option<String>,
    pub(in crate::client) body: Body,
    _slot: TargetSlot,
}

impl ClusterResponse {
    pub(in crate::client) fn new(answer: http::Response<Body>, slot: TargetSlot) -> ClusterResponse {
        let (head, body) = answer.into_parts();
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        ClusterResponse {
            status: head.status,
            // The other form, a date, is not used by API servers.
            retry_after: text(http::header::RETRY_AFTER).and_then(|s| s.trim().parse().ok()).map(Duration::from_secs),
            content_type: text(http::header::CONTENT_TYPE).map(str::to_owned),
            body,
            _slot: slot,
        }
    }

    /// The beginning of the body, and whether there was more, or it broke off.
    pub(in crate::client) async fn beginning(mut self, most: usize, deadline: Instant) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        loop {
            match timeout_at(deadline, self.body.frame()).await {
                Ok(None) => return (bytes, false),
                Ok(Some(Ok(frame))) => bytes.extend(frame.into_data().unwrap_or_default()),
                Ok(Some(Err(_))) | Err(_) => return (bytes, true),
            }
            if bytes.len() > most {
                bytes.truncate(most);
                return (bytes, true);
            }
        }
    }

    /// The whole body, if it is not larger than `most`.
    pub(in crate::client) async fn bytes(mut self, most: usize, deadline: Instant) -> Result<Vec<u8>, NoClusterAnswer> {
        let mut bytes = Vec::new();
        while let Some(frame) = timeout_at(deadline, self.body.frame()).await.map_err(|_| NoClusterAnswer::Late)? {
            if let Ok(data) = frame.map_err(|_| NoClusterAnswer::Broken)?.into_data() {
                if bytes.len() + data.len() > most {
                    return Err(NoClusterAnswer::TooLarge);
                }
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes)
    }
}
