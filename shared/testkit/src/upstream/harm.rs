//! Ways to misbehave, each named after what the client meets.

use super::script::{EVENTS, JSON, is_modern};
use super::wire::{Pen, Seen, Wire};
use super::{Counted, Stage};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{self, Write as _};

/// How much is written at once of an answer that is long or endless.
const PIECE: usize = 64 * 1024;
/// Where the filling of a long answer goes.
const MARK: &str = "@filling@";

/// One way to misbehave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Harm {
    /// Reads the request and never answers.
    Hang,
    /// Begins an event stream and then says nothing.
    SilentStream,
    /// An event stream that never brings the answer and never ends.
    EndlessStream,
    /// One event of an event stream that never ends.
    EndlessEvent,
    /// A right answer whose text has this many bytes.
    Huge(usize),
    /// The same as the only event of a stream.
    HugeEvent(usize),
    /// A right answer of this many bytes, packed to next to nothing.
    GzipBomb(usize),
    /// A right answer with this many nodes.
    Nodes(usize),
    /// A right answer that is nested this deep.
    Deep(usize),
    /// An answer to a question nobody asked.
    WrongId,
    /// A page that is not JSON, with status 200.
    NotJson,
    /// JSON that is no message.
    NoMessage,
    /// A list whose every page names a next one, with new tools on each.
    EndlessPages,
    /// A status and a location.
    Redirect {
        /// 301, 302, 307 or 308.
        status: u16,
        /// Where to.
        to: String,
    },
    /// A status with this body.
    Status {
        /// The status.
        status: u16,
        /// The body.
        body: String,
    },
    /// A JSON-RPC error with every header of the request in its text, plain, in base64 and percent-encoded.
    EchoInError,
    /// A tool error with the same.
    EchoInResult,
    /// A status of 500 with the same in its body.
    EchoInStatus,
    /// The beginning of an answer, and then the end of the connection.
    Cut,
    /// The end of the connection instead of an answer.
    HangUp,
    /// A header that never ends.
    EndlessHead,
}

/// Answers one request harmfully.
pub(super) async fn carry_out(
    harm: &Harm,
    seen: &Seen,
    stage: &Stage,
    wire: &mut Wire,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    let message = seen.message();
    match harm {
        Harm::Hang => hang(stage, wire).await,
        Harm::SilentStream => {
            pen.open(200, &[EVENTS]).await?;
            hang(stage, wire).await
        }
        Harm::EndlessStream => endless_stream(pen).await,
        Harm::EndlessEvent => endless_event(pen).await,
        Harm::EndlessHead => endless_head(pen).await,
        Harm::Huge(bytes) => in_pieces(pen, JSON, &around(&message, text(MARK)), *bytes).await,
        Harm::HugeEvent(bytes) => {
            let (before, after) = around(&message, text(MARK));
            let event = (format!("event: message\ndata: {before}"), format!("{after}\n\n"));
            in_pieces(pen, EVENTS, &event, *bytes).await
        }
        Harm::GzipBomb(bytes) => {
            let packed = packed(&around(&message, text(MARK)), *bytes)?;
            pen.whole(200, &[JSON, ("Content-Encoding", "gzip")], &packed).await
        }
        Harm::Nodes(count) => say(pen, &listing(&message, &format!("{}0", "0,".repeat(count.saturating_sub(1))))).await,
        Harm::Deep(depth) => say(pen, &listing(&message, &("[".repeat(*depth) + &"]".repeat(*depth)))).await,
        Harm::WrongId => say(pen, &to_nobody(&message).to_string()).await,
        Harm::NotJson => say(pen, "<html>Welcome</html>").await,
        Harm::NoMessage => say(pen, r#"{"hello":"world"}"#).await,
        Harm::EndlessPages => say(pen, &next_page(&message).to_string()).await,
        Harm::Redirect { status, to } => pen.whole(*status, &[("Location", to)], b"").await,
        Harm::Status { status, body } => pen.whole(*status, &[JSON], body.as_bytes()).await,
        Harm::EchoInError => {
            let error = json!({ "code": -32603, "message": echoed(seen), "data": { "sent": echoed(seen) } });
            say(pen, &json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }).to_string()).await
        }
        Harm::EchoInResult => {
            let mut told = text(&echoed(seen));
            told["isError"] = json!(true);
            say(pen, &result(&message, told).to_string()).await
        }
        Harm::EchoInStatus => pen.whole(500, &[("Content-Type", "text/plain")], echoed(seen).as_bytes()).await,
        Harm::Cut => {
            pen.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"json")
                .await?;
            Err(io::ErrorKind::BrokenPipe.into())
        }
        Harm::HangUp => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

