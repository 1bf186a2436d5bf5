//! What a streamed exchange does on the wire: where it connects, how much it reads, when it ends.

use egress::{AddressGuard, AddressRefused, Config, Guarded, GuardedRequest, Lookup, SendError, StreamBounds, Url};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Answers every connection with a head and the same piece again and again, so many times, and then stays open.
async fn serving(piece: &'static str, times: usize) -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("a bound port").port();
    let mut accepting = JoinSet::new();
    accepting.spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            open.spawn(async move {
                let mut request = vec![0; 4096];
                if stream.read(&mut request).await.is_ok_and(|read| read == 0) {
                    return;
                }
                stream.write_all(HEAD.as_bytes()).await.ok();
                for _ in 0..times {
                    let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
                    if stream.write_all(chunk.as_bytes()).await.is_err() {
                        return;
                    }
                }
                std::future::pending::<()>().await;
            });
        }
    });
    (port, accepting)
}

fn client(port: u16, resolved: &'static str) -> Guarded {
    // Several tests of one process may come first; whoever does installs the same provider.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let lookup: Lookup = Arc::new(move |_| {
        let address: IpAddr = resolved.parse().expect("an address");
        Box::pin(async move { Ok(vec![address]) })
    });
    AddressGuard { private: true, ports: vec![port] }.client_resolving(&Config::default(), lookup).expect("a client")
}

fn at(port: u16) -> Url {
    Url::parse(&format!("http://tools.example:{port}/")).expect("an address")
}

fn bounds(bytes: usize) -> StreamBounds {
    StreamBounds { within: Duration::from_secs(20), bytes }
}

#[tokio::test]
async fn the_head_is_there_before_the_body_and_pieces_as_they_come() {
    let (port, _serving) = serving("data: 1\n\n", 2).await;

    let mut streaming = client(port, "127.0.0.1").open(GuardedRequest::get(&at(port)), bounds(100)).await.unwrap();
    let mut read = Vec::new();
    while read.len() < 18 {
        read.extend_from_slice(&streaming.chunk().await.unwrap().unwrap());
    }

    assert_eq!(
        (streaming.status, streaming.headers["content-type"].as_bytes()),
        (200, b"text/event-stream".as_slice())
    );
    assert_eq!(read, b"data: 1\n\ndata: 1\n\n");
}

#[tokio::test]
async fn a_stream_without_end_ends_at_its_bound() {
    let (port, _serving) = serving("data: 1\n\n", usize::MAX).await;

    let mut streaming = client(port, "127.0.0.1").open(GuardedRequest::get(&at(port)), bounds(1000)).await.unwrap();
    let mut read = 0;
    let error = loop {
        match streaming.chunk().await {
            Ok(piece) => read += piece.unwrap().len(),
            Err(error) => break error,
        }
    };

    assert!(matches!(error, SendError::TooLong { cap: 1000 }), "{error:?}");
    assert!(!error.nothing_was_sent());
    assert!(read <= 1000, "{read}");
}

#[tokio::test]
async fn a_silent_stream_ends_with_its_time() {
    let (port, _serving) = serving("", 0).await;
    let bounds = StreamBounds { within: Duration::from_millis(200), bytes: 1000 };

    let mut streaming = client(port, "127.0.0.1").open(GuardedRequest::get(&at(port)), bounds).await.unwrap();

    assert!(matches!(streaming.chunk().await, Err(SendError::NoAnswer(_))));
}

#[tokio::test]
async fn a_refused_address_and_a_closed_port_have_sent_nothing() {
    let (port, _serving) = serving("", 0).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = closed.local_addr().unwrap().port();
    drop(closed);

    let refused = client(port, "169.254.169.254").open(GuardedRequest::get(&at(port)), bounds(100)).await.unwrap_err();
    let unheard = client(nobody, "127.0.0.1").open(GuardedRequest::get(&at(nobody)), bounds(100)).await.unwrap_err();

    assert!(matches!(refused, SendError::Refused(AddressRefused::Range)), "{refused:?}");
    assert!(refused.nothing_was_sent() && unheard.nothing_was_sent());
}
