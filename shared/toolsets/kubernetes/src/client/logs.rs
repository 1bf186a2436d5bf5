//! Logs of one container: bounded, masked, whole lines.

use crate::client::cluster::Cluster;
use crate::client::connection::ClientLane;
use crate::client::grammar;
use crate::client::place::ResourceRef;
use crate::client::request::ClusterRequest;
use crate::codes;
use domain::{Code, Failure};
use http::Method;
use http_body_util::BodyExt;
use tokio::time::timeout_at;

/// Which lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// The container; may be left out for a pod with one.
    pub container: Option<String>,
    /// How many lines from the end.
    pub tail: Option<u32>,
    /// Not older than this many seconds.
    pub since_s: Option<u64>,
    /// Of the container's former life.
    pub previous: bool,
    /// Whether each line begins with its time.
    pub timestamps: bool,
}

/// Lines of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerLogRequest {
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// Whether there was more than is taken, or the stream ended early.
    pub truncated: bool,
}

/// How much is read of one container.
const MOST_BYTES: usize = 1024 * 1024;
const LOG: (&str, &str) = ("log", "/api/{version}/namespaces/{namespace}/pods/{name}/log");

impl Cluster<'_> {
    /// Lines of one container of a pod.
    pub async fn logs(&self, pod: &ResourceRef, query: &LogQuery) -> Result<ContainerLogRequest, Failure> {
        if let Some(container) = &query.container {
            grammar::container(container)?;
        }
        let request = ClusterRequest::beneath(Method::GET, "get", pod, LOG)
            .accept("text/plain, application/json")
            .query("limitBytes", MOST_BYTES.to_string())
            .maybe("container", query.container.as_ref())
            .maybe("tailLines", query.tail)
            .maybe("sinceSeconds", query.since_s)
            .maybe("previous", query.previous.then_some(true))
            .maybe("timestamps", query.timestamps.then_some(true));
        let mut answer = self.read(ClientLane::Stream, &request).await.map_err(explain)?;
        let (mut bytes, mut truncated) = (Vec::new(), false);
        loop {
            match timeout_at(self.deadline, answer.body.frame()).await {
                Ok(Some(Ok(frame))) => bytes.extend(frame.into_data().unwrap_or_default()),
                Ok(None) => break,
                // What has arrived is worth more than the failure of the rest.
                Ok(Some(Err(_))) | Err(_) => {
                    truncated = true;
                    break;
                }
            }
            if bytes.len() >= MOST_BYTES {
                truncated = true;
                bytes.truncate(MOST_BYTES);
                break;
            }
        }
        // Masked before it is cut into lines: a key may span several.
        let text = self.masker().text(&String::from_utf8_lossy(&bytes));
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if truncated && !text.ends_with('\n') {
            lines.pop();
        }
        Ok(ContainerLogRequest { lines, truncated })
    }
}

/// The API server tells three different things as a bad request.
fn explain(failure: Failure) -> Failure {
    if failure.code != Code::InvalidArgument {
        return failure;
    }
    let message = failure.details.as_ref().and_then(|details| details["message"].as_str()).unwrap_or_default();
    let names = |text: &str| -> Vec<String> {
        let list = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(list, _)| list);
        list.split(' ').filter(|name| grammar::is_label(name)).map(str::to_owned).collect()
    };
    let (code, sentence, next) = if message.contains("a container name must be specified") {
        (codes::CONTAINER_REQUIRED, "the pod has several containers", "name one of them")
    } else if message.contains("previous terminated container") {
        (codes::NO_PREVIOUS_LOGS, "the container has not run before", "leave previous out")
    } else if message.contains("is not valid for pod") {
        (codes::CONTAINER_NOT_FOUND, "the pod has no such container", "look at the pod with k8s_get")
    } else {
        return failure;
    };
    let containers = names(message);
    let mut told = Failure::new(code, sentence).next(next).did_you_mean(containers.iter().take(3).cloned().collect());
    told.details = failure.details;
    if let Some(details) = told.details.as_mut().filter(|_| !containers.is_empty()) {
        details["containers"] = containers.into();
    }
    told
}
