//! What a node of a cluster may answer instead of doing what it was told, and an answer that gets lost. A real node stands
//! behind a proxy that has single calls of scripts answered otherwise.

use crate::bench::{call, config, opening, session_id, tenant};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{Commit, Committed, Config, RecordKey, RecordVersion, Store, StoreError, StreamName, TenantStore};
use testkit::redis::{RedisServer, SAFE};

/// What happens to the next calls of scripts.
#[derive(Clone)]
enum Injected {
    /// They are refused with these words, so many times.
    Refused(String, usize),
    /// The next one is done, and its answer never comes.
    Unanswered,
}

/// What the proxy is told, and what it has seen.
#[derive(Default)]
struct Script {
    next: Mutex<Option<Injected>>,
    /// Whether that is for the reading of a record, and not for the calls of scripts.
    reads: AtomicBool,
    calls: AtomicUsize,
}

/// A cluster of one node, all of whose clients come through the proxy.
struct Proxied {
    server: RedisServer,
    port: u16,
    script: Arc<Script>,
}

impl Proxied {
    fn start() -> Proxied {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let bus = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port().to_string();
        let announced = port.to_string();
        let more = ["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-announce-port", &announced];
        let server = RedisServer::start_with(&[&SAFE[..], &more[..]].concat());
        assert_eq!(server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]), "+OK");
        while server.command(&["SET", "up", "1"]) != "+OK" {
            std::thread::sleep(Duration::from_millis(10));
        }
        let (script, real) = (Arc::<Script>::default(), server.port());
        let told = Arc::clone(&script);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(node) = TcpStream::connect((Ipv4Addr::LOCALHOST, real)) else { return };
                let (mut back, mut answers) = (client.try_clone().unwrap(), node.try_clone().unwrap());
                std::thread::spawn(move || drop(std::io::copy(&mut answers, &mut back)));
                let told = Arc::clone(&told);
                std::thread::spawn(move || drop(pass_on(client, node, &told)));
            }
        });
        Proxied { server, port, script }
    }

    fn config(&self) -> Config {
        Config { deadline: Duration::from_secs(3), ..config(format!("redis+cluster://127.0.0.1:{}", self.port)) }
    }

    fn inject(&self, injected: Injected) {
        *self.script.next.lock().unwrap() = Some(injected);
    }

    fn calls(&self) -> usize {
        self.script.calls.load(Ordering::Relaxed)
    }
}

/// Passes commands on one by one, and those of scripts as it is told.
fn pass_on(client: TcpStream, mut node: TcpStream, script: &Script) -> std::io::Result<()> {
    let end = client.try_clone()?;
    let mut commands = BufReader::new(client);
    loop {
        let mut head = String::new();
        if commands.read_line(&mut head)? == 0 {
            return node.shutdown(std::net::Shutdown::Both);
        }
        let (mut whole, mut words) = (head.clone().into_bytes(), Vec::new());
        for _ in 0..head.trim_start_matches('*').trim_end().parse::<usize>().unwrap_or(0) {
            let mut length = String::new();
            commands.read_line(&mut length)?;
            let mut word = vec![0; length.trim_start_matches('$').trim_end().parse::<usize>().unwrap_or(0) + 2];
            commands.read_exact(&mut word)?;
            whole.extend(length.as_bytes());
            whole.extend(&word);
            words.push(word);
        }
        let name = words.first().map_or(&b""[..], Vec::as_slice);
        if name == b"EVALSHA\r\n" {
            script.calls.fetch_add(1, Ordering::Relaxed);
        }
        let reads = script.reads.load(Ordering::Relaxed);
        if name != if reads { &b"HMGET\r\n"[..] } else { &b"EVALSHA\r\n"[..] } {
            node.write_all(&whole)?;
            continue;
        }
        let mut next = script.next.lock().unwrap();
        match next.take() {
            None => node.write_all(&whole)?,
            Some(Injected::Refused(what, times)) => {
                *next = (times > 1).then(|| Injected::Refused(what.clone(), times - 1));
                let code = format!("return redis.error_reply('{what}')");
                node.write_all(format!("*3\r\n$4\r\nEVAL\r\n${}\r\n{code}\r\n$1\r\n0\r\n", code.len()).as_bytes())?;
            }
            Some(Injected::Unanswered) => {
                // The node has it; whoever sent it hears that the connection is gone.
                end.shutdown(std::net::Shutdown::Both)?;
                node.write_all(&whole)?;
            }
        }
    }
}

