//! `dev`: one process with everything in it, ready for a first call.
//!
//! Keys, tokens, the tenant's file and the state live in one folder. There is no anonymous mode here either: the tokens
//! are real ones, signed with a key made on first start.

use crate::app::Gateway;
use crate::cli::Dev;
use crate::clock::SystemClock;
use crate::commands::{CommandOutcome, runtime, say, serve};
use crate::fixture;
use crate::settings::Settings;
use anyhow::{Context, bail};
use domain::{Moment, Tenant};
use identity::mint::{MintedClaims, SigningKey, mint};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(super) const ISSUER: &str = "https://quartermaster.dev.localhost";
pub(super) const KEY: &str = "signing.key";
pub(super) const RESOURCE: &str = "resource";
const SECRET: &str = "service.key";
const TENANT: &str = "dev";
const GOOD_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The tokens: name, tenant and scopes.
const HOLDERS: [(&str, &str, &str); 3] = [
    ("agent", TENANT, "tools:read tools:write"),
    ("approver", TENANT, "runs:decide audit:read"),
    ("admin", TENANT, "tenant:admin audit:read"),
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

pub(super) fn run(args: &Dev) -> anyhow::Result<CommandOutcome> {
    if args.conformance && !args.listen.ip().is_loopback() {
        bail!("--conformance serves a fixture tenant and therefore listens on loopback only");
    }
    prepare(args).with_context(|| format!("cannot prepare the data folder {}", args.data.display()))?;
    let settings = settings(args)?;
    let key = SigningKey::load(&args.data.join(KEY))?;
    runtime()?.block_on(serve::serve(settings, |gateway| {
        let now = SystemClock.now();
        for (name, tenant, scope) in HOLDERS {
            write_token(args, &key, name, tenant, scope, now)?;
        }
        if args.conformance {
            let tenant = Tenant::parse(fixture::TENANT)?;
            write_token(args, &key, fixture::TENANT, fixture::TENANT, "tools:read", now)?;
            fixture::install(gateway, &tenant)?;
        }
        say(&banner(args, gateway));
        Ok(())
    }))
}

fn address(args: &Dev) -> String {
    format!("http://{}/mcp", args.listen)
}

/// Creates the files that are missing and leaves the others as they are.
fn prepare(args: &Dev) -> anyhow::Result<()> {
    let data = &args.data;
    for folder in ["tenants", "catalog"] {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(data.join(folder))?;
    }
    if !data.join(KEY).exists() {
        SigningKey::generate()?.save(&data.join(KEY))?;
    }
    if !data.join(SECRET).exists() {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        private(&data.join(SECRET), &secret)?;
    }
    let cluster = match &args.cluster {
        Some(context) => real_cluster(data, context)?,
        None => SANDBOX.to_owned(),
    };
    let tenant = data.join("tenants").join(format!("{TENANT}.yaml"));
    if !tenant.exists() {
        private(&tenant, format!("{TENANT_FILE}{cluster}{JENKINS}").as_bytes())?;
    } else if args.cluster.is_some() && !fs::read_to_string(&tenant)?.contains(cluster.trim_end()) {
        bail!("{} already exists; add under `clusters:`\n{cluster}or choose another --data", tenant.display());
    }
    private(&data.join(RESOURCE), address(args).as_bytes())
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

fn settings(args: &Dev) -> anyhow::Result<Settings> {
    use toml::Value::{Array, String, Table};
    let text = |path: &Path| String(path.display().to_string());
    let data = &args.data;
    let store = match &args.store {
        Some(url) => url.clone(),
        None => format!("file:{}", data.join("state.redb").display()),
    };
    let issuer = toml::Table::from_iter([
        ("issuer".to_owned(), String(ISSUER.to_owned())),
        ("algorithms".to_owned(), Array(vec![String("HS256".to_owned())])),
        ("key_file".to_owned(), text(&data.join(KEY))),
        ("longest_token".to_owned(), String(format!("{}s", GOOD_FOR.as_secs()))),
    ]);
    let section = |pairs: Vec<(&str, toml::Value)>| {
        Table(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    };
    let over = toml::Table::from_iter([
        ("listen".to_owned(), section(vec![("address", String(args.listen.to_string()))])),
        ("store".to_owned(), section(vec![("url", String(store)), ("accept_unsafe", toml::Value::Boolean(true))])),
        (
            "identity".to_owned(),
            section(vec![("resource", String(address(args))), ("issuers", Array(vec![Table(issuer)]))]),
        ),
        ("calls".to_owned(), section(vec![("key_file", text(&data.join(SECRET)))])),
        (
            "tenants".to_owned(),
            section(vec![
                ("dir", text(&data.join("tenants"))),
                ("secrets", text(&data.join("secrets"))),
                ("clusters_on_loopback", toml::Value::Boolean(true)),
            ]),
        ),
        (
            "upstreams".to_owned(),
            section(vec![("cache", text(&data.join("cache"))), ("catalog", text(&data.join("catalog")))]),
        ),
        (
            "telemetry".to_owned(),
            section(vec![("log", String("warn".to_owned())), ("format", String("text".to_owned()))]),
        ),
    ]);
    let path = data.join("dev.toml");
    private(&path, format!("# Written by `quartermaster dev` at each start.\n{over}").as_bytes())?;
    Ok(Settings::read(Some(&path), std::env::vars())?)
}

fn write_token(args: &Dev, key: &SigningKey, name: &str, tenant: &str, scope: &str, now: Moment) -> anyhow::Result<()> {
    let claims = MintedClaims {
        iss: ISSUER.to_owned(),
        aud: address(args),
        sub: format!("{name}@{tenant}"),
        tenant: tenant.to_owned(),
        scope: scope.to_owned(),
        email: String::new(),
        labels: Vec::new(),
        exp: now.plus(GOOD_FOR),
        iat: now,
    };
    private(&args.data.join(format!("{name}.token")), mint(key, &claims).as_bytes())
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

fn banner(args: &Dev, gateway: &Arc<Gateway>) -> String {
    let (address, data) = (address(args), args.data.display());
    let store = gateway.store.backend();
    let cluster = match &args.cluster {
        Some(context) => format!("{context} (real: approved changes happen there)"),
        None => "sandbox (simulated in this process; reset at each start)".to_owned(),
    };
    let tenant = Tenant::parse(TENANT).ok().and_then(|tenant| gateway.tenants.find(&tenant));
    let toolsets = tenant.map_or_else(String::new, |tenant| {
        let names: Vec<&str> = tenant.catalog.toolsets().iter().map(|set| set.name.as_str()).collect();
        names.join(", ")
    });
    format!(
        "
Quartermaster is ready, for development only.

  endpoint   {address}
  store      {store} ({data})
  tenant     {TENANT}   toolsets: {toolsets}
  cluster    {cluster}
  tokens     {data}/agent.token      calls tools
             {data}/approver.token   decides runs
             {data}/admin.token      configures the tenant, accepts external tools, manages documents

A first call:

  curl -s {address} -H \"Authorization: Bearer $(cat {data}/agent.token)\" \\
    -H 'Content-Type: application/json' \\
    -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}}'

A client:

  npx -y @modelcontextprotocol/inspector --cli {address} --transport http \\
    --header \"Authorization: Bearer $(cat {data}/agent.token)\" --method tools/list

"
    )
}
