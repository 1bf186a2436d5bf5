//! `/v1/audit/checkpoints`: the tenant's signed checkpoints, oldest first, byte for byte as they were signed.

use crate::app::Gateway;
use crate::http::audit::{LONGEST_PAGE, PAGE};
use crate::http::caller::{AuthedRequest, audits};
use crate::http::reply;
use crate::openapi::shapes::AnyObject;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Query};
use archive::Checkpoint;
use domain::{Code, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{StoreError, StreamId, StreamName};

/// The query of a page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckpointQuery {
    after: Option<String>,
    limit: Option<usize>,
}

/// One page of checkpoints, as it travels.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckpointPage {
    /// The tenant.
    pub(crate) tenant: String,
    /// The newest one that was made before the page was read: the last page must reach it.
    #[schemars(with = "Option<AnyObject>")]
    pub(crate) newest: Option<Checkpoint>,
    /// The checkpoints.
    #[schemars(with = "Vec<AnyObject>")]
    pub(crate) checkpoints: Vec<Box<RawValue>>,
    /// What to ask for next, as `after`; none on the last page.
    pub(crate) next_cursor: Option<String>,
}

/// `GET /v1/audit/checkpoints?after=&limit=`.
pub(crate) async fn list(authed: AuthedRequest, query: Query<CheckpointQuery>, gateway: Data<Gateway>) -> HttpResponse {
    match page(&authed, &query, &gateway).await {
        Ok(text) => reply::json(StatusCode::OK, &authed.trace_id, text),
        Err(failure) => reply::failure(&gateway, &failure, &authed.trace_id),
    }
}

async fn page(authed: &AuthedRequest, query: &CheckpointQuery, gateway: &Gateway) -> Result<String, Failure> {
    audits(authed)?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Failure::new(Code::InvalidRequest, format!("limit is a number from 1 to {LONGEST_PAGE}")));
    }
    let unknown = || Failure::new(Code::BadCursor, "after is no next_cursor of an earlier page");
    let after = query.after.as_deref().map(|text| StreamId::parse(text).ok_or_else(unknown)).transpose()?;
    let tenant = &authed.caller.tenant;
    let shelf = gateway.store.of(tenant);
    let unread = |error: StoreError| {
        Failure::new(error.code(), "the checkpoints cannot be read at the moment").retry_after_ms(1_000)
    };
    let newest = archive::newest_checkpoint(&shelf).await.map_err(unread)?;
    let found = shelf.read(&StreamName::checkpoints(), after, limit).await.map_err(unread)?;
    let next_cursor = found.last().filter(|_| found.len() == limit).map(|(id, _)| id.to_string());
    // What is not JSON was not written by us, and whoever verifies has to see it.
    let shown = |(_, body): (StreamId, Vec<u8>)| {
        let text = String::from_utf8_lossy(&body).into_owned();
        RawValue::from_string(text.clone()).or_else(|_| serde_json::value::to_raw_value(&text))
    };
    let checkpoints = found.into_iter().map(shown).collect::<Result<_, _>>();
    let body = checkpoints.and_then(|checkpoints| {
        serde_json::to_string(&CheckpointPage { tenant: tenant.to_string(), newest, checkpoints, next_cursor })
    });
    body.map_err(|_| Failure::new(Code::Internal, "the checkpoints cannot be shown"))
}
