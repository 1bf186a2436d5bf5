//! `switch`: lists, sets and lifts kill switches, over the HTTP API.

use crate::cli::{ADMIN_TOKEN, OutputFormat, SwitchAction, SwitchCommand};
use crate::commands::api_client::{AnswerFields, ApiClient, ApiRequest, plain_segment};
use crate::commands::{CommandOutcome, print, print_json, runtime, say};
use serde_json::{Map, Value};

const SWITCHES: &str = "/v1/switches";

pub(super) fn run(args: &SwitchCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let client = ApiClient::open(args.url.as_deref(), args.token_file.as_deref(), ADMIN_TOKEN)?;
    runtime()?.block_on(async {
        match &args.action {
            None | Some(SwitchAction::List) => list(&client, output).await,
            Some(set @ SwitchAction::Set { .. }) => {
                change(&client, ApiRequest::post(SWITCHES, body(set)), "set", output).await
            }
            Some(SwitchAction::Clear { id }) => {
                let path = format!("{SWITCHES}/{}", plain_segment("a switch's id", id)?);
                let request = ApiRequest { method: "DELETE", path: &path, ..ApiRequest::default() };
                change(&client, request, "lifted", output).await
            }
        }
    })
}

/// The body of a request that sets a switch; what was not said is left out.
fn body(action: &SwitchAction) -> Value {
    let SwitchAction::Set { on, mode, reason, lasts, until, tenant, all_tenants } = action else { return Value::Null };
    let tenant = if *all_tenants { Some("*".to_owned()) } else { tenant.clone() };
    let fields = [
        ("on", Some(on.clone())),
        ("mode", Some(mode.clone())),
        ("reason", Some(reason.clone())),
        ("for", lasts.clone()),
        ("until", until.clone()),
        ("tenant", tenant),
    ];
    let told = fields.into_iter().filter_map(|(key, text)| Some((key.to_owned(), Value::String(text?))));
    Value::Object(told.collect::<Map<String, Value>>())
}

async fn list(client: &ApiClient, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let answer: Value = match client.send(ApiRequest::get(SWITCHES)).await? {
        Ok(answer) => answer,
        Err(refusal) => return refusal.finish(output),
    };
    if output == OutputFormat::Json {
        print_json(&answer)?;
        return Ok(CommandOutcome::Done);
    }
    let switches: Vec<AnswerFields<'_>> = AnswerFields(&answer).list("switches").collect();
    if switches.is_empty() {
        say("no kill switches are set\n");
    }
    if answer["authentic"] == false {
        say("the record of the kill switches is not authentic: only reads are let through\n");
    }
    switches.into_iter().for_each(|switch| print(&as_text(switch)));
    Ok(CommandOutcome::Done)
}

/// Sends a request that is answered with one switch, and prints the switch.
async fn change(
    client: &ApiClient,
    request: ApiRequest<'_>,
    what: &str,
    output: OutputFormat,
) -> anyhow::Result<CommandOutcome> {
    let switch: Value = match client.send(request).await? {
        Ok(switch) => switch,
        Err(refusal) => return refusal.finish(output),
    };
    match output {
        OutputFormat::Json => print_json(&switch)?,
        OutputFormat::Text => print(&format!("{what}:\n{}", as_text(AnswerFields(&switch)))),
    }
    AnswerFields(&switch).texts("warnings").for_each(|warning| say(&format!("WARNING {warning}\n")));
    Ok(CommandOutcome::Done)
}

fn as_text(switch: AnswerFields<'_>) -> String {
    format!(
        "{}  {:<9} {} in {}\n    {}\n    set by {} ({}) at {}, until {}\n",
        switch.text("id"),
        switch.text("mode"),
        switch.text("on"),
        switch.text("tenant"),
        switch.text("reason"),
        switch.text_or("set_by", "somebody"),
        switch.text("by"),
        switch.text("set_at"),
        switch.text_or("until", "it is lifted"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_said_is_not_sent() {
        let action = |tenant: Option<&str>, all_tenants| SwitchAction::Set {
            on: "tenant".into(),
            mode: "stop".into(),
            reason: "because".into(),
            lasts: None,
            until: None,
            tenant: tenant.map(str::to_owned),
            all_tenants,
        };
        let least = json!({ "on": "tenant", "mode": "stop", "reason": "because" });
        assert_eq!(body(&action(None, false)), least);
        assert_eq!(body(&action(Some("acme"), false))["tenant"], "acme");
        assert_eq!(body(&action(None, true))["tenant"], "*");
    }

    #[test]
    fn a_reason_cannot_write_lines_of_its_own() {
        let hostile = "x\n  lifted\u{1b}[2K\u{202e}";
        let text = as_text(AnswerFields(&json!({ "id": "sw_1", "reason": hostile, "set_by": hostile })));
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.chars().all(|c| c == '\n' || !domain::text::is_tricky(c)), "{text}");
    }
}
