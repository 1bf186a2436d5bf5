//! HTTP/1.1 by hand: what is sent is exactly what the test says, well-formed or not.
//!
//! A library would mend or refuse the very requests these tests are about, so there is none here. Each request has a
//! connection of its own, closed by its answer.

use crate::patience::in_time;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

/// A request, before it is sent.
#[derive(Debug, Clone)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: &str, path: &str) -> Request {
        Request { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header; a second one of that name stands beside the first.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Request {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Takes every header of that name out.
    #[must_use]
    pub fn without(mut self, name: &str) -> Request {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Puts one header in the place of all others of that name.
    #[must_use]
    pub fn with(self, name: &str, value: impl Into<String>) -> Request {
        self.without(name).header(name, value)
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = body.into();
        self
    }

    /// Sends it to another address on the same host.
    #[must_use]
    pub fn at(mut self, path: &str) -> Request {
        path.clone_into(&mut self.path);
        self
    }

    /// Sends it and reads the whole answer.
    pub async fn send(&self, to: SocketAddr) -> Answer {
        whole(self.open(to).await).await
    }

    /// Sends it to somebody who may die over it; `None` if nobody was there, or it was not answered.
    pub async fn try_send(&self, to: SocketAddr) -> Option<Answer> {
        let stream = TcpStream::connect(to).await.ok()?;
        Some(whole(over(stream, &self.bytes(to)).await?).await)
    }

    /// Sends it and reads only the head; the body is read by whoever wants it.
    pub async fn open(&self, to: SocketAddr) -> (Answer, Body) {
        let opened = exchange(to, &self.bytes(to)).await;
        opened.unwrap_or_else(|| panic!("{} {} was not answered", self.method, self.path))
    }

    fn bytes(&self, to: SocketAddr) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        let told = |name: &str| self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if !told("host") {
            text.push_str(&format!("Host: {to}\r\n"));
        }
        let has_body = !self.body.is_empty() || self.method == "POST";
        if has_body && !told("content-length") {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("Connection: close\r\n\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Sends bytes as they are; `None` if the connection was closed without an answer.
pub async fn raw(to: SocketAddr, bytes: &[u8]) -> Option<Answer> {
    Some(whole(exchange(to, bytes).await?).await)
}

async fn whole((mut head, mut body): (Answer, Body)) -> Answer {
    while let Some(chunk) = body.chunk().await {
        head.body.extend_from_slice(&chunk);
    }
    head
}

async fn exchange(to: SocketAddr, bytes: &[u8]) -> Option<(Answer, Body)> {
    let stream = TcpStream::connect(to).await.unwrap_or_else(|error| panic!("cannot reach {to}: {error}"));
    over(stream, bytes).await
}

async fn over(stream: TcpStream, bytes: &[u8]) -> Option<(Answer, Body)> {
    let (reader, mut writer) = stream.into_split();
    let mut wire = Wire { reader, buffer: Vec::new() };
    // Both at once: a server that has seen enough answers before it has read everything, and then stops reading.
    let written = async {
        let sent = writer.write_all(bytes).await;
        (sent, writer)
    };
    let (head, (_, writer)) = in_time("the head of an answer", async { tokio::join!(wire.head(), written) }).await;
    let head = head?;
    let left = head.left();
    Some((head, Body { wire, left, _writer: writer }))
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{} is not JSON: {}", self.status, self.text()))
    }

    /// The body with its trace id blanked, for comparing two answers byte for byte.
    pub fn anonymous(&self) -> (u16, String) {
        let trace = self.header("x-trace-id").unwrap_or("no trace id").to_owned();
        (self.status, self.text().replace(&trace, "TRACE"))
    }

    fn parse(head: &str) -> Option<Answer> {
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let pair = |line: &str| line.split_once(':').map(|(k, v)| (k.trim().to_lowercase(), v.trim().to_owned()));
        Some(Answer { status, headers: lines.filter_map(pair).collect(), body: Vec::new() })
    }

    fn left(&self) -> Left {
        if matches!(self.status, 204 | 304 | 100..=199) {
            return Left::Bytes(0);
        }
        match (self.header("transfer-encoding"), self.header("content-length").and_then(|n| n.parse().ok())) {
            (Some("chunked"), _) => Left::Chunks,
            (_, Some(length)) => Left::Bytes(length),
            (_, None) => Left::UntilClosed,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Bytes(usize),
    Chunks,
    UntilClosed,
}

/// The body of an answer, piece by piece. Dropping it closes the connection.
pub struct Body {
    wire: Wire,
    left: Left,
    _writer: tokio::net::tcp::OwnedWriteHalf,
}

impl Body {
    /// The next piece; `None` at the end.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        in_time("the next bytes of an answer", self.next()).await
    }

    async fn next(&mut self) -> Option<Vec<u8>> {
        match self.left {
            Left::Bytes(0) => None,
            Left::Bytes(length) => {
                self.left = Left::Bytes(0);
                self.wire.take(length).await
            }
            Left::UntilClosed => self.wire.some().await,
            Left::Chunks => {
                let size = self.wire.line().await?;
                let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
                let chunk = self.wire.take(size).await?;
                self.wire.line().await?;
                Some(chunk)
            }
        }
    }
}

struct Wire {
    reader: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Wire {
    async fn head(&mut self) -> Option<Answer> {
        const END: &[u8] = b"\r\n\r\n";
        loop {
            if let Some(at) = self.buffer.windows(END.len()).position(|four| four == END) {
                let head: Vec<u8> = self.buffer.drain(..at + END.len()).collect();
                return Answer::parse(&String::from_utf8_lossy(&head));
            }
            self.fill().await?;
        }
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                return Some(String::from_utf8_lossy(&line).into_owned());
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

    async fn some(&mut self) -> Option<Vec<u8>> {
        if self.buffer.is_empty() {
            self.fill().await?;
        }
        Some(std::mem::take(&mut self.buffer))
    }

    /// Reads what is there; `None` once the other side has closed or reset the connection.
    async fn fill(&mut self) -> Option<()> {
        let mut bytes = vec![0; 16 * 1024];
        let read = self.reader.read(&mut bytes).await.ok().filter(|read| *read > 0)?;
        self.buffer.extend_from_slice(&bytes[..read]);
        Some(())
    }
}
