//! An event stream as a client reads it: frame by frame, until somebody ends it.

use crate::http::{Answer, Body};
use serde_json::Value;

/// An open stream. Dropping it closes the connection, as a client that leaves does.
pub struct Stream {
    /// Status and headers.
    pub head: Answer,
    body: Body,
    text: String,
}

impl Stream {
    /// A stream from an answer that must be one.
    pub fn of((head, body): (Answer, Body)) -> Stream {
        assert_eq!(head.status, 200, "a stream should open");
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        Stream { head, body, text: String::new() }
    }

    /// The next message; `None` when the stream has ended. Comments and `retry:` are passed over.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            let frame = self.frame().await?;
            let data: Vec<&str> = frame.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
            if !data.is_empty() {
                let text = data.join("\n");
                return Some(serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}")));
            }
        }
    }

    /// The next message, which must come.
    pub async fn message(&mut self) -> Value {
        self.next().await.expect("the stream ended instead of bringing a message")
    }

    /// The method of the next message, which must come.
    pub async fn notice(&mut self) -> String {
        let message = self.message().await;
        message["method"].as_str().unwrap_or_else(|| panic!("no notification: {message}")).to_owned()
    }

    /// Reads to the end and gives what still came.
    pub async fn rest(mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(message) = self.next().await {
            rest.push(message);
        }
        rest
    }

    /// The next frame as it stands on the wire, without its blank line.
    pub async fn frame(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.text.find("\n\n") {
                let frame = self.text[..at].to_owned();
                self.text.drain(..at + 2);
                return Some(frame);
            }
            let chunk = self.body.chunk().await?;
            self.text.push_str(&String::from_utf8_lossy(&chunk));
        }
    }
}
