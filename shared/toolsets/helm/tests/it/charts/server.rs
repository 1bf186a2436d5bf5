//! A web server that answers by path and remembers what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What is answered.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Only to whoever shows this; others are sent away with the challenge.
    pub(crate) only_with: Option<(String, String)>,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Answer {
        Answer { status: 200, body: body.into(), ..Answer::default() }
    }

    pub(crate) fn status(status: u16) -> Answer {
        Answer { status, ..Answer::default() }
    }

    pub(crate) fn moved(to: &str) -> Answer {
        Answer::status(302).header("location", to)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn only_with(mut self, authorization: &str, challenge: &str) -> Answer {
        self.only_with = Some((authorization.to_owned(), challenge.to_owned()));
        self
    }
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: u16,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
    _accepting: Arc<JoinSet<()>>,
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::at("127.0.0.1").await
    }

    pub(crate) async fn at(host: &str) -> Server {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answers, asked) = (Arc::<Mutex<HashMap<String, Answer>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (table, log) = (Arc::clone(&answers), Arc::clone(&asked));
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer).await {
                        Ok(n) if n > 0 => request.extend_from_slice(&buffer[..n]),
                        Ok(_) | Err(_) => break,
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let answer = table.lock().unwrap().get(&path).cloned().unwrap_or_else(|| Answer::status(404));
                log.lock().unwrap().push(request.clone());
                // Whoever stops reading early has seen enough.
                stream.write_all(&written(&answer, &request)).await.ok();
                stream.shutdown().await.ok();
            }
        });
        Server { host: host.to_owned(), port, answers, asked, _accepting: Arc::new(accepting) }
    }

    pub(crate) fn put(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}:{}{path}", self.host, self.port)
    }

    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Everything that was asked, headers and all.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The paths that were asked for.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.requests().iter().map(|request| request.split(' ').nth(1).unwrap_or_default().to_owned()).collect()
    }
}

fn written(answer: &Answer, request: &str) -> Vec<u8> {
    if let Some((wanted, challenge)) = &answer.only_with
        && !request.contains(&format!("authorization: {wanted}\r\n"))
    {
        let head = "HTTP/1.1 401 X\r\ncontent-length: 0\r\nconnection: close\r\nwww-authenticate: ";
        return format!("{head}{challenge}\r\n\r\n").into_bytes();
    }
    let headers: String = answer.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 {} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
        answer.status,
        answer.body.len()
    );
    [head.into_bytes(), answer.body.clone()].concat()
}
