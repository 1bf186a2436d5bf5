//! Who speaks: a principal of a tenant with some scopes, at one replica.

use crate::http::{Answer, Request};
use crate::legacy::Legacy;
use crate::modern::Modern;
use crate::outcome::Outcome;
use crate::rest::Rest;
use crate::world::{Addresses, address};
use domain::Moment;
use identity::mint::{MintedClaims, SigningKey, mint};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Makes tokens with the key of a world.
pub struct Mint {
    key: SigningKey,
    file: PathBuf,
}

impl Mint {
    /// The address tokens are made for.
    pub const RESOURCE: &'static str = "https://qm.example.com/mcp";
    /// Who makes them.
    pub const ISSUER: &'static str = "https://login.example.com";

    pub(crate) fn fresh(file: &Path) -> Mint {
        let key = SigningKey::generate().expect("a key should be made");
        key.save(file).expect("the key should be written");
        Mint { key, file: file.to_owned() }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// A good token of tenant `acme`, changed as the test wants.
    pub fn token(&self, change: impl FnOnce(&mut MintedClaims)) -> String {
        let now = Mint::now();
        let mut claims = MintedClaims {
            iss: Mint::ISSUER.to_owned(),
            aud: Mint::RESOURCE.to_owned(),
            sub: "agent".to_owned(),
            tenant: "acme".to_owned(),
            scope: "tools:read tools:write".to_owned(),
            email: String::new(),
            labels: Vec::new(),
            exp: now.plus(Duration::from_secs(3600)),
            iat: now,
        };
        change(&mut claims);
        mint(&self.key, &claims)
    }

    /// The host's time.
    pub fn now() -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The people and programs of one tenant.
pub struct TenantActors {
    name: String,
    mint: Arc<Mint>,
    addresses: Addresses,
}

impl TenantActors {
    pub(crate) fn new(name: &str, mint: Arc<Mint>, addresses: Addresses) -> TenantActors {
        TenantActors { name: name.to_owned(), mint, addresses }
    }

    /// A program that may read and ask for changes.
    pub fn agent(&self) -> Actor {
        self.actor("agent", "tools:read tools:write")
    }

    /// A program that may only read.
    pub fn reader(&self) -> Actor {
        self.actor("reader", "tools:read")
    }

    /// A person who decides runs and calls nothing.
    pub fn approver(&self) -> Actor {
        self.actor("ana", "runs:decide")
    }

    fn actor(&self, subject: &str, scope: &str) -> Actor {
        let (tenant, subject, scope) = (self.name.clone(), subject.to_owned(), scope.to_owned());
        let token = self.mint.token(|claims| {
            claims.tenant.clone_from(&tenant);
            claims.sub.clone_from(&subject);
            claims.scope.clone_from(&scope);
        });
        let (mint, addresses) = (Arc::clone(&self.mint), Arc::clone(&self.addresses));
        Actor { tenant, subject, scope, token, mint, addresses, replica: 0 }
    }
}

/// One principal at one replica.
#[derive(Clone)]
pub struct Actor {
    tenant: String,
    subject: String,
    scope: String,
    token: String,
    mint: Arc<Mint>,
    addresses: Addresses,
    replica: usize,
}

impl Actor {
    /// Somebody else of the same tenant with the same scopes.
    #[must_use]
    pub fn named(&self, subject: &str) -> Actor {
        let (tenant, scope) = (self.tenant.clone(), self.scope.clone());
        let token = self.mint.token(|claims| {
            claims.tenant = tenant;
            claims.scope = scope;
            subject.clone_into(&mut claims.sub);
        });
        Actor { subject: subject.to_owned(), token, ..self.clone() }
    }

    /// The same principal with other scopes.
    #[must_use]
    pub fn scoped(&self, scope: &str) -> Actor {
        let token = self.mint.token(|claims| {
            claims.tenant.clone_from(&self.tenant);
            claims.sub.clone_from(&self.subject);
            scope.clone_into(&mut claims.scope);
        });
        Actor { scope: scope.to_owned(), token, ..self.clone() }
    }

    /// The same principal with a token that ends that soon.
    #[must_use]
    pub fn for_only(&self, span: Duration) -> Actor {
        let token = self.mint.token(|claims| {
            claims.tenant.clone_from(&self.tenant);
            claims.scope.clone_from(&self.scope);
            claims.sub.clone_from(&self.subject);
            claims.exp = claims.iat.plus(span);
        });
        Actor { token, ..self.clone() }
    }

    /// The same actor with a token whose claims the test has changed.
    #[must_use]
    pub fn claiming(&self, change: impl FnOnce(&mut MintedClaims)) -> Actor {
        let token = self.mint.token(|claims| {
            claims.tenant.clone_from(&self.tenant);
            claims.scope.clone_from(&self.scope);
            claims.sub.clone_from(&self.subject);
            change(claims);
        });
        Actor { token, ..self.clone() }
    }

    /// The same principal at another replica.
    #[must_use]
    pub fn on(&self, replica: usize) -> Actor {
        Actor { replica, ..self.clone() }
    }

    /// The token this actor shows.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Opens a legacy session.
    pub async fn legacy(&self) -> Legacy {
        Legacy::open(self.clone(), "/mcp").await
    }

    /// Opens a legacy session at an address that selects toolsets.
    pub async fn legacy_at(&self, path: &str) -> Legacy {
        Legacy::open(self.clone(), path).await
    }

    /// Speaks the modern era.
    pub fn modern(&self) -> Modern {
        Modern::new(self.clone())
    }

    /// Speaks the REST turn API.
    pub fn rest(&self) -> Rest {
        Rest::new(self.clone())
    }

    /// Asks as the plainest client does: no session, no version, no `Accept`.
    pub async fn plain(&self, method: &str, params: Value) -> Outcome {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        Outcome::of(self.send(&self.post("/mcp", &body)).await)
    }

    /// A `POST` with a token and a JSON body, and nothing else.
    pub fn post(&self, path: &str, body: &Value) -> Request {
        self.request("POST", path).header("Content-Type", "application/json").body(body.to_string())
    }

    /// A request with a token, and nothing else.
    pub fn request(&self, method: &str, path: &str) -> Request {
        Request::new(method, path).header("Authorization", format!("Bearer {}", self.token))
    }

    /// Sends a request to this actor's replica.
    pub async fn send(&self, request: &Request) -> Answer {
        request.send(address(&self.addresses, self.replica)).await
    }

    /// Sends a request whose answer is a stream.
    pub async fn stream(&self, request: &Request) -> crate::Stream {
        crate::Stream::of(request.open(address(&self.addresses, self.replica)).await)
    }
}
