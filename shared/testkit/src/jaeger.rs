//! A real Jaeger: it takes OTLP on loopback, and is asked for the traces it keeps.

use crate::http::Request;
use crate::patience::in_time;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Names the program. Without it tests that need a Jaeger are left out; the ring `tracing` sets it.
const PROGRAM: &str = "QUARTERMASTER_TEST_JAEGER";
/// How long a trace may take to be found.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running Jaeger, with its traces in memory.
pub struct Jaeger {
    otlp: SocketAddr,
    query: SocketAddr,
    process: Child,
}

impl Jaeger {
    /// The program, if the machine has one.
    pub fn program() -> Option<PathBuf> {
        std::env::var_os(PROGRAM).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// Starts it.
    #[expect(clippy::disallowed_methods, reason = "a test's own process, never part of the service")]
    pub async fn start(program: &Path) -> Jaeger {
        let (otlp, query) = (free(), free());
        // It listens for much that nobody asks for here: wherever there is room.
        let elsewhere = [
            "admin.http",
            "collector.grpc-server",
            "collector.http-server",
            "collector.otlp.http",
            "query.grpc-server",
        ];
        let mut command = Command::new(program);
        command
            .args(elsewhere.map(|name| format!("--{name}.host-port=127.0.0.1:0")))
            .arg(format!("--collector.otlp.grpc.host-port={otlp}"))
            .arg(format!("--query.http-server.host-port={query}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = command.spawn().expect("Jaeger should start");
        let jaeger = Jaeger { otlp, query, process };
        jaeger.until("Jaeger to answer", async || jaeger.get("/api/services").await.map(|_| ())).await;
        jaeger
    }

    /// Where it takes OTLP over gRPC.
    pub fn url(&self) -> String {
        format!("http://{}", self.otlp)
    }

    /// The spans of the service whose tag has this value, as Jaeger gives them, once there is one of each name.
    pub async fn spans(&self, tag: &str, value: &str, names: &[&str]) -> Vec<JaegerSpan> {
        let tags = format!("%7B%22{tag}%22%3A%22{value}%22%7D");
        let path = format!("/api/traces?service=quartermaster&limit=100&lookback=1h&tags={tags}");
        let has_all = |spans: &Vec<JaegerSpan>| names.iter().all(|name| spans.iter().any(|span| span.name() == *name));
        let look = async || Some(spans_of(&self.get(&path).await?)).filter(has_all);
        self.until(&format!("spans {names:?} with {tag} {value}"), look).await
    }

    /// The spans of one trace.
    pub async fn trace(&self, id: &str) -> Vec<JaegerSpan> {
        let look = async || Some(spans_of(&self.get(&format!("/api/traces/{id}")).await?));
        self.until(&format!("the trace {id}"), look).await
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let answer = in_time("Jaeger", Request::new("GET", path).try_send(self.query)).await?;
        (answer.status == 200).then(|| serde_json::from_slice(&answer.body).unwrap_or(Value::Null))
    }

    async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(found) => found,
            Err(_) => panic!("waited {} s for {what}", PATIENCE.as_secs()),
        }
    }
}

impl Drop for Jaeger {
    fn drop(&mut self) {
        // Both fail only if it has ended by itself, which is what we want.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port should be free");
    listener.local_addr().expect("a bound port should be known")
}

/// A span as Jaeger gives it.
#[derive(Debug, Clone)]
pub struct JaegerSpan {
    json: Value,
    /// Which replica sent it.
    pub replica: String,
}

impl JaegerSpan {
    /// Its name.
    pub fn name(&self) -> &str {
        self.json["operationName"].as_str().unwrap_or_default()
    }

    /// Its trace and its own id.
    pub fn place(&self) -> (String, String) {
        place_of(&self.json)
    }

    /// One of its attributes, as text.
    pub fn tag(&self, name: &str) -> Option<String> {
        tag(&self.json["tags"], name)
    }

    /// The spans it refers to: its parent, and those it is linked to.
    pub fn references(&self) -> Vec<(String, String)> {
        self.json["references"].as_array().into_iter().flatten().map(place_of).collect()
    }
}

fn place_of(json: &Value) -> (String, String) {
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    (text("traceID"), text("spanID"))
}

fn tag(tags: &Value, name: &str) -> Option<String> {
    let tag = tags.as_array()?.iter().find(|tag| tag["key"] == name)?;
    Some(tag["value"].as_str().map_or_else(|| tag["value"].to_string(), str::to_owned))
}

fn spans_of(answer: &Value) -> Vec<JaegerSpan> {
    let traces = answer["data"].as_array().into_iter().flatten();
    let of_trace = |trace: &Value| {
        let processes = trace["processes"].clone();
        let span = move |json: &Value| {
            let process = &processes[json["processID"].as_str().unwrap_or_default()];
            let replica = tag(&process["tags"], "service.instance.id").unwrap_or_default();
            JaegerSpan { json: json.clone(), replica }
        };
        trace["spans"].as_array().into_iter().flatten().map(span).collect::<Vec<_>>()
    };
    traces.flat_map(of_trace).collect()
}
