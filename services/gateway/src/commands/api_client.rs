//! The service's API as commands use it: one place reads the token, sends, and shows what the service refuses.
//!
//! Answers hold text that others chose. [`AnswerFields`] returns each text so that it stays in its line.

use crate::cli::OutputFormat;
use crate::commands::{CommandOutcome, data_folder, one_line, print_json, say};
use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};

/// The address of a running service and the token of one caller.
pub(super) struct ApiClient {
    url: String,
    token: String,
    http: egress::HttpClient,
}

/// One request.
#[derive(Default)]
pub(super) struct ApiRequest<'a> {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub(super) method: &'a str,
    /// The path and the query.
    pub(super) path: &'a str,
    /// The JSON body.
    pub(super) body: Option<Value>,
    /// The ETag that the request replaces.
    pub(super) if_match: Option<&'a str>,
}

impl ApiRequest<'_> {
    pub(super) fn get(path: &str) -> ApiRequest<'_> {
        ApiRequest { method: "GET", path, ..ApiRequest::default() }
    }

    pub(super) fn post(path: &str, body: Value) -> ApiRequest<'_> {
        ApiRequest { method: "POST", path, body: Some(body), ..ApiRequest::default() }
    }
}

/// What the service refused, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApiRefusal {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) details: Value,
    /// The whole answer, for programs.
    body: Value,
}

impl ApiClient {
    /// The service at `url`, asked with the token in `token_file`. Without a file it is the token of this name in the
    /// folder of `dev` or `stdio`; without an address it is the one that stands beside the token.
    pub(super) fn open(url: Option<&str>, token_file: Option<&Path>, name: &str) -> anyhow::Result<ApiClient> {
        let (url, token_file) = service(url, token_file, name);
        let token = std::fs::read_to_string(&token_file).with_context(|| {
            let todo = "start `quartermaster dev` in this folder, or name the file with --token-file";
            format!("cannot read the token in {}: {todo}", token_file.display())
        })?;
        let http = egress::service_client(&url, &egress::Config::default())?;
        Ok(ApiClient { url, token: token.trim().to_owned(), http })
    }

    /// Sends a request. An error means that there is no answer of the service: it is away, or something else answered.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        request: ApiRequest<'_>,
    ) -> anyhow::Result<Result<T, ApiRefusal>> {
        let ApiRequest { method, path, body, if_match } = request;
        let url = format!("{}{path}", self.url);
        let request = egress::FetchRequest { method, url: &url, bearer: &self.token, body };
        let answer = egress::ask_if(&self.http, request, if_match).await;
        let (status, bytes) = answer.with_context(|| {
            format!("the service did not answer at {}: start it, or name its address with --url", self.url)
        })?;
        if (200..300).contains(&status) {
            return Ok(Ok(serde_json::from_slice(&bytes).context("the service's answer cannot be read")?));
        }
        match ApiRefusal::read(status, &bytes) {
            Some(refusal) => Ok(Err(refusal)),
            None => bail!("the service answered with status {status} and no error code"),
        }
    }
}

/// The address of a service without a slash at its end, and the file with the token for it; what is not named is that of
/// `dev` or `stdio` here.
pub(super) fn service(url: Option<&str>, token_file: Option<&Path>, name: &str) -> (String, PathBuf) {
    let token_file = token_file.map_or_else(|| data_folder::here(name).join(name), Path::to_owned);
    let url = url.map_or_else(|| data_folder::service_beside(&token_file), str::to_owned);
    (url.trim_end_matches('/').to_owned(), token_file)
}

impl ApiRefusal {
    fn read(status: u16, bytes: &[u8]) -> Option<ApiRefusal> {
        let body: Value = serde_json::from_slice(bytes).ok()?;
        let error = &body["error"];
        let text = |key: &str| error[key].as_str().map(str::to_owned);
        let (code, message, hint) = (text("code")?, text("message").unwrap_or_default(), text("hint"));
        Some(ApiRefusal { status, code, message, hint, details: error["details"].clone(), body })
    }

    /// Prints the refusal, and for programs the service's answer as well. The outcome of the command is negative.
    pub(super) fn finish(&self, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
        if output == OutputFormat::Json {
            print_json(&self.body)?;
        }
        say(&format!("{self}\n"));
        Ok(CommandOutcome::Negative)
    }
}

/// `CODE: MESSAGE`, and the hint in a line of its own.
impl fmt::Display for ApiRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", one_line(&self.code), one_line(&self.message))?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  {}", one_line(hint)))
    }
}

/// An answer, or a part of one, to be shown as text.
#[derive(Clone, Copy)]
pub(super) struct AnswerFields<'a>(pub(super) &'a Value);

impl<'a> AnswerFields<'a> {
    /// A text for a line; `-` if there is none.
    pub(super) fn text(self, key: &str) -> String {
        self.text_or(key, "-")
    }

    pub(super) fn text_or(self, key: &str, default: &str) -> String {
        one_line(self.0[key].as_str().unwrap_or(default))
    }

    /// The lines of a longer text.
    pub(super) fn lines(self, key: &str) -> Vec<String> {
        self.0[key].as_str().unwrap_or_default().lines().map(one_line).collect()
    }

    /// The texts of a list, each for a line.
    pub(super) fn texts(self, key: &str) -> impl Iterator<Item = String> + 'a {
        self.list(key).filter_map(|item| item.0.as_str().map(one_line))
    }

    /// The parts of a list.
    pub(super) fn list(self, key: &str) -> impl Iterator<Item = AnswerFields<'a>> + 'a {
        self.0[key].as_array().into_iter().flatten().map(AnswerFields)
    }

    /// A part that may be absent.
    pub(super) fn part(self, key: &str) -> Option<AnswerFields<'a>> {
        self.0.get(key).filter(|part| !part.is_null()).map(AnswerFields)
    }
}

/// A text that stands in a path or a query as it is. Anything else could name another address than the one meant.
pub(super) fn plain_segment<'t>(what: &str, text: &'t str) -> anyhow::Result<&'t str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    anyhow::ensure!(!text.is_empty() && text.bytes().all(plain), "{what} has only letters, digits, `-` and `_`");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(body: &Value) -> Option<ApiRefusal> {
        ApiRefusal::read(403, body.to_string().as_bytes())
    }

    #[test]
    fn a_refusal_has_code_message_hint_and_details() {
        let body = json!({ "error": { "code": "not_found", "message": "no such run", "hint": "list them",
            "details": { "id": "run_1" } } });
        let read = refusal(&body).unwrap();
        assert_eq!(read.to_string(), "not_found: no such run\n  list them");
        assert_eq!((read.status, &read.details["id"]), (403, &json!("run_1")));
        let short = refusal(&json!({ "error": { "code": "not_found", "message": "no such run" } })).unwrap();
        assert_eq!(short.to_string(), "not_found: no such run");
    }

    #[test]
    fn an_answer_of_something_else_is_no_refusal() {
        assert_eq!(refusal(&json!({ "message": "bad gateway" })), None);
        assert_eq!(ApiRefusal::read(502, b"<html>bad gateway</html>"), None);
    }

    #[test]
    fn an_id_cannot_lead_to_another_address() {
        assert_eq!(plain_segment("a run's id", "run_5v0b").unwrap(), "run_5v0b");
        for bad in ["", "..", "a/b", "a?b", "a%2fb", "a b", "ä"] {
            assert!(plain_segment("a run's id", bad).is_err(), "{bad}");
        }
    }
}
