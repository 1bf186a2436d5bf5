//! `audit search` and `audit tail`: entries that fit, one a line; for programs as JSON lines.

use crate::cli::{ADMIN_TOKEN, AuditCommand, AuditFilterArgs, OutputFormat};
use crate::clock::SystemClock;
use crate::commands::api_client::{AnswerFields, ApiClient, ApiRefusal, ApiRequest};
use crate::commands::{CommandOutcome, one_line, print, print_exact, runtime, say};
use crate::http::audit::{AuditItem, AuditPage, LONGEST_PAGE};
use anyhow::{Context, bail};
use domain::Moment;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as SpanError, StrDeserializer};
use serde_json::Value;
use std::time::Duration;

/// How often `tail` asks for more.
const EVERY: Duration = Duration::from_secs(1);
/// How far back `tail` begins, unless it is told.
const RECENT: &str = "1m";

pub(super) fn search(
    args: &AuditCommand,
    filter: &AuditFilterArgs,
    limit: usize,
    output: OutputFormat,
) -> anyhow::Result<CommandOutcome> {
    let (client, query) =
        (ApiClient::open(args.url.as_deref(), args.token_file.as_deref(), ADMIN_TOKEN)?, query(filter)?);
    runtime()?.block_on(async {
        let (mut after, mut left) = (None, limit);
        loop {
            let page = match ask(&client, &query, after.as_deref()).await? {
                Ok(page) => page,
                Err(refusal) => return refusal.finish(output),
            };
            for item in page.entries.iter().take(left) {
                show(item, output)?;
            }
            let found = page.entries.len();
            if found > left || (found == left && page.next_cursor.is_some()) {
                say(&format!("only the first {limit} are shown; narrow the search, or raise --limit\n"));
                return Ok(CommandOutcome::Done);
            }
            left -= found;
            after = page.next_cursor;
            if after.is_none() {
                return Ok(CommandOutcome::Done);
            }
        }
    })
}

/// Shows what fits, and goes on until somebody stops it.
pub(super) fn tail(
    args: &AuditCommand,
    filter: &AuditFilterArgs,
    output: OutputFormat,
) -> anyhow::Result<CommandOutcome> {
    let since = filter.since.clone().unwrap_or_else(|| RECENT.to_owned());
    let query = query(&AuditFilterArgs { since: Some(since), ..filter.clone() })?;
    let client = ApiClient::open(args.url.as_deref(), args.token_file.as_deref(), ADMIN_TOKEN)?;
    runtime()?.block_on(async {
        let mut after = None;
        loop {
            let page = match ask(&client, &query, after.as_deref()).await? {
                Ok(page) => page,
                Err(refusal) => return refusal.finish(output),
            };
            for item in &page.entries {
                show(item, output)?;
            }
            let more = page.next_cursor.is_some();
            // Where nothing was written yet, the same page is asked for again.
            after = page.next_cursor.or(page.end_cursor).or(after);
            if !more {
                tokio::time::sleep(EVERY).await;
            }
        }
    })
}

async fn ask(client: &ApiClient, query: &str, after: Option<&str>) -> anyhow::Result<Result<AuditPage, ApiRefusal>> {
    let after = after.map(|after| format!("&after={after}")).unwrap_or_default();
    client.send(ApiRequest::get(&format!("/v1/audit?limit={LONGEST_PAGE}{query}{after}"))).await
}

/// The filter as a part of a query.
fn query(filter: &AuditFilterArgs) -> anyhow::Result<String> {
    let AuditFilterArgs { since, until, tool, target, principal, run, session, call, code, text } = filter;
    let (since, until) = (moment(since.as_deref())?, moment(until.as_deref())?);
    let parts = [
        ("since", &since),
        ("until", &until),
        ("tool", tool),
        ("target", target),
        ("principal", principal),
        ("run", run),
        ("session", session),
        ("call", call),
        ("code", code),
        ("text", text),
    ];
    let given = parts.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", encoded(value.as_ref()?))));
    Ok(given.collect())
}

/// A time, or how long ago it was.
fn moment(text: Option<&str>) -> anyhow::Result<Option<String>> {
    let Some(text) = text else { return Ok(None) };
    if let Some(at) = Moment::parse(text) {
        return Ok(Some(at.exact()));
    }
    let deserializer: StrDeserializer<'_, SpanError> = text.into_deserializer();
    let Ok(ago) = store::span(deserializer) else {
        bail!("`{text}` is neither a time such as 2026-01-31T12:00:00Z nor a span such as 2h")
    };
    let now = SystemClock.now().millis();
    let ago = u64::try_from(ago.as_millis()).context("the span is too long")?;
    Ok(Some(Moment::from_millis(now.saturating_sub(ago)).exact()))
}

/// Everything but letters, digits and `-_.` by its number.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn show(item: &AuditItem, output: OutputFormat) -> anyhow::Result<()> {
    match output {
        OutputFormat::Json => print_exact(&format!("{}\n", serde_json::to_string(item)?)),
        OutputFormat::Text => print(&format!("{}\n", line(item)?)),
    }
    Ok(())
}

/// When, what happened, with which tool, on what, by whom, how it ended, and in which call.
fn line(item: &AuditItem) -> anyhow::Result<String> {
    let entry: Value =
        serde_json::from_str(item.entry.get()).context("the service returned an entry that is no JSON")?;
    let fields = AnswerFields(&entry);
    let of = |part: &str, key: &str| fields.part(part).map_or_else(|| "-".to_owned(), |part| part.text(key));
    let id = |name: &str| fields.text_or(name, "");
    let run = fields.part("run").map_or_else(String::new, |run| format!("{} {}", run.text("id"), run.text("to")));
    let line = format!(
        "{}  {:10}  {:24}  {:24}  {:16}  {:10}  {} {run}",
        one_line(&item.at),
        fields.text("phase"),
        fields.text("tool"),
        fields.text("target"),
        of("actor", "sub"),
        of("outcome", "code"),
        id("call"),
    );
    Ok(line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_cannot_lead_to_another_query() {
        let filter = AuditFilterArgs {
            tool: Some("a&limit=1#?/é".to_owned()),
            since: Some("2026-01-31T12:00:00Z".to_owned()),
            ..AuditFilterArgs::default()
        };
        assert_eq!(query(&filter).unwrap(), "&since=2026-01-31T12%3A00%3A00.000Z&tool=a%26limit%3D1%23%3F%2F%C3%A9");
        assert_eq!(query(&AuditFilterArgs::default()).unwrap(), "");
    }

    #[test]
    fn a_time_may_be_told_by_how_long_ago_it_was() {
        let told = moment(Some("2h")).unwrap().unwrap();
        let ago = SystemClock.now().since(Moment::parse(&told).unwrap());
        assert!((7_200..7_260).contains(&ago.as_secs()), "{told}");
        for bad in ["", "yesterday", "2x", "-2h"] {
            assert!(moment(Some(bad)).is_err(), "{bad}");
        }
    }
}
