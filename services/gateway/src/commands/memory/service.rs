//! The documents of a tenant, read and written over the service's API.

use crate::commands::api_client::{ApiClient, ApiRefusal, ApiRequest};
use crate::http::memory::{DocumentListPage, DocumentSummary, DocumentView, WriteResponse};
use anyhow::bail;
use memory::documents::{DocPath, Prefix};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The documents of a tenant, over the API.
pub(super) struct DocumentService {
    client: ApiClient,
}

/// One finding of the scan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ScanFindingBody {
    /// The field of the document.
    pub(super) field: String,
    /// The line in that field.
    pub(super) line: usize,
    /// The rule that matched.
    pub(super) rule: String,
}

/// What a scan found, where the scan is why the service refused.
pub(super) fn findings(refusal: &ApiRefusal) -> Vec<ScanFindingBody> {
    serde_json::from_value(refusal.details["findings"].clone()).unwrap_or_default()
}

impl DocumentService {
    pub(super) fn new(client: ApiClient) -> DocumentService {
        DocumentService { client }
    }

    /// Every document under a prefix.
    pub(super) async fn list(&self, prefix: &Prefix) -> anyhow::Result<Result<Vec<DocumentSummary>, ApiRefusal>> {
        let (mut all, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let after = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let path = format!("/v1/memory/documents?prefix={prefix}{after}", prefix = prefix.as_str());
            match self.client.send(ApiRequest::get(&path)).await? {
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

    pub(super) async fn get(&self, path: &DocPath) -> anyhow::Result<Result<DocumentView, ApiRefusal>> {
        self.send(ApiRequest::get(&format!("/v1/memory/documents/{path}"))).await
    }

    /// Writes a document over the version with this digest, or a new one.
    pub(super) async fn put(
        &self,
        path: &DocPath,
        body: Value,
        if_match: Option<&str>,
    ) -> anyhow::Result<Result<WriteResponse, ApiRefusal>> {
        let path = format!("/v1/memory/documents/{path}");
        self.send(ApiRequest { method: "PUT", path: &path, body: Some(body), if_match }).await
    }

    /// Deletes the version with this digest.
    pub(super) async fn delete(&self, path: &DocPath, if_match: &str) -> anyhow::Result<Result<Value, ApiRefusal>> {
        let path = format!("/v1/memory/documents/{path}?reason=not%20among%20the%20imported%20files");
        self.send(ApiRequest { method: "DELETE", path: &path, body: None, if_match: Some(if_match) }).await
    }

    /// Sends a request about one document of many. A service that cannot work at all ends the command: every other
    /// document would fail in the same way.
    async fn send<T: DeserializeOwned>(&self, request: ApiRequest<'_>) -> anyhow::Result<Result<T, ApiRefusal>> {
        match self.client.send(request).await? {
            Err(refusal) if refusal.status >= 500 => bail!("{refusal}"),
            answer => Ok(answer),
        }
    }
}