async fn say(pen: &mut Pen<'_>, body: &str) -> io::Result<()> {
    pen.whole(200, &[JSON], body.as_bytes()).await
}

// What is endless ends with an error, when the client leaves.

async fn endless_head(pen: &mut Pen<'_>) -> io::Result<()> {
    pen.raw(b"HTTP/1.1 200 OK\r\nX-Long: ").await?;
    loop {
        pen.raw(&[b'x'; PIECE]).await?;
    }
}

async fn endless_event(pen: &mut Pen<'_>) -> io::Result<()> {
    pen.open(200, &[EVENTS]).await?;
    pen.piece(b"event: message\ndata: ").await?;
    loop {
        pen.piece(&[b'x'; PIECE]).await?;
    }
}

async fn endless_stream(pen: &mut Pen<'_>) -> io::Result<()> {
    pen.open(200, &[EVENTS]).await?;
    let params = json!({ "level": "info", "data": "x".repeat(PIECE) });
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
    loop {
        pen.event(&notice).await?;
    }
}

fn to_nobody(message: &Value) -> Value {
    let mut wrong = result(message, text("to somebody else"));
    wrong["id"] = json!("nobody-asked");
    wrong
}

fn next_page(message: &Value) -> Value {
    let from: u64 = message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let tools: Vec<Value> = (0..3).map(|n| super::tools::named(&format!("page_{from}_{n}"))).collect();
    result(message, json!({ "tools": tools, "nextCursor": (from + 1).to_string() }))
}

/// A right answer with a list in it, whose inside is given as text: as a value it would take more memory than the client.
fn listing(message: &Value, inside: &str) -> String {
    let (before, after) = around(message, json!({ "content": [], "structuredContent": { "inside": [MARK] } }));
    format!("{}{inside}{}", before.trim_end_matches('"'), after.trim_start_matches('"'))
}

/// Hangs until somebody lets it go or the client leaves; either way the connection ends.
async fn hang(stage: &Stage, wire: &mut Wire) -> io::Result<()> {
    let mut releases = stage.releases.subscribe();
    let _counted = Counted::among(&stage.hanging);
    tokio::select! {
        () = wire.left() => {}
        _ = releases.changed() => {}
    }
    Err(io::ErrorKind::BrokenPipe.into())
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A right answer to a message, in its era.
fn result(message: &Value, mut result: Value) -> Value {
    if is_modern(message) {
        result["resultType"] = json!("complete");
    }
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
}

/// What stands before and after the mark in a right answer.
fn around(message: &Value, filled: Value) -> (String, String) {
    let whole = result(message, filled).to_string();
    let (before, after) = whole.split_once(MARK).expect("the mark stands in the answer");
    (before.to_owned(), after.to_owned())
}

async fn in_pieces(
    pen: &mut Pen<'_>,
    kind: (&str, &str),
    (before, after): &(String, String),
    bytes: usize,
) -> io::Result<()> {
    pen.open(200, &[kind]).await?;
    pen.piece(before.as_bytes()).await?;
    for from in (0..bytes).step_by(PIECE) {
        pen.piece(&vec![b'x'; PIECE.min(bytes - from)]).await?;
    }
    pen.piece(after.as_bytes()).await?;
    pen.close().await
}

fn packed((before, after): &(String, String), bytes: usize) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(before.as_bytes())?;
    for from in (0..bytes).step_by(PIECE) {
        packer.write_all(&vec![b'x'; PIECE.min(bytes - from)])?;
    }
    packer.write_all(after.as_bytes())?;
    packer.finish()
}

/// Every header of a request in each spelling a secret is looked for in.
fn echoed(seen: &Seen) -> String {
    let spelled = |(name, value): &(String, String)| {
        let bare = value.strip_prefix("Bearer ").unwrap_or(value);
        let percent: String = bare.bytes().map(|byte| format!("%{byte:02X}")).collect();
        format!("{name}: {value} | {bare} | {} | {percent}\n", base64(bare.as_bytes()))
    };
    seen.headers.iter().map(spelled).collect()
}

/// Base64 with padding. A few lines here instead of a crate for one word in a test's double.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number =
            three.iter().fold(0_u32, |number, byte| (number << 8) | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}
