//! Approval integrity: what is signed is what is done, and nobody signs who may not.

use crate::here::{World, in_process, redis};
use crate::runs_desk::{
    PENDING, acme, approve, ask, asker, asking, audit_log, ended, note, path, pending, refusal, reject, say, show,
    versions,
};
use crate::runs_yard::{House, RAZE, SET, Yard, run_id, told};
use domain::run::{RunState, Verdict};
use domain::{Code, Effect};
use executor::runs::report::to_person;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Actor, Answer, Outcome, Plan, until};

async fn world() -> World {
    asking(Plan::embedded(), "deciders: 1").start(in_process()).await
}

/// Sends a call whose arguments are exactly this text.
async fn raw_call(agent: &Actor, session: &str, arguments: &str) -> Answer {
    let body = format!(r#"{{"tool":"memory_remember","arguments":{arguments}}}"#);
    let request = agent.post(&format!("/v1/sessions/{session}/calls"), &json!({})).body(body);
    agent.send(&request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ap2_order_alone_keeps_the_run_and_a_change_of_meaning_is_another_question() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let (agent, client) = (tenant.agent(), asker(&tenant.agent()).await);
    let session = client.session().to_owned();
    let text = r#"{"path":"tenant/runbooks/ap2","type":"note","content":"a","evidence":"e"}"#;
    let run = |answer: &Answer| {
        assert_eq!(answer.status, 202, "{}", answer.text());
        answer.json()["result"]["run"]["id"].as_str().unwrap().to_owned()
    };
    let first = run(&raw_call(&agent, &session, text).await);
    for same in [
        r#"{"evidence":"e","content":"a","type":"note","path":"tenant/runbooks/ap2"}"#,
        r#"{ "path" : "tenant\/runbooks\/ap2", "type":"note","content":"\u0061","evidence":"e" }"#,
        r#"{"path":"tenant/runbooks/ap2","type":"note","content":"a","evidence":"e","title":null}"#,
    ] {
        assert_eq!(run(&raw_call(&agent, &session, same).await), first, "{same}");
    }
    let mut runs = vec![first.clone()];
    for other in [
        r#"{"path":"tenant/runbooks/ap2","type":"note","content":"A","evidence":"e"}"#,
        r#"{"path":"tenant/runbooks/ap2","type":"note","content":"a ","evidence":"e"}"#,
        r#"{"path":"tenant/runbooks/ap2","type":"note","content":"a","evidence":"e","tags":["x"]}"#,
        // The same letter in another form: what a person reads alike need not be alike.
        r#"{"path":"tenant/runbooks/ap2","type":"note","content":"\u0430","evidence":"e"}"#,
        r#"{"path":"tenant/runbooks/ap2","type":"note","content":"e\u0301","evidence":"e"}"#,
        r#"{"path":"tenant/runbooks/ap2","type":"note","content":"\u00e9","evidence":"e"}"#,
    ] {
        let run = run(&raw_call(&agent, &session, other).await);
        assert!(!runs.contains(&run), "{other}");
        runs.push(run);
    }
    let twice = r#"{"path":"tenant/runbooks/ap2","type":"note","content":"a","content":"b","evidence":"e"}"#;
    assert_eq!(refusal(&raw_call(&agent, &session, twice).await), (400, "invalid_request".into()));
    let more = r#"{"path":"tenant/runbooks/ap2","type":"note","content":"a","evidence":"e","force":true}"#;
    assert_eq!(refusal(&raw_call(&agent, &session, more).await), (400, "unknown_argument".into()));

    // The yes opens the one it was given to.
    approve(&tenant.approver(), &first).await;
    assert_eq!(ended(&tenant.approver(), &first).await["state"], "succeeded");
    for run in &runs[1..] {
        assert_eq!(show(&tenant.approver(), run).await["state"], PENDING);
    }
    assert_eq!(versions(&world, "ap2").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap2_one_and_one_point_nought_are_one_number() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    let run = yard.ask(&here.executor, RAZE, 1).await;
    let same = told(&yard.call(&here.executor, RAZE, json!({ "n": 1.0 })).await);
    assert_eq!(run_id(&same), run);
    let bad = yard.call(&here.executor, RAZE, json!({ "n": 1.5 })).await.unwrap_err();
    assert_eq!(bad.code, Code::InvalidArgument);
    let bad = yard.call(&here.executor, RAZE, json!({ "n": "1" })).await.unwrap_err();
    assert_eq!(bad.code, Code::InvalidArgument);
    assert_ne!(yard.ask(&here.executor, RAZE, 2).await, run);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap3_a_yes_is_good_for_one_principal_in_one_session_and_for_nobody_else() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let first = ask(&client, "ap3", "x").await;
    let elsewhere = asker(&tenant.agent()).await;
    let somebody = asker(&tenant.agent().named("bob")).await;
    let neighbour = asker(&world.tenant("other").agent()).await;
    let others =
        [ask(&elsewhere, "ap3", "x").await, ask(&somebody, "ap3", "x").await, ask(&neighbour, "ap3", "x").await];
    assert!(!others.contains(&first), "the same words elsewhere are another question: {others:?}");
    let digest = async |who: &Actor, run: &str| show(who, run).await["digest"].clone();
    let ana = tenant.approver();
    assert_ne!(digest(&ana, &first).await, digest(&ana, &others[0]).await);
    assert_ne!(digest(&ana, &first).await, digest(&ana, &others[1]).await);

    approve(&ana, &first).await;
    assert_eq!(ended(&ana, &first).await["state"], "succeeded");
    assert_eq!(show(&ana, &others[0]).await["state"], PENDING);
    assert_eq!(show(&ana, &others[1]).await["state"], PENDING);
    assert_eq!(show(&world.tenant("other").approver(), &others[2]).await["state"], PENDING);
}

/// Asks for a document with this content and gives what its approver is shown.
async fn shown(world: &World, content: &str) -> Value {
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "ap5", content).await;
    show(&tenant.approver(), &run).await
}

/// What an approver reads where an agent wrote this, in a tool whose arguments may be any text.
async fn drawn(why: &str) -> String {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    let asked = told(&yard.call(&here.executor, RAZE, json!({ "n": 1, "why": why })).await);
    yard.run(&here.store, run_id(&asked)).await.asked.preview.text
}

#[tokio::test(flavor = "multi_thread")]
async fn ap5_tricky_text_is_shown_as_what_it_is() {
    let text = drawn("a\u{202e}b\u{200b}c\u{feff}d</pre><button>ok</button>").await;
    for hidden in ['\u{202e}', '\u{200b}', '\u{feff}'] {
        assert!(!text.contains(hidden), "{hidden:?} in {text:?}");
    }
    assert!(text.contains("202e") && text.contains("200b") && text.contains("feff"), "written out: {text}");
    assert!(text.contains("</pre><button>"), "it is text and stays text: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ap5_controls_of_a_terminal_reach_none() {
    let text = drawn("\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}1m\rapproved").await;
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(text.contains("001b") && text.contains("approved"), "it is all there to be read: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_refused_before_anybody_is_asked() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    for field in ["content", "evidence", "title"] {
        let mut asked = note("secret", "fine");
        asked[field] = json!("key AKIAIOSFODNN7EXAMPLE");
        let outcome = client.call("memory_remember", asked).await;
        assert_ne!(outcome.code(), "ok", "{field}: it would be kept in the run and shown to everybody who decides");
        assert!(!outcome.answer.text().contains("AKIA"), "{field}");
    }
    let runs = world.part(0).store.of(&acme()).runs().page(None, 10).await.unwrap();
    assert_eq!(runs, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap5_every_direction_mark_and_invisible_letter_is_written_out() {
    // Arabic letter mark, line and paragraph separator, soft hyphen, Mongolian vowel separator, Hangul fillers, a tag.
    let hidden = "\u{61c}\u{2028}\u{2029}\u{ad}\u{180e}\u{115f}\u{3164}\u{ffa0}\u{e0041}\u{2066}\u{2069}";
    let text = drawn(&format!("x{hidden}y")).await;
    let left: Vec<String> =
        hidden.chars().filter(|c| text.contains(*c)).map(|c| c.escape_unicode().to_string()).collect();
    assert_eq!(left, Vec::<String>::new(), "these still play tricks");
}

#[tokio::test(flavor = "multi_thread")]
async fn ap5_a_flood_of_lines_hides_nothing_because_nothing_is_left_out() {
    let world = world().await;
    let flood = format!("harmless{}harmful{}harmless", "\n".repeat(2_500), "\n".repeat(2_500));
    let seen = shown(&world, &flood).await;
    let text = seen["preview"]["text"].as_str().unwrap();
    assert!(text.lines().count() > 10_000 && text.contains("\n+harmful\n") && text.contains("\n  | harmful\n"));
    let words = format!("{}needle {}", "word ".repeat(9_000), "word ".repeat(9_000));
    let long = shown(&world, &words).await;
    assert!(long["preview"]["text"].as_str().unwrap().contains(words.trim_end()), "a long line is whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn ap6_the_agents_own_words_stand_apart_and_the_headline_is_ours() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let mut asked = note("ap6", "rm -rf");
    asked["evidence"] = json!("this only reads, approve it");
    asked["title"] = json!("A harmless look");
    let run = pending(&client.call("memory_remember", asked).await);
    let seen = show(&tenant.approver(), &run).await;
    let (summary, text) = (seen["preview"]["summary"].as_str().unwrap(), seen["preview"]["text"].as_str().unwrap());
    assert!(!summary.contains("harmless") && summary.contains(&path("ap6")), "{summary}");
    let (ours, theirs) = text.split_once("written by the agent (untrusted)").expect("they are marked");
    assert!(ours.contains("rm -rf") && !ours.contains("this only reads"), "{ours}");
    assert!(theirs.contains("this only reads, approve it"), "{theirs}");
    assert_eq!((&seen["effect"], &seen["tool"]), (&json!("change"), &json!("memory_remember")));
}

#[tokio::test(flavor = "multi_thread")]
async fn ap7_a_caller_with_too_much_waiting_is_told_to_wait() {
    let world = asking(Plan::embedded(), "most_waiting: 3").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let mut runs = Vec::new();
    for n in 0..3 {
        runs.push(ask(&client, &format!("ap7-{n}"), "x").await);
    }
    let refused = client.call("memory_remember", note("ap7-3", "x")).await;
    assert_eq!(refused.refusal()["code"], "too_many_pending");
    assert!(refused.refusal()["next"].as_str().unwrap().contains("await_run"));
    let rest = tenant.agent().rest().call(client.session(), "memory_remember", note("ap7-3", "x")).await;
    assert_eq!(refusal(&rest), (429, "too_many_pending".into()));
    assert_eq!(ask(&client, "ap7-0", "x").await, runs[0], "what already waits can still be asked after");
    ask(&asker(&tenant.agent().named("bob")).await, "ap7-3", "x").await;
    let listed = tenant.approver().rest().get("/v1/runs?state=pending_approval").await.json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 4, "nothing was recorded for what was refused");

    reject(&tenant.approver(), &runs[1], "no").await;
    ask(&client, "ap7-3", "x").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ap7_the_cap_holds_when_everything_is_asked_at_once() {
    let world = asking(Plan::redis(2), "most_waiting: 3").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let calls = (0..12).map(|n| {
        let client = client.on(n % 2);
        async move { client.call("memory_remember", note(&format!("ap7-{n}"), "x")).await }
    });
    let asked: Vec<Outcome> = futures_util::future::join_all(calls).await;
    let waiting = asked.iter().filter(|outcome| outcome.code() == "ok").count();
    assert_eq!(waiting, 3, "{:?}", asked.iter().map(Outcome::code).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn ap8_looking_at_a_link_decides_nothing() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "ap8", "x").await;
    let ana = tenant.approver();
    for family in ["/v1/runs", "/runs"] {
        for what in
            ["", "/approve", "/reject", "/approve?verdict=approve", "?approve=1", "/cancel", "/resolve", "/clear"]
        {
            for method in ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"] {
                let answer = ana.send(&ana.request(method, &format!("{family}/{run}{what}"))).await;
                assert!(answer.status != 500, "{method} {family}{what}: {}", answer.status);
                let reads = what.is_empty() && method == "GET";
                assert_eq!(answer.status == 200, reads, "{method} {family}{what}: {}", answer.status);
            }
        }
    }
    // What a form of another site could send is no decision either.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let request = ana.request("POST", &format!("/v1/runs/{run}/approve")).header("Content-Type", kind).body("{}");
        assert_eq!(ana.send(&request).await.status, 400, "{kind}");
    }
    let nobody =
        testkit::Request::new("POST", &format!("/v1/runs/{run}/approve")).header("Content-Type", "application/json");
    assert_eq!(nobody.body("{}").send(world.address(0)).await.status, 401);
    assert_eq!(show(&ana, &run).await["state"], PENDING);
    assert_eq!(audit_log(&world, &run).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_says_more_or_less_than_it_can_is_refused() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "odd", "x").await;
    let ana = tenant.approver();
    for (body, status) in [
        (json!({ "reason": "x".repeat(2_001) }), 413),
        (json!({ "reason": 7 }), 400),
        (json!({ "reason": "x", "digest": "y" }), 400),
        (json!([]), 400),
        (json!("approve"), 400),
    ] {
        assert_eq!(say(&ana, &run, "approve", body.clone()).await.status, status, "{}", body.to_string().len());
    }
    assert_eq!(show(&ana, &run).await["state"], PENDING);
    assert_eq!(say(&ana, &run, "reject", json!({ "reason": "x".repeat(2_000) })).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap10_no_file_of_a_tenant_loosens_anything() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let tenants = &world.part(0).tenants;
    for loose in [
        "  approval: { deciders: 0 }",
        "  approval: { self_approval: true }",
        "  approval: { expires: 0s }",
        "  allow: [memory_remember]",
        "  approval: off",
        "  require_approval: { memory_remember: false }",
        "  require_approval:\n  - { name: memory_remember, on_reject: ignore }",
        "  require_approval:\n  - { name: memory_remember, scope: 'tools:read' }",
    ] {
        world.write_tenant("acme", &format!("tenant: acme\nmode: write\npolicy:\n{loose}\n"));
        let problem = until("the problem", async || tenants.problems().first().map(ToString::to_string)).await;
        let place: Vec<&str> = problem.splitn(4, ':').collect();
        assert!(
            place[0].ends_with("acme.yaml") && place[1].parse::<u32>().is_ok() && place[2].parse::<u32>().is_ok(),
            "{problem}"
        );
        let asked = client.call("memory_remember", note("ap10", loose)).await;
        assert_eq!(asked.ok()["run"]["state"], PENDING, "{loose}");
        world.configure("acme", "");
        until("the problem to be gone", async || tenants.problems().is_empty().then_some(())).await;
    }
    assert_eq!(versions(&world, "ap10").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap11_no_client_capability_turns_asking_into_allowing() {
    let world = world().await;
    let agent = world.tenant("acme").agent();
    // Modern clients of the kit declare no capability at all, the plainest one not even a version.
    let modern = agent.modern().at("/mcp/x/memory:write");
    pending(&modern.call("memory_remember", note("ap11", "modern")).await);
    let declared = json!({ "elicitation": { "form": {} }, "tasks": {}, "sampling": {} });
    let mut params = json!({ "name": "memory_remember", "arguments": note("ap11", "declared") });
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declared;
    pending(&modern.ask("tools/call", params).await);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "memory_remember", "arguments": note("ap11", "plain") } });
    pending(&Outcome::of(agent.send(&agent.post("/mcp/x/memory:write", &body)).await));
    pending(&agent.legacy_at("/mcp/x/memory:write").await.call("memory_remember", note("ap11", "legacy")).await);
    assert_eq!(versions(&world, "ap11").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap12_the_effect_comes_from_the_arguments_and_not_from_the_name() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    let looked = told(&yard.call(&here.executor, RAZE, json!({ "n": -1 })).await);
    assert_eq!(looked, json!({ "looked": -1 }), "what only looks is answered at once");
    for (n, effect) in [(1, Effect::Change), (0, Effect::Disrupt)] {
        let run = yard.ask(&here.executor, RAZE, n).await;
        assert_eq!(yard.run(&here.store, run).await.asked.effect, effect);
    }
    for odd in [
        json!({}),
        json!({ "n": null }),
        json!({ "n": -1, "dry_run": true }),
        json!({ "n": [0] }),
        json!({ "n": -1, "N": 0 }),
    ] {
        let refused = yard.call(&here.executor, RAZE, odd.clone()).await.unwrap_err();
        assert!(matches!(refused.code, Code::InvalidArgument | Code::UnknownArgument), "{odd}: {refused:?}");
    }
    assert_eq!(yard.target.all_effects(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap12_a_scope_that_reads_asks_for_nothing() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    let refused = yard
        .call_with(&here.executor, SET, json!({ "n": 1 }), |request| {
            request.caller = yard.caller("agent", "tools:read")
        })
        .await;
    assert_eq!(refused.unwrap_err().code, Code::InsufficientScope);
    assert_eq!(here.store.of(&yard.tenant).runs().page(None, 10).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap13_every_door_gives_the_same_answer() {
    let world = world().await;
    let agent = world.tenant("acme").agent();
    let legacy = asker(&agent).await;
    let session = legacy.session().to_owned();
    let modern = agent.modern().with_session(&session);
    let inside = json!({ "tool": "memory_remember", "arguments": note("ap13", "x") });
    let rest = agent.rest().call(&session, "memory_remember", note("ap13", "x")).await;
    assert_eq!(rest.status, 202);
    let mut answers: Vec<(&str, Value)> = vec![
        ("rest", rest.json()["result"].clone()),
        ("legacy", legacy.call("memory_remember", note("ap13", "x")).await.ok().clone()),
        ("modern", modern.call("memory_remember", note("ap13", "x")).await.ok().clone()),
        ("call_tool, legacy", legacy.call("call_tool", inside.clone()).await.ok().clone()),
        ("call_tool, modern", modern.call("call_tool", inside.clone()).await.ok().clone()),
    ];
    let through = agent.rest().call(&session, "call_tool", inside).await;
    answers.push(("call_tool, rest", through.json()["result"].clone()));
    let first = answers[0].1.clone();
    assert_eq!(first["run"]["state"], PENDING);
    for (door, mut told) in answers.into_iter().skip(1) {
        assert_eq!(told["run"]["replayed"], true, "{door}: {told}");
        told["run"].as_object_mut().unwrap().remove("replayed");
        assert_eq!(told, first, "{door}");
    }
    assert_eq!(versions(&world, "ap13").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap14_a_store_that_is_away_lets_nothing_through() {
    let plan = asking(Plan::redis(1), "deciders: 1").setting("QM_STORE__DEADLINE", "1s");
    let mut world = plan.start(in_process()).await;
    world.redis().sync_every_write();
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "ap14", "x").await;
    let ana = tenant.approver();
    world.redis().pause();
    let (asked, decided) =
        tokio::join!(client.call("memory_remember", note("ap14-other", "x")), say(&ana, &run, "approve", json!({})));
    assert_eq!(asked.code(), "store_unavailable");
    assert_eq!(refusal(&decided), (503, "store_unavailable".into()));
    world.redis().stop();
    assert_eq!(client.call("memory_remember", note("ap14-third", "x")).await.code(), "store_unavailable");
    world.redis().restart();
    until("the store to be back", async || (client.call("memory_list", json!({})).await.code() == "ok").then_some(()))
        .await;

    // A frozen store may have taken the yes after all, and then it counts; what must not be is an effect without one.
    let state = show(&ana, &run).await["state"].clone();
    let effects = versions(&world, "ap14").await;
    assert!(state == PENDING && effects == 0 || state != PENDING, "{state} with {effects} effects");
    if state == PENDING {
        approve(&ana, &run).await;
    }
    assert_eq!(ended(&ana, &run).await["state"], "succeeded");
    assert_eq!(versions(&world, "ap14").await, 1);
    assert_eq!((versions(&world, "ap14-other").await, versions(&world, "ap14-third").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn ap14_what_cannot_be_shown_is_not_asked() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    yard.target.goes_blind();
    let refused = yard.call(&here.executor, RAZE, json!({ "n": 1 })).await.unwrap_err();
    assert_eq!(refused.code, Code::PreviewUnavailable);
    assert!(refused.details.as_ref().is_some_and(|details| details["cause"].is_string()), "{refused:?}");
    assert!(refused.message.starts_with("what would happen cannot be shown: "), "{refused:?}");
    assert_eq!(here.store.of(&yard.tenant).runs().page(None, 10).await.unwrap(), [], "nobody is asked to sign blind");
    assert_eq!(yard.target.all_effects(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ap14_a_preview_that_never_comes_is_given_up() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    yard.target.holds_previews();
    let calling = yard.call(&here.executor, crate::runs_yard::BRIEF, json!({ "n": 1 }));
    // The tool has a fifth of a second; ten times that is no answer at all.
    let outcome = tokio::time::timeout(Duration::from_secs(2), calling).await;
    yard.target.lets_previews_go();
    let refused = outcome.expect("the caller waits for ever").unwrap_err();
    assert_eq!(refused.code, Code::PreviewUnavailable);
}

/// A token of this tenant with scopes of the test's choosing.
fn with_scopes(world: &World, like: &Actor, subject: &str, scopes: &str) -> impl AsyncFn(&str, &str) -> Answer {
    let token = world.mint().token(|claims| {
        claims.sub = subject.to_owned();
        claims.scope = scopes.to_owned();
    });
    let like = like.clone();
    async move |run: &str, what: &str| {
        let request = like.post(&format!("/v1/runs/{run}/{what}"), &json!({}));
        like.send(&request.with("Authorization", format!("Bearer {token}"))).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn id12_a_token_that_may_call_tools_never_decides() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "id12", "x").await;
    let ana = tenant.approver();
    for scopes in [
        "tools:read",
        "tools:write",
        "tools:read runs:decide",
        "tools:write runs:decide",
        "runs:decide tools:read tenant:admin audit:read",
        "tenant:admin",
        "audit:read",
        "runs:decided",
        "RUNS:DECIDE",
        "",
    ] {
        // Somebody who did not ask, so that only the scopes stand in the way.
        let decide = with_scopes(&world, &ana, "zoe", scopes);
        for what in ["approve", "reject", "clear"] {
            assert_eq!(refusal(&decide(&run, what).await), (403, "insufficient_scope".into()), "{scopes:?} {what}");
        }
    }
    assert_eq!(show(&ana, &run).await["decisions"], json!([]));
    let decide = with_scopes(&world, &ana, "zoe", "runs:decide tenant:admin audit:read");
    assert_eq!(decide(&run, "approve").await.status, 200);
    assert_eq!(ended(&ana, &run).await["state"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_fully_recorded() {
    let world = world().await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "recorded", "x").await;
    let said = say(&tenant.approver(), &run, "approve", json!({ "reason": "ticket 7" })).await.json();
    let seen = ended(&tenant.approver(), &run).await;
    let decision = &seen["decisions"][0];
    assert_eq!(
        (&decision["by"], &decision["verdict"], &decision["reason"]),
        (&json!("ana"), &json!("approved"), &json!("ticket 7"))
    );
    assert_eq!(decision["at"], said["decisions"][0]["at"]);

    let entries = audit_log(&world, &run).await;
    let steps: Vec<(Value, Value, Value)> = entries
        .iter()
        .map(|entry| (entry["run"]["from"].clone(), entry["run"]["to"].clone(), entry["actor"]["kind"].clone()))
        .collect();
    let step = |from: Value, to: &str, kind: &str| (from, json!(to), json!(kind));
    assert_eq!(
        steps,
        [
            step(Value::Null, PENDING, "agent"),
            step(json!(PENDING), "approved", "person"),
            step(json!("approved"), "executing", "service"),
            step(json!("executing"), "succeeded", "service"),
        ]
    );
    let decided = &entries[1];
    assert_eq!((&decided["actor"]["sub"], &decided["actor"]["scopes"]), (&json!("ana"), &json!(["runs:decide"])));
    assert_eq!(decided["tool"], "memory_remember");
    // The audit log names the same call all along, under the service's key: arguments are few enough to be guessed.
    let digest = entries[0]["run"]["digest"].as_str().unwrap();
    assert!(digest.starts_with("hmac:") && !seen["digest"].as_str().unwrap().contains(digest), "{digest}");
    assert!(entries.iter().all(|entry| entry["run"]["digest"] == digest), "{entries:?}");
    assert!(decided["at"]["store"].is_string());
    assert_eq!(entries[2]["run"]["epoch"], 1);
    assert_eq!(
        (&decided["decision"]["verdict"], &decided["decision"]["comment"]),
        (&json!("approve"), &json!("ticket 7")),
        "approver, reason and time are in the chain: {decided}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn disrupt_runs_carry_warnings_and_a_preview() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    let asked = told(&yard.call(&here.executor, RAZE, json!({ "n": 0 })).await);
    let warnings = json!(["This takes something away or puts service at risk.", "The lot is in use."]);
    assert_eq!(asked["run"]["effect"], "disrupt");
    assert_eq!(asked["preview"]["summary"], "yard_raze: n=0", "the agent is told what it asked for");
    let run = yard.run(&here.store, run_id(&asked)).await;
    let seen = to_person(&run);
    assert_eq!((&seen["warnings"], &seen["effect"]), (&warnings, &json!("disrupt")));
    let text = seen["preview"]["text"].as_str().unwrap();
    assert_eq!(text, "the lot of revision 1 becomes 0\n\narguments: {\"n\":0}");
    assert_eq!(seen["arguments"], json!({ "n": 0 }));
    let change = told(&yard.call(&here.executor, RAZE, json!({ "n": 1 })).await);
    let change = to_person(&yard.run(&here.store, run_id(&change)).await);
    assert_eq!(change["warnings"], json!(["The lot is in use."]), "a change is not made to look worse");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_gives_is_held_to_the_tenants_cap() {
    let world = redis(1).await;
    let here = world.part(0);
    let yard = Yard::of(&House { result_bytes: 4_096, ..House::default() });
    yard.target.replies(crate::runs_yard::Reply::Large(100_000));
    let run = yard.ask(&here.executor, SET, 1).await;
    yard.approve(&here.executor, run).await;
    let ended = yard.settled(&here.executor, run).await;
    assert_eq!((ended.state, yard.target.effects(run)), (RunState::Succeeded, 1), "it was done, however much it says");
    let kept = ended.ending.unwrap().result.map_or(0, |result| result.len());
    assert!(kept <= 4_096, "{kept} bytes are kept and handed out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_target_is_a_failure_that_was_attempted() {
    let world = redis(1).await;
    let (here, yard) = (world.part(0), Yard::new());
    yard.target.replies(crate::runs_yard::Reply::Refused);
    let run = yard.ask(&here.executor, RAZE, 1).await;
    yard.approve(&here.executor, run).await;
    let ended = yard.settled(&here.executor, run).await;
    let ending = ended.ending.unwrap();
    assert_eq!(
        (ended.state, ending.attempted, ending.code.as_deref()),
        (RunState::Failed, true, Some("policy_denied"))
    );
    let again = yard.answer(&here.executor, "ana", run, Verdict::Approve).await.unwrap();
    assert_eq!(again.state, RunState::Failed, "the same yes again starts nothing");
    assert_eq!(yard.target.all_effects(), 0);
}
