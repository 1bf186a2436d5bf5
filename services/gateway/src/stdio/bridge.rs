//! The tools of a hosted service on standard input and output: a desktop client reaches it as a local server.
//!
//! Every message is one HTTP request, and its answer becomes lines. Nothing is answered from here but what never reached
//! the service: lines that are no messages, a token that cannot be read, a service that cannot be reached.
//!
//! The client on this side knows no sessions. So the bridge keeps the session of a legacy client, follows its notices, and
//! opens another when the service has forgotten it.

mod exchange;
mod notices;

use crate::stdio::connection::Connection;
use crate::stdio::lines::LineWriter;
use anyhow::Context;
use egress::{HttpClient, Url};
use exchange::HostedAnswer;
use executor::Tasks;
use mcp::forward::{MessageHead, RequestHead, head};
use mcp::{MessageFault, WireError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncBufRead;
use tokio::sync::{Mutex, watch};

/// The longest line that is passed on, as the service takes it by default.
pub const LONGEST_LINE: usize = 4 * 1024 * 1024;
/// How long a connection to the service may take, TLS and proxy included.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long telling the service that the client has left may take.
const LAST_CLOSE: Duration = Duration::from_millis(300);
/// What the path of the service is where the address has none.
const PATH: &str = "/mcp";

/// A hosted service, and what its client has there.
pub struct Bridge {
    url: Url,
    token_file: PathBuf,
    http: HttpClient,
    session: watch::Sender<Option<HostedSession>>,
    /// What the client opened its session with, to open another; locked while one is opened.
    opening: Mutex<Option<Vec<u8>>>,
    tasks: Tasks,
}

/// A legacy session at the service.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostedSession {
    id: Option<String>,
    revision: String,
}

impl Bridge {
    /// A bridge to the service at `url` with the token in `token_file`, which is read for every message.
    pub fn open(url: &str, token_file: &Path, tasks: Tasks) -> anyhow::Result<Arc<Bridge>> {
        egress::check_operator_address(url).with_context(|| format!("--url {url} cannot be used"))?;
        let mut url = Url::parse(url)?;
        if url.path() == "/" {
            url.set_path(PATH);
        }
        let config = egress::Config { connect_within: CONNECT_WITHIN, ..egress::Config::default() };
        let http = egress::service_client(url.as_str(), &config)?;
        let (session, opening) = (watch::Sender::new(None), Mutex::default());
        Ok(Arc::new(Bridge { url, token_file: token_file.to_owned(), http, session, opening, tasks }))
    }

    /// Passes messages on until the connection is over.
    pub async fn serve<R: AsyncBufRead + Unpin>(self: Arc<Bridge>, mut connection: Connection<R>) {
        self.tasks.spawn("bridge notices", Arc::clone(&self).follow(connection.writer().clone()));
        while let Some(line) = connection.next().await {
            self.take(&connection, line).await;
        }
        connection.close().await;
        if tokio::time::timeout(LAST_CLOSE, self.leave()).await.is_err() {
            tracing::debug!("the service was not told that the client has left");
        }
    }

    async fn take<R: AsyncBufRead + Unpin>(self: &Arc<Bridge>, connection: &Connection<R>, line: Vec<u8>) {
        let (bridge, writer) = (Arc::clone(self), connection.writer().clone());
        match head(&line) {
            Err(refusal) => {
                writer.send(refusal.body(None)).await;
            }
            // Awaited, because later lines need its session.
            Ok(MessageHead::Request(request)) if request.version.is_none() && request.method == "initialize" => {
                let mut opening = self.opening.lock().await;
                self.session.send_replace(None);
                if let HostedAnswer::Opened(session) = self.post(&line, Some(&request), None, &writer).await {
                    *opening = Some(line);
                    self.session.send_replace(Some(session));
                }
            }
            Ok(MessageHead::Request(request)) => {
                // In the modern era the end of its HTTP request is the cancellation.
                let (id, cancellable) = (request.id.clone(), request.version.is_some());
                connection.answer(id, cancellable, async move { bridge.pass_on(&line, request, &writer).await }).await;
            }
            Ok(MessageHead::Cancelled(id)) if connection.cancel(&id) => {}
            Ok(MessageHead::Cancelled(_) | MessageHead::Other) => {
                // The modern era has no message of the client's that is not a request.
                let Some(session) = self.session.borrow().clone() else { return };
                self.tasks.spawn("bridge notification", async move {
                    bridge.post(&line, None, Some(&session), &writer).await;
                });
            }
        }
    }

    /// Passes a request on. One whose session the service has forgotten is sent once more, in another session: the first
    /// was refused before anything was done.
    async fn pass_on(&self, line: &[u8], request: RequestHead, writer: &LineWriter) {
        let session = self.session.borrow().clone().filter(|_| request.version.is_none());
        let answer = self.post(line, Some(&request), session.as_ref(), writer).await;
        let HostedAnswer::Forgotten(body) = answer else { return };
        let reopened = match session {
            Some(session) => self.reopen(&session).await,
            None => None,
        };
        let Some(reopened) = reopened else {
            writer.send(body).await;
            return;
        };
        writer.send(mcp::frames::list_changed(None)).await;
        if let HostedAnswer::Forgotten(body) = self.post(line, Some(&request), Some(&reopened), writer).await {
            writer.send(body).await;
        }
    }

    /// A session instead of one that is forgotten: the one that another request has opened meanwhile, or a new one.
    async fn reopen(&self, forgotten: &HostedSession) -> Option<HostedSession> {
        let opening = self.opening.lock().await;
        let now = self.session.borrow().clone();
        if now.as_ref() != Some(forgotten) {
            return now;
        }
        let session = self.open_again(opening.as_deref()?).await?;
        self.session.send_replace(Some(session.clone()));
        Some(session)
    }

    /// Tells the service that the client has left.
    async fn leave(&self) {
        let session = self.session.send_replace(None);
        if let Some(session) = session {
            self.close_session(&session).await;
        }
    }

    fn unreachable(&self, error: &egress::SendError) -> WireError {
        let sent = match error.nothing_was_sent() {
            true => "nothing was sent",
            false => "it is not known whether it acted on the message",
        };
        let message = format!("the service at {} did not answer; {sent}: {}", self.url, chain(error));
        WireError::new(MessageFault::ServiceUnreachable, message)
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |all, cause| format!("{all}: {cause}"))
}
