//! The inbox as one person's own, what the page of a run tells of others, a fresh proof before a disruption, and the
//! console on a listener of its own.

use crate::console_desk::{Browser, COOKIE, ORIGIN, field, with_console};
use crate::here::{World, in_process};
use crate::runs_desk::{acme, approve, ask, asker, asking, await_run, ended, path, pending, reject, show};
use domain::Principal;
use domain::json::sha256_hex;
use serde_json::json;
use std::time::Duration;
use store::{AuditEntry, BrowserSession, BrowserTimes, Phase, SignInMethod};
use testkit::actor::Mint;
use testkit::{Answer, Plan, Request};

const DECIDER: &str = "runs:decide audit:read";

async fn world() -> World {
    asking(with_console(Plan::embedded()), "deciders: 1").start(in_process()).await
}

async fn post(world: &World, who: &Browser, run: &str, verb: &str, more: &[(&str, &str)]) -> Answer {
    let page = who.get(world, 0, &format!("/console/runs/{run}")).await;
    let (token, digest) = (field(&page, "token"), field(&page, "digest"));
    let all: Vec<(&str, &str)> =
        [("token", token.as_str()), ("digest", digest.as_str())].into_iter().chain(more.iter().copied()).collect();
    who.submit(world, 0, &format!("/console/runs/{run}/{verb}"), &all).await
}

