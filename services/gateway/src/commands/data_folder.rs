//! The folder in which `dev` and `stdio` keep everything: keys, tokens, the tenant's file, secrets and state.
//!
//! One process uses a folder at a time. It holds a lock on the file `lock`, which says who it is, so that a second one
//! can name it instead of failing on the store. What a start writes, it writes after it has the lock.

use crate::app::Gateway;
use crate::clock::SystemClock;
use crate::console::{self, LinkHolder};
use crate::settings::Settings;
use crate::stdio::Project;
use anyhow::{Context, bail};
use domain::{Principal, Tenant};
use identity::mint::{MintedClaims, SigningKey, mint};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Who signs the tokens in such a folder.
pub(super) const ISSUER: &str = "https://quartermaster.dev.localhost";
/// The key that signs them.
pub(super) const KEY: &str = "signing.key";
/// The address they are for.
pub(super) const RESOURCE: &str = "resource";
/// The tenant in it.
pub(super) const TENANT: &str = "dev";
/// How long its tokens are valid.
pub(super) const GOOD_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const SECRET: &str = "service.key";
const LOCK: &str = "lock";
/// How long a process that is about to end is waited for: some clients start one to ask for its version, and the next at
/// once.
const ENDING: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(20);

/// The folder of `dev`, and below a user's home those of `stdio`.
const FOLDER: &str = ".quartermaster";
/// Where `dev` listens by default.
const SERVICE: &str = "http://127.0.0.1:8080";

/// The tokens: name and scopes.
const HOLDERS: [(&str, &str); 3] =
    [("agent", "tools:read tools:write"), ("approver", "runs:decide audit:read"), ("admin", "tenant:admin audit:read")];

/// The roles for which `dev` prints a link to the console: name, account and scopes.
const ROLES: [(&str, &str, &str); 4] = [
    ("approver", "approver@dev", "runs:decide audit:read"),
    ("admin", "admin@dev", "tenant:admin audit:read"),
    ("sre", "sre@dev", "runs:decide tenant:admin audit:read"),
    ("owner", "agent@dev", "tools:read"),
];

const TENANT_FILE: &str = "\
# The tenant of `quartermaster dev`. The service reads this file again when it changes.
tenant: dev
mode: write
default_toolsets: [k8s, memory]
clusters:
";
const SANDBOX: &str = "\
# A simulated cluster inside this process. Nothing here reaches a real one.
- { name: sandbox, sandbox: true, default_namespace: shop }
";
const JENKINS: &str = "\
toolsets:
  # A simulated Jenkins inside this process.
  jenkins: { sandbox: true }
";

/// The folder whose tokens a command uses that is started here: that of `dev` if it has such a token, else that of
/// `stdio` for this project, if there is one.
pub(super) fn here(token: &str) -> PathBuf {
    let of_dev = PathBuf::from(FOLDER);
    let of_stdio = || std::env::current_dir().ok().and_then(|folder| of_project(&Project::find(&folder)));
    if of_dev.join(token).exists() {
        return of_dev;
    }
    of_stdio().filter(|folder| folder.join(token).exists()).unwrap_or(of_dev)
}

/// The folder of `stdio` for a project; `None` if the user has no home.
///
/// It is not inside the project: whoever hands somebody a project could put keys into it, and a catalog of programs to
/// start.
pub(super) fn of_project(project: &Project) -> Option<PathBuf> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = project.root().file_name().unwrap_or_default().to_string_lossy().chars().map(plain).collect();
    let digest = domain::json::sha256_hex(project.root().as_os_str().as_encoded_bytes());
    let (name, digest): (String, String) = (name.chars().take(40).collect(), digest.chars().take(12).collect());
    Some(std::env::home_dir()?.join(FOLDER).join("projects").join(format!("{name}-{digest}")))
}

/// The service that a token in a folder is for.
pub(super) fn service_beside(token_file: &Path) -> String {
    let resource = token_file.parent().and_then(|folder| fs::read_to_string(folder.join(RESOURCE)).ok());
    let service = resource.as_deref().and_then(|resource| resource.trim().strip_suffix("/mcp"));
    service.unwrap_or(SERVICE).to_owned()
}

