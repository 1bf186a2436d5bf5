//! The server that is called: one of ours in a process of its own, or a real one that already runs.
//!
//! Ours speaks the modern era and has one tool. It reads every request and builds every answer, as any server does; a
//! server of ready-made bytes would measure nothing that exists.

use crate::floor::healthy;
use crate::options::ServerOptions;
use crate::process::{Process, free_port};
use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;
use tempfile::TempDir;

const MODERN: &str = "2026-07-28";
/// The one tool of our own server.
const TOOL: &str = "weigh";

/// What is called, and where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallTarget {
    /// Where the server listens.
    pub(crate) address: SocketAddr,
    /// Its address.
    pub(crate) url: String,
    /// The tool, by the server's own name for it.
    pub(crate) tool: String,
    /// What it is called with.
    pub(crate) arguments: Value,
}

impl CallTarget {
    /// What the command line says about a real server.
    pub(crate) fn read(url: &str, tool: &str, arguments: &str) -> anyhow::Result<CallTarget> {
        let place = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let address = place.and_then(|place| place.parse().ok());
        let address = address.context("--upstream is an address like http://127.0.0.1:8000/mcp")?;
        let arguments: Value = serde_json::from_str(arguments).context("--arguments is no JSON")?;
        ensure!(arguments.is_object(), "--arguments is an object");
        Ok(CallTarget { address, url: url.to_owned(), tool: tool.to_owned(), arguments })
    }
}

/// A server that can be called.
pub(crate) struct CalledServer {
    /// What is called.
    pub(crate) called: CallTarget,
    work: Option<Duration>,
    /// The process, if it is ours.
    pub(crate) process: Option<Process>,
    _folder: Option<TempDir>,
}

impl CalledServer {
    /// Starts this very program as a server that works that long on each call.
    pub(crate) async fn start(work: Duration) -> anyhow::Result<CalledServer> {
        CalledServer::start_with(work, 1).await
    }

    /// The same with so many tools, of which one is called.
    pub(crate) async fn start_with(work: Duration, tools: usize) -> anyhow::Result<CalledServer> {
        let folder = tempfile::tempdir().context("no temporary folder for a server")?;
        let address = free_port()?;
        let millis = work.as_millis().to_string();
        let (port, tools) = (address.port().to_string(), tools.to_string());
        let words = ["upstream", "--port", &port, "--work-ms", &millis, "--tools", &tools].map(str::to_owned);
        let program = std::env::current_exe().context("this program does not know where it is")?;
        let mut process = Process::start("upstream", &program, &words, folder.path())?;
        process.up(async || healthy(address).await).await?;
        let called = CallTarget {
            address,
            url: format!("http://{address}/mcp"),
            tool: TOOL.to_owned(),
            arguments: json!({ "lot": "a-17" }),
        };
        Ok(CalledServer { called, work: Some(work), process: Some(process), _folder: Some(folder) })
    }

    /// A server that runs already and is not ours to stop.
    pub(crate) fn elsewhere(called: CallTarget) -> CalledServer {
        CalledServer { called, work: None, process: None, _folder: None }
    }

    /// Whether a call of it takes more than the way there.
    pub(crate) fn works(&self) -> bool {
        self.work != Some(Duration::ZERO)
    }
}

/// Is a server, until somebody ends the process.
pub(crate) fn serve(options: &ServerOptions) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))
        .with_context(|| format!("port {} is taken", options.port))?;
    let work = Duration::from_millis(options.work_ms);
    actix_web::rt::System::new().block_on(listen(listener, ServedWork { each: work, tools: options.tools }))
}

/// How long a call takes, and how many tools there are.
#[derive(Debug, Clone, Copy)]
struct ServedWork {
    each: Duration,
    tools: usize,
}

async fn listen(listener: TcpListener, work: ServedWork) -> anyhow::Result<()> {
    let server = HttpServer::new(move || {
        App::new()
            .app_data(Data::new(work))
            .route("/health", web::get().to(async || HttpResponse::Ok().finish()))
            .route("/mcp", web::post().to(answer))
    })
    .workers(std::thread::available_parallelism().map_or(2, usize::from))
    .disable_signals()
    .listen(listener)
    .context("this server cannot listen")?;
    server.run().await.context("this server ended")
}

