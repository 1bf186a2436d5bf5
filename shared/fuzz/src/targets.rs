//! Every parser of strangers' bytes, by the name of its target, and what those are held to that need nothing private.
//!
//! A target panics if the bytes make the parser panic, or make it say something that must not be. `main.rs` runs one of
//! them under libFuzzer; the gateway's tests include this file and run all of them over `corpus`.

use catalog::CatalogEntry;
use domain::text::is_tricky;
use domain::{Caller, Code, Effect, Moment, Principal, Scopes, Tenant, json};
use executor::ServiceKeys;
use external::ServerCatalog;
use gateway::toolsets::Toolsets;
use mcp::{Incoming, ProtocolHeaders, Request};
use memory::documents::DocPath;
use policy::{Decision, Permit};
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};
use store::AuditLogPosition;
use target::cursor::Cursor;
use target::{CursorClock, Cursors};
use tenancy::{KnownNames, Section};
use testkit::bench;

/// What is run with some bytes.
pub(crate) type FuzzTarget = fn(&[u8]);

/// All of them.
pub(crate) const TARGETS: [(&str, FuzzTarget); 12] = [
    ("arguments", arguments),
    ("charts", helm::client::charts::fuzz::archive),
    ("chart_indexes", helm::client::charts::fuzz::index),
    ("cursors", cursors),
    ("frames", frames),
    ("jenkins_html", jenkins::client::fuzz::html),
    ("jenkins_xml", jenkins::client::fuzz::xml),
    ("kubeconfigs", kubernetes::fuzz::kubeconfig),
    ("patches", patches),
    ("selectors", kubernetes::fuzz::selector),
    ("sse", external::fuzz::stream),
    ("tenants", tenants),
];

/// A patch and a manifest are both text of one argument.
fn patches(bytes: &[u8]) {
    kubernetes::fuzz::patch(bytes);
    kubernetes::fuzz::manifest(bytes);
}

/// The built-in tools and the sections of tenants' files.
struct Product {
    toolsets: Toolsets,
    sections: Vec<Section>,
}

fn product() -> &'static Product {
    static PRODUCT: OnceLock<Product> = OnceLock::new();
    PRODUCT.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let toolsets = runtime.block_on(gateway::commands::toolsets()).expect("the toolsets");
        let sections = toolsets.sections(&ServerCatalog::none());
        Product { toolsets, sections }
    })
}

/// A POST: header lines, an empty line, the body. It is refused with one whole JSON-RPC error, or its id and its call are
/// those that were sent.
fn frames(bytes: &[u8]) {
    let (head, body) = match bytes.windows(2).position(|two| two == b"\n\n") {
        Some(at) => (&bytes[..at], &bytes[at + 2..]),
        None => (&[][..], bytes),
    };
    let line = |line: &'_ [u8]| -> Option<(String, Vec<u8>)> {
        let at = line.iter().position(|b| *b == b':')?;
        Some((String::from_utf8(line[..at].to_vec()).ok()?, line[at + 1..].to_vec()))
    };
    let lines: Vec<(String, Vec<u8>)> = head.split(|b| *b == b'\n').filter_map(line).collect();
    let headers = ProtocolHeaders::read(lines.iter().map(|(name, value)| (name.as_str(), value.as_slice())));
    for decoded in [mcp::decode(&headers, body), mcp::decode_line(body)] {
        match decoded {
            Ok(Incoming::Request(envelope)) => {
                let sent = json::read(body).expect("what was taken is JSON");
                let reply = json::read(&mcp::encode::result(&envelope.id, b"{}")).expect("a reply is JSON");
                assert_eq!(reply["id"], sent["id"]);
                if let Request::ToolsCall { name, arguments } = envelope.request {
                    let params = &sent["params"];
                    assert_eq!(params["name"], name.as_str());
                    assert!(params["arguments"] == Value::Object(arguments.clone()) || arguments.is_empty());
                    call(&name, arguments);
                }
            }
            Ok(Incoming::Notification(_) | Incoming::Response(_)) => {}
            Err(refusal) => {
                assert!([200, 400, 404].contains(&refusal.status), "{refusal:?}");
                let told = json::read(&refusal.body(Some("4bf9"))).expect("a refusal is JSON");
                assert_eq!((&told["jsonrpc"], &told["error"]["data"]["trace_id"]), (&"2.0".into(), &"4bf9".into()));
                assert_eq!(told.get("id").is_some(), refusal.id.is_some());
            }
        }
    }
}

/// The name of a tool in the first line, its arguments after it.
fn arguments(bytes: &[u8]) {
    let Some(at) = bytes.iter().position(|b| *b == b'\n') else { return };
    let (Ok(name), Ok(Value::Object(given))) = (str::from_utf8(&bytes[..at]), json::read(&bytes[at + 1..])) else {
        return;
    };
    call(name, given);
}