/// A folder that this process alone uses.
pub(super) struct DataFolder {
    path: PathBuf,
    listen: SocketAddr,
    key: SigningKey,
    /// Whether the web console is served from it.
    console: bool,
    /// Held as long as this lives.
    _lock: File,
}

impl DataFolder {
    /// Takes a folder for a command that will listen at this address, and creates what is missing in it. With `cluster`
    /// the tenant gets that context of the user's kubeconfig instead of the simulated cluster.
    pub(super) fn open(
        path: &Path,
        command: &str,
        listen: SocketAddr,
        cluster: Option<&str>,
    ) -> anyhow::Result<DataFolder> {
        let prepared = prepare(path, command, listen, cluster);
        let (lock, key) = prepared.with_context(|| format!("cannot prepare the data folder {}", path.display()))?;
        Ok(DataFolder { path: path.to_owned(), listen, key, console: command == "dev", _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The address that tokens are for.
    pub(super) fn address(&self) -> String {
        address(self.listen)
    }

    /// The settings of a service on this folder. With `store` its state is elsewhere.
    pub(super) fn settings(&self, store: Option<&str>) -> anyhow::Result<Settings> {
        use toml::Value::{Array, Boolean, String, Table};
        let text = |name: &str| String(self.path.join(name).display().to_string());
        let embedded = || format!("file:{}", self.path.join("state.redb").display());
        let store = store.map_or_else(embedded, str::to_owned);
        let table = |pairs: Vec<(&str, toml::Value)>| -> toml::Table {
            pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
        };
        let section = |pairs| Table(table(pairs));
        let issuer = section(vec![
            ("issuer", String(ISSUER.to_owned())),
            ("algorithms", Array(vec![String("HS256".to_owned())])),
            ("key_file", text(KEY)),
            ("longest_token", String(format!("{}s", GOOD_FOR.as_secs()))),
        ]);
        let over = table(vec![
            ("listen", section(vec![("address", String(self.listen.to_string()))])),
            ("store", section(vec![("url", String(store)), ("accept_unsafe", Boolean(true))])),
            ("identity", section(vec![("resource", String(self.address())), ("issuers", Array(vec![issuer]))])),
            ("calls", section(vec![("key_file", text(SECRET))])),
            ("console", section(vec![("enabled", Boolean(self.console))])),
            (
                "tenants",
                section(vec![
                    ("dir", text("tenants")),
                    ("secrets", text("secrets")),
                    ("clusters_on_loopback", Boolean(true)),
                ]),
            ),
            ("upstreams", section(vec![("cache", text("cache")), ("catalog", text("catalog"))])),
            ("telemetry", section(vec![("log", String("warn".to_owned())), ("format", String("text".to_owned()))])),
        ]);
        let path = self.path.join("dev.toml");
        private(&path, format!("# Written by `quartermaster dev` at each start.\n{over}").as_bytes())?;
        Ok(Settings::read(Some(&path), std::env::vars())?)
    }

    /// A link to the console for each role; each signs in once.
    pub(super) async fn sign_in_links(&self, gateway: &Gateway) -> anyhow::Result<Vec<(&'static str, String)>> {
        let mut links = Vec::new();
        for (role, account, scopes) in ROLES {
            let principal = Principal::new(ISSUER, account);
            let holder = LinkHolder { tenant: Tenant::parse(TENANT)?, principal, scopes: scopes.to_owned() };
            links.extend(console::sign_in_link(gateway, &holder).await?.map(|link| (role, link)));
        }
        Ok(links)
    }

    /// Writes the tokens of the folder's tenant.
    pub(super) fn write_tokens(&self) -> anyhow::Result<()> {
        HOLDERS.iter().try_for_each(|(name, scope)| self.write_token(name, TENANT, scope))
    }

    /// Writes one token into a file of its name.
    pub(super) fn write_token(&self, name: &str, tenant: &str, scope: &str) -> anyhow::Result<()> {
        let token = self.token(&format!("{name}@{tenant}"), tenant, scope);
        self.write(name, &token)
    }

    /// Writes a token for a runner of the folder's tenant that serves this label, and returns its file.
    pub(super) fn write_runner_token(&self, label: &str) -> anyhow::Result<PathBuf> {
        let token = self.labelled_token("runner@dev", TENANT, "runner:work", vec![label.to_owned()]);
        self.write("runner", &token)?;
        Ok(self.path.join("runner.token"))
    }

    fn write(&self, name: &str, token: &str) -> anyhow::Result<()> {
        private(&self.path.join(format!("{name}.token")), token.as_bytes())
    }

    /// A token that begins now.
    pub(super) fn token(&self, subject: &str, tenant: &str, scope: &str) -> String {
        self.labelled_token(subject, tenant, scope, Vec::new())
    }

    fn labelled_token(&self, subject: &str, tenant: &str, scope: &str, labels: Vec<String>) -> String {
        let now = SystemClock.now();
        let claims = MintedClaims {
            iss: ISSUER.to_owned(),
            aud: self.address(),
            sub: subject.to_owned(),
            tenant: tenant.to_owned(),
            scope: scope.to_owned(),
            email: String::new(),
            labels,
            exp: now.plus(GOOD_FOR),
            iat: now,
        };
        mint(&self.key, &claims)
    }
}

fn address(listen: SocketAddr) -> String {
    format!("http://{listen}/mcp")
}

/// Takes the lock, creates the files that are missing and leaves the others as they are.
fn prepare(
    data: &Path,
    command: &str,
    listen: SocketAddr,
    cluster: Option<&str>,
) -> anyhow::Result<(File, SigningKey)> {
    for folder in ["tenants", "catalog"] {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(data.join(folder))?;
    }
    let lock = take(data, command, listen)?;
    if !data.join(KEY).exists() {
        SigningKey::generate()?.save(&data.join(KEY))?;
    }
    if !data.join(SECRET).exists() {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        private(&data.join(SECRET), &secret)?;
    }
    let clusters = match cluster {
        Some(context) => real_cluster(data, context)?,
        None => SANDBOX.to_owned(),
    };
    let tenant = data.join("tenants").join(format!("{TENANT}.yaml"));
    if !tenant.exists() {
        private(&tenant, format!("{TENANT_FILE}{clusters}{JENKINS}").as_bytes())?;
    } else if cluster.is_some() && !fs::read_to_string(&tenant)?.contains(clusters.trim_end()) {
        bail!("{} already exists; add under `clusters:`\n{clusters}or choose another --data", tenant.display());
    }
    private(&data.join(RESOURCE), address(listen).as_bytes())?;
    Ok((lock, SigningKey::load(&data.join(KEY))?))
}

/// The lock on a folder, or who has it.
fn take(data: &Path, command: &str, listen: SocketAddr) -> anyhow::Result<File> {
    let path = data.join(LOCK);
    let mut lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    let until = Instant::now() + ENDING;
    let mut locked = lock.try_lock();
    while matches!(locked, Err(TryLockError::WouldBlock)) && Instant::now() < until {
        std::thread::sleep(AGAIN);
        locked = lock.try_lock();
    }
    match locked {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(error).context("the folder cannot be locked"),
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let mut words = holder.split_whitespace();
            let (Some(command), Some(process), Some(address)) = (words.next(), words.next(), words.next()) else {
                bail!("another process uses it; name another folder with --data");
            };
            let token = data.join("agent.token");
            bail!(
                "`quartermaster {command}` (process {process}) uses it and serves {address}. End that process, name \
                 another folder with --data, or go through it: \
                 quartermaster stdio --url {address} --token-file {}",
                token.display()
            );
        }
    }
    lock.set_len(0)?;
    lock.write_all(format!("{command} {} {}\n", std::process::id(), address(listen)).as_bytes())?;
    Ok(lock)
}

/// Writes a context of the user's kubeconfig as a secret of the tenant, and returns the tenant's line for it.
fn real_cluster(data: &Path, context: &str) -> anyhow::Result<String> {
    let kubeconfig = kubernetes::client::excerpt::excerpt(context)?;
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = context.chars().map(plain).take(63).collect();
    let name = name.trim_matches('-');
    let secrets = data.join("secrets").join(TENANT);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&secrets)?;
    private(&secrets.join(name), kubeconfig.as_bytes())?;
    Ok(format!("- {{ name: {name}, kubeconfig: {{ secret: {name} }} }}\n"))
}

/// Writes a file that only its owner can read, even if a looser one was there.
fn private(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let fresh = path.with_extension("new");
    // A draft that was left behind may be open to others, so it is not written into.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(fs::rename(fresh, path)?)
}
