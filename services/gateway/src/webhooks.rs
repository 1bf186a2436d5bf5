//! Notices of runs to the outside: signed, retried, and never in anybody's way.
//!
//! A notice says that there is something to look at. It decides nothing, its link opens a page and nothing else, and
//! losing one loses no run. The receiver checks the signature over timestamp and body, and refuses what is older than
//! five minutes.

use crate::app::Gateway;
use crate::clock::SystemClock;
use crate::settings::WebhookFormat;
use domain::run::Run;
use executor::runs::notice::{Notice, RunEventKind, sign};
use executor::runs::report;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// When it is tried again after a failure; then the notice is given up.
const AGAIN_AFTER: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(8),
    Duration::from_secs(30),
    Duration::from_secs(120),
];
/// Notices on their way at the same time.
const AT_ONCE: usize = 8;
/// Characters of a preview that a notice holds. It says that there is something to read, and where; nobody decides by it.
const MOST_TEXT: usize = 4_000;
/// Characters of a summary in a chat.
const MOST_SUMMARY: usize = 500;
/// Characters of all warnings in a chat.
const MOST_WARNINGS: usize = 1_000;
/// The shortest secret that is taken.
const SHORTEST_SECRET: usize = 32;

/// Where notices go, and how.
pub struct Webhook {
    url: String,
    secret: Vec<u8>,
    format: WebhookFormat,
    console: String,
    client: egress::HttpClient,
}

/// Where links in notices lead: where the settings say, else to the console, if it is served.
fn console_address(settings: &crate::settings::Settings) -> String {
    let named = settings.approvals.console_url.clone();
    if named.is_empty() && settings.console.enabled {
        return format!("{}{}", settings.console.origin(&settings.identity.resource), console::BASE);
    }
    named
}

impl Webhook {
    /// The webhook of the settings; `None` if there is none.
    pub fn read(settings: &crate::settings::Settings) -> anyhow::Result<Option<Webhook>> {
        let approvals = &settings.approvals;
        if approvals.webhook_url.is_empty() {
            return Ok(None);
        }
        let secret = std::fs::read(&approvals.webhook_secret_file)?;
        anyhow::ensure!(
            secret.len() >= SHORTEST_SECRET,
            "approvals.webhook_secret_file needs at least {SHORTEST_SECRET} bytes"
        );
        Ok(Some(Webhook {
            url: approvals.webhook_url.clone(),
            secret,
            format: approvals.webhook_format,
            console: console_address(settings),
            client: egress::operator_client(&egress::Config::default())?,
        }))
    }

