//! One authenticated question to a service the user named, with a bounded answer of any status.

use crate::address;
use crate::client::{ClientError, Config, HttpClient, operator_client};
use crate::fetch::{FetchError, read_capped, transport};
use reqwest::Method;
use serde_json::Value;
use std::sync::Arc;

/// The most that is read of an answer.
const CAP: usize = 8 << 20;

/// What is asked.
#[derive(Debug)]
pub struct FetchRequest<'a> {
    /// `GET`, `POST`, `PUT` or `DELETE`; everything else is taken as `GET`.
    pub method: &'a str,
    /// Where; https, or http on loopback.
    pub url: &'a str,
    /// The token that goes along.
    pub bearer: &'a str,
    /// A JSON body.
    pub body: Option<Value>,
}

/// Posts ready-made JSON with headers of the caller's own; only the status of the answer matters.
pub async fn post(client: &HttpClient, url: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Result<u16, FetchError> {
    let url = address::parse(url).map_err(FetchError::Address)?;
    let request = client.0.post(url).header("Content-Type", "application/json").body(body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Ok(request.send().await.map_err(transport)?.status().as_u16())
}

/// A client for a collector of telemetry. Its address is the operator's, and inside a cluster it is plain http as a rule.
pub fn telemetry_sender() -> Result<telemetry::HttpSend, ClientError> {
    let HttpClient(client) = operator_client(&Config::default())?;
    Ok(Arc::new(move |post: telemetry::HttpPost| {
        let request = client.post(post.url).timeout(post.timeout).body(post.body);
        let request = post.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        Box::pin(async move { request.send().await.ok().map(|response| response.status().as_u16()) })
    }))
}

/// Sends bytes with headers of the caller's own, the kind of the content among them, and reads a bounded answer.
pub async fn upload(
    client: &HttpClient,
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<(u16, Vec<u8>), FetchError> {
    let url = address::parse(url).map_err(FetchError::Address)?;
    let request = client.0.request(method, url).body(body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = request.send().await.map_err(transport)?;
    let status = response.status().as_u16();
    Ok((status, read_capped(response, CAP).await?))
}

/// Sends it and reads the whole answer; the status is the caller's to judge.
pub async fn ask(client: &HttpClient, ask: FetchRequest<'_>) -> Result<(u16, Vec<u8>), FetchError> {
    ask_if(client, ask, None).await
}

/// The same, on the condition that what is there carries this tag (`If-Match`).
pub async fn ask_if(
    client: &HttpClient,
    ask: FetchRequest<'_>,
    tag: Option<&str>,
) -> Result<(u16, Vec<u8>), FetchError> {
    let url = address::parse(ask.url).map_err(FetchError::Address)?;
    let method = match ask.method {
        "POST" => Method::POST,
        "PUT" => Method::PUT,
        "DELETE" => Method::DELETE,
        _ => Method::GET,
    };
    let request = client.0.request(method, url).bearer_auth(ask.bearer);
    let request = match tag {
        Some(tag) => request.header("If-Match", format!("\"{tag}\"")),
        None => request,
    };
    let request = match &ask.body {
        Some(body) => request.json(body),
        None => request,
    };
    let response = request.send().await.map_err(transport)?;
    let status = response.status().as_u16();
    Ok((status, read_capped(response, CAP).await?))
}
