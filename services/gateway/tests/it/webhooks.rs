//! Notices of runs to the outside: signed, retried, and in nobody's way.

use crate::here::in_process;
use crate::runs_desk::{approve, ended};
use executor::runs::notice::sign;
use serde_json::{Value, json};
use std::net::SocketAddr;
use testkit::Plan;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const SECRET: &[u8] = b"a secret that both sides know, long enough";

/// One notice as it arrived.
struct Arrived {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Arrived {
    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A receiver that answers the statuses in turn, the last one for ever; status 0 means no answer at all.
async fn receiver(statuses: Vec<u16>) -> (SocketAddr, mpsc::Receiver<Arrived>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, arrived) = mpsc::channel(64);
    #[expect(clippy::disallowed_methods, reason = "the receiver lives as long as the test's runtime")]
    tokio::spawn(async move {
        let mut statuses = statuses.into_iter().peekable();
        while let Ok((stream, _)) = listener.accept().await {
            let status = if statuses.len() > 1 { statuses.next() } else { statuses.peek().copied() }.unwrap_or(200);
            take(stream, status, &sender).await;
        }
    });
    (address, arrived)
}

async fn take(mut stream: TcpStream, status: u16, sender: &mpsc::Sender<Arrived>) {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    let head = loop {
        let read = stream.read(&mut part).await.unwrap_or(0);
        bytes.extend_from_slice(&part[..read]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if read == 0 {
            return;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let headers: Vec<(String, String)> = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.iter().find(|(n, _)| n == "content-length").unwrap().1.parse().unwrap();
    while bytes.len() < head + 4 + length {
        let read = stream.read(&mut part).await.unwrap();
        bytes.extend_from_slice(&part[..read]);
    }
    let body = bytes[head + 4..].to_vec();
    sender.send(Arrived { headers, body }).await.ok();
    if status == 0 {
        std::future::pending::<()>().await;
    }
    let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.ok();
}

async fn world(address: SocketAddr, format: &str) -> (crate::here::World, tempfile::TempDir) {
    world_with(address, format, ("QM_APPROVALS__CONSOLE_URL", "https://desk.example.com/")).await
}

async fn world_with(
    address: SocketAddr,
    format: &str,
    (name, value): (&str, &str),
) -> (crate::here::World, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("webhook.key");
    std::fs::write(&secret, SECRET).unwrap();
    let plan = Plan::embedded()
        .setting("QM_APPROVALS__WEBHOOK_URL", &format!("http://{address}/hook"))
        .setting("QM_APPROVALS__WEBHOOK_SECRET_FILE", &secret.display().to_string())
        .setting("QM_APPROVALS__WEBHOOK_FORMAT", format)
        .setting(name, value);
    (plan.start(in_process()).await, dir)
}

fn document(path: &str) -> Value {
    json!({ "path": path, "type": "note", "content": "hello <!channel>", "evidence": "a test" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_announced_when_it_waits_when_it_is_decided_and_when_it_ends() {
    let (address, mut arrived) = receiver(vec![200]).await;
    let (world, _dir) = world(address, "json").await;
    let acme = world.tenant("acme");
    let agent = acme.agent().legacy().await;
    agent.load("memory:write").await;

    let pending = agent.call("memory_remember", document("tenant/runbooks/a")).await;
    let id = pending.ok()["run"]["id"].as_str().unwrap().to_owned();
    let approved = acme.approver().rest().post(&format!("/v1/runs/{id}/approve"), &json!({})).await;
    assert_eq!(approved.status, 200, "{}", approved.text());

    for event in ["run.pending", "run.decided", "run.finished"] {
        let notice = arrived.recv().await.unwrap();
        let timestamp: u64 = notice.header("x-quartermaster-timestamp").parse().unwrap();
        assert_eq!(notice.header("x-quartermaster-signature"), sign(SECRET, timestamp, &notice.body));
        assert_eq!(notice.header("x-quartermaster-event"), event);
        let told = notice.json();
        assert_eq!((&told["event"], &told["tenant"], &told["run"]["id"]), (&json!(event), &json!("acme"), &json!(id)));
        assert_eq!(told["link"], json!(format!("https://desk.example.com/runs/{id}")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_leads_to_the_page_of_the_console_that_is_served() {
    let (address, mut arrived) = receiver(vec![200]).await;
    let (world, _dir) = world_with(address, "json", ("QM_CONSOLE__ENABLED", "true")).await;
    let agent = world.tenant("acme").agent().legacy().await;
    agent.load("memory:write").await;
    let pending = agent.call("memory_remember", document("tenant/runbooks/a")).await;
    let page = pending.ok()["run"]["page"].clone();
    assert!(page.as_str().unwrap().starts_with("https://qm.example.com/console/runs/run_"), "{page}");
    assert_eq!(arrived.recv().await.unwrap().json()["link"], page);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_holds_the_beginning_and_says_how_much_is_missing() {
    let long = json!({ "path": "tenant/runbooks/long", "type": "note", "content": "one line\n".repeat(2_000), "evidence": "a test" });
    for format in ["json", "slack"] {
        let (address, mut arrived) = receiver(vec![200]).await;
        let (world, _dir) = world(address, format).await;
        let agent = world.tenant("acme").agent().legacy().await;
        agent.load("memory:write").await;
        let pending = agent.call("memory_remember", long.clone()).await;
        let run = pending.ok()["run"]["id"].as_str().unwrap().to_owned();
        let seen = world.tenant("acme").approver().rest().get(&format!("/v1/runs/{run}")).await.json();
        let whole = seen["preview"]["text"].as_str().unwrap();
        let notice = arrived.recv().await.unwrap().json();
        match format {
            "json" => {
                let (posted, shown) = (&notice["run"], notice["run"]["preview"]["text"].as_str().unwrap());
                assert!(whole.starts_with(shown) && shown.chars().count() == 4_000, "{shown}");
                let left =
                    json!({ "characters": whole.chars().count() - 4_000, "read_all": format!("/v1/runs/{run}") });
                assert_eq!((&posted["preview"]["not_shown"], posted.get("arguments")), (&left, None));
            }
            _ => {
                let left = format!("{} characters are not shown here", whole.chars().count());
                let text = notice["text"].as_str().unwrap();
                assert!(text.contains(&left) && text.contains(&format!("quartermaster runs show {run}")), "{text}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_is_told_the_warnings_before_anything_that_the_requester_chose() {
    let (address, mut arrived) = receiver(vec![200]).await;
    let (world, _dir) = world(address, "slack").await;
    let acme = world.tenant("acme");
    let agent = acme.agent().legacy().await;
    agent.load("memory:write").await;
    let made = agent.call("memory_remember", document("tenant/runbooks/a")).await;
    let id = made.ok()["run"]["id"].as_str().unwrap().to_owned();
    approve(&acme.approver(), &id).await;
    ended(&acme.approver(), &id).await;

    agent.call("memory_forget", json!({ "path": "tenant/runbooks/a", "reason": "a test" })).await.ok();

    let text = loop {
        let text = arrived.recv().await.unwrap().json()["text"].as_str().unwrap().to_owned();
        if text.contains("memory_forget") {
            break text;
        }
    };
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "WARNING: This takes something away or puts service at risk.", "{text}");
    assert!(lines[2].contains("tenant/runbooks/a"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_stumbles_is_asked_again() {
    let (address, mut arrived) = receiver(vec![500, 200]).await;
    let (world, _dir) = world(address, "slack").await;
    let agent = world.tenant("acme").agent().legacy().await;
    agent.load("memory:write").await;

    agent.call("memory_remember", document("tenant/runbooks/<b>")).await;
    agent.call("memory_remember", document("tenant/runbooks/b")).await;

    let (first, second) = (arrived.recv().await.unwrap(), arrived.recv().await.unwrap());
    assert_eq!(first.body, second.body, "the same notice, sent again");
    let text = first.json()["text"].as_str().unwrap().to_owned();
    assert!(text.contains("waits for a person") && text.contains("https://desk.example.com/runs/run_"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_never_answers_holds_up_no_call() {
    let (address, mut arrived) = receiver(vec![0]).await;
    let (world, _dir) = world(address, "json").await;
    let agent = world.tenant("acme").agent().legacy().await;
    agent.load("memory:write").await;

    for n in 0..15 {
        let pending = agent.call("memory_remember", document(&format!("tenant/runbooks/n{n}"))).await;
        assert_eq!(pending.ok()["run"]["state"], json!("pending_approval"));
    }
    assert!(arrived.recv().await.is_some(), "it was tried");
}
