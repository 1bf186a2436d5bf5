//! A person's desk: the service's API with one token, for commands that ask and show what was answered.

use crate::cli::OutputFormat;
use crate::commands::{CommandOutcome, print, say};
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::Path;

/// Where the service is, and who asks.
pub(super) struct ApiClient {
    url: String,
    token: String,
}

/// What the service said.
pub(super) struct ApiAnswer {
    status: u16,
    pub(super) body: Value,
}

impl ApiClient {
    pub(super) fn open(url: &str, token_file: &Path) -> anyhow::Result<ApiClient> {
        let token = std::fs::read_to_string(token_file)
            .with_context(|| format!("cannot read the token in {}", token_file.display()))?;
        Ok(ApiClient { url: url.trim_end_matches('/').to_owned(), token: token.trim().to_owned() })
    }

    pub(super) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> anyhow::Result<ApiAnswer> {
        let client = egress::operator_client(&egress::Config::default())?;
        let request = egress::FetchRequest { method, url: &format!("{}{path}", self.url), bearer: &self.token, body };
        let (status, bytes) = egress::ask(&client, request).await.context("the service did not answer")?;
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if status >= 500 && body == Value::Null {
            bail!("the service answered with status {status}");
        }
        Ok(ApiAnswer { status, body })
    }
}

impl ApiAnswer {
    /// Whether it is what was asked for.
    pub(super) fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Prints it as it is; a refusal is an answer too, and makes the exit code say no.
    pub(super) fn finish(&self, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
        match output {
            OutputFormat::Json => print(&format!("{}\n", serde_json::to_string_pretty(&self.body)?)),
            OutputFormat::Text if self.ok() => {}
            OutputFormat::Text => {
                let error = &self.body["error"];
                let text = |key: &str| error[key].as_str().unwrap_or_default();
                say(&format!("{}: {}\n", text("code"), text("message")));
                if !text("hint").is_empty() {
                    say(&format!("  {}\n", text("hint")));
                }
            }
        }
        Ok(if self.ok() { CommandOutcome::Well } else { CommandOutcome::WithNo })
    }
}
