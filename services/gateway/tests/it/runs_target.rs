//! The target of the crash matrix: a server on loopback that outlives every replica and counts what they do to it.
//!
//! It keeps lots, each with a value, and remembers who sent what by run. An effect is a change: putting a value where it
//! is already changes nothing, adding to it always does. What was begun goes on when its sender dies, as it does in a
//! real cluster; until it is done the target says that it works on it.

use crate::runs_replica::Errand;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// One piece of work that somebody sent.
#[derive(Debug, Clone)]
struct Sent {
    run: String,
    digest: String,
    done: bool,
    changed: bool,
}

#[derive(Default)]
struct Yard {
    lots: HashMap<String, i64>,
    sent: Vec<Sent>,
    /// Who has looked at a lot, and has or has not been answered.
    looked: usize,
}

/// The target, as the test sees it.
pub(crate) struct Target {
    address: SocketAddr,
    yard: Mutex<Yard>,
    works: watch::Sender<bool>,
    shows: watch::Sender<bool>,
}

impl Target {
    /// Starts it; it ends with the test's runtime.
    #[expect(clippy::disallowed_methods, reason = "a server of the test, not work of the service")]
    pub(crate) async fn start() -> Arc<Target> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Arc::new(Target {
            address: listener.local_addr().unwrap(),
            yard: Mutex::default(),
            works: watch::Sender::new(true),
            shows: watch::Sender::new(true),
        });
        let serving = Arc::clone(&target);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let target = Arc::clone(&serving);
                tokio::spawn(async move { target.serve(stream).await });
            }
        });
        target
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes work and does not get on with it, or gets on with what it has.
    pub(crate) fn works(&self, goes_on: bool) {
        self.works.send_replace(goes_on);
    }

    /// Shows nobody what there is, or answers those who wait.
    pub(crate) fn shows(&self, answers: bool) {
        self.shows.send_replace(answers);
    }

    /// How often a run has changed something here.
    pub(crate) fn effects(&self, run: &str) -> usize {
        self.count(|sent| sent.run == run && sent.changed)
    }

    /// How often a run was sent here.
    pub(crate) fn sent(&self, run: &str) -> usize {
        self.count(|sent| sent.run == run)
    }

    /// The digests under which a run was sent.
    pub(crate) fn digests(&self, run: &str) -> Vec<String> {
        let yard = self.yard.lock().unwrap();
        yard.sent.iter().filter(|sent| sent.run == run).map(|sent| sent.digest.clone()).collect()
    }

    /// Every run that was ever sent here.
    pub(crate) fn runs(&self) -> Vec<String> {
        self.yard.lock().unwrap().sent.iter().map(|sent| sent.run.clone()).collect()
    }

    /// Waits until that much has been sent in all.
    pub(crate) async fn reached(&self, times: usize) {
        until("work to reach the target", async || (self.count(|_| true) >= times).then_some(())).await;
    }

    /// How often anybody has looked so far.
    pub(crate) fn looks(&self) -> usize {
        self.yard.lock().unwrap().looked
    }

    fn count(&self, which: impl Fn(&Sent) -> bool) -> usize {
        self.yard.lock().unwrap().sent.iter().filter(|sent| which(sent)).count()
    }

    async fn serve(&self, mut stream: TcpStream) {
        let Some((path, body)) = read(&mut stream).await else { return };
        let answer = match path.split_once('/') {
            Some(("jobs", run)) => self.state_of(run),
            Some(("lots", lot)) => self.show(lot).await,
            Some(("do", _)) => self.carry_out(&body).await,
            Some(_) | None => Value::Null,
        };
        let text = answer.to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
        // Whoever asked may be dead by now.
        stream.write_all(format!("{head}{text}").as_bytes()).await.ok();
    }

    fn state_of(&self, run: &str) -> Value {
        let yard = self.yard.lock().unwrap();
        let mut of_run = yard.sent.iter().filter(|sent| sent.run == run).peekable();
        json!(match (of_run.peek().is_some(), of_run.any(|sent| sent.done)) {
            (false, _) => "absent",
            (true, false) => "working",
            (true, true) => "done",
        })
    }

    async fn show(&self, lot: &str) -> Value {
        self.yard.lock().unwrap().looked += 1;
        self.shows.subscribe().wait_for(|open| *open).await.unwrap();
        json!(self.yard.lock().unwrap().lots.contains_key(lot))
    }

    async fn carry_out(&self, body: &Value) -> Value {
        let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
        let sent = Sent { run: text("run"), digest: text("digest"), done: false, changed: false };
        let place = {
            let mut yard = self.yard.lock().unwrap();
            yard.sent.push(sent);
            yard.sent.len() - 1
        };
        self.works.subscribe().wait_for(|open| *open).await.unwrap();
        let mut yard = self.yard.lock().unwrap();
        let (lot, n) = (text("lot"), body["n"].as_i64().unwrap());
        let before = yard.lots.get(&lot).copied();
        let after = if text("tool") == Errand::Put.name() { n } else { before.unwrap_or_default() + n };
        yard.lots.insert(lot, after);
        let entry = &mut yard.sent[place];
        (entry.done, entry.changed) = (true, before != Some(after));
        json!({ "now": after })
    }
}

/// Path and body of one request; `None` if it was broken off.
async fn read(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                let path = head.split(' ').nth(1)?.strip_prefix('/')?.to_owned();
                return Some((path, serde_json::from_str(body).unwrap_or_default()));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
