//! Whether a cluster answers, for whoever looks after the service. It needs no permit, since it is no tool's call: it
//! asks for the version and for nothing else, once, and nothing a tenant keeps there is in the answer.

use crate::client::clusters::Clusters;
use crate::client::connection::ClientLane;
use crate::client::fault;
use crate::client::request::ClusterRequest;
use domain::Failure;
use http::Method;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// The largest answer that can be a version.
const MOST_BYTES: usize = 64 * 1024;

impl Clusters {
    /// The version that a cluster says it has, if it says one, or why it cannot be used.
    pub async fn health(&self, name: &str, within: Duration) -> Result<Option<String>, Failure> {
        let connection = self.connection(name)?;
        let (request, deadline) = (ClusterRequest::fixed(Method::GET, "/version", "/version"), Instant::now() + within);
        let answer =
            connection.send(ClientLane::Read, &request, deadline).await.map_err(|lost| fault::of_read(&lost))?;
        let (status, retry_after) = (answer.status, answer.retry_after);
        let body = answer.bytes(MOST_BYTES, deadline).await.map_err(|lost| fault::of_read(&lost))?;
        if !status.is_success() {
            return Err(fault::of_status(&connection.masker, &request.about, status, retry_after, &body));
        }
        let version: Value = serde_json::from_slice(&body).map_err(|_| {
            let message = "the address answers, but not like a Kubernetes API";
            Failure::new(target::codes::TARGET_UNREACHABLE, message).next("ask an admin to check the cluster's address")
        })?;
        Ok(version["gitVersion"].as_str().map(redact::message))
    }
}
