//! What a call came back with, in whichever form it travelled.

use crate::http::Answer;
use serde_json::Value;

/// The answer to one JSON-RPC request.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The HTTP answer.
    pub answer: Answer,
    /// The message in it.
    pub message: Value,
}

impl Outcome {
    /// Reads an answer.
    pub fn of(answer: Answer) -> Outcome {
        let message = if answer.body.is_empty() { Value::Null } else { answer.json() };
        Outcome { answer, message }
    }

    /// The structured content of a call that worked.
    pub fn ok(&self) -> &Value {
        let result = &self.message["result"];
        assert!(self.answer.status == 200 && result["isError"].is_null(), "the call should work: {self:?}");
        &result["structuredContent"]
    }

    /// The result, whatever it says.
    pub fn result(&self) -> &Value {
        let result = &self.message["result"];
        assert!(result.is_object(), "there should be a result: {self:?}");
        result
    }

    /// The error object of a call that was refused in a way the model can act on.
    pub fn refusal(&self) -> &Value {
        let result = &self.message["result"];
        assert!(self.answer.status == 200 && result["isError"] == true, "a tool error should come: {self:?}");
        assert!(result["structuredContent"].is_null(), "an error carries no structured content: {self:?}");
        let told = &result["_meta"]["quartermaster/error"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let shown: Value = serde_json::from_str(text).unwrap_or_default();
        assert_eq!(*told, shown, "text and _meta should say the same");
        told
    }

    /// The JSON-RPC error object.
    pub fn error(&self) -> &Value {
        let error = &self.message["error"];
        assert!(error.is_object(), "there should be an error: {self:?}");
        error
    }

    /// The stable name of what happened: `ok`, or the code in whichever form it came.
    pub fn code(&self) -> &str {
        let told =
            [&self.message["result"]["_meta"]["quartermaster/error"]["code"], &self.message["error"]["data"]["code"]];
        told.into_iter().find_map(Value::as_str).unwrap_or(if self.message["result"].is_object() { "ok" } else { "?" })
    }
}
