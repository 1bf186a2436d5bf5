//! `/v1/usage`: what a tenant used, for the people who read its audit log, which names the same callers.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::reply;
use crate::openapi::shapes;
use crate::usage;
use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use domain::Failure;
use domain::usage::{UsageCount, UsageGroup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The query.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageQuery {
    /// The first day; the last one if absent.
    from: Option<String>,
    /// The last day; today if absent.
    to: Option<String>,
    #[schemars(with = "Option<shapes::UsageGroup>")]
    by: Option<UsageGroup>,
}

/// What was used, as it travels.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsageReport {
    from: String,
    to: String,
    #[schemars(with = "shapes::UsageGroup")]
    by: UsageGroup,
    rows: Vec<UsageRow>,
    total: UsageFigures,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsageRow {
    name: String,
    #[serde(flatten)]
    figures: UsageFigures,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UsageFigures {
    calls: u64,
    errors: u64,
    millis: u64,
    result_tokens: u64,
    lists: u64,
    schema_tokens: u64,
    saved_tokens: i64,
}

impl From<&UsageCount> for UsageFigures {
    fn from(count: &UsageCount) -> UsageFigures {
        let UsageCount { calls, errors, millis, result_tokens, lists, schema_tokens, .. } = *count;
        let saved_tokens = count.saved_tokens();
        UsageFigures { calls, errors, millis, result_tokens, lists, schema_tokens, saved_tokens }
    }
}

/// `GET /v1/usage?from=&to=&by=`.
pub async fn show(authed: AuthedRequest, query: Query<UsageQuery>, gateway: Data<Gateway>) -> HttpResponse {
    reply::operation(&gateway, &authed, "show_usage", Box::pin(report(&gateway, &authed, &query))).await
}

async fn report(gateway: &Gateway, authed: &AuthedRequest, query: &UsageQuery) -> Result<UsageReport, Failure> {
    let used = usage::days(gateway, authed, query.from.as_deref(), query.to.as_deref()).await?;
    let by = query.by.unwrap_or(UsageGroup::Tool);
    let all = used.together();
    let rows = usage::by_cost(&all, by).into_iter();
    let rows = rows.map(|(name, count)| UsageRow { name: name.to_owned(), figures: count.into() });
    let (from, to) = (used.from.as_str().to_owned(), used.to.as_str().to_owned());
    Ok(UsageReport { from, to, by, rows: rows.collect(), total: (&all.total).into() })
}
