//! What the client does on the wire, against a server that answers with fixed bytes.

use egress::{Config, FetchError, HttpClient, get_capped, operator_client};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Answers every connection with the same bytes and keeps what was asked.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    _accepting: JoinSet<()>,
}

impl Server {
    async fn answering(answer: impl Into<Vec<u8>>) -> Server {
        let answer = answer.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/keys", listener.local_addr().expect("a bound port"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let read = stream.read(&mut request).await.unwrap_or(0);
                seen.lock().expect("no panic elsewhere").push(String::from_utf8_lossy(&request[..read]).into_owned());
                // A client that refuses early closes first; that is its right.
                stream.write_all(&answer).await.ok();
                stream.shutdown().await.ok();
            }
        });
        Server { url, asked, _accepting: accepting }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic elsewhere").clone()
    }
}

fn client() -> HttpClient {
    with(Config::default())
}

fn with(config: Config) -> HttpClient {
    // Several tests of one process may come first; whoever does installs the same provider.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    operator_client(&config).expect("a client")
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_body_of_exactly_the_cap_is_read() {
    let server = Server::answering(ok("0123456789")).await;

    let body = get_capped(&client(), &server.url, 10).await.unwrap();

    assert_eq!(body, b"0123456789");
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].starts_with("GET /keys HTTP/1.1\r\n"), "{}", asked[0]);
    assert!(asked[0].contains("user-agent: quartermaster/0."), "{}", asked[0]);
}

#[tokio::test]
async fn a_body_one_byte_over_the_cap_is_refused() {
    let server = Server::answering(ok("0123456789")).await;

    let error = get_capped(&client(), &server.url, 9).await.unwrap_err();

    assert!(matches!(error, FetchError::TooLong { cap: 9 }), "{error:?}");
}

#[tokio::test]
async fn a_body_without_a_declared_length_is_capped_too() {
    let mut answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..64 {
        answer.extend_from_slice(b"400\r\n");
        answer.extend_from_slice(&[b'x'; 0x400]);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    let server = Server::answering(answer).await;

    let error = get_capped(&client(), &server.url, 2000).await.unwrap_err();

    assert!(matches!(error, FetchError::TooLong { cap: 2000 }), "{error:?}");
}

#[tokio::test]
async fn a_redirect_is_refused_and_not_followed() {
    let elsewhere = Server::answering(ok("keys")).await;
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let answer = format!("HTTP/1.1 {status}\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", elsewhere.url);
        let server = Server::answering(answer).await;

        let error = get_capped(&client(), &server.url, 100).await.unwrap_err();

        assert!(matches!(error, FetchError::Status(301..=308)), "{error:?}");
    }
    assert_eq!(elsewhere.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn only_200_counts_as_an_answer() {
    for status in [204, 206, 304, 404, 500, 503] {
        let server = Server::answering(format!("HTTP/1.1 {status} X\r\nconnection: close\r\n\r\n")).await;

        let error = get_capped(&client(), &server.url, 100).await.unwrap_err();

        assert!(matches!(error, FetchError::Status(seen) if seen == status), "{error:?}");
    }
}

#[tokio::test]
async fn a_body_cut_short_is_no_answer() {
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this").await;

    let error = get_capped(&client(), &server.url, 100).await.unwrap_err();

    assert!(matches!(error, FetchError::Transport(_)), "{error:?}");
}

#[tokio::test]
async fn a_silent_server_is_given_up_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let hasty = with(Config { answer_within: Duration::from_millis(20), ..Config::default() });

    let error = get_capped(&hasty, &url, 100).await.unwrap_err();

    assert!(matches!(&error, FetchError::Transport(cause) if cause.is_timeout()), "{error:?}");
}

#[tokio::test]
async fn an_address_in_the_clear_is_never_dialled() {
    let error = get_capped(&client(), "http://login.example/keys", 100).await.unwrap_err();

    assert!(matches!(error, FetchError::Address(_)), "{error:?}");
}