/// Arguments are refused in bounded words, or they are understood, and what is kept of them is understood again as the
/// same: a person approves what is kept, and that is what runs.
fn call(name: &str, given: Map<String, Value>) {
    let Some(entry) = product().toolsets.tools().iter().find(|entry| entry.name().as_str() == name) else { return };
    let first = match understood(entry, given) {
        Ok(first) => first,
        Err(failure) => {
            assert_ne!(failure.code, Code::Internal, "{failure}");
            assert!(failure.message.len() < 4_096 && !failure.message.chars().any(is_tricky), "{failure:?}");
            return;
        }
    };
    assert!(first.0 <= entry.definition().most);
    let Ok(Value::Object(kept)) = json::read(first.2.as_bytes()) else {
        panic!("what is kept is an object: {}", first.2)
    };
    assert_eq!(understood(entry, kept).as_ref(), Ok(&first));
}

type Understood = (Effect, Option<String>, String, Option<String>);

fn understood(entry: &CatalogEntry, given: Map<String, Value>) -> Result<Understood, domain::Failure> {
    entry.parse(given).map(|call| (call.effect, call.about, call.arguments, call.target))
}

/// A tenant's file: every problem is told at a place in it and in plain words, or it is a configuration that takes no more
/// than itself.
fn tenants(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Product { toolsets, sections } = product();
    let (names, tools) = gateway::tenants::names_of(toolsets.tools());
    let known = KnownNames { toolsets: &names, tools: &tools, sections, addresses: &|_| Ok(()) };
    tenancy::trace(text, sections);
    match tenancy::parse("tenant.yaml", text, &known) {
        Ok(config) => {
            assert_eq!(tenancy::exceeding("tenant.yaml", text, sections, &config, &config), [], "{text:?}");
        }
        Err(problems) => {
            assert!((1..=100).contains(&problems.len()), "{text:?}");
            let lines = 1 + text.matches(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
            for problem in problems {
                assert!((1..=lines).contains(&(problem.line as usize)) && problem.column >= 1, "{problem} in {text:?}");
                assert!(!problem.to_string().replace('\n', "").chars().any(is_tricky), "{problem:?}");
            }
        }
    }
}

/// A cursor that this service did not give out leads nowhere, and one that it did leads to its place, to nobody else and
/// not after it was touched.
fn cursors(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let key = [7; 32];
    assert_eq!(mcp::cursor::check(&key, "digest", b"set", text), None);
    let page = bytes.iter().fold(0_u32, |page, byte| page.rotate_left(5) ^ u32::from(*byte));
    let of_list = mcp::cursor::make(&key, text, bytes, page);
    assert_eq!(mcp::cursor::check(&key, text, bytes, &of_list), Some(page));
    assert_eq!(mcp::cursor::check(&key, text, bytes, &touched(&of_list, page)), None);

    let (ana, keys) = (caller("ana"), ServiceKeys::derive(&key).expect("keys"));
    assert_eq!(keys.open_place(&ana, text), None);
    let place = keys.seal_place(&ana, text);
    assert_eq!(keys.open_place(&ana, &place).as_deref(), Some(text));
    assert_eq!(keys.open_place(&caller("bo"), &place), None);
    assert_eq!(keys.open_place(&ana, &touched(&place, page)), None);

    let clock: CursorClock = Arc::new(|| Moment::from_secs(1_800_000_000));
    let (cursors, args) = (Cursors::with_clock(key, clock), Value::from(text));
    if let Ok(made_up) = Cursor::try_from(text.to_owned()) {
        assert!(cursors.open::<Value>(permit(), &args, &made_up).is_err(), "{text:?}");
    }
    if let Ok(sealed) = cursors.seal(permit(), &args, &text) {
        let given = Cursor::try_from(sealed.clone()).expect("a cursor of ours has its form");
        assert_eq!(cursors.open::<String>(permit(), &args, &given).as_deref(), Ok(text));
        if let Ok(other) = Cursor::try_from(touched(&sealed, page)) {
            assert!(cursors.open::<String>(permit(), &args, &other).is_err(), "{text:?}");
        }
    }

    if let Some(position) = AuditLogPosition::parse(text) {
        assert_eq!(AuditLogPosition::parse(&position.to_string()), Some(position));
    }
    if let Ok(path) = DocPath::parse(text) {
        assert_eq!(DocPath::parse(path.as_str()).as_ref(), Ok(&path));
        assert!(
            !path.as_str().chars().any(is_tricky)
                && path.as_str().split('/').all(|part| !matches!(part, "" | "." | ".."))
        );
    }
}

/// The text with one of its characters changed.
fn touched(text: &str, by: u32) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = by as usize % bytes.len();
    bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
    String::from_utf8(bytes).expect("ASCII")
}

fn caller(subject: &str) -> Caller {
    Caller {
        tenant: Tenant::parse("acme").expect("a tenant"),
        principal: Principal::new("https://login.example", subject),
        scopes: Scopes::parse("tools:read"),
        expires_at: Moment::from_secs(9),
        token: None,
        labels: Vec::new(),
    }
}

fn permit() -> &'static Permit {
    static PERMIT: OnceLock<Permit> = OnceLock::new();
    PERMIT.get_or_init(|| match bench::judged(bench::call_of("k8s_get", Effect::Read, None), None) {
        Decision::Permit(permit) => permit,
        other @ (Decision::Ask(..) | Decision::Deny(_)) => panic!("{other:?}"),
    })
}