fn stream() -> StreamName {
    StreamName::checkpoints()
}

fn write(expect: u64) -> Commit {
    let record = Commit::write(RecordKey::session(session_id(1)), RecordVersion::new(expect), b"a".to_vec());
    Commit { append: vec![(stream(), b"a".to_vec())], ..record }
}

async fn appended(shelf: &TenantStore) -> usize {
    loop {
        if let Ok(entries) = shelf.read(&stream(), None, 100).await {
            return entries.len();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_a_node_refuses_is_sent_again_and_done_once() {
    let node = Proxied::start();
    let store = Store::open(&node.config()).await.unwrap();
    let acme = store.of(&tenant("acme"));
    let here = format!("127.0.0.1:{}", node.port);
    let refusals = [
        "TRYAGAIN Multiple keys request during rehashing of slot".to_owned(),
        "CLUSTERDOWN The cluster is down".to_owned(),
        "LOADING Redis is loading the dataset in memory".to_owned(),
        "READONLY You can not write against a read only replica.".to_owned(),
        "MASTERDOWN Link with MASTER is down".to_owned(),
        "NOSCRIPT No matching script.".to_owned(),
        format!("MOVED 1 {here}"),
        format!("ASK 1 {here}"),
        // The host that said so.
        format!("MOVED 1 :{}", node.port),
    ];
    for (expect, refusal) in (0..).zip(&refusals) {
        let before = node.calls();
        node.inject(Injected::Refused(refusal.clone(), 1));
        let committed = acme.commit(write(expect)).await;
        assert!(matches!(committed, Ok(Committed::Done(..))), "{refusal}: {committed:?}");
        assert_eq!(appended(&acme).await, expect as usize + 1, "{refusal}");
        assert!(node.calls() >= before + 2, "{refusal} was not said");
    }
}

#[tokio::test]
async fn a_node_that_goes_on_refusing_is_an_error_and_nothing_is_done() {
    let node = Proxied::start();
    let store = Store::open(&node.config()).await.unwrap();
    let acme = store.of(&tenant("acme"));
    for refusal in ["TRYAGAIN later".to_owned(), format!("MOVED 1 127.0.0.1:{}", node.port)] {
        node.inject(Injected::Refused(refusal.clone(), 1_000));
        let error = acme.commit(write(0)).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{refusal}: {error:?}");
        *node.script.next.lock().unwrap() = None;
        assert_eq!(appended(&acme).await, 0);
    }
    assert!(matches!(acme.commit(write(0)).await.unwrap(), Committed::Done(..)));
}

#[tokio::test]
async fn what_got_no_answer_is_never_sent_again() {
    let node = Proxied::start();
    let store = Store::open(&node.config()).await.unwrap();
    let acme = store.of(&tenant("acme"));
    assert!(matches!(acme.commit(write(0)).await.unwrap(), Committed::Done(..)));
    let before = node.calls();
    node.inject(Injected::Unanswered);
    acme.commit(write(1)).await.unwrap_err();
    assert_eq!(appended(&acme).await, 2, "it did happen, once");
    assert_eq!(node.calls(), before + 1);
    assert!(matches!(acme.commit(write(1)).await.unwrap(), Committed::Conflict(version, _) if version.number() == 2));
    assert!(node.server.runs());
}

#[tokio::test]
async fn of_a_batch_only_the_refused_step_is_sent_again() {
    let node = Proxied::start();
    let store = Store::open(&node.config()).await.unwrap();
    let acme = store.of(&tenant("acme"));
    acme.begin(&opening(&call(1, Some(session_id(8))))).await.unwrap().opened().unwrap();
    let before = node.calls();
    node.script.reads.store(true, Ordering::Relaxed);
    node.inject(Injected::Refused("TRYAGAIN later".to_owned(), 1));
    acme.begin(&opening(&call(2, Some(session_id(8))))).await.unwrap().opened().unwrap();
    assert!(node.script.next.lock().unwrap().is_none(), "the read was refused");
    assert_eq!(node.calls(), before + 1, "the entry was written already");
    assert_eq!(acme.audit().page(None, 10).await.unwrap().len(), 2);
}
