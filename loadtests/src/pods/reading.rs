//! One list read to its end, page by page over one connection.
//!
//! The clock runs while an answer is awaited; what came is checked beside it. A pod that is missing, or comes twice, ends
//! the measurement: a list with holes is quick, and must not count as speed.

use crate::http::KeptConnection;
use crate::load::start_of;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The most structured JSON of one answer of the service.
const MOST_BYTES: usize = 24 << 10;

/// What one reading showed.
#[derive(Debug)]
pub(super) struct PodsReading {
    /// How long its answers took together.
    pub(super) took: Duration,
    /// The pods.
    pub(super) names: HashSet<String>,
}

/// One page: its pods, and how to ask for the next one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PodPage {
    names: Vec<String>,
    next: Option<String>,
}

/// How one side is asked for a page, and how its answers are understood.
pub(super) struct Language<Ask: Fn(Option<&str>) -> Vec<u8>> {
    /// The request for the page a cursor names, or for the first one.
    pub(super) ask: Ask,
    /// The page in a body.
    pub(super) page: fn(&[u8]) -> anyhow::Result<PodPage>,
}

/// Reads a list that must hold so many pods.
pub(super) async fn read(
    address: SocketAddr,
    pods: usize,
    language: Language<impl Fn(Option<&str>) -> Vec<u8>>,
) -> anyhow::Result<PodsReading> {
    let mut connection = KeptConnection::open(address).await?;
    let (mut names, mut cursor, mut took) = (HashSet::with_capacity(pods), None::<String>, Duration::ZERO);
    loop {
        let request = (language.ask)(cursor.as_deref());
        let sent = Instant::now();
        let answer = connection.send(&request).await?;
        took += sent.elapsed();
        ensure!(answer.status == 200, "a page came with status {}: {}", answer.status, start_of(answer.body));
        let page = (language.page)(answer.body)?;
        ensure!(!page.names.is_empty(), "a page came without pods");
        for name in page.names {
            ensure!(!names.contains(&name), "the pod {name} came twice");
            names.insert(name);
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    ensure!(names.len() == pods, "{} pods came, there are {pods}", names.len());
    Ok(PodsReading { took, names })
}

/// A page as the service answers it.
pub(super) fn of_the_service(body: &[u8]) -> anyhow::Result<PodPage> {
    let body: Value = serde_json::from_slice(body).context("an answer is not JSON")?;
    let result = &body["result"];
    ensure!(result["isError"] != Value::Bool(true) && result.is_object(), "answered with an error: {body}");
    let told = &result["structuredContent"];
    let bytes = told.to_string().len();
    ensure!(bytes <= MOST_BYTES, "an answer has {bytes} bytes of structured JSON, more than {MOST_BYTES}");
    Ok(PodPage { names: names(told, "/name")?, next: text(told, "/next_cursor") })
}

/// A page as the cluster answers it.
pub(super) fn of_the_cluster(body: &[u8]) -> anyhow::Result<PodPage> {
    let body: Value = serde_json::from_slice(body).context("a list is not JSON")?;
    let next = text(&body, "/metadata/continue").filter(|token| !token.is_empty());
    Ok(PodPage { names: names(&body, "/metadata/name")?, next })
}

fn names(list: &Value, at: &str) -> anyhow::Result<Vec<String>> {
    let items = list["items"].as_array().context("a page has no items")?;
    items.iter().map(|item| text(item, at).context("a pod has no name")).collect()
}

fn text(value: &Value, at: &str) -> Option<String> {
    value.pointer(at)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service(told: &Value) -> anyhow::Result<PodPage> {
        of_the_service(json!({ "result": { "structuredContent": told } }).to_string().as_bytes())
    }

    #[test]
    fn both_sides_are_understood() {
        let page = |next: Option<&str>| PodPage { names: vec!["a".into(), "b".into()], next: next.map(str::to_owned) };
        let items = json!([{ "name": "a" }, { "name": "b" }]);
        assert_eq!(service(&json!({ "items": items, "next_cursor": "on" })).unwrap(), page(Some("on")));
        assert_eq!(service(&json!({ "items": items })).unwrap(), page(None));
        let items = json!([{ "metadata": { "name": "a" } }, { "metadata": { "name": "b" } }]);
        let list = |token: &str| json!({ "items": items, "metadata": { "continue": token } }).to_string();
        assert_eq!(of_the_cluster(list("on").as_bytes()).unwrap(), page(Some("on")));
        assert_eq!(of_the_cluster(list("").as_bytes()).unwrap(), page(None));
    }

    #[test]
    fn an_answer_of_the_service_keeps_its_bound_or_cannot_be_measured() {
        let padded = |bytes: usize| {
            let empty = json!({ "items": [{ "name": "a" }], "pad": "" }).to_string().len();
            json!({ "items": [{ "name": "a" }], "pad": "x".repeat(bytes - empty) })
        };
        assert!(service(&padded(MOST_BYTES)).is_ok());
        assert!(service(&padded(MOST_BYTES + 1)).unwrap_err().to_string().contains("24577 bytes"));
    }

    #[test]
    fn a_refusal_is_no_page() {
        for body in [r#"{"error":{"code":-32603}}"#, r#"{"result":{"isError":true,"structuredContent":{"items":[]}}}"#]
        {
            let error = of_the_service(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("answered with an error"), "{error}");
        }
        assert!(of_the_cluster(br#"{"kind":"Status"}"#).is_err());
    }

    /// Reads from a server that gives the same page to everybody.
    async fn told(page: &'static str, pods: usize) -> Result<usize, String> {
        let floor = crate::floor::tests::floor(page, None);
        let ask = |_: Option<&str>| crate::floor::tests::post("{}");
        let read = read(floor.address, pods, Language { ask, page: of_the_cluster }).await;
        read.map(|reading| reading.names.len()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn each_pod_must_come_and_must_come_once() {
        let last = r#"{"items":[{"metadata":{"name":"a"}}]}"#;
        let endless = r#"{"items":[{"metadata":{"name":"a"}}],"metadata":{"continue":"on"}}"#;
        let empty = r#"{"items":[],"metadata":{"continue":"on"}}"#;
        assert_eq!(told(last, 1).await, Ok(1));
        assert_eq!(told(last, 2).await, Err("1 pods came, there are 2".into()));
        assert_eq!(told(endless, 2).await, Err("the pod a came twice".into()));
        assert_eq!(told(empty, 2).await, Err("a page came without pods".into()));
    }
}
