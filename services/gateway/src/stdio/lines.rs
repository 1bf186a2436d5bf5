//! Lines in and lines out: what is read is bounded, and one task writes.

use bytes::Bytes;
use executor::Tasks;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages that may wait for a client that reads slowly.
const QUEUE: usize = 64;

/// One line of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientLine {
    /// A line within the bound, without its end.
    Message(Vec<u8>),
    /// A longer one. What was beyond the bound was skipped and is nowhere.
    TooLong,
}

/// Reads lines, and stores no more of one than its bound.
pub struct LineReader<R> {
    input: R,
    cap: usize,
    /// What is there of the line that is being read. Kept here, so that a reader who turns away loses nothing.
    line: Vec<u8>,
    too_long: bool,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    /// Reads lines of at most `cap` bytes.
    pub fn new(input: R, cap: usize) -> LineReader<R> {
        LineReader { input, cap, line: Vec::new(), too_long: false }
    }

    /// The next line that is not blank; `None` at the end of the input.
    pub async fn next(&mut self) -> io::Result<Option<ClientLine>> {
        loop {
            let piece = self.input.fill_buf().await?;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let (part, used) = match end {
                Some(end) => (&piece[..end], end + 1),
                None => (piece, piece.len()),
            };
            if self.line.len() + part.len() > self.cap {
                (self.too_long, self.line) = (true, Vec::new());
            } else if !self.too_long {
                self.line.extend_from_slice(part);
            }
            // A last line may lack its end.
            let is_last = used == 0;
            self.input.consume(used);
            if end.is_some() || is_last {
                let line = std::mem::take(&mut self.line);
                if std::mem::take(&mut self.too_long) {
                    return Ok(Some(ClientLine::TooLong));
                }
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(ClientLine::Message(line)));
                }
            }
            if is_last {
                return Ok(None);
            }
        }
    }
}

/// Where messages to the client go.
#[derive(Debug, Clone)]
pub struct LineWriter(mpsc::Sender<Bytes>);

impl LineWriter {
    /// A writer to this output, and the task that ends when every writer is gone or the client is.
    pub fn to(output: impl AsyncWrite + Send + Unpin + 'static, tasks: &Tasks) -> (LineWriter, JoinHandle<Option<()>>) {
        let (sender, messages) = mpsc::channel(QUEUE);
        (LineWriter(sender), tasks.spawn("stdio writer", write(output, messages)))
    }

    /// Writes one message; `false` when the client is gone.
    pub async fn send(&self, message: Bytes) -> bool {
        self.0.send(message).await.is_ok()
    }

    /// Resolves when the client is gone.
    pub async fn gone(&self) {
        self.0.closed().await;
    }
}

async fn write(mut output: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Bytes>) {
    while let Some(message) = messages.recv().await {
        let mut line = Vec::with_capacity(message.len() + 1);
        // A line break would end the message early. In JSON it can only be a blank between tokens, so it may become one.
        line.extend(message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
        line.push(b'\n');
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "the client does not read any more");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    async fn read(input: &[u8], buffer: usize, cap: usize) -> Vec<ClientLine> {
        let mut reader = LineReader::new(BufReader::with_capacity(buffer, input), cap);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(line);
        }
        lines
    }

    fn message(text: &str) -> ClientLine {
        ClientLine::Message(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_are_read_whatever_pieces_they_come_in() {
        for buffer in [1, 2, 3, 7, 100] {
            let lines = read(b"one\n\n \t\r\ntwo\r\nlast", buffer, 10).await;
            assert_eq!(lines, [message("one"), message("two\r"), message("last")], "{buffer}");
            assert_eq!(read(b"", buffer, 10).await, [], "{buffer}");
        }
    }

    #[tokio::test]
    async fn a_line_beyond_the_bound_is_skipped_and_the_next_one_is_read() {
        for buffer in [1, 2, 3, 7, 100] {
            let lines = read(b"0123456789\n0123456789a\nnext\n0123456789abc", buffer, 10).await;
            let wanted = [message("0123456789"), ClientLine::TooLong, message("next"), ClientLine::TooLong];
            assert_eq!(lines, wanted, "{buffer}");
        }
    }

    #[tokio::test]
    async fn nothing_of_an_endless_line_is_stored() {
        let input = BufReader::new(tokio::io::repeat(b'x'));
        let mut reader = LineReader::new(input, 1000);
        let reading = tokio::time::timeout(std::time::Duration::from_millis(50), reader.next());
        assert!(reading.await.is_err(), "it has no end");
        assert!(reader.too_long && reader.line.capacity() == 0);
    }

    #[tokio::test]
    async fn a_message_is_one_line_and_the_writer_ends_with_its_senders() {
        let (output, input) = tokio::io::duplex(1000);
        let tasks = Tasks::default();
        let (writer, writing) = LineWriter::to(output, &tasks);
        assert!(writer.send(Bytes::from_static(b"{\r\n\"a\": 1}")).await);
        assert!(writer.send(Bytes::from_static(b"{}")).await);
        drop(writer);
        writing.await.unwrap();
        assert_eq!(read_all(input).await, "{  \"a\": 1}\n{}\n");
    }

    async fn read_all(mut input: impl tokio::io::AsyncRead + Unpin) -> String {
        let mut text = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut input, &mut text).await.unwrap();
        text
    }
}
