//! HTTP/1.1 from the server's side, by hand: requests are kept as they came, answers are written piece by piece.

use serde_json::Value;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// A request that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Seen {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The message in the body; null if it holds none.
    pub fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The JSON-RPC method; empty if there is none.
    pub fn rpc(&self) -> String {
        self.message()["method"].as_str().unwrap_or_default().to_owned()
    }

    /// The whole request as text, for searching it.
    pub fn text(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        format!("{} {}\n{headers}\n{}", self.method, self.path, String::from_utf8_lossy(&self.body))
    }
}

/// The reading half of a connection.
pub(super) struct Wire {
    reader: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Wire {
    pub(super) fn new(reader: OwnedReadHalf) -> Wire {
        Wire { reader, buffer: Vec::new() }
    }

    /// The next request; `None` once the other side has left, or what it said is no request.
    pub(super) async fn request(&mut self) -> Option<Seen> {
        let head = self.through(b"\r\n\r\n").await?;
        let mut lines = head.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
        let pair = |line: &str| line.split_once(':').map(|(k, v)| (k.trim().to_lowercase(), v.trim().to_owned()));
        let mut seen = Seen { method, path, headers: lines.filter_map(pair).collect(), body: Vec::new() };
        seen.body = match (seen.header("transfer-encoding"), seen.header("content-length")) {
            (Some(_), _) => self.chunks().await?,
            (None, Some(length)) => self.take(length.parse().ok()?).await?,
            (None, None) => Vec::new(),
        };
        Some(seen)
    }

    /// Waits until the other side has left. What it still says is dropped.
    pub(super) async fn left(&mut self) {
        while self.fill().await.is_some() {
            self.buffer.clear();
        }
    }

    async fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(self.through(b"\r\n").await?.trim(), 16).ok()?;
            body.extend(self.take(size).await?);
            self.through(b"\r\n").await?;
            if size == 0 {
                return Some(body);
            }
        }
    }

    async fn through(&mut self, end: &[u8]) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(end.len()).position(|some| some == end) {
                let text: Vec<u8> = self.buffer.drain(..at + end.len()).collect();
                return Some(String::from_utf8_lossy(&text).into_owned());
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < length {
            self.fill().await?;
        }
        Some(self.buffer.drain(..length).collect())
    }

    async fn fill(&mut self) -> Option<()> {
        let mut bytes = vec![0; 16 * 1024];
        let read = self.reader.read(&mut bytes).await.ok().filter(|read| *read > 0)?;
        self.buffer.extend_from_slice(&bytes[..read]);
        Some(())
    }
}

/// The writing half of a connection. Whoever gets an error from it hangs up.
pub(super) struct Pen<'a> {
    writer: OwnedWriteHalf,
    sent: &'a AtomicU64,
}

impl<'a> Pen<'a> {
    pub(super) fn new(writer: OwnedWriteHalf, sent: &'a AtomicU64) -> Pen<'a> {
        Pen { writer, sent }
    }

    /// A whole answer with its length.
    pub(super) async fn whole(&mut self, status: u16, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        let mut text = head(status, headers);
        text.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body);
        self.raw(&bytes).await
    }

    /// The head of an answer whose body comes in pieces.
    pub(super) async fn open(&mut self, status: u16, headers: &[(&str, &str)]) -> io::Result<()> {
        self.raw(format!("{}Transfer-Encoding: chunked\r\n\r\n", head(status, headers)).as_bytes()).await
    }

    /// One piece of such a body.
    pub(super) async fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
        framed.extend_from_slice(bytes);
        framed.extend_from_slice(b"\r\n");
        self.raw(&framed).await
    }

    /// One event of a stream.
    pub(super) async fn event(&mut self, message: &Value) -> io::Result<()> {
        self.piece(format!("event: message\ndata: {message}\n\n").as_bytes()).await
    }

    /// The end of a body that came in pieces.
    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.raw(b"0\r\n\r\n").await
    }

    /// Bytes as they are.
    pub(super) async fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).await?;
        self.sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        Ok(())
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let mut text = format!("HTTP/1.1 {status} Told\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text
}
