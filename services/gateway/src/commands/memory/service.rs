//! The documents of a tenant as a running service gives and takes them.

use crate::http::memory::{DocumentListPage, DocumentSummary, DocumentView, WriteResponse};
use anyhow::{Context, bail};
use memory::documents::{DocPath, Prefix};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Where documents are asked for, and with which token.
pub(super) struct DocumentService {
    url: String,
    token: String,
    client: egress::HttpClient,
}

/// A no of the service.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServiceRefusal {
    pub(super) code: String,
    pub(super) message: String,
    /// What a scan found, where one said no.
    pub(super) findings: Vec<ScanFindingBody>,
}

/// One thing that a scan found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ScanFindingBody {
    /// In which text of the document.
    pub(super) field: String,
    /// In which line of it.
    pub(super) line: usize,
    /// By which rule.
    pub(super) rule: String,
}

impl DocumentService {
    pub(super) fn new(url: &str, token: &str) -> anyhow::Result<DocumentService> {
        let client = egress::operator_client(&egress::Config::default())?;
        Ok(DocumentService { url: url.trim_end_matches('/').to_owned(), token: token.trim().to_owned(), client })
    }

    /// Every document under a prefix.
    pub(super) async fn list(&self, prefix: &Prefix) -> anyhow::Result<Result<Vec<DocumentSummary>, ServiceRefusal>> {
        let (mut all, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let after = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let query = format!("/v1/memory/documents?prefix={prefix}{after}", prefix = prefix.as_str());
            match self.send::<DocumentListPage>("GET", &query, None, None).await? {
                Ok(DocumentListPage { documents, next_cursor }) => {
                    all.extend(documents);
                    cursor = next_cursor;
                }
                Err(refusal) => return Ok(Err(refusal)),
            }
            if cursor.is_none() {
                return Ok(Ok(all));
            }
        }
    }

    pub(super) async fn get(&self, path: &DocPath) -> anyhow::Result<Result<DocumentView, ServiceRefusal>> {
        self.send("GET", &format!("/v1/memory/documents/{path}"), None, None).await
    }

    /// Writes a document over the version that is named, or where there is none.
    pub(super) async fn put(
        &self,
        path: &DocPath,
        body: Value,
        base: Option<&str>,
    ) -> anyhow::Result<Result<WriteResponse, ServiceRefusal>> {
        self.send("PUT", &format!("/v1/memory/documents/{path}"), Some(body), base).await
    }

    /// Deletes the version that is named.
    pub(super) async fn delete(&self, path: &DocPath, base: &str) -> anyhow::Result<Result<Value, ServiceRefusal>> {
        let query = format!("/v1/memory/documents/{path}?reason=not%20among%20the%20imported%20files");
        self.send("DELETE", &query, None, Some(base)).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        base: Option<&str>,
    ) -> anyhow::Result<Result<T, ServiceRefusal>> {
        let url = format!("{}{path}", self.url);
        let request = egress::FetchRequest { method, url: &url, bearer: &self.token, body };
        let asked = egress::ask_if(&self.client, request, base).await;
        let (status, bytes) = asked.context("the service did not answer")?;
        if (200..300).contains(&status) {
            return Ok(Ok(serde_json::from_slice(&bytes).context("the service's answer is none of a memory")?));
        }
        let told: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let error = &told["error"];
        // Half an import is told as what it is only if the service itself says no; anything else ends the command.
        if !error.is_object() || status >= 500 {
            bail!("the service answered with status {status}: {}", error["message"].as_str().unwrap_or("no reason"));
        }
        let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
        let findings = serde_json::from_value(error["details"]["findings"].clone()).unwrap_or_default();
        Ok(Err(ServiceRefusal { code: text("code"), message: text("message"), findings }))
    }
}
