//! A collector of spans: it takes OTLP over gRPC from anybody and keeps the bytes, to be searched.
//!
//! Just enough HTTP/2, by hand, to make an exporter content: every request is answered with success, and what was sent is
//! never decoded. A planted text is found as it stands, since exporters send protobuf unpacked.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const PREFACE: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
/// `ACK` of settings and pings, `END_STREAM` of data and headers.
const DONE: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
/// `:status: 200` and `content-type: application/grpc`, then the trailer `grpc-status: 0`, as HPACK spells them.
const BEGINNING: &[u8] = b"\x88\x0f\x10\x10application/grpc";
const ENDING: &[u8] = b"\x00\x0bgrpc-status\x010";
/// A message of no length.
const EMPTY: &[u8] = &[0; 5];

/// A collector that listens until it is dropped.
pub struct Collector {
    address: SocketAddr,
    taken: Arc<Mutex<Vec<u8>>>,
    _serving: JoinSet<()>,
}

impl Collector {
    /// Starts one.
    pub async fn start() -> Collector {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port should be free");
        let address = listener.local_addr().expect("a bound port is known");
        let taken = Arc::<Mutex<Vec<u8>>>::default();
        let (kept, mut serving) = (Arc::clone(&taken), JoinSet::new());
        serving.spawn(async move {
            let mut exporters = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                exporters.spawn(serve(stream, Arc::clone(&kept)));
            }
        });
        Collector { address, taken, _serving: serving }
    }

    /// Where exporters send to.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was sent so far, protobuf as it came.
    pub fn taken(&self) -> Vec<u8> {
        locked(&self.taken).clone()
    }
}

fn locked(taken: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection, until the exporter leaves or says something that is no frame.
async fn serve(mut stream: TcpStream, taken: Arc<Mutex<Vec<u8>>>) -> std::io::Result<()> {
    stream.read_exact(&mut [0; PREFACE]).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await?;
        let mut answer = Vec::new();
        match kind {
            SETTINGS if flags & DONE == 0 => answer = frame(SETTINGS, DONE, 0, &[]),
            PING if flags & DONE == 0 => answer = frame(PING, DONE, 0, &payload),
            DATA => {
                locked(&taken).extend_from_slice(&payload);
                // What was taken may be sent again, on this stream and on the connection.
                let room = (length as u32).max(1).to_be_bytes();
                answer.extend(frame(WINDOW_UPDATE, 0, 0, &room));
                answer.extend(frame(WINDOW_UPDATE, 0, id, &room));
                if flags & DONE != 0 {
                    answer.extend(frame(HEADERS, END_HEADERS, id, BEGINNING));
                    answer.extend(frame(DATA, 0, id, EMPTY));
                    answer.extend(frame(HEADERS, END_HEADERS | DONE, id, ENDING));
                }
            }
            _ => {}
        }
        stream.write_all(&answer).await?;
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_an_exporter_sends_is_kept_and_thanked_for() {
        let collector = Collector::start().await;
        let mut stream = TcpStream::connect(collector.address).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let sent =
            [frame(SETTINGS, 0, 0, &[]), frame(HEADERS, END_HEADERS, 1, b"\x83"), frame(DATA, DONE, 1, b"planted")];
        stream.write_all(&sent.concat()).await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(ENDING) {
            assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0, "it should answer: {heard:?}");
        }
        assert!(heard.windows(9).any(|nine| *nine == frame(SETTINGS, DONE, 0, &[])), "settings are acknowledged");
        assert_eq!(collector.taken(), b"planted");
    }
}