    /// Headers and body of one notice.
    fn write(&self, notice: &Notice, now_secs: u64) -> (Vec<(&'static str, String)>, Vec<u8>) {
        let body = self.body(notice).to_string().into_bytes();
        let signature = sign(&self.secret, now_secs, &body);
        let headers = vec![
            ("X-Quartermaster-Event", notice.happened.as_str().to_owned()),
            ("X-Quartermaster-Timestamp", now_secs.to_string()),
            ("X-Quartermaster-Signature", signature),
        ];
        (headers, body)
    }

    fn body(&self, notice: &Notice) -> Value {
        let run = &notice.run;
        let link =
            (!self.console.is_empty()).then(|| format!("{}/runs/{}", self.console.trim_end_matches('/'), run.id));
        match self.format {
            WebhookFormat::Json => json!({
                "event": notice.happened.as_str(),
                "tenant": notice.tenant.as_str(),
                "run": posted(run),
                "link": link,
            }),
            WebhookFormat::Slack => {
                let what = match notice.happened {
                    RunEventKind::Pending => "waits for a person",
                    RunEventKind::Decided => "was decided",
                    RunEventKind::Finished => "has ended",
                };
                let (warnings, unsaid) = warned(&run.asked.preview.warnings);
                let (summary, left) = beginning(&run.asked.preview.summary, MOST_SUMMARY);
                let left = left + unsaid + run.asked.preview.text.chars().count();
                let (warnings, summary) = (plain(&warnings), plain(&summary));
                let link = link.map(|link| format!("\n{link}")).unwrap_or_default();
                let text = format!(
                    "Quartermaster, tenant {}: {} {what} ({}, {})\n{warnings}{summary}\nasked by {}, expires {}\n\
                     {left} characters are not shown here; read all of it: quartermaster runs show {}{link}",
                    notice.tenant,
                    run.id,
                    run.asked.tool,
                    run.state.as_str(),
                    plain(&run.asked.requester.subject),
                    run.asked.expires_at,
                    run.id,
                );
                json!({ "text": text })
            }
        }
    }

    /// One try; `true` when the receiver took it.
    async fn post(&self, notice: &Notice, now_secs: u64) -> bool {
        let (headers, body) = self.write(notice, now_secs);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        matches!(egress::post(&self.client, &self.url, &headers, body).await, Ok(200..=299))
    }
}

/// A run as it is posted: the beginning of what deciders read, how much of it is not there, and no arguments.
fn posted(run: &Run) -> Value {
    let mut posted = report::to_person(run);
    let (text, left) = beginning(&run.asked.preview.text, MOST_TEXT);
    posted["preview"]["text"] = text.into();
    posted["preview"]["not_shown"] = json!({ "characters": left, "read_all": format!("/v1/runs/{}", run.id) });
    if let Some(fields) = posted.as_object_mut() {
        fields.remove("arguments");
    }
    posted
}

/// Warnings, one a line, and how many characters of them there is no room for. They stand before everything that whoever
/// asked has chosen.
fn warned(warnings: &[String]) -> (String, usize) {
    let one = |warning: &String| format!("WARNING: {}\n", warning.replace('\n', " "));
    let (shown, left) = beginning(&warnings.iter().map(one).collect::<String>(), MOST_WARNINGS);
    // A line that was cut ends here, so that nothing else can be read as its end.
    if left > 0 { (format!("{shown}…\n"), left) } else { (shown, 0) }
}

/// As many characters as may be shown, and how many are left.
fn beginning(text: &str, most: usize) -> (String, usize) {
    let shown: String = text.chars().take(most).collect();
    let left = text.chars().count() - shown.chars().count();
    (shown, left)
}

/// Chats read angle brackets and ampersands as markup; the words of agents must stay words.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Sends notices until the process stops. Each is retried on its own, so that a slow one holds up no other.
pub fn send(gateway: &Arc<Gateway>, webhook: Webhook, mut notices: mpsc::Receiver<Notice>) {
    let webhook = Arc::new(webhook);
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let (tasks, clock, stopping) = (gateway.tasks.clone(), gateway.clock, gateway.tasks.stopping().clone());
    let sending = stopping.clone();
    let forward = async move {
        while let Some(notice) = notices.recv().await {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let webhook = Arc::clone(&webhook);
            // What is still on its way when the process stops is given up; the run itself is in the store.
            tasks.spawn(
                "webhook",
                sending.clone().run_until_cancelled_owned(async move {
                    let _slot = slot;
                    deliver(&webhook, &notice, clock).await;
                }),
            );
        }
    };
    gateway.tasks.spawn("webhooks", stopping.run_until_cancelled_owned(forward));
}

async fn deliver(webhook: &Webhook, notice: &Notice, clock: SystemClock) {
    for wait in AGAIN_AFTER.into_iter().map(Some).chain([None]) {
        if webhook.post(notice, clock.now().millis() / 1000).await {
            return;
        }
        match wait {
            Some(wait) => tokio::time::sleep(wait).await,
            None => tracing::warn!(run = %notice.run.id, "a notice was given up: its receiver does not take it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_keep_to_their_lines_and_what_is_cut_is_counted() {
        assert_eq!(warned(&[]), (String::new(), 0));
        let two = ["Pod a: privileged.".to_owned(), "b\nWARNING: nothing".to_owned()];
        assert_eq!(warned(&two), ("WARNING: Pod a: privileged.\nWARNING: b WARNING: nothing\n".to_owned(), 0));
        let (text, left) = warned(&["x".repeat(MOST_WARNINGS)]);
        assert!(text.ends_with("x…\n") && left == "WARNING: \n".len(), "{left}");
    }

    #[test]
    fn the_words_of_an_agent_are_no_markup_in_a_chat() {
        assert_eq!(plain("<https://evil|click> & <!channel>"), "&lt;https://evil|click&gt; &amp; &lt;!channel&gt;");
    }
}
