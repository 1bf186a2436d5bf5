//! `pods/exec` over WebSocket, in the channel protocols v5 and v4.
//!
//! Channel 0 is stdin, 1 stdout, 2 stderr, 3 the final status; in v5, 255 closes the channel named by the next byte.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderValue, Response, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role};
use tokio_util::task::TaskTracker;

use super::{container_of, status_of};
use crate::access::AccessRequest;
use crate::json;
use crate::program::{self, ProgramExit};
use crate::reply::{self, SandboxReply};
use crate::resources::ResourceRequest;
use crate::server::lock;
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const CLOSE: u8 = 255;

/// The longest a simulated command may take.
const LONGEST: Duration = Duration::from_secs(3600);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

struct ExecCommand {
    argv: Vec<String>,
    environment: Vec<(String, String)>,
    reads: bool,
    tty: bool,
}

/// Answers the upgrade and runs the command in a task.
pub(crate) fn answer(
    world: &Arc<Mutex<ClusterWorld>>,
    ask: &ResourceRequest,
    upgrade: OnUpgrade,
    tasks: &TaskTracker,
) -> Result<SandboxReply, ApiStatus> {
    let command = prepare(&lock(world), ask)?;
    let text = |name: header::HeaderName| ask.headers.get(name).and_then(|value| value.to_str().ok());
    let wanted = text(header::SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
    let offered: Vec<&str> = wanted.split(',').map(str::trim).collect();
    let protocol = ["v5.channel.k8s.io", "v4.channel.k8s.io"].into_iter().find(|one| offered.contains(one));
    let (Some(key), Some(protocol)) = (text(header::SEC_WEBSOCKET_KEY), protocol) else {
        return Err(ApiStatus::bad_request(
            "unable to upgrade: the sandbox speaks WebSocket with v5.channel.k8s.io or v4.channel.k8s.io",
        ));
    };
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes()))
        .map_err(|why| ApiStatus::internal(why.to_string()))?;
    tasks.spawn(async move {
        match upgrade.await {
            Ok(upgraded) => {
                let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
                if let Err(why) = converse(socket, command).await {
                    tracing::debug!(%why, "an exec conversation broke");
                }
            }
            Err(why) => tracing::debug!(%why, "an exec upgrade failed"),
        }
    });
    let mut reply = Response::new(reply::body(""));
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in [
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::CONNECTION, HeaderValue::from_static("Upgrade")),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
        (header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol)),
    ] {
        reply.headers_mut().insert(name, value);
    }
    Ok(reply)
}

fn prepare(world: &ClusterWorld, ask: &ResourceRequest) -> Result<ExecCommand, ApiStatus> {
    let target = &ask.target;
    let kind = world.kinds.find(&target.group, &target.version, &target.plural);
    let kind = kind.filter(|kind| kind.resource() == "pods").ok_or_else(ApiStatus::no_such_path)?;
    let wish = AccessRequest { verb: "create", group: "", resource: "pods", subresource: "exec" };
    if !ask.user.may(&wish) {
        return Err(ApiStatus::forbidden(&kind.named(), &target.name, &ask.user.refusal(&wish, &target.namespace)));
    }
    let pod = world.get(&kind, &target.namespace, &target.name)?;
    let container = container_of(&pod, ask.query.get("container"))?;
    let name = json::text_or_empty(container, "/name");
    let phase = json::text_or_empty(&pod, "/status/phase");
    if phase == "Succeeded" || phase == "Failed" {
        let why = format!("cannot exec into a container in a completed pod; current phase is {phase}");
        return Err(ApiStatus::bad_request(why));
    }
    if status_of(&pod, name).is_none_or(|status| status.pointer("/state/running").is_none()) {
        let mut refused = ApiStatus::internal(format!("unable to upgrade connection: container not found ({name:?})"));
        refused.code = StatusCode::INTERNAL_SERVER_ERROR;
        return Err(refused);
    }
    let argv: Vec<String> = ask.query.all("command").map(str::to_owned).collect();
    if argv.is_empty() {
        return Err(ApiStatus::bad_request("you must specify at least 1 command for the container"));
    }
    let environment = program::environment(world, &pod, container);
    Ok(ExecCommand { argv, environment, reads: ask.query.is_true("stdin"), tty: ask.query.is_true("tty") })
}

async fn converse(mut socket: Socket, command: ExecCommand) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    let stdin = if command.reads { read_stdin(&mut socket).await? } else { String::new() };
    let ended = program::run(&command.argv, &stdin, &command.environment);
    let pause = tokio::time::sleep(ended.lasts.min(LONGEST));
    tokio::pin!(pause);
    loop {
        tokio::select! {
            () = &mut pause => break,
            message = socket.next() => match message {
                Some(Ok(Message::Close(_))) | None => return Ok(()),
                Some(other) => drop(other?),
            },
        }
    }
    let stderr = if command.tty { STDOUT } else { STDERR };
    for (channel, text) in [(STDOUT, &ended.stdout), (stderr, &ended.stderr)] {
        if !text.is_empty() {
            socket.send(frame(channel, text.as_bytes())).await?;
        }
    }
    socket.send(frame(STATUS, status(&command, &ended).to_string().as_bytes())).await?;
    // Go clients take anything but a normal closure for a broken conversation.
    socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() })).await
}

/// Collects stdin until its channel is closed, or the client goes.
async fn read_stdin(socket: &mut Socket) -> Result<String, tokio_tungstenite::tungstenite::Error> {
    let mut collected = Vec::new();
    while let Some(message) = socket.next().await {
        let message = message?;
        if let Message::Binary(bytes) = &message {
            match bytes.split_first() {
                Some((&STDIN, data)) => collected.extend_from_slice(data),
                Some((&CLOSE, [STDIN])) => break,
                _ => {}
            }
        } else if message.is_close() {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&collected).into_owned())
}

fn frame(channel: u8, data: &[u8]) -> Message {
    let mut bytes = Vec::with_capacity(data.len() + 1);
    bytes.push(channel);
    bytes.extend_from_slice(data);
    Message::binary(bytes)
}

fn status(command: &ExecCommand, ended: &ProgramExit) -> Value {
    if ended.unknown {
        let program = command.argv.first().map(String::as_str).unwrap_or_default();
        let why = format!(
            "error executing command in container: failed to exec in container: OCI runtime exec failed: exec failed: \
             unable to start container process: exec: {program:?}: executable file not found in $PATH: unknown"
        );
        return ApiStatus::internal(why).body();
    }
    if ended.exit == 0 {
        return json!({ "metadata": {}, "status": "Success" });
    }
    let code = ended.exit.to_string();
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "details": { "causes": [{ "reason": "ExitCode", "message": code }] },
    })
}
