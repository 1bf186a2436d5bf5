//! The console as browsers meet it: who gets in, what a form must prove, and that it decides what the REST API decides.

use crate::console_desk::{Browser, COOKIE, field, link, with_console};
use crate::here::{World, in_process};
use crate::runs_desk::{acme, ask, asker, asking, id, note, show};
use domain::RunId;
use gateway::console::routes::{ConsoleAccess, ROUTES};
use serde_json::Value;
use store::{AuditEntry, Phase, RunCasOutcome};
use testkit::{Plan, Request};

const DECIDER: &str = "runs:decide audit:read";

async fn world() -> World {
    asking(with_console(Plan::embedded()), "deciders: 1").start(in_process()).await
}

async fn pending(world: &World, name: &str) -> String {
    ask(&asker(&world.tenant("acme").agent()).await, name, "x").await
}

async fn signed(world: &World) -> Vec<Value> {
    let entries = world.part(0).store.of(&acme()).audit().page(None, 10_000).await.unwrap();
    entries.into_iter().map(|noted| noted.entry).filter(|entry| entry["phase"] == "sign_in").collect()
}

/// An address with something in the place of each parameter.
fn filled(path: &str) -> String {
    let mut pieces = path.split('{');
    let start = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(start, |path, piece| format!("{path}x{}", piece.split_once('}').map_or("", |(_, rest)| rest)))
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sees_a_page_without_signing_in() {
    let world = world().await;
    let nobody = Browser::default();
    for route in ROUTES {
        let path = filled(route.path);
        let answer = nobody.request(route.method.as_str(), &path).send(world.address(0)).await;
        match route.access {
            ConsoleAccess::Anyone => assert!(answer.status != 401, "{path}: {}", answer.status),
            ConsoleAccess::Person => {
                assert_eq!(answer.status, 303, "{path}");
                let to = answer.header("location").unwrap();
                assert!(to.starts_with("/console/sign-in?to=%2Fconsole"), "{path}: {to}");
            }
            ConsoleAccess::Form => {
                assert_eq!(answer.status, 401, "{path}");
                assert!(answer.text().contains("Nothing was decided or changed"), "{path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_is_off_serves_no_page() {
    let world = Plan::embedded().start(in_process()).await;
    for route in ROUTES {
        let path = filled(route.path);
        let answer = Request::new(route.method.as_str(), &path).send(world.address(0)).await;
        assert_eq!(answer.status, 401, "{path} answers like any other address that is none");
        assert!(answer.header("set-cookie").is_none() && answer.header("location").is_none(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_has_the_headers_that_keep_strangers_out() {
    let world = world().await;
    let ana = Browser::signed_in(&world, 0, "ana", "runs:decide audit:read tenant:admin").await;
    let run = pending(&world, "headers").await;
    for path in [
        "/console",
        "/console/runs",
        "/console/mine",
        "/console/sign-in",
        "/console/none",
        "/console/audit",
        "/console/usage",
        "/console/sessions",
        "/console/operations",
        "/console/catalog",
        &format!("/console/runs/{run}"),
    ] {
        let page = ana.get(&world, 0, path).await;
        let policy = page.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "form-action 'self'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(page.header(name), Some(value), "{path} {name}");
        }
        let text = page.text();
        assert!(!text.contains("<style") && !text.contains("style=") && !text.contains("onclick"), "{path}");
        assert!(text.len() < 40_000, "{path} has {} bytes", text.len());
    }
    let asset = console::assets::all().next().unwrap().name;
    let file = ana.get(&world, 0, &format!("/console/assets/{asset}")).await;
    assert_eq!(file.header("cache-control"), Some("public, max-age=31536000, immutable"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once_and_the_store_holds_no_cookie() {
    let world = world().await;
    let address = link(&world, 0, "ana", DECIDER).await;
    let mut first = Browser::default();
    let answer = first.open(&world, 0, &format!("{address}?to=/console/runs")).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/console/runs")));
    let set = answer.header("set-cookie").unwrap();
    for part in [format!("{COOKIE}=acme."), "HttpOnly".into(), "Secure".into(), "SameSite=Lax".into(), "Path=/".into()]
    {
        assert!(set.contains(&part), "{set}");
    }
    assert!(!set.contains("Domain"), "{set}");
    let second = Browser::default().open(&world, 0, &address).await;
    assert_eq!(second.status, 403);
    assert!(second.header("set-cookie").is_none() && second.text().contains("was used, or is over"));
    let entries = signed(&world).await;
    assert_eq!(
        (entries.len(), &entries[0]["decision"]["verdict"], &entries[0]["actor"]["sub"]),
        (1, &"sign_in".into(), &"ana".into())
    );
    assert_eq!(entries[0]["actor"]["kind"], "person");
    let value = first.cookie.unwrap();
    assert!(!format!("{entries:?}").contains(value.split_once('.').unwrap().1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_others_uses_no_link_up() {
    let world = world().await;
    let address = link(&world, 0, "ana", DECIDER).await;
    for (name, value) in [("Sec-Fetch-Site", "cross-site"), ("Sec-Purpose", "prefetch")] {
        let answer = Browser::default().request("GET", &address).header(name, value).send(world.address(0)).await;
        assert_eq!(answer.status, 403, "{name}");
        assert!(answer.header("set-cookie").is_none());
    }
    assert_eq!(Browser::default().open(&world, 0, &address).await.status, 303, "and it still works by hand");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_others_decides_nothing() {
    let world = world().await;
    let ana = Browser::signed_in(&world, 0, "ana", DECIDER).await;
    let run = pending(&world, "csrf").await;
    let page = ana.get(&world, 0, &format!("/console/runs/{run}")).await;
    let (token, digest) = (field(&page, "token"), field(&page, "digest"));
    let path = format!("/console/runs/{run}/approve");
    let pairs = [("token", token.as_str()), ("digest", digest.as_str())];
    let bob = Browser::signed_in(&world, 0, "bob", DECIDER).await;
    let foreign = field(&bob.get(&world, 0, "/console").await, "token");
    let site = |value: &str| ana.form(&path, &pairs).header("Sec-Fetch-Site", value);
    for (why, request) in [
        ("another site", site("cross-site").header("Origin", "https://qm.example.com")),
        ("a neighbour", site("same-site")),
        ("an address bar", site("none")),
        ("another origin", ana.form(&path, &pairs).header("Origin", "https://evil.example")),
        ("no word at all", ana.form(&path, &pairs)),
        ("no token", ana.form(&path, &pairs[1..]).header("Sec-Fetch-Site", "same-origin")),
        ("bob's token", ana.form(&path, &[("token", &foreign), pairs[1]]).header("Sec-Fetch-Site", "same-origin")),
        ("another digest", ana.form(&path, &[pairs[0], ("digest", "0000")]).header("Sec-Fetch-Site", "same-origin")),
        ("a script", site("same-origin").with("Content-Type", "application/json")),
    ] {
        let answer = request.send(world.address(0)).await;
        assert!((400..=409).contains(&answer.status), "{why}: {} {}", answer.status, answer.text());
        assert_eq!(show(&world.tenant("acme").approver(), &run).await["state"], "pending_approval", "{why}");
    }
    let read = ana.get(&world, 0, &path).await;
    assert_eq!(read.status, 404, "nothing is decided by GET");
    let by_origin = ana.form(&path, &pairs).header("Origin", "https://qm.example.com").send(world.address(0)).await;
    assert_eq!(by_origin.status, 303, "an older browser says it by Origin: {}", by_origin.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_holds_on_every_replica_at_once() {
    let world = asking(with_console(Plan::redis(2)), "deciders: 1").start(in_process()).await;
    let ana = Browser::signed_in(&world, 0, "ana", DECIDER).await;
    assert_eq!(ana.get(&world, 1, "/console").await.status, 200, "a session holds on every replica");
    let token = field(&ana.get(&world, 0, "/console").await, "token");
    let out = ana.submit(&world, 0, "/console/sign-out", &[("token", &token)]).await;
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"), "{:?}", out.headers);
    for replica in [0, 1] {
        assert_eq!(ana.get(&world, replica, "/console").await.status, 303, "replica {replica}");
    }
    let verdicts: Vec<String> =
        signed(&world).await.iter().map(|entry| entry["decision"]["verdict"].as_str().unwrap().to_owned()).collect();
    assert_eq!(verdicts, ["sign_in", "sign_out"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_it_is_idle() {
    let plan = with_console(Plan::embedded()).setting("QM_CONSOLE__IDLE", "1s");
    let world = asking(plan, "deciders: 1").start(in_process()).await;
    let ana = Browser::signed_in(&world, 0, "ana", DECIDER).await;
    assert_eq!(ana.get(&world, 0, "/console").await.status, 200);
    testkit::until("the session to end", async || {
        // Looking keeps a session alive, so whoever waits for its end looks seldom.
        tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
        (ana.get(&world, 0, "/console").await.status == 303).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_decides_as_the_rest_api_does() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let decide = async |run: &str, verb: &str, subject: &str, scopes: &str| {
        let person = Browser::signed_in(&world, 0, subject, scopes).await;
        let page = person.get(&world, 0, &format!("/console/runs/{run}")).await;
        if page.status != 200 {
            return (page.status, page.text());
        }
        let digest = page.text().split("class=\"digest\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
        let token = field(&page, "token");
        let pairs = [("token", token.as_str()), ("digest", digest.as_str()), ("reason", "because")];
        let answer = person.submit(&world, 0, &format!("/console/runs/{run}/{verb}"), &pairs).await;
        (answer.status, answer.text())
    };
    // The same word by the same kind of person, once over each door.
    for (verb, scopes, wanted) in [
        ("approve", DECIDER, 303),
        ("reject", DECIDER, 303),
        ("approve", "audit:read", 403),
        ("approve", "runs:decide tools:read", 404),
        ("approve", "tenant:admin", 403),
    ] {
        let over_pages = pending(&world, &format!("{verb}-{}-page", scopes.len())).await;
        let over_rest = pending(&world, &format!("{verb}-{}-rest", scopes.len())).await;
        let (status, text) = decide(&over_pages, verb, "ana", scopes).await;
        assert_eq!(status, wanted, "{verb} {scopes}: {text}");
        let ana = tenant.approver().claiming(|claims| {
            claims.sub = "ana".to_owned();
            claims.scope = scopes.to_owned();
        });
        let rest =
            ana.rest().post(&format!("/v1/runs/{over_rest}/{verb}"), &serde_json::json!({ "reason": "because" })).await;
        assert_eq!(rest.status == 200, wanted == 303, "{verb} {scopes}: {}", rest.text());
        let bob = tenant.approver();
        let (page, rest) = (show(&bob, &over_pages).await, show(&bob, &over_rest).await);
        if wanted == 303 && verb == "reject" {
            assert_eq!(page["decisions"][0]["reason"], rest["decisions"][0]["reason"]);
        }
        assert_eq!(page["decisions"][0]["by"], rest["decisions"][0]["by"], "{verb} {scopes}");
        assert_eq!(page["decisions"][0]["verdict"], rest["decisions"][0]["verdict"], "{verb} {scopes}");
    }
    // Nobody decides what they asked for, whichever door they take.
    let own = pending(&world, "own").await;
    let (status, text) = decide(&own, "approve", "agent", DECIDER).await;
    assert_eq!(status, 403, "{text}");
    assert!(text.contains("cannot be decided by the one who asked for it"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loser_of_a_race_learns_who_won() {
    let world = world().await;
    let run = pending(&world, "race").await;
    let (ana, bob) =
        (Browser::signed_in(&world, 0, "ana", DECIDER).await, Browser::signed_in(&world, 0, "bob", DECIDER).await);
    let path = format!("/console/runs/{run}");
    let (one, two) = (ana.get(&world, 0, &path).await, bob.get(&world, 0, &path).await);
    let digest = field(&one, "digest");
    let first = ana
        .submit(
            &world,
            0,
            &format!("{path}/reject"),
            &[("token", &field(&one, "token")), ("digest", &digest), ("reason", "no")],
        )
        .await;
    let second = bob
        .submit(&world, 0, &format!("{path}/approve"), &[("token", &field(&two, "token")), ("digest", &digest)])
        .await;
    assert_eq!((first.status, second.status), (303, 409));
    let text = second.text();
    assert!(text.contains("Somebody was quicker: rejected by ana at ") && text.contains("did not count"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_without_the_right_learns_which_it_is() {
    let world = world().await;
    let run = pending(&world, "right").await;
    let admin = Browser::signed_in(&world, 0, "eve", "tenant:admin").await;
    let page = admin.get(&world, 0, &format!("/console/runs/{run}")).await;
    assert_eq!(page.status, 403);
    assert!(page.text().contains("The right that is missing is <code>runs:decide</code>"), "{}", page.text());
    let owner = Browser::signed_in(&world, 0, "agent", "tools:read").await;
    assert_eq!(owner.get(&world, 0, "/console").await.header("location"), Some("/console/mine"));
    let mine = owner.get(&world, 0, "/console/mine").await.text();
    assert!(mine.contains(&run), "{mine}");
    let other = Browser::signed_in(&world, 0, "somebody", "tools:read").await;
    assert_eq!(other.get(&world, 0, &format!("/console/runs/{run}")).await.status, 404);
    assert!(!other.get(&world, 0, "/console/mine").await.text().contains(&run));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_waits_is_told_where_people_decide() {
    let world = world().await;
    let client = asker(&world.tenant("acme").agent()).await;
    let outcome = client.call("memory_remember", note("page", "x")).await;
    let told = outcome.ok();
    let run = told["run"]["id"].as_str().unwrap();
    assert_eq!(told["run"]["page"], format!("https://qm.example.com/console/runs/{run}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_of_changes_and_ends_with_the_session() {
    let world = world().await;
    let ana = Browser::signed_in(&world, 0, "ana", DECIDER).await;
    let (head, mut body) = ana.request("GET", "/console/live").open(world.address(0)).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let mut heard = String::new();
    let mut until = async |wanted: &str| {
        while !heard.contains(wanted) {
            heard.push_str(&String::from_utf8(body.chunk().await.expect("the stream goes on")).unwrap());
        }
    };
    until("event: beat").await;
    pending(&world, "live").await;
    until("event: changed").await;
    let token = field(&ana.get(&world, 0, "/console").await, "token");
    ana.submit(&world, 0, "/console/sign-out", &[("token", &token)]).await;
    until("event: out").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_agents_wrote_is_neither_markup_nor_hidden() {
    let world = world().await;
    let hostile = "<script>alert(1)</script><form action=//evil>\u{202e}\u{200b}<img src=x onerror=alert(2)>";
    let asked = pending(&world, "hostile").await;
    let runs = world.part(0).store.of(&acme()).runs();
    let mut run = runs.find(id(&asked)).await.unwrap().0.unwrap().run;
    // Whatever an agent can fill, and more: nothing may rest on what tools clean beforehand.
    run.id = RunId::from_random([7; 16]);
    run.asked.requester.subject = hostile.to_owned();
    run.asked.arguments = serde_json::json!({ "name": hostile, hostile: [hostile] }).to_string();
    run.asked.preview.summary = hostile.to_owned();
    run.asked.preview.text = format!("+{hostile}\n-{hostile}");
    run.asked.preview.warnings = vec![hostile.to_owned()];
    run.asked.preview.hidden = vec![hostile.to_owned()];
    run.asked.preview.arguments = None;
    run.asked.assignment.agent = Some(hostile.to_owned());
    let opened = runs.open(&run, None, u64::MAX, &AuditEntry::new(Phase::Transition)).await.unwrap();
    assert!(matches!(opened, RunCasOutcome::Done(_)));
    let run = run.id.to_string();
    let ana = Browser::signed_in(&world, 0, "ana", DECIDER).await;
    for path in ["/console", &format!("/console/runs/{run}"), "/console/runs"] {
        let text = ana.get(&world, 0, path).await.text();
        for never in ["<script>", "<img", "//evil>", "\u{202e}", "\u{200b}"] {
            assert!(!text.contains(never), "{path} has {never}");
        }
    }
    let page = ana.get(&world, 0, &format!("/console/runs/{run}")).await.text();
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_stands_in_an_address_is_answered_by_a_page() {
    let world = world().await;
    let ana = Browser::signed_in(&world, 0, "ana", "runs:decide audit:read tenant:admin").await;
    for (path, status) in [
        ("/console?after=1&after=2", 400),
        ("/console?after=x", 400),
        ("/console/runs?state=none", 400),
        ("/console/config?saved=soon", 400),
        ("/console/audit?tool=a&tool=b", 400),
        ("/console/runs/run_%ff", 404),
        ("/console/%ff", 404),
        ("/console/audit/..%2f..", 404),
    ] {
        let page = ana.get(&world, 0, path).await;
        assert_eq!((page.status, page.header("content-type")), (status, Some("text/html; charset=utf-8")), "{path}");
        assert!(page.text().contains("<h1>") && page.header("content-security-policy").is_some(), "{path}");
    }
}

/// Every address that people open is in the table of screens, and the table names no other.
#[test]
fn the_screens_of_the_docs_are_those_that_are_served() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/console.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains("| `/console"));
    let said: Vec<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    let shape = |path: &str| -> Vec<String> {
        let word = |part: &str| part.contains('{') || (!part.is_empty() && part.chars().all(char::is_uppercase));
        path.split('/').map(|part| if word(part) { "*".to_owned() } else { part.to_owned() }).collect()
    };
    let paths: Vec<&str> =
        ROUTES.iter().filter(|route| route.access == ConsoleAccess::Person).map(|route| route.path).collect();
    assert!(said.len() > 15, "{said:?}");
    for address in &said {
        assert!(paths.iter().any(|path| shape(path) == shape(address)), "nothing is at {address}");
    }
    for path in paths {
        let known = said.iter().any(|address| *address != "/console" && shape(path).starts_with(&shape(address)));
        let apart = ["/console", "/console/", "/console/live", "/console/{path:.*}"].contains(&path);
        assert!(known || apart, "docs/console.md does not know {path}");
    }
}
