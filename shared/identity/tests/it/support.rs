//! An issuer with real keys, its key set on a real socket, and a verifier that believes it.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use domain::Moment;
use identity::{Config, Verifier};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

pub(crate) const US: &str = "https://qm.example/mcp";
pub(crate) const LOGIN: &str = "https://login.example";
/// When the tests begin.
pub(crate) const NOW: Moment = Moment::from_secs(1_800_000_000);

/// That many seconds after the beginning.
pub(crate) fn after(secs: u64) -> Moment {
    Moment::from_secs(1_800_000_000 + secs)
}

/// A key pair of an issuer.
pub(crate) enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Pair {
    pub(crate) fn rsa() -> Pair {
        Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).expect("a key pair"))
    }

    pub(crate) fn ec() -> Pair {
        Pair::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key pair"))
    }

    pub(crate) fn ed() -> Pair {
        Pair::Ed(Ed25519KeyPair::generate().expect("a key pair"))
    }

    pub(crate) fn alg(&self) -> &'static str {
        match self {
            Pair::Rsa(_) => "RS256",
            Pair::Ec(_) => "ES256",
            Pair::Ed(_) => "EdDSA",
        }
    }

    pub(crate) fn jwk(&self, kid: &str) -> Value {
        match self {
            Pair::Rsa(pair) => {
                let numbers = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({ "kty": "RSA", "kid": kid, "n": b64(&numbers.n), "e": b64(&numbers.e), "use": "sig" })
            }
            Pair::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({ "kty": "EC", "crv": "P-256", "kid": kid, "x": b64(&point[1..33]), "y": b64(&point[33..]) })
            }
            Pair::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": kid, "x": b64(pair.public_key().as_ref()) })
            }
        }
    }

    /// The public key as people keep it in files.
    pub(crate) fn pem(&self) -> String {
        let der: PublicKeyX509Der<'_> = match self {
            Pair::Rsa(pair) => pair.public_key().as_der(),
            Pair::Ec(pair) => pair.public_key().as_der(),
            Pair::Ed(pair) => pair.public_key().as_der(),
        }
        .expect("a public key in DER");
        pem("PUBLIC KEY", der.as_ref())
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// Signs whatever the two texts are, JSON or not.
    pub(crate) fn sign_text(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", b64(header.as_bytes()), b64(claims.as_bytes()));
        let random = SystemRandom::new();
        let signature = match self {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).expect("a signature");
                signature
            }
            Pair::Ec(pair) => pair.sign(&random, message.as_bytes()).expect("a signature").as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        };
        format!("{message}.{}", b64(&signature))
    }

    /// An honest token of this key.
    pub(crate) fn token(&self, kid: &str) -> String {
        self.saying(kid, &claims())
    }

    pub(crate) fn saying(&self, kid: &str, claims: &Value) -> String {
        self.sign(&json!({ "alg": self.alg(), "kid": kid, "typ": "JWT" }), claims)
    }
}

/// One RSA pair for all tests, since making one takes a moment.
pub(crate) static RSA: LazyLock<Pair> = LazyLock::new(Pair::rsa);

/// What an honest token says.
pub(crate) fn claims() -> Value {
    json!({
        "iss": LOGIN, "aud": US, "sub": "agent-7", "tenant": "acme", "scope": "tools:read",
        "iat": NOW.millis() / 1000, "exp": NOW.millis() / 1000 + 7 * 24 * 3600,
    })
}

pub(crate) fn claims_with(claim: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[claim] = value;
    claims
}

pub(crate) fn claims_without(claim: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().expect("an object").remove(claim);
    claims
}

pub(crate) fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let lines: Vec<&str> = body.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

pub(crate) fn http() -> egress::HttpClient {
    // Several tests of one process may come first; whoever does installs the same provider.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    egress::operator_client(&egress::Config::default()).expect("a client")
}

pub(crate) fn config(mut issuers: Value) -> Config {
    for issuer in issuers.as_array_mut().expect("a list") {
        // The honest token of these tests lives for a week.
        let keys = issuer.as_object_mut().expect("a table");
        keys.entry("longest_token").or_insert(json!("30d"));
    }
    serde_json::from_value(json!({ "resource": US, "issuers": issuers })).expect("a configuration")
}

/// A verifier that believes what this server publishes.
pub(crate) async fn verifier(server: &KeyServer) -> Verifier {
    let issuer = json!({ "issuer": LOGIN, "algorithms": ["RS256", "ES256", "EdDSA"], "jwks_url": server.url });
    Verifier::new(config(json!([issuer])), http()).await.expect("a verifier")
}

/// Serves a key set, counts how often it is asked, and can be told to hold its answers back.
pub(crate) struct KeyServer {
    pub(crate) url: String,
    served: Arc<Served>,
    _accepting: JoinSet<()>,
}

struct Served {
    status: AtomicUsize,
    body: Mutex<Vec<u8>>,
    asked: AtomicUsize,
    was_asked: Notify,
    open: Semaphore,
}

impl KeyServer {
    pub(crate) async fn publishing(keys: &[Value]) -> KeyServer {
        let server = KeyServer::held_back(keys).await;
        server.open();
        server
    }

    /// Takes requests but answers none until it is opened.
    pub(crate) async fn held_back(keys: &[Value]) -> KeyServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/keys", listener.local_addr().expect("a bound port"));
        let served = Arc::new(Served {
            status: AtomicUsize::new(200),
            body: Mutex::default(),
            asked: AtomicUsize::new(0),
            was_asked: Notify::new(),
            open: Semaphore::new(0),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(serve(listener, Arc::clone(&served)));
        let server = KeyServer { url, served, _accepting: accepting };
        server.publish(keys);
        server
    }

    pub(crate) fn publish(&self, keys: &[Value]) {
        self.answer_with(json!({ "keys": keys }).to_string().into_bytes());
    }

    pub(crate) fn answer_with(&self, body: Vec<u8>) {
        *self.served.body.lock().expect("no panic elsewhere") = body;
    }

    pub(crate) fn fail(&self) {
        self.served.status.store(500, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        self.served.open.add_permits(1_000_000);
    }

    pub(crate) fn hold_back(&self) {
        self.served.open.forget_permits(usize::MAX >> 4);
    }

    pub(crate) async fn until_asked(&self) {
        self.served.was_asked.notified().await;
    }

    pub(crate) fn asked(&self) -> usize {
        self.served.asked.load(Ordering::SeqCst)
    }
}

async fn serve(listener: TcpListener, served: Arc<Served>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 4096];
        // A connection that is closed without a request was not a question.
        if stream.read(&mut request).await.unwrap_or(0) == 0 {
            continue;
        }
        served.asked.fetch_add(1, Ordering::SeqCst);
        served.was_asked.notify_one();
        let Ok(permit) = served.open.acquire().await else { return };
        permit.forget();
        let body = served.body.lock().expect("no panic elsewhere").clone();
        let status = served.status.load(Ordering::SeqCst);
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        // A client may have gone, or have seen enough; that is its right.
        stream.write_all(&[head.as_bytes(), &body].concat()).await.ok();
        stream.shutdown().await.ok();
    }
}
