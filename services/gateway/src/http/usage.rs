//! `/v1/usage`: what a tenant used, for the people who read its audit log, which names the same callers.

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, audits};
use crate::http::reply;
use crate::openapi::shapes;
use actix_web::HttpResponse;
use actix_web::web::{Data, Query};
use domain::usage::{UsageCount, UsageDay, UsageGroup};
use domain::{Code, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use store::UsageDate;

/// The most days in one answer.
const MOST_DAYS: usize = 92;

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
    let report = async {
        audits(&authed)?;
        report(&gateway, &authed, &query).await
    };
    reply::operation(&gateway, &authed, "show_usage", Box::pin(report)).await
}

async fn report(gateway: &Gateway, authed: &AuthedRequest, query: &UsageQuery) -> Result<UsageReport, Failure> {
    let invalid = |message: &str| Failure::new(Code::InvalidRequest, message);
    let away = |error: store::StoreError| {
        Failure::new(error.code(), "the usage cannot be read at the moment").retry_after_ms(1_000)
    };
    let read = |text: &str| UsageDate::parse(text).ok_or_else(|| invalid("a day is written as 2026-11-18"));
    let to = match &query.to {
        Some(text) => read(text)?,
        None => UsageDate::of(gateway.store.now().await.map_err(away)?),
    };
    let from = query.from.as_deref().map_or_else(|| Ok(to.clone()), read)?;
    let days: Vec<UsageDate> = std::iter::successors(Some(from.clone()), |day| Some(day.next()))
        .take(MOST_DAYS + 1)
        .take_while(|day| *day <= to)
        .collect();
    if days.is_empty() || days.len() > MOST_DAYS {
        return Err(invalid("from is not after to, and at most 92 days are asked for at once"));
    }
    // What this replica has noted and not written yet is in the answer too, once it is written.
    gateway.usage.write(gateway).await;
    let found = gateway.store.of(&authed.caller.tenant).used().days(&days).await.map_err(away)?;
    let mut all = UsageDay::default();
    found.iter().for_each(|day| all.merge(day));
    let by = query.by.unwrap_or(UsageGroup::Tool);
    let mut rows: Vec<(&String, &UsageCount)> = all.rows(by).iter().collect();
    rows.sort_by_key(|(name, count)| {
        (Reverse(count.result_tokens.saturating_add(count.schema_tokens)), (*name).clone())
    });
    let rows = rows.into_iter().map(|(name, count)| UsageRow { name: name.clone(), figures: count.into() });
    let (from, to) = (from.as_str().to_owned(), to.as_str().to_owned());
    Ok(UsageReport { from, to, by, rows: rows.collect(), total: (&all.total).into() })
}
