//! What the guarded client does on the wire: where it connects, whom it asks for names, what it reads.

use egress::{AddressGuard, AddressRefused, Config, Guarded, GuardedRequest, Lookup, SendError, Url};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Answers every connection with the same bytes and keeps what was asked.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Vec<u8>>>>,
    _accepting: JoinSet<()>,
}

impl Server {
    async fn answering(answer: impl Into<Vec<u8>>) -> Server {
        Server::at("127.0.0.1:0", answer).await
    }

    async fn at(place: &str, answer: impl Into<Vec<u8>>) -> Server {
        let answer = answer.into();
        let listener = TcpListener::bind(place).await.expect("a free port");
        let port = listener.local_addr().expect("a bound port").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let read = stream.read(&mut request).await.unwrap_or(0);
                request.truncate(read);
                seen.lock().expect("no panic elsewhere").push(request);
                // A client that refuses early closes first; that is its right.
                stream.write_all(&answer).await.ok();
                stream.shutdown().await.ok();
            }
        });
        Server { port, asked, _accepting: accepting }
    }

    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().expect("no panic elsewhere");
        asked.iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }

    fn url(&self, host: &str) -> Url {
        Url::parse(&format!("http://{host}:{}/index.yaml", self.port)).expect("an address")
    }
}

/// A resolver that gives its answers in turn, the last one for ever, and counts the questions.
#[derive(Clone)]
struct Names {
    answers: Vec<Vec<IpAddr>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    fn answering(answers: &[&[&str]]) -> Names {
        let parsed = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().expect("an address")).collect();
        Names { answers: answers.iter().map(parsed).collect(), asked: Arc::default() }
    }

    fn lookup(&self) -> Lookup {
        let names = self.clone();
        Arc::new(move |name| {
            let mut asked = names.asked.lock().expect("no panic elsewhere");
            let answer = names.answers[asked.len().min(names.answers.len() - 1)].clone();
            asked.push(name);
            Box::pin(async move { Ok(answer) })
        })
    }

    fn asked(&self) -> usize {
        self.asked.lock().expect("no panic elsewhere").len()
    }
}

