//! The client: just enough HTTP/1.1 to send the same bytes again and again over one kept connection.
//!
//! Written by hand so that the generator costs little beside what it measures.
//! Answers have a `Content-Length` or come in chunks; one that ends with its connection is refused. A connection can be
//! over TLS, for the API server of a cluster.

use anyhow::{Context, bail, ensure};
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// The largest head and the largest body that are read.
const HEAD: usize = 16 << 10;
const BODY: usize = 4 << 20;
const END: &[u8] = b"\r\n\r\n";

/// What a connection is made of.
trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// A connection that is kept.
pub(crate) struct KeptConnection {
    stream: Box<dyn Wire>,
    buffer: Vec<u8>,
}

/// One answer, in the connection's own buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HttpAnswer<'a> {
    /// The status.
    pub(crate) status: u16,
    head: &'a str,
    /// The body, whole.
    pub(crate) body: &'a [u8],
}

impl<'a> HttpAnswer<'a> {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        header(self.head, name)
    }
}

impl KeptConnection {
    /// Connects.
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<KeptConnection> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("nobody listens on {address}"))?;
        stream.set_nodelay(true).context("a connection could not be set up")?;
        Ok(KeptConnection { stream: Box::new(stream), buffer: Vec::with_capacity(HEAD) })
    }

    /// Connects over TLS.
    pub(crate) async fn open_tls(address: SocketAddr, connector: &TlsConnector) -> anyhow::Result<KeptConnection> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("nobody listens on {address}"))?;
        stream.set_nodelay(true).context("a connection could not be set up")?;
        let stream = connector.connect(ServerName::IpAddress(address.ip().into()), stream).await;
        let stream = Box::new(stream.with_context(|| format!("{address} does not prove who it is"))?);
        Ok(KeptConnection { stream, buffer: Vec::with_capacity(HEAD) })
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn send(&mut self, request: &[u8]) -> anyhow::Result<HttpAnswer<'_>> {
        self.buffer.clear();
        self.stream.write_all(request).await.context("a request could not be sent")?;
        let end = loop {
            if let Some(at) = self.buffer.windows(END.len()).position(|window| window == END) {
                break at;
            }
            ensure!(self.buffer.len() < HEAD, "the head of an answer does not end");
            self.read().await?;
        };
        let start = end + END.len();
        let (status, head) = status_and_head(&self.buffer[..end])?;
        if header(head, "transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            let body = loop {
                if let Some(body) = joined(&self.buffer[start..])? {
                    break body;
                }
                self.read().await?;
            };
            self.buffer.truncate(start);
            self.buffer.extend_from_slice(&body);
            let (status, head) = status_and_head(&self.buffer[..end])?;
            return Ok(HttpAnswer { status, head, body: &self.buffer[start..] });
        }
        let length = match header(head, "content-length") {
            None if status == 202 || status == 204 => "0",
            length => length.context("an answer came without a length")?,
        };
        let length = length.parse::<usize>().with_context(|| format!("an answer has the length `{length}`"))?;
        ensure!(length <= BODY, "an answer has {length} bytes, more than any measured one");
        while self.buffer.len() < start + length {
            self.read().await?;
        }
        ensure!(self.buffer.len() == start + length, "more came than was asked for");
        let (status, head) = status_and_head(&self.buffer[..end])?;
        Ok(HttpAnswer { status, head, body: &self.buffer[start..] })
    }

    /// Whether not one byte of an answer came to the last request.
    pub(crate) fn is_untouched(&self) -> bool {
        self.buffer.is_empty()
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        let read = self.stream.read_buf(&mut self.buffer).await.context("an answer could not be read")?;
        ensure!(read > 0, "the connection was closed in the middle of an answer");
        Ok(())
    }
}

/// The body of an answer in chunks; `None` while it has not ended.
fn joined(mut rest: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
    let mut body = Vec::with_capacity(rest.len());
    loop {
        let Some(line) = rest.windows(2).position(|window| window == b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&rest[..line]).ok().and_then(|text| text.split(';').next());
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok()).context("a chunk has no size")?;
        ensure!(body.len() + size <= BODY, "an answer has more bytes than any measured one");
        let (from, to) = (line + 2, line + 2 + size);
        if rest.len() < to + 2 {
            return Ok(None);
        }
        ensure!(&rest[to..to + 2] == b"\r\n", "a chunk does not end where it should");
        if size == 0 {
            ensure!(rest.len() == to + 2, "more came than was asked for");
            return Ok(Some(body));
        }
        body.extend_from_slice(&rest[from..to]);
        rest = &rest[to + 2..];
    }
}

fn status_and_head(head: &[u8]) -> anyhow::Result<(u16, &str)> {
    let head = std::str::from_utf8(head).context("the head of an answer is not text")?;
    let Some(status) = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()) else {
        bail!("an answer does not begin like HTTP/1.1");
    };
    Ok((status, head))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Waits for one request, answers with these pieces, and hangs up.
    async fn told(pieces: &[&'static str]) -> Result<(u16, Option<String>, String), String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4];
            stream.read_exact(&mut asked).await.unwrap();
            for piece in pieces {
                stream.write_all(piece.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let client = async {
            let mut connection = KeptConnection::open(address).await.map_err(|error| format!("{error:#}"))?;
            let answer = connection.send(b"ping").await.map_err(|error| format!("{error:#}"))?;
            let session = answer.header("mcp-session-id").map(str::to_owned);
            Ok((answer.status, session, String::from_utf8_lossy(answer.body).into_owned()))
        };
        tokio::join!(server, client).1
    }

    #[tokio::test]
    async fn an_answer_in_pieces_is_put_together() {
        let pieces = ["HTTP/1.1 200 OK\r\nContent-", "length: 5\r\nMcp-Session-Id: ses_1\r\n\r", "\nhe", "llo"];
        assert_eq!(told(&pieces).await, Ok((200, Some("ses_1".to_owned()), "hello".to_owned())));
        let empty = ["HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"];
        assert_eq!(told(&empty).await, Ok((202, None, String::new())));
    }

    #[tokio::test]
    async fn chunks_are_joined_wherever_they_are_cut() {
        let pieces =
            ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r", "\nab", "cd\r\n2;x\r\nef\r\n0\r\n", "\r\n"];
        assert_eq!(told(&pieces).await, Ok((200, None, "abcdef".to_owned())));
    }

    #[tokio::test]
    async fn what_cannot_be_measured_is_refused() {
        for (piece, why) in [
            ("SMTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "begin like HTTP/1.1"),
            ("HTTP/1.1 abc\r\n\r\n", "begin like HTTP/1.1"),
            ("HTTP/1.1 200 OK\r\n\r\n", "without a length"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "closed in the middle"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nab", "no size"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "where it should"),
            ("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "`many`"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "more than any"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "more came"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", "closed in the middle"),
            ("", "closed in the middle"),
        ] {
            let error = told(&[piece]).await.unwrap_err();
            assert!(error.contains(why), "{piece:?}: {error}");
        }
    }
}