async fn answer(body: Bytes, work: Data<ServedWork>) -> HttpResponse {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else { return HttpResponse::BadRequest().finish() };
    if message["id"].is_null() {
        return HttpResponse::Accepted().finish();
    }
    if message["method"] == "tools/call" && !work.each.is_zero() {
        tokio::time::sleep(work.each).await;
    }
    let (status, said) = said(&message, work.tools);
    let mut told = json!({ "jsonrpc": "2.0", "id": message["id"] });
    match said {
        Ok(mut result) => {
            result["resultType"] = json!("complete");
            told["result"] = result;
        }
        Err((code, message)) => told["error"] = json!({ "code": code, "message": message }),
    }
    HttpResponse::build(status).content_type("application/json").body(told.to_string())
}

type RpcResult = Result<Value, (i64, &'static str)>;

fn said(message: &Value, tools: usize) -> (StatusCode, RpcResult) {
    let params = &message["params"];
    if params["_meta"]["io.modelcontextprotocol/protocolVersion"] != MODERN {
        return (StatusCode::BAD_REQUEST, Err((-32022, "Unsupported protocol version")));
    }
    match message["method"].as_str().unwrap_or_default() {
        "server/discover" => (
            StatusCode::OK,
            Ok(json!({
                "supportedVersions": [MODERN], "capabilities": { "tools": {} },
                "ttlMs": 60_000, "cacheScope": "private"
            })),
        ),
        "tools/list" => {
            let all: Vec<Value> = (0..tools).map(definition).collect();
            (StatusCode::OK, Ok(json!({ "tools": all, "ttlMs": 60_000, "cacheScope": "private" })))
        }
        "tools/call" if params["name"] == TOOL => {
            let weighed = json!({ "lot": params["arguments"]["lot"], "grams": 4_200 });
            let content = json!([{ "type": "text", "text": weighed.to_string() }]);
            (StatusCode::OK, Ok(json!({ "content": content, "structuredContent": weighed })))
        }
        "tools/call" => (StatusCode::BAD_REQUEST, Err((-32602, "Unknown tool"))),
        _ => (StatusCode::NOT_FOUND, Err((-32601, "Method not found"))),
    }
}

/// The tool that is called is the first; the others are like it.
fn definition(number: usize) -> Value {
    let lot = json!({ "type": "object", "properties": { "lot": { "type": "string" } }, "required": ["lot"] });
    let annotations = json!({ "readOnlyHint": true });
    let name = if number == 0 { TOOL.to_owned() } else { format!("{TOOL}_{number}") };
    json!({ "name": name, "description": "Weigh one lot.", "inputSchema": lot, "annotations": annotations })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::KeptConnection;

    fn asked(method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": MODERN });
        said(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }), 1).1.unwrap_or_default()
    }

    #[test]
    fn what_is_listed_can_be_called() {
        assert_eq!(asked("server/discover", json!({}))["supportedVersions"], json!([MODERN]));
        let tool = asked("tools/list", json!({}))["tools"][0]["name"].clone();
        let told = asked("tools/call", json!({ "name": tool, "arguments": { "lot": "b" } }));
        assert_eq!(told["structuredContent"], json!({ "lot": "b", "grams": 4_200 }));
        assert_eq!(asked("tools/call", json!({ "name": "other" })), Value::Null);
        assert_eq!(said(&json!({ "id": 1, "method": "initialize" }), 1).0, StatusCode::BAD_REQUEST);
    }

    #[tokio::test]
    async fn it_answers_over_http_with_the_id_of_the_request() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            actix_web::rt::System::new().block_on(listen(listener, ServedWork { each: Duration::ZERO, tools: 1 }))
        });
        let request = crate::operations::direct("server/discover", json!({}));
        let mut connection = KeptConnection::open(address).await.unwrap();
        let told: Value = serde_json::from_slice(connection.send(&request).await.unwrap().body).unwrap();
        assert_eq!((&told["id"], &told["result"]["resultType"]), (&json!(1), &json!("complete")));
    }

    #[test]
    fn a_real_server_is_read_from_the_command_line() {
        let called = CallTarget::read("http://127.0.0.1:8000/mcp", "count", r#"{"item":"apple"}"#).unwrap();
        assert_eq!((called.address.port(), called.arguments), (8000, json!({ "item": "apple" })));
        for (url, arguments) in [("https://127.0.0.1:8000/mcp", "{}"), ("http://x/mcp", "{}"), ("", "{}")] {
            assert!(CallTarget::read(url, "count", arguments).unwrap_err().to_string().contains("--upstream"), "{url}");
        }
        for arguments in ["", "[]"] {
            let error = CallTarget::read("http://127.0.0.1:8000/mcp", "count", arguments).unwrap_err();
            assert!(error.to_string().contains("--arguments"), "{arguments}");
        }
    }
}