fn client(private: bool, port: u16, names: &Names) -> Guarded {
    // Several tests of one process may come first; whoever does installs the same provider.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let config = Config { connect_within: Duration::from_secs(2), ..Config::default() };
    AddressGuard { private, ports: vec![port] }.client_resolving(&config, names.lookup()).expect("a client")
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn https(host: &str, port: u16) -> Url {
    Url::parse(&format!("https://{host}:{port}/")).expect("an address")
}

fn refusal(error: SendError) -> AddressRefused {
    match error {
        SendError::Refused(refused) => refused,
        SendError::NoAnswer(_) | SendError::TooLong { .. } => panic!("not refused but {error:?}"),
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_dialled_where_it_was_vetted() {
    let vetted = Server::answering(ok("vetted")).await;
    let second = Server::at(&format!("127.0.0.2:{}", vetted.port), ok("second")).await;
    let names = Names::answering(&[&["127.0.0.1"], &["127.0.0.2"]]);

    let url = vetted.url("charts.example");
    let answer = client(true, vetted.port, &names).send(GuardedRequest::get(&url), 100).await.unwrap();

    assert_eq!(answer.body, b"vetted");
    assert_eq!(names.asked(), 1);
    assert!(vetted.asked()[0].contains(&format!("host: charts.example:{}\r\n", vetted.port)), "{:?}", vetted.asked());
    assert_eq!(second.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_turns_to_a_metadata_address_is_dialled_nowhere() {
    let server = Server::answering(ok("first")).await;
    let names = Names::answering(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let client = client(true, server.port, &names);
    let url = server.url("charts.example");

    assert!(client.send(GuardedRequest::get(&url), 100).await.is_ok());
    let error = client.send(GuardedRequest::get(&url), 100).await.unwrap_err();

    assert_eq!(refusal(error), AddressRefused::Range);
    assert_eq!(names.asked(), 2);
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_public_name_with_a_private_address_is_dialled_nowhere() {
    let server = Server::answering(ok("secret")).await;
    for hidden in [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "fd00::1",
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "0.0.0.0",
        "::",
        "255.255.255.255",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "2001::1",
        "192.0.2.1",
        "100.100.100.200",
        "168.63.129.16",
        "224.0.0.1",
    ] {
        let names = Names::answering(&[&[hidden]]);
        let url = https("charts.example", server.port);

        let error = client(false, server.port, &names).send(GuardedRequest::get(&url), 100).await.unwrap_err();

        assert_eq!(refusal(error), AddressRefused::Range, "{hidden}");
        assert_eq!(names.asked(), 1, "{hidden}");
    }
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn one_bad_address_among_good_ones_refuses_them_all() {
    let server = Server::answering(ok("first")).await;
    let names = Names::answering(&[&["127.0.0.1", "169.254.169.254"]]);

    let url = server.url("charts.example");
    let error = client(true, server.port, &names).send(GuardedRequest::get(&url), 100).await.unwrap_err();

    assert_eq!(refusal(error), AddressRefused::Range);
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn in_the_clear_a_name_must_not_lead_to_the_public_network() {
    let names = Names::answering(&[&["1.1.1.1"]]);
    let url = Url::parse("http://charts.example:8080/").unwrap();

    let error = client(true, 8080, &names).send(GuardedRequest::get(&url), 100).await.unwrap_err();

    assert_eq!(refusal(error), AddressRefused::Insecure);
}

#[tokio::test]
async fn a_literal_address_is_judged_before_each_request_since_no_resolver_sees_it() {
    let server = Server::answering(ok("secret")).await;
    let names = Names::answering(&[&["1.1.1.1"]]);
    let client = client(false, server.port, &names);
    for host in ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "0", "[::1]", "[::ffff:7f00:1]"] {
        let error = client.send(GuardedRequest::get(&https(host, server.port)), 100).await.unwrap_err();

        assert_eq!(refusal(error), AddressRefused::Range, "{host}");
    }
    for host in ["localhost", "localhost.", "metadata.google.internal", "xn--pple-43d.example", "kubernetes"] {
        let error = client.send(GuardedRequest::get(&https(host, server.port)), 100).await.unwrap_err();

        assert_eq!(refusal(error), AddressRefused::Name, "{host}");
    }
    assert_eq!((names.asked(), server.asked().len()), (0, 0));
}

#[tokio::test]
async fn other_schemes_ports_and_user_parts_are_refused_before_each_request() {
    let names = Names::answering(&[&["127.0.0.1"]]);
    let client = client(true, 443, &names);
    for (url, want) in [
        ("ftp://charts.example/", AddressRefused::NotAnAddress),
        ("file:///etc/passwd", AddressRefused::NotAnAddress),
        ("https://me:secret@charts.example/", AddressRefused::Credentials),
        ("https://charts.example:6379/", AddressRefused::Port(6379)),
        ("https://charts.example:10250/", AddressRefused::Port(10250)),
    ] {
        let error = client.send(GuardedRequest::get(&Url::parse(url).unwrap()), 100).await.unwrap_err();

        assert_eq!(refusal(error), want, "{url}");
    }
    assert_eq!(names.asked(), 0);
}

#[tokio::test]
async fn tls_names_the_host_while_the_vetted_address_is_dialled() {
    let server = Server::answering("not tls").await;
    let names = Names::answering(&[&["127.0.0.1"]]);

    let url = https("charts.example", server.port);
    let error = client(true, server.port, &names).send(GuardedRequest::get(&url), 100).await.unwrap_err();

    assert!(matches!(error, SendError::NoAnswer(_)), "{error:?}");
    assert!(server.asked()[0].contains("charts.example"), "the server name is in the first message");
}

#[tokio::test]
async fn cve_2026_64684_redirect_gets_no_credentials() {
    let elsewhere = Server::answering(ok("elsewhere")).await;
    let names = Names::answering(&[&["127.0.0.1"]]);
    for status in [301, 302, 303, 307, 308] {
        let location = elsewhere.url("elsewhere.example");
        let answer = format!("HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let server = Server::answering(answer).await;
        let guard = AddressGuard { private: true, ports: vec![server.port, elsewhere.port] };
        let client = guard.client_resolving(&Config::default(), names.lookup()).unwrap();

        let url = server.url("charts.example");
        let answer = client.send(GuardedRequest::get(&url).authorized("Bearer canary"), 100).await.unwrap();

        assert_eq!(answer.status, status);
        assert!(server.asked()[0].contains("authorization: Bearer canary\r\n"));
    }
    assert_eq!(elsewhere.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_body_is_counted_as_it_arrives() {
    let mut endless = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..64 {
        endless.extend_from_slice(b"400\r\n");
        endless.extend_from_slice(&[b'x'; 0x400]);
        endless.extend_from_slice(b"\r\n");
    }
    let server = Server::answering(endless).await;
    let names = Names::answering(&[&["127.0.0.1"]]);
    let client = client(true, server.port, &names);
    let url = server.url("charts.example");

    let whole = client.send(GuardedRequest::get(&url), 2000).await.unwrap_err();
    let part = client.send_for_part(GuardedRequest::get(&url), 2000).await.unwrap();

    assert!(matches!(whole, SendError::TooLong { cap: 2000 }), "{whole:?}");
    assert_eq!((part.body.len(), part.cut), (2000, true));
}

#[tokio::test]
async fn a_body_of_exactly_the_cap_is_whole() {
    let server = Server::answering(ok("0123456789")).await;
    let names = Names::answering(&[&["127.0.0.1"]]);

    let url = server.url("charts.example");
    let answer = client(true, server.port, &names).send(GuardedRequest::get(&url), 10).await.unwrap();

    assert_eq!((answer.body.as_slice(), answer.cut), (b"0123456789".as_slice(), false));
}

#[tokio::test]
async fn nothing_is_decompressed_and_nothing_compressed_is_asked_for() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbomb";
    let server = Server::answering(answer).await;
    let names = Names::answering(&[&["127.0.0.1"]]);

    let url = server.url("charts.example");
    let answer = client(true, server.port, &names).send(GuardedRequest::get(&url), 100).await.unwrap();

    assert_eq!(answer.body, b"bomb");
    assert!(!server.asked()[0].contains("accept-encoding"), "{:?}", server.asked());
}

#[tokio::test]
async fn an_open_a_closed_and_a_silent_port_read_the_same() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let garbage = Server::answering("SSH-2.0-x\r\n").await;
    let config = Config { answer_within: Duration::from_millis(200), ..Config::default() };
    for port in [port, silent.local_addr().unwrap().port(), garbage.port] {
        let guard = AddressGuard { private: true, ports: vec![port] };
        let url = Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();

        let error = guard.client(&config).unwrap().send(GuardedRequest::get(&url), 100).await.unwrap_err();

        assert_eq!(error.to_string(), "no complete answer");
    }
}

#[test]
fn proxy_variables_of_the_service_are_ignored() {
    const CHILD: &str = "proxy_variables_of_the_service_are_ignored";
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, proxy) =
        runtime.block_on(async { (Server::answering(ok("direct")).await, Server::answering(ok("by proxy")).await) });
    let names = Names::answering(&[&["127.0.0.1"]]);
    let asked = runtime.block_on(async {
        let url = server.url("charts.example");
        client(true, server.port, &names).send(GuardedRequest::get(&url), 100).await.unwrap().body
    });
    assert_eq!(asked, b"direct");
    // The variables are read when a client is built, so the same lines run again in a process that has them.
    if std::env::var_os("http_proxy").is_none() {
        let proxy = format!("http://{}:{}", Ipv4Addr::LOCALHOST, proxy.port);
        #[expect(clippy::disallowed_methods, reason = "this test binary itself, with other variables")]
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", CHILD])
            .envs([("http_proxy", &proxy), ("HTTP_PROXY", &proxy), ("ALL_PROXY", &proxy)])
            .output()
            .unwrap();
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
    }
    assert_eq!(proxy.asked(), Vec::<String>::new());
}
