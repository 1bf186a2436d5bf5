//! Notifications we send, and the end of a listen stream.
//!
//! Not here: when one is due, and to whom it goes (see the gateway's streams).

use crate::encode::{opened, result, with_meta};
use crate::era::Era;
use crate::id::{Id, ProgressToken};
use crate::json::ObjectWriter;
use bytes::Bytes;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// How far a call has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressFrame {
    /// Must grow with every frame of a request.
    pub done: u64,
    /// Where it will end, if that is known.
    pub total: Option<u64>,
    /// A word for people.
    pub message: Option<String>,
}

/// `notifications/progress`.
pub fn progress(token: &ProgressToken, progress: &ProgressFrame) -> Bytes {
    let params = ObjectWriter::new()
        .put("progressToken", |out| token.0.push(out))
        .raw("progress", progress.done.to_string())
        .maybe(progress.total, |params, total| params.raw("total", total.to_string()))
        .maybe(progress.message.as_deref(), |params, message| params.text("message", message));
    notification("notifications/progress", Some(params))
}

/// `notifications/tools/list_changed`: bare on a legacy stream, marked with its subscription on a modern one.
pub fn list_changed(subscription: Option<&Id>) -> Bytes {
    let params = subscription.map(|id| ObjectWriter::new().raw("_meta", marked(id).end()));
    notification("notifications/tools/list_changed", params)
}

/// The first frame of a listen stream: which of the wanted notices will come.
pub fn acknowledged(subscription: &Id, tools_list_changed: bool) -> Bytes {
    let honoured = if tools_list_changed { r#"{"toolsListChanged":true}"# } else { "{}" };
    let params = ObjectWriter::new().raw("_meta", marked(subscription).end()).raw("notifications", honoured);
    notification("notifications/subscriptions/acknowledged", Some(params))
}

/// The last frame of a listen stream that ends by our will: the answer to the request that opened it.
pub fn listen_end(subscription: &Id) -> Bytes {
    let meta = |meta: ObjectWriter| meta.put(SUBSCRIPTION, |out| subscription.push(out));
    result(subscription, &with_meta(opened(Era::Modern, 256), Era::Modern, meta))
}

fn marked(subscription: &Id) -> ObjectWriter {
    ObjectWriter::new().put(SUBSCRIPTION, |out| subscription.push(out))
}

fn notification(method: &str, params: Option<ObjectWriter>) -> Bytes {
    let frame = ObjectWriter::new().raw("jsonrpc", "\"2.0\"").text("method", method);
    frame.maybe(params, |frame, params| frame.raw("params", params.end())).end().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn frames_are_as_documented() {
        let seven = ProgressToken(Id::read(json!(7)).unwrap());
        let text = ProgressToken(Id::Text("w4".into()));
        let listen = Id::Text("L1".into());
        let bare = ProgressFrame { done: 1, total: Some(3), message: None };
        let told = ProgressFrame { done: 1, total: None, message: Some("approved by \"ana\"".into()) };
        let frames = [
            progress(&seven, &bare),
            progress(&text, &told),
            list_changed(None),
            list_changed(Some(&listen)),
            acknowledged(&listen, true),
            acknowledged(&listen, false),
            listen_end(&listen),
        ];
        let lines: Vec<_> = frames.iter().map(|frame| str::from_utf8(frame).unwrap()).collect();
        let text = lines.join("\n").replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(text, @r#"
        {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"total":3}}
        {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"w4","progress":1,"message":"approved by \"ana\""}}
        {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L1"}}}
        {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L1"},"notifications":{"toolsListChanged":true}}}
        {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L1"},"notifications":{}}}
        {"jsonrpc":"2.0","id":"L1","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"quartermaster","version":"VERSION"},"io.modelcontextprotocol/subscriptionId":"L1"}}}
        "#);
    }
}
