//! What a program printed: its beginning and its end, whatever came between counted.

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of each stream is kept: the head, and the tail behind what was left out.
#[derive(Debug, Clone, Copy)]
pub(in crate::client) struct OutputCap {
    pub(in crate::client) head: usize,
    pub(in crate::client) tail: usize,
}

/// Room for any release a cluster can hold.
pub(in crate::client) const STDOUT: OutputCap = OutputCap { head: 32 * 1024 * 1024, tail: 64 * 1024 };
/// Messages.
pub(in crate::client) const STDERR: OutputCap = OutputCap { head: 64 * 1024, tail: 64 * 1024 };

/// One stream of a program, within bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    head: Vec<u8>,
    tail: Vec<u8>,
    left_out: u64,
}

impl CapturedOutput {
    /// Reads a stream to its end, whatever it holds, so that the program never waits for us.
    pub(in crate::client) async fn read(mut stream: impl AsyncRead + Unpin, cap: OutputCap) -> CapturedOutput {
        let mut captured = CapturedOutput::default();
        let mut buffer = vec![0; 64 * 1024];
        // A stream that breaks is a stream that ended: what came of the program is told by its exit.
        while let Ok(n) = stream.read(&mut buffer).await {
            if n == 0 {
                break;
            }
            captured.push(&buffer[..n], cap);
        }
        captured
    }

    fn push(&mut self, bytes: &[u8], cap: OutputCap) {
        let (first, rest) = bytes.split_at(bytes.len().min(cap.head - self.head.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        // Twice the room, so that bytes are not moved for every read.
        if self.tail.len() > 2 * cap.tail {
            self.trim(cap);
        }
    }

    fn trim(&mut self, cap: OutputCap) {
        let over = self.tail.len().saturating_sub(cap.tail);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    /// Whether nothing was left out.
    pub fn is_whole(&self) -> bool {
        self.left_out == 0 && self.tail.is_empty()
    }

    /// The bytes from the beginning; all of them if it [is whole](CapturedOutput::is_whole).
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// What people read: the beginning, how much is missing, the end. Not masked.
    pub fn lossy(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        if self.is_whole() {
            return head.into_owned();
        }
        format!("{head}\n… ({} bytes left out)\n{}", self.left_out, String::from_utf8_lossy(&self.tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn head_and_tail_are_kept_and_the_rest_is_counted() {
        let cap = OutputCap { head: 10, tail: 5 };
        let text: Vec<u8> = (0..200_000_u32).map(|n| b'a' + u8::try_from(n % 26).unwrap()).collect();
        let captured = CapturedOutput::read(&text[..], cap).await;
        assert_eq!(captured.head(), &text[..10]);
        assert!(captured.tail.len() <= 2 * cap.tail && text.ends_with(&captured.tail));
        assert_eq!(captured.left_out as usize + 10 + captured.tail.len(), text.len());
        assert!(!captured.is_whole());
        let short = CapturedOutput::read(&b"short"[..], cap).await;
        assert!(short.is_whole() && short.lossy() == "short");
    }
}
