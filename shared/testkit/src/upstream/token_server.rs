//! An authorization server that gives tokens for client credentials: it checks what is asked of it, counts what it gives,
//! and misbehaves on request.

use super::wire::{Pen, Seen, Wire};
use crate::patience::until;
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// What every token begins with. What follows is its number.
pub const TOKEN: &str = "given-token-0123456789-";

/// One way to misbehave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenHarm {
    /// Never answers.
    Hang,
    /// Answers only when it is let go ([`TokenServer::release`]), and then rightly.
    Wait,
    /// This status with this body.
    Answer(u16, String),
    /// Sends whoever asks elsewhere.
    Redirect(String),
    /// An answer without end.
    Endless,
}

/// A server that runs until it is dropped.
pub struct TokenServer {
    address: SocketAddr,
    stage: Arc<TokenStage>,
    _serving: JoinSet<()>,
}

struct TokenStage {
    client: (String, String),
    state: Mutex<TokenServerState>,
    releases: watch::Sender<u64>,
    sent: AtomicU64,
}

struct TokenServerState {
    /// How long a token lives, in seconds; `None`: it is not said.
    life: Option<u64>,
    given: usize,
    harm: Option<TokenHarm>,
    seen: Vec<Seen>,
}

impl TokenServer {
    /// A server that knows this client by this secret.
    pub async fn start(client_id: &str, client_secret: &str) -> TokenServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port should be free");
        let address = listener.local_addr().expect("a bound port is known");
        let stage = Arc::new(TokenStage {
            client: (client_id.to_owned(), client_secret.to_owned()),
            state: Mutex::new(TokenServerState { life: Some(3600), given: 0, harm: None, seen: Vec::new() }),
            releases: watch::Sender::new(0),
            sent: AtomicU64::new(0),
        });
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, Arc::clone(&stage)));
        TokenServer { address, stage, _serving: serving }
    }

    /// Where tokens are given.
    pub fn url(&self) -> String {
        format!("http://{}/oauth2/token", self.address)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Tokens live that many seconds from now on.
    pub fn life(&self, seconds: Option<u64>) {
        self.stage.state().life = seconds;
    }

    /// Misbehaves from now on.
    pub fn plant(&self, harm: TokenHarm) {
        self.stage.state().harm = Some(harm);
    }

    /// Behaves again.
    pub fn cure(&self) {
        self.stage.state().harm = None;
    }

    /// Lets everybody go who waits.
    pub fn release(&self) {
        self.stage.releases.send_modify(|releases| *releases += 1);
    }

    /// How many tokens were given.
    pub fn given(&self) -> usize {
        self.stage.state().given
    }

    /// The token of this number, counted from one.
    pub fn token(&self, number: usize) -> String {
        format!("{TOKEN}{number}")
    }

    /// Everything that arrived, oldest first.
    pub fn requests(&self) -> Vec<Seen> {
        self.stage.state().seen.clone()
    }

    /// Waits until that many requests have arrived.
    pub async fn until_asked(&self, times: usize) {
        until("somebody to ask for a token", async || (self.requests().len() >= times).then_some(())).await;
    }
}

impl TokenStage {
    fn state(&self) -> MutexGuard<'_, TokenServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, stage: Arc<TokenStage>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let stage = Arc::clone(&stage);
        connections.spawn(async move { converse(stream, &stage).await });
    }
}

async fn converse(stream: TcpStream, stage: &TokenStage) {
    stream.set_nodelay(true).ok();
    let (reader, writer) = stream.into_split();
    let (mut wire, mut pen) = (Wire::new(reader), Pen::new(writer, &stage.sent));
    while let Some(seen) = wire.request().await {
        let mut releases = stage.releases.subscribe();
        stage.state().seen.push(seen.clone());
        let harm = stage.state().harm.clone();
        let done = match harm {
            Some(TokenHarm::Hang) => {
                wire.left().await;
                return;
            }
            Some(TokenHarm::Wait) => {
                releases.changed().await.ok();
                answer(&seen, stage, &mut pen).await
            }
            Some(TokenHarm::Answer(status, body)) => pen.whole(status, &[JSON], body.as_bytes()).await,
            Some(TokenHarm::Redirect(to)) => pen.whole(307, &[("Location", &to)], b"").await,
            Some(TokenHarm::Endless) => endless(&mut pen).await,
            None => answer(&seen, stage, &mut pen).await,
        };
        if done.is_err() {
            return;
        }
    }
}

async fn endless(pen: &mut Pen<'_>) -> io::Result<()> {
    pen.open(200, &[JSON]).await?;
    loop {
        pen.piece(&[b' '; 64 * 1024]).await?;
    }
}

async fn answer(seen: &Seen, stage: &TokenStage, pen: &mut Pen<'_>) -> io::Result<()> {
    let form = form(&String::from_utf8_lossy(&seen.body));
    let refused = match form.get("grant_type").map(String::as_str) {
        _ if seen.header("content-type") != Some("application/x-www-form-urlencoded") => Some("invalid_request"),
        Some("client_credentials") if client_of(seen, &form).as_ref() == Some(&stage.client) => None,
        Some("client_credentials") => Some("invalid_client"),
        _ => Some("unsupported_grant_type"),
    };
    if let Some(error) = refused {
        let said = json!({ "error": error, "error_description": "words of the authorization server" });
        return pen
            .whole(if error == "invalid_client" { 401 } else { 400 }, &[JSON], said.to_string().as_bytes())
            .await;
    }
    let said = {
        let mut state = stage.state();
        state.given += 1;
        let mut said = json!({ "access_token": format!("{TOKEN}{}", state.given), "token_type": "Bearer" });
        if let Some(life) = state.life {
            said["expires_in"] = json!(life);
        }
        said
    };
    pen.whole(200, &[JSON, ("Cache-Control", "no-store")], said.to_string().as_bytes()).await
}

/// Who asks, by either of the two ways; nobody if by both.
fn client_of(seen: &Seen, form: &BTreeMap<String, String>) -> Option<(String, String)> {
    let basic = seen.header("authorization").and_then(|value| value.strip_prefix("Basic ")).map(|packed| {
        let pair = String::from_utf8_lossy(&unpacked(packed)).into_owned();
        let (id, secret) = pair.split_once(':').unwrap_or_default();
        (decoded(id), decoded(secret))
    });
    let posted = form.get("client_id").zip(form.get("client_secret")).map(|(id, secret)| (id.clone(), secret.clone()));
    match (basic, posted) {
        (Some(client), None) | (None, Some(client)) => Some(client),
        (None, None) | (Some(_), Some(_)) => None,
    }
}

fn form(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        rest = tail;
        let byte = match (first, tail) {
            (b'+', _) => b' ',
            (b'%', [high, low, behind @ ..]) => {
                rest = behind;
                u8::from_str_radix(&String::from_utf8_lossy(&[*high, *low]), 16).unwrap_or(b'?')
            }
            (other, _) => *other,
        };
        bytes.push(byte);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Base64 undone, padding ignored.
fn unpacked(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let values: Vec<u8> = text.bytes().filter_map(value).collect();
    let mut bytes = Vec::new();
    for four in values.chunks(4) {
        let number =
            four.iter().fold(0_u32, |number, value| (number << 6) | u32::from(*value)) << (6 * (4 - four.len()));
        bytes.extend((1..four.len()).map(|at| (number >> (24 - 8 * at)) as u8));
    }
    bytes
}
