//! What the tests share: a client that shows everything that came over the wire.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandbox::jenkins::{JenkinsSeed, SimulatedJenkins};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}\n{}", self.head, self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A server and its user.
pub(crate) struct Ci {
    pub(crate) jenkins: SimulatedJenkins,
}

impl Ci {
    pub(crate) async fn of(seed: JenkinsSeed) -> Ci {
        Ci { jenkins: SimulatedJenkins::start(seed).await.expect("a loopback port is free") }
    }

    /// The shop, with time in our hands.
    pub(crate) async fn shop() -> Ci {
        Ci::of(JenkinsSeed::shop().still()).await
    }

    /// Reads JSON as the user.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let reply = self.ask("GET", path, "", &[]).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Sends a form as the user.
    pub(crate) async fn post(&self, path: &str, form: &str) -> Reply {
        self.ask("POST", path, form, &[]).await
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, form: &str, headers: &[(&str, &str)]) -> Reply {
        let headers: Vec<(&str, &str)> =
            headers.iter().copied().chain([("Content-Type", "application/x-www-form-urlencoded")]).collect();
        self.line().ask(method, path, form, &headers).await.expect("an answer")
    }

    /// A request of nobody; nothing if the line was cut before there was a head.
    pub(crate) async fn send(&self, method: &str, path: &str, form: &str, headers: &[(&str, &str)]) -> Option<Reply> {
        self.line().anonymous().ask(method, path, form, headers).await
    }

    /// The way to it, as its user.
    pub(crate) fn line(&self) -> Line {
        Line {
            address: self.jenkins.address().to_string(),
            basic: Some(basic(&self.jenkins.user(), &self.jenkins.token())),
        }
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.jenkins.advance(Duration::from_secs(seconds));
    }
}

/// The way to a server, simulated or not.
#[derive(Clone)]
pub(crate) struct Line {
    address: String,
    basic: Option<String>,
}

impl Line {
    /// The server the testbed runs, if it does.
    pub(crate) fn real() -> Option<Line> {
        let named = |name: &str| {
            let value = std::env::var_os(format!("QUARTERMASTER_TEST_JENKINS_{name}"))?;
            value.into_string().ok().filter(|text| !text.is_empty())
        };
        let url = named("URL")?;
        let address = url.strip_prefix("http://").expect("plain HTTP on loopback").trim_end_matches('/').to_owned();
        Some(Line { address, basic: Some(basic(&named("USER")?, &named("TOKEN")?)) })
    }

    pub(crate) fn anonymous(&self) -> Line {
        Line { address: self.address.clone(), basic: None }
    }

    pub(crate) async fn send(&self, method: &str, path: &str, (kind, body): (&str, &str)) -> Reply {
        self.ask(method, path, body, &[("Content-Type", kind)]).await.expect("an answer")
    }

    async fn ask(&self, method: &str, path: &str, body: &str, headers: &[(&str, &str)]) -> Option<Reply> {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        let basic = self.basic.as_deref().map(|basic| ("Authorization", basic));
        for (name, value) in headers.iter().copied().chain(basic) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut whole = Vec::new();
        // A cut line is an error here and an empty answer for the test.
        let _cut = stream.read_to_end(&mut whole).await;
        let end = whole.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&whole[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        Some(Reply { status, head, body: whole[end + 4..].to_vec() })
    }
}

/// The credential as a header has it.
pub(crate) fn basic(user: &str, token: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{token}")))
}

/// Encodes one value of a form.
pub(crate) fn field(value: &str) -> String {
    value
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