/// The part of the inbox that asks for a decision, and the folded part below.
async fn inbox(world: &World, who: &Browser) -> (String, String) {
    let text = who.get(world, 0, "/console").await.text();
    let (above, below) = text.split_once("id=\"put-off\"").unwrap_or((&text, ""));
    (above.to_owned(), below.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn not_now_takes_a_run_out_of_one_persons_inbox_and_nothing_else() {
    let world = world().await;
    let agent = asker(&world.tenant("acme").agent()).await;
    let (first, second) = (ask(&agent, "first", "x").await, ask(&agent, "second", "x").await);
    let (ana, bob) =
        (Browser::signed_in(&world, 0, "ana", DECIDER).await, Browser::signed_in(&world, 0, "bob", DECIDER).await);
    let before = show(&world.tenant("acme").approver(), &first).await;

    let (choose, late) = ("choose for how long", "the run would expire before it comes back");
    for (bad, why) in [(vec![], choose), (vec![("for", "9y")], choose), (vec![("for", "1d")], late)] {
        let answer = post(&world, &ana, &first, "later", &bad).await;
        assert!(answer.status == 400 && answer.text().contains(why), "{}", answer.text());
    }
    let off = post(&world, &ana, &first, "later", &[("for", "10m")]).await;
    assert_eq!((off.status, off.header("location")), (303, Some("/console")));
    let (above, below) = inbox(&world, &ana).await;
    assert!(!above.contains(&first) && above.contains(&second) && below.contains(&first), "{above}{below}");
    assert!(inbox(&world, &bob).await.0.contains(&first), "others see it as before");
    assert_eq!(show(&world.tenant("acme").approver(), &first).await, before, "and the run knows nothing of it");
    let page = ana.get(&world, 0, &format!("/console/runs/{first}")).await.text();
    assert!(page.contains("it comes back to your inbox") && page.contains("id=\"approve\""), "{page}");

    let back = post(&world, &ana, &first, "now", &[]).await;
    assert_eq!(back.status, 303);
    assert!(inbox(&world, &ana).await.0.contains(&first));
    // What somebody else decides meanwhile is not waiting below.
    post(&world, &ana, &first, "later", &[("for", "10m")]).await;
    reject(&world.tenant("acme").approver(), &first, "no").await;
    let (above, below) = inbox(&world, &ana).await;
    assert!(!above.contains(&first) && below.is_empty(), "{above}{below}");
    // Who decides nothing puts nothing off.
    let looks_on = Browser::signed_in(&world, 0, "cho", "audit:read").await;
    let page = looks_on.get(&world, 0, &format!("/console/runs/{second}")).await;
    let digest = page.text().split("class=\"digest\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let pairs = [("token", field(&page, "token")), ("digest", digest), ("for", "10m".to_owned())];
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(looks_on.submit(&world, 0, &format!("/console/runs/{second}/later"), &pairs).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_reaches_the_agent_as_a_correction() {
    let world = world().await;
    let agent = asker(&world.tenant("acme").agent()).await;
    let run = ask(&agent, "corrected", "x").await;
    let ana = Browser::signed_in(&world, 0, "ana", DECIDER).await;
    let page = ana.get(&world, 0, &format!("/console/runs/{run}")).await.text();
    let preset = page.split("<option value=\"").nth(2).unwrap().split('"').next().unwrap().to_owned();
    assert!(preset.ends_with('.'), "{preset}");
    let long = format!("<b>{}", "ä".repeat(1_500));
    let refused = post(&world, &ana, &run, "reject", &[("reason", &long)]).await;
    assert!(refused.status == 413 && refused.text().contains("at most 2000 bytes"), "{}", refused.text());
    assert!(refused.text().contains(&format!("&lt;b&gt;{}</textarea>", "ä".repeat(1_500))), "what was typed is kept");
    let fields = [("preset", preset.as_str()), ("reason", "Ask for <b>one</b> document.")];
    assert_eq!(post(&world, &ana, &run, "reject", &fields).await.status, 303);
    let told = format!("{:?}", await_run(&agent, &run).await);
    assert!(told.contains(&preset) && told.contains("Ask for <b>one</b> document."), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_run_shows_what_was_done_to_the_same_thing_before() {
    let world = world().await;
    let acme = world.tenant("acme");
    let agent = asker(&acme.agent()).await;
    let refused = ask(&agent, "same", "x").await;
    reject(&acme.approver(), &refused, "no").await;
    let done = ask(&agent, "same", "y").await;
    approve(&acme.approver(), &done).await;
    ended(&acme.approver(), &done).await;
    ask(&agent, "other", "x").await;
    let now = pending(&agent.call("memory_forget", json!({ "path": path("same"), "reason": "a test" })).await);
    let ana = Browser::signed_in(&world, 0, "ana", DECIDER).await;
    let page = ana.get(&world, 0, &format!("/console/runs/{now}")).await.text();
    let earlier = page.split("id=\"earlier\"").nth(1).unwrap_or_else(|| panic!("none: {page}"));
    assert_eq!(earlier.matches("class=\"run\"").count(), 2, "{earlier}");
    assert!(earlier.find(&done).unwrap() < earlier.find(&refused).unwrap(), "the newest first: {earlier}");
    let found = ana.get(&world, 0, "/console/runs?object=same&state=succeeded").await.text();
    assert!(found.contains(&done), "a run that is over is found by what it was done to: {found}");
}

/// Somebody who proved to an issuer long ago who they are.
async fn proven_long_ago(world: &World) -> Browser {
    let store = world.part(0).store.of(&acme());
    let now = world.part(0).store.now().await.unwrap();
    let value = format!("acme.{}", "ab".repeat(32));
    let session = BrowserSession {
        principal: Principal::new(Mint::ISSUER, "ana"),
        scopes: DECIDER.to_owned(),
        method: SignInMethod::Issuer,
        signed_in_at: now,
        proven_at: domain::Moment::from_millis(now.millis() - 3_600_000),
        seen_at: now,
    };
    let times = BrowserTimes { idle: Duration::from_secs(600), longest: Duration::from_secs(600) };
    let entry = AuditEntry::new(Phase::SignIn);
    store.browsers().open(&sha256_hex(value.as_bytes()), &session, times, &entry).await.unwrap();
    Browser { cookie: Some(value) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disruption_wants_a_fresh_proof_and_a_typed_name() {
    let world = world().await;
    let acme = world.tenant("acme");
    let agent = asker(&acme.agent()).await;
    let made = ask(&agent, "doomed", "x").await;
    approve(&acme.approver(), &made).await;
    ended(&acme.approver(), &made).await;
    let forget = agent.call("memory_forget", json!({ "path": path("doomed"), "reason": "a test" })).await;
    let run = pending(&forget);
    let old = proven_long_ago(&world).await;
    let page = old.get(&world, 0, &format!("/console/runs/{run}")).await.text();
    assert!(page.contains("id=\"step-up\"") && !page.contains("id=\"approve\""), "{page}");
    let by_hand = post(&world, &old, &run, "approve", &[("typed", "doomed")]).await;
    assert!(by_hand.status == 400 && by_hand.text().contains("sign in again before"), "{}", by_hand.text());
    assert_eq!(show(&acme.approver(), &run).await["state"], "pending_approval");
    // A rejection needs no proof, and a link of `dev` has no issuer to ask.
    let fresh = Browser::signed_in(&world, 0, "eve", DECIDER).await;
    for typed in ["", "doom", "DOOMED"] {
        let answer = post(&world, &fresh, &run, "approve", &[("typed", typed)]).await;
        assert!(answer.status == 400 && answer.text().contains("the typed name is not"), "{}", answer.text());
    }
    assert_eq!(post(&world, &fresh, &run, "approve", &[("typed", " doomed ")]).await.status, 303);
    assert_eq!(ended(&acme.approver(), &run).await["state"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_of_its_own_serves_pages_and_nothing_else_does() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let own: std::net::SocketAddr = ([127, 0, 0, 1], port).into();
    let plan = with_console(Plan::embedded())
        .setting("QM_CONSOLE__LISTEN", &own.to_string())
        .setting("QM_CONSOLE__ADDRESS", ORIGIN);
    let world = asking(plan, "deciders: 1").start(in_process()).await;
    let ana = Browser::signed_in_at(&world, own, "ana", DECIDER).await;
    let page = ana.request("GET", "/console").send(own).await;
    assert!(page.status == 200 && page.text().contains("Inbox"), "{}", page.text());
    let cookie = format!("{COOKIE}={}", ana.cookie.clone().unwrap());
    let tools = Request::new("GET", "/console").header("Cookie", cookie).send(world.address(0)).await;
    assert_eq!(tools.status, 401, "the tool port serves no page");
    for path in ["/mcp", "/v1/runs", "/readyz", "/metrics"] {
        let answer = Request::new("GET", path).header("Host", "qm.example.com").send(own).await;
        assert_eq!(answer.status, 404, "{path} is not served to browsers");
    }
}
