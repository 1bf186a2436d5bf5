//! Outcomes to bytes: whole JSON-RPC messages, and the result objects inside them.
//!
//! Big parts are spliced, never serialised again: a page of tools and the structured content of a call arrive as
//! JSON text. The text block beside structured content is that same text, quoted.

use crate::codes::{CodeTransport, travel};
use crate::era::{Era, LegacyRevision, MODERN};
use crate::id::Id;
use crate::json::{ObjectWriter, push_list, push_quoted};
use crate::refusal::{FinishedReply, WireError};
use bytes::Bytes;
use domain::{Content, Failure, Outcome, ToolOutput};

const NAME: &str = "quartermaster";
const TITLE: &str = "Quartermaster";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const CAPABILITIES: &str = r#"{"tools":{"listChanged":true}}"#;
/// Discovery changes with a release or a tenant's configuration, so it may be kept longer than a list.
const DISCOVER_TTL_MS: &str = "300000";

/// An answer around a ready-made result.
pub fn result(id: &Id, result_json: &[u8]) -> Bytes {
    let message =
        ObjectWriter::with_capacity(result_json.len() + 64).raw("jsonrpc", "\"2.0\"").put("id", |out| id.push(out));
    message.raw("result", result_json).end().into()
}

/// An answer that says no. Without a readable id there is no `id` member.
pub fn error(id: Option<&Id>, error: &WireError, trace_id: Option<&str>) -> Bytes {
    let message =
        ObjectWriter::new().raw("jsonrpc", "\"2.0\"").maybe(id, |message, id| message.put("id", |out| id.push(out)));
    message.put("error", |out| error.push(out, trace_id)).end().into()
}

/// The whole answer to a call, by the one table of codes.
pub fn outcome(era: Era, id: &Id, outcome: &Outcome, trace_id: Option<&str>) -> FinishedReply {
    match outcome {
        Outcome::Done(output) => FinishedReply { status: 200, body: result(id, &call_output(era, output, trace_id)) },
        Outcome::Waiting(run) => {
            let answer = ToolOutput::structured(run.json.clone());
            FinishedReply { status: 200, body: result(id, &call_output(era, &answer, trace_id)) }
        }
        Outcome::Failed(failure) => self::failure(era, id, failure, trace_id),
    }
}

/// The whole answer to a request that failed, be it a call or not.
pub fn failure(era: Era, id: &Id, failure: &Failure, trace_id: Option<&str>) -> FinishedReply {
    match travel(failure.code) {
        CodeTransport::ToolError => {
            FinishedReply { status: 200, body: result(id, &call_failure(era, failure, trace_id)) }
        }
        CodeTransport::Rpc(rpc) => {
            let wire = WireError::of(failure, rpc);
            FinishedReply { status: wire.status(era), body: error(Some(id), &wire, trace_id) }
        }
    }
}

/// The result of a call that gave something.
pub fn call_output(era: Era, output: &ToolOutput, trace_id: Option<&str>) -> Vec<u8> {
    let structured = output.structured.as_deref();
    // The structured text stands in the result twice, the second time with its quotes escaped.
    let object = opened(era, structured.map_or(0, |text| text.len() * 5 / 2) + 512);
    let object = object.put("content", |out| match (output.content.as_slice(), structured) {
        ([], Some(text)) => push_list(out, &[text], |out, text| push_text_block(out, text)),
        (blocks, _) => push_list(out, blocks, |out, block| match block {
            Content::Text(text) => push_text_block(out, text),
            Content::Block(block) => out.extend_from_slice(block.to_string().as_bytes()),
        }),
    });
    let object = object.maybe(structured, |object, text| object.raw("structuredContent", text));
    with_meta(object, era, |meta| meta.maybe(trace_id, |meta, id| meta.text("quartermaster/trace_id", id)))
}

/// The result of a call that failed in a way the model can act on. Carries no structured content: some clients check
/// it against the output schema even then.
pub fn call_failure(era: Era, failure: &Failure, trace_id: Option<&str>) -> Vec<u8> {
    let told = error_object(failure, trace_id);
    // Written from texts alone, so it is UTF-8 and the lossy reading loses nothing.
    let text = String::from_utf8_lossy(&told);
    let object = opened(era, told.len() * 3 + 256)
        .put("content", |out| push_list(out, &[&text], |out, text| push_text_block(out, text)))
        .raw("isError", "true");
    with_meta(object, era, |meta| {
        let meta = meta.raw("quartermaster/error", &told);
        meta.maybe(trace_id, |meta, id| meta.text("quartermaster/trace_id", id))
    })
}

/// The error object of a failed call: code, sentence, next step, and what else is known.
pub fn error_object(failure: &Failure, trace_id: Option<&str>) -> Vec<u8> {
    let near = Some(&failure.did_you_mean).filter(|names| !names.is_empty());
    ObjectWriter::new()
        .text("code", failure.code.as_str())
        .text("message", &failure.message)
        .maybe(failure.next.as_deref(), |object, next| object.text("next", next))
        .maybe(near, |object, names| object.texts("did_you_mean", names))
        .raw("retryable", failure.code.retryable().to_string())
        .maybe(failure.retry_after_ms, |object, millis| object.raw("retry_after_ms", millis.to_string()))
        .maybe(failure.details.as_ref(), |object, details| object.value("details", details))
        .maybe(trace_id, |object, id| object.text("trace_id", id))
        .end()
}

/// The result of `initialize`.
pub fn initialize_result(revision: LegacyRevision, instructions: Option<&str>) -> Vec<u8> {
    let info = ObjectWriter::new().text("name", NAME).text("title", TITLE).text("version", VERSION).end();
    ObjectWriter::with_capacity(instructions.map_or(0, str::len) + 256)
        .text("protocolVersion", revision.as_str())
        .raw("capabilities", CAPABILITIES)
        .raw("serverInfo", info)
        .maybe(instructions, |result, text| result.text("instructions", text))
        .end()
}

/// The result of `server/discover`.
pub fn discover_result(instructions: Option<&str>) -> Vec<u8> {
    let object = opened(Era::Modern, instructions.map_or(0, str::len) + 384)
        .texts("supportedVersions", &[MODERN])
        .raw("capabilities", CAPABILITIES)
        .maybe(instructions, |result, text| result.text("instructions", text))
        .raw("ttlMs", DISCOVER_TTL_MS)
        .text("cacheScope", "private");
    with_meta(object, Era::Modern, |meta| meta)
}

/// The result of `ping`.
pub fn empty_result() -> &'static [u8] {
    b"{}"
}

/// A result object with what its era puts first.
pub(crate) fn opened(era: Era, capacity: usize) -> ObjectWriter {
    let object = ObjectWriter::with_capacity(capacity);
    match era {
        Era::Legacy(_) => object,
        Era::Modern => object.text("resultType", "complete"),
    }
}

/// Ends a result object with `_meta`, unless there is nothing to put into it.
pub(crate) fn with_meta(object: ObjectWriter, era: Era, add: impl FnOnce(ObjectWriter) -> ObjectWriter) -> Vec<u8> {
    let meta = match era {
        Era::Legacy(_) => ObjectWriter::new(),
        Era::Modern => {
            let info = ObjectWriter::new().text("name", NAME).text("version", VERSION).end();
            ObjectWriter::new().raw("io.modelcontextprotocol/serverInfo", info)
        }
    };
    match add(meta).end().as_slice() {
        b"{}" => object.end(),
        meta => object.raw("_meta", meta).end(),
    }
}

fn push_text_block(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(br#"{"type":"text","text":"#);
    push_quoted(out, text);
    out.push(b'}');
}

#[cfg(test)]
mod tests;
