//! Questions about the cluster itself: its version and health, its field docs, and what we may do there.

use crate::client::cluster::Cluster;
use crate::client::connection::ClientLane;
use crate::client::fault;
use crate::client::grammar;
use crate::client::kinds::Kind;
use crate::client::request::{ClusterRequest, JSON};
use domain::{Code, Failure};
use http::Method;
use serde_json::{Value, json};

/// Whether the cluster says that it is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterHealth {
    /// Its own verdict.
    pub healthy: bool,
    /// Its checks and whether each passed.
    pub checks: Vec<(String, bool)>,
}

/// A deed that may be allowed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessReview {
    /// `get`, `list`, `patch` and so on.
    pub verb: String,
    /// On what.
    pub kind: Kind,
    /// `scale`, `log` and so on.
    pub subresource: Option<String>,
    /// Where; `None` for everywhere, or for a kind without one.
    pub namespace: Option<String>,
    /// On which.
    pub name: Option<String>,
}

/// The cluster's answer to a [`AccessReview`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessVerdict {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why, if the cluster says so. Text from outside.
    pub reason: Option<String>,
}

impl Cluster<'_> {
    /// The answer of `/version`.
    pub async fn version(&self) -> Result<Value, Failure> {
        self.read_json(&ClusterRequest::fixed(Method::GET, "/version", "/version")).await
    }

    /// The answer of `/readyz`, check by check.
    pub async fn ready(&self) -> Result<ClusterHealth, Failure> {
        let request =
            ClusterRequest::fixed(Method::GET, "/readyz", "/readyz").query("verbose", "").accept("text/plain, */*");
        let answer = self
            .connection
            .send(ClientLane::Read, &request, self.deadline)
            .await
            .map_err(|lost| fault::of_read(&lost))?;
        let healthy = answer.status.is_success();
        let status = answer.status;
        let retry_after = answer.retry_after;
        let body = answer.bytes(64 * 1024, self.deadline).await.map_err(|lost| fault::of_read(&lost))?;
        if status.is_client_error() {
            return Err(fault::of_status(self.masker(), &request.about, status, retry_after, &body));
        }
        let checks = String::from_utf8_lossy(&body)
            .lines()
            .filter_map(|line| {
                let (mark, rest) = line.strip_prefix('[')?.split_once(']')?;
                Some((rest.split(' ').next()?.to_owned(), mark == "+"))
            })
            .collect();
        Ok(ClusterHealth { healthy, checks })
    }

    /// The OpenAPI 3 document of a kind's group and version.
    pub async fn openapi(&self, kind: &Kind) -> Result<Value, Failure> {
        let path = match kind.group() {
            "" => format!("/openapi/v3/api/{}", kind.version()),
            group => format!("/openapi/v3/apis/{group}/{}", kind.version()),
        };
        self.read_json(&ClusterRequest::fixed(Method::GET, path, "/openapi/v3/apis/{group}/{version}")).await
    }

    /// Whether the tenant's credential may do something.
    pub async fn may(&self, deed: &AccessReview) -> Result<AccessVerdict, Failure> {
        let word =
            |text: &str| (1..=63).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'*');
        if !word(&deed.verb) {
            return Err(Failure::new(Code::InvalidArgument, "that is no verb").next("use one like get, list or patch"));
        }
        if let Some(name) = &deed.name {
            grammar::object_name(&deed.kind, name)?;
        }
        let namespace = match &deed.namespace {
            Some(namespace) => Some(self.namespace(Some(namespace))?),
            None => None,
        };
        let attributes = json!({
            "verb": deed.verb, "group": deed.kind.group(), "version": "*", "resource": deed.kind.plural(),
            "subresource": deed.subresource.as_deref().unwrap_or_default(),
            "namespace": namespace.unwrap_or_default(), "name": deed.name.as_deref().unwrap_or_default(),
        });
        let review = self.review(
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
            json!({ "resourceAttributes": attributes }),
        );
        let status = status_of(review.await?);
        let reason =
            status["reason"].as_str().filter(|reason| !reason.is_empty()).map(|reason| self.masker().text(reason));
        Ok(AccessVerdict { allowed: status["allowed"] == true, reason })
    }

    /// Everything the tenant's credential may do in a namespace, as the cluster tells it.
    pub async fn rules(&self, namespace: Option<&str>) -> Result<Value, Failure> {
        let namespace = self.namespace(namespace)?;
        let review =
            self.review("SelfSubjectRulesReview", "selfsubjectrulesreviews", json!({ "namespace": namespace }));
        Ok(status_of(review.await?))
    }

    /// A question in the form of an object that is not kept. Asked once, like everything that is posted.
    async fn review(&self, kind: &str, plural: &str, spec: Value) -> Result<Value, Failure> {
        let body = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec });
        let path = format!("/apis/authorization.k8s.io/v1/{plural}");
        let request = ClusterRequest::fixed(Method::POST, path, "/apis/{group}/{version}/{resource}");
        let request = request.body(JSON, body.to_string().into_bytes());
        let answer = self.read(ClientLane::Read, &request).await?;
        let bytes = answer.bytes(1024 * 1024, self.deadline).await.map_err(|lost| fault::of_read(&lost))?;
        serde_json::from_slice(&bytes).map_err(|_| {
            Failure::new(target::codes::TARGET_UNREACHABLE, "the cluster's answer cannot be read").next("try later")
        })
    }
}

fn status_of(mut review: Value) -> Value {
    review.get_mut("status").map(Value::take).unwrap_or_default()
}
