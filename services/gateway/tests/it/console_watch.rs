//! The screens of the console to watch and stop by: audit log, sessions, usage, operations and catalog. Who sees them, what
//! their forms must prove, and that they do what the REST API does.

use crate::console_desk::{Browser, field, with_console};
use crate::here::{World, in_process};
use crate::runs_desk::{acme, ask, asker, asking, note};
use serde_json::{Value, json};
use store::{AuditEntry, Commit, Committed, Phase, RecordKey, RecordVersion, SideWrite, StreamName};
use testkit::{Answer, Plan, until};

const AUDITOR: &str = "audit:read";
const ADMIN: &str = "tenant:admin audit:read";
const HOSTILE: &str = "<script>alert(1)</script>\u{202e}\u{200b}<img src=x onerror=alert(2)>";

async fn world() -> World {
    asking(with_console(Plan::embedded()), "deciders: 1").start(in_process()).await
}

async fn entries(world: &World) -> Vec<Value> {
    let entries = world.part(0).store.of(&acme()).audit().page(None, 10_000).await.unwrap();
    entries.into_iter().map(|noted| noted.entry).collect()
}

/// A page that is there.
async fn shown(world: &World, browser: &Browser, path: &str) -> Answer {
    let page = browser.get(world, 0, path).await;
    assert_eq!(page.status, 200, "{path}: {}", page.text());
    page
}

/// Whoever has not the right to a screen learns which it is, and no menu leads there.
#[tokio::test(flavor = "multi_thread")]
async fn every_screen_wants_the_right_that_the_rest_api_wants() {
    let world = world().await;
    let screens = [
        ("/console/audit", "/v1/audit", "audit:read"),
        ("/console/audit/export", "/v1/audit", "audit:read"),
        ("/console/audit/1-0", "/v1/audit", "audit:read"),
        ("/console/sessions", "/v1/sessions", "audit:read"),
        ("/console/usage", "/v1/usage", "audit:read"),
        ("/console/operations", "/v1/switches", "tenant:admin"),
        ("/console/catalog", "/v1/catalog", "tools:read"),
        ("/console/catalog/memory_list", "/v1/catalog", "tools:read"),
    ];
    for scopes in ["runs:decide", "tools:read", AUDITOR, "tenant:admin", "audit:read tools:read", "operator:switch"] {
        let browser = Browser::signed_in(&world, 0, "ana", scopes).await;
        let token = world.tenant("acme").approver().named("ana").scoped(scopes);
        for (screen, rest, right) in screens {
            let (page, told) = (browser.get(&world, 0, screen).await, token.rest().get(rest).await);
            // Readiness and targets are for auditors too; of switches they see only which right is missing.
            let looks_on = screen == "/console/operations" && scopes == AUDITOR;
            assert_eq!(page.status == 403, told.status == 403 && !looks_on, "{scopes} {screen}: {}", page.status);
            let menu = format!(r#"href="{screen}""#);
            if page.status == 403 {
                assert!(page.text().contains(&format!("<code>{right}</code>")), "{scopes} {screen}: {}", page.text());
            }
            if !scopes.contains("tools:read") && screen.matches('/').count() == 2 {
                let start = browser.get(&world, 0, "/console/nothing").await.text();
                assert_eq!(start.contains(&menu), page.status == 200, "{scopes} {screen}");
            }
        }
    }
    let looks_on = Browser::signed_in(&world, 0, "ana", AUDITOR).await;
    let page = shown(&world, &looks_on, "/console/operations").await.text();
    assert!(page.contains("kill switches needs the right <code>tenant:admin</code>"), "{page}");
    assert!(!page.contains("set-switch"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_is_searched_newest_first_and_every_link_is_a_view() {
    let world = world().await;
    let agent = asker(&world.tenant("acme").agent()).await;
    let run = ask(&agent, "audited", "x").await;
    for number in 0..60 {
        agent.call("memory_list", json!({ "path": format!("tenant/runbooks/n{number}") })).await;
    }
    let ana = Browser::signed_in(&world, 0, "ana", AUDITOR).await;
    let page = shown(&world, &ana, "/console/audit").await;
    let text = page.text();
    assert_eq!(text.matches("<tr id=").count(), 30);
    assert!(text.len() < 27_000, "{} bytes", text.len());
    // Every page begins where the one before ended, and none is lost.
    let (mut seen, mut path) = (Vec::new(), "/console/audit".to_owned());
    loop {
        let text = shown(&world, &ana, &path).await.text();
        seen.extend(text.split("<tr id=\"e").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()));
        let Some(next) = text.split("rel=\"next\" href=\"").nth(1) else { break };
        path = next.split('"').next().unwrap().replace("&amp;", "&");
    }
    let mut places: Vec<String> = world
        .part(0)
        .store
        .of(&acme())
        .audit()
        .page(None, 10_000)
        .await
        .unwrap()
        .iter()
        .map(|noted| noted.id.to_string())
        .collect();
    places.reverse();
    // Signing in and looking write nothing here between the two reads but what is newest.
    assert_eq!(seen, places[places.len() - seen.len()..]);
    assert!(seen.len() > 60);

    for (query, wanted) in [
        (format!("run={run}"), "memory_remember"),
        ("tool=memory_remember".to_owned(), "memory_remember"),
        ("principal=ana".to_owned(), "sign-in"),
        ("text=runbooks%2Fn7".to_owned(), "memory_list"),
        ("code=ok&tool=memory_list".to_owned(), "memory_list"),
    ] {
        let text = shown(&world, &ana, &format!("/console/audit?{query}")).await.text();
        assert!(text.contains(wanted) && text.contains("<tr id="), "{query}: {text}");
    }
    let linked = shown(&world, &ana, &format!("/console/audit?run={run}")).await.text();
    assert!(linked.contains(&format!(r#"href="/console/runs/{run}""#)), "{linked}");
    for query in ["tool=no_such_tool", "until=2001-01-01T00:00", "principal=nobody"] {
        let text = shown(&world, &ana, &format!("/console/audit?{query}")).await.text();
        assert!(text.contains("No entry fits."), "{query}: {text}");
    }
    for bad in ["since=soon", "until=1", "before=x"] {
        assert_eq!(ana.get(&world, 0, &format!("/console/audit?{bad}")).await.status, 400, "{bad}");
    }
    let lines = shown(&world, &ana, "/console/audit?tool=memory_list&code=&format=jsonl").await;
    assert!(lines.header("content-disposition").unwrap().contains("attachment"));
    assert_eq!(lines.text().lines().filter(|line| line.contains("memory_list")).count(), 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_shows_its_arguments_and_what_is_stored() {
    let world = world().await;
    let agent = asker(&world.tenant("acme").agent()).await;
    agent.call("memory_list", json!({ "path": "tenant/runbooks/argued" })).await;
    let ana = Browser::signed_in(&world, 0, "ana", AUDITOR).await;
    let list = shown(&world, &ana, "/console/audit?tool=memory_list&text=argued").await.text();
    let entry = list.split("<tr id=\"e").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let page = shown(&world, &ana, &format!("/console/audit/{entry}")).await.text();
    assert!(page.contains("tenant/runbooks/argued") && page.contains("As it is stored"), "{page}");
    for absent in ["1-0", "x", "99999999999999-0"] {
        assert_eq!(ana.get(&world, 0, &format!("/console/audit/{absent}")).await.status, 404, "{absent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chain_is_verified_by_a_form_and_the_first_bad_entry_is_named() {
    let world = world().await;
    let agent = asker(&world.tenant("acme").agent()).await;
    agent.call("memory_list", json!({})).await;
    let ana = Browser::signed_in(&world, 0, "ana", AUDITOR).await;
    let verify = async || {
        let token = field(&ana.get(&world, 0, "/console/audit").await, "token");
        ana.submit(&world, 0, "/console/audit/verify", &[("token", &token)]).await
    };
    let good = verify().await;
    assert!(good.status == 200 && good.text().contains("The audit log is intact"), "{}", good.text());
    let rest = world.tenant("acme").approver().named("ana").scoped(AUDITOR);
    until("everything is sealed", async || {
        let told = rest.rest().post("/v1/audit/verify", &json!({})).await.json();
        (told["ok"] == true && told["unsealed"] == 0).then_some(())
    })
    .await;
    let exported = shown(&world, &ana, "/console/audit/export").await.text();
    assert!(exported.lines().next().unwrap().contains("\"ledger\""), "{exported}");
    assert!(exported.lines().count() > 2);
    // Nothing is verified for a form of others.
    let foreign = ana.form("/console/audit/verify", &[("token", "0")]).header("Sec-Fetch-Site", "cross-site");
    assert_eq!(foreign.send(world.address(0)).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_agents_wrote_is_neither_markup_nor_hidden_on_any_screen() {
    let world = world().await;
    let store = world.part(0).store.of(&acme());
    let entry = AuditEntry {
        target: Some(HOSTILE.to_owned()),
        trace: Some(HOSTILE.to_owned()),
        client: Some(HOSTILE.into()),
        ..AuditEntry::new(Phase::Denied)
    };
    let place = store.audit().note(&entry).await.unwrap();
    let agent = world.tenant("acme").agent();
    let opened = agent.request("POST", "/v1/sessions").header("Content-Type", "application/json");
    let opened = agent.send(&opened.header("User-Agent", "<b>agent</b>/1.0").body("{}".to_owned())).await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    let ana = Browser::signed_in(&world, 0, "ana", ADMIN).await;
    for path in [
        "/console/audit".to_owned(),
        format!("/console/audit/{place}"),
        "/console/audit?tool=%3Cscript%3Ealert(1)%3C/script%3E&text=%E2%80%AE".to_owned(),
        "/console/sessions".to_owned(),
        "/console/catalog/%3Cscript%3Ealert(1)%3C%2Fscript%3E".to_owned(),
        "/console/usage".to_owned(),
        "/console/operations?done=%3Cscript%3E".to_owned(),
    ] {
        let text = ana.get(&world, 0, &path).await.text();
        let inputs = text.replace("value=\"\u{202e}\"", "");
        for never in ["<script>alert", "<img", "<b>agent", "\u{202e}", "\u{200b}"] {
            assert!(!inputs.contains(never), "{path} has {never}: {text}");
        }
    }
    let sessions = shown(&world, &ana, "/console/sessions").await.text();
    assert!(sessions.contains("&lt;b&gt;agent&lt;/b&gt;/1.0"), "{sessions}");
}

/// What a person sees of sessions, and ends: over a page as over the REST API.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_seen_with_their_cost_and_ended_by_administrators() {
    let world = world().await;
    let agent = world.tenant("acme").agent();
    let (first, second) = (agent.rest().open("write").await, agent.rest().open("read").await);
    agent.rest().call(&first, "load_toolset", json!({ "toolset": "memory", "include_write_tools": true })).await;
    agent.rest().call(&first, "memory_list", json!({})).await;
    let looks_on = Browser::signed_in(&world, 0, "ana", AUDITOR).await;
    let page = shown(&world, &looks_on, "/console/sessions").await.text();
    for wanted in [
        first.as_str(),
        second.as_str(),
        "tokens in each list",
        "with write tools",
        "REST API",
        "2 calls since yesterday",
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    assert!(!page.contains("End this session") && page.contains("<code>tenant:admin</code>"), "{page}");
    let listed = world.tenant("acme").approver().scoped(AUDITOR).rest().get("/v1/sessions").await.json();
    let of_first =
        listed["sessions"].as_array().unwrap().iter().find(|one| one["id"] == first.as_str()).unwrap().clone();
    assert_eq!(
        (&of_first["door"], &of_first["calls"], &of_first["mode"]),
        (&json!("rest"), &json!(2), &json!("write"))
    );
    assert!(of_first["tokens"].as_u64().unwrap() > 100 && of_first["last_used_at"].is_string(), "{of_first}");

    let admin = Browser::signed_in(&world, 0, "eve", ADMIN).await;
    let token = field(&admin.get(&world, 0, "/console/sessions").await, "token");
    let path = format!("/console/sessions/{first}/end");
    for (why, request) in [
        ("another site", admin.form(&path, &[("token", &token)]).header("Sec-Fetch-Site", "cross-site")),
        ("no token", admin.form(&path, &[]).header("Sec-Fetch-Site", "same-origin")),
    ] {
        assert_eq!(request.send(world.address(0)).await.status, 403, "{why}");
    }
    let own = field(&looks_on.get(&world, 0, "/console/sessions").await, "token");
    assert_eq!(looks_on.submit(&world, 0, &path, &[("token", &own)]).await.status, 403, "an auditor ends nothing");
    assert_eq!(agent.rest().get(&format!("/v1/sessions/{first}")).await.status, 200, "it is still there");
    let ended = admin.submit(&world, 0, &path, &[("token", &token)]).await;
    assert_eq!((ended.status, ended.header("location")), (303, Some("/console/sessions?done=ended")));
    assert_eq!(agent.rest().get(&format!("/v1/sessions/{first}")).await.status, 404);
    let again = admin.submit(&world, 0, &path, &[("token", &token)]).await;
    assert!(again.status == 404 && again.text().contains("Nothing was done"), "{}", again.text());
    let rest = world.tenant("acme").approver().named("eve").scoped("tenant:admin");
    assert_eq!(rest.rest().delete(&format!("/v1/sessions/{second}")).await.status, 204);
    let ends: Vec<Value> = entries(&world).await.into_iter().filter(|entry| entry["target"] == "session/end").collect();
    assert_eq!(ends.len(), 2);
    for entry in ends {
        assert_eq!(
            (&entry["phase"], &entry["actor"]["sub"], &entry["actor"]["kind"]),
            (&json!("admin"), &json!("eve"), &json!("person"))
        );
    }
    let empty = shown(&world, &admin, "/console/sessions").await.text();
    assert!(empty.contains("No session is open."), "{empty}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_switches_are_set_and_lifted_by_forms() {
    let world = world().await;
    let admin = Browser::signed_in(&world, 0, "eve", "tenant:admin").await;
    let token = field(&admin.get(&world, 0, "/console/operations").await, "token");
    let set = async |pairs: &[(&str, &str)]| {
        let all: Vec<(&str, &str)> = [("token", token.as_str())].into_iter().chain(pairs.iter().copied()).collect();
        admin.submit(&world, 0, "/console/operations/switches", &all).await
    };
    let good = [("on", "toolset:memory"), ("mode", "read-only"), ("for", "2h"), ("reason", "disks are full")];
    for (why, pairs) in [
        ("no reason", vec![good[0], good[1], good[2], ("reason", " ")]),
        ("nothing it could be on", vec![("on", "everything"), good[1], good[2], good[3]]),
        ("no mode", vec![good[0], ("mode", ""), good[2], good[3]]),
        ("no such end", vec![good[0], good[1], ("for", "9y"), good[3]]),
        ("a tenant that was not typed", vec![("on", "tenant"), ("mode", "stop"), good[2], good[3]]),
        ("another name typed", vec![("on", "tenant"), ("mode", "stop"), good[2], good[3], ("typed", "bolt")]),
    ] {
        let answer = set(&pairs).await;
        assert_eq!(answer.status, 400, "{why}: {}", answer.text());
        assert!(answer.text().contains("Nothing was done:"), "{why}: {}", answer.text());
        assert!(answer.text().contains("No switch is set."), "{why}");
    }
    let other = set(&[good[0], good[1], good[2], good[3], ("tenant", "bolt")]).await;
    assert_eq!(other.status, 403, "an admin of one tenant switches no other: {}", other.text());
    let foreign = admin.form("/console/operations/switches", &[("token", &token), good[0], good[1], good[3]]);
    assert_eq!(foreign.header("Sec-Fetch-Site", "same-site").send(world.address(0)).await.status, 403);

    assert_eq!(set(&good).await.header("location"), Some("/console/operations?done=set#switches"));
    let page = shown(&world, &admin, "/console/operations").await.text();
    assert!(page.contains("toolset:memory") && page.contains("disks are full") && page.contains("ends "), "{page}");
    let rest = world.tenant("acme").approver().named("eve").scoped("tenant:admin");
    let listed = rest.rest().get("/v1/switches").await.json();
    assert_eq!(listed["switches"][0]["on"], "toolset:memory", "the REST API has the same one");
    let unmatched = set(&[("on", "tool:no_such_tool"), good[1], good[2], good[3]]).await;
    assert_eq!(unmatched.header("location"), Some("/console/operations?done=unmatched#switches"));
    let stop = [("on", "tenant"), ("mode", "stop"), ("for", "30m"), good[3], ("typed", "acme")];
    assert_eq!(set(&stop).await.status, 303);

    // What the operator set the tenant's admin sees and does not lift.
    let operator = world.tenant("acme").approver().named("olga").scoped("operator:switch");
    let by_operator = operator
        .rest()
        .post("/v1/switches", &json!({ "on": "toolset:memory", "mode": "stop", "reason": "r" }))
        .await
        .json();
    let id = by_operator["id"].as_str().unwrap().to_owned();
    let page = shown(&world, &admin, "/console/operations").await.text();
    assert!(page.contains(&id) && !page.contains(&format!("switches/{id}/lift")), "{page}");
    let path = format!("/console/operations/switches/{id}/lift");
    assert_eq!(admin.submit(&world, 0, &path, &[("token", &token)]).await.status, 403);

    for switch in rest.rest().get("/v1/switches").await.json()["switches"].as_array().unwrap() {
        if switch["by"] == "tenant_admin" {
            let path = format!("/console/operations/switches/{}/lift", switch["id"].as_str().unwrap());
            let lifted = admin.submit(&world, 0, &path, &[("token", &token)]).await;
            assert_eq!(lifted.header("location"), Some("/console/operations?done=lifted#switches"));
            let again = admin.submit(&world, 0, &path, &[("token", &token)]).await;
            assert!(again.status == 404 && again.text().contains("Nothing was done"), "{}", again.text());
        }
    }
    let verdicts: Vec<String> = entries(&world)
        .await
        .iter()
        .filter(|entry| {
            entry["target"].as_str().is_some_and(|target| target.starts_with("switch/"))
                && entry["actor"]["sub"] == "eve"
        })
        .map(|entry| entry["decision"]["verdict"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(verdicts, ["set", "set", "set", "lift", "lift", "lift"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_tell_of_readiness_and_of_what_waits() {
    let world = world().await;
    let agent = asker(&world.tenant("acme").agent()).await;
    let run = ask(&agent, "oldest", "x").await;
    let sre = Browser::signed_in(&world, 0, "sre", "runs:decide tenant:admin audit:read").await;
    let page = shown(&world, &sre, "/console/operations").await.text();
    for wanted in ["1 run waits.", &run, "drew this page", env!("CARGO_PKG_VERSION"), "embedded"] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    let admin = Browser::signed_in(&world, 0, "eve", "tenant:admin").await;
    let page = shown(&world, &admin, "/console/operations").await.text();
    assert!(page.contains("1 run waits.") && !page.contains(&run), "who sees no runs sees how many wait: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_charted_by_day_with_its_figures_beside() {
    let world = world().await;
    let ana = Browser::signed_in(&world, 0, "ana", AUDITOR).await;
    let empty = shown(&world, &ana, "/console/usage").await.text();
    assert!(empty.contains("Nothing was used in this time."), "{empty}");
    let agent = world.tenant("acme").agent();
    let session = agent.rest().open("read").await;
    agent.rest().get(&format!("/v1/sessions/{session}/tools")).await;
    for _ in 0..3 {
        agent.rest().call(&session, "memory_list", json!({})).await;
    }
    let page = shown(&world, &ana, "/console/usage").await.text();
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(
        page.matches("<rect").count() >= 1 && page.contains("memory_list") && page.contains("3, of which 0 failed"),
        "{page}"
    );
    assert!(!page.contains("style="), "{page}");
    let by_session = shown(&world, &ana, "/console/usage?by=session").await.text();
    assert!(by_session.contains(&session), "{by_session}");
    for bad in ["by=colour", "from=soon", "from=2026-02-01&to=2026-01-01", "from=2020-01-01&to=2026-01-01", "to=x"] {
        let answer = ana.get(&world, 0, &format!("/console/usage?{bad}")).await;
        assert_eq!(answer.status, 400, "{bad}: {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_shows_arguments_and_explains_why_a_tool_cannot_be_used() {
    let world = world().await;
    let admin = Browser::signed_in(&world, 0, "eve", "tenant:admin").await;
    let page = shown(&world, &admin, "/console/catalog").await.text();
    assert!(page.contains("/console/catalog?toolset=memory"), "{page}");
    let tools = shown(&world, &admin, "/console/catalog?toolset=memory").await.text();
    assert!(
        tools.contains("/console/catalog/memory_remember") && tools.contains("<code>tools:write</code>"),
        "{tools}"
    );
    assert_eq!(admin.get(&world, 0, "/console/catalog?toolset=none").await.status, 404);
    let tool = shown(&world, &admin, "/console/catalog/memory_remember?for=writer").await.text();
    for wanted in ["<code>", "Arguments", "always", "<strong>Yes.</strong>", "wait for a person"] {
        assert!(tool.contains(wanted), "{wanted}: {tool}");
    }
    let reader = shown(&world, &admin, "/console/catalog/memory_remember?for=reader").await.text();
    assert!(reader.contains("<strong>No.</strong>") && reader.contains("tools:write is missing"), "{reader}");
    let me = shown(&world, &admin, "/console/catalog/memory_list").await.text();
    assert!(me.contains("tools:read is missing"), "{me}");
    let found = admin.get(&world, 0, "/console/catalog?tool=memory_lst").await;
    assert_eq!(found.header("location"), Some("/console/catalog/memory_lst"));
    let near = shown(&world, &admin, "/console/catalog/memory_lst").await.text();
    assert!(near.contains("has no tool of this name") && near.contains("/console/catalog/memory_list"), "{near}");
    assert_eq!(admin.get(&world, 0, "/console/catalog/memory_list?for=everybody").await.status, 400);
    // A kill switch is among the reasons.
    let rest = world.tenant("acme").approver().named("eve").scoped("tenant:admin");
    rest.rest().post("/v1/switches", &json!({ "on": "tool:memory_list", "mode": "stop", "reason": "too slow" })).await;
    let stopped = shown(&world, &admin, "/console/catalog/memory_list?for=writer").await.text();
    assert!(stopped.contains("<strong>No.</strong>") && stopped.contains("too slow"), "{stopped}");
}

/// A log that somebody meddled with is still shown, and verifying names the first bad entry.
#[tokio::test(flavor = "multi_thread")]
async fn an_audit_log_that_was_meddled_with_is_shown_and_found_out() {
    let world = world().await;
    let agent = asker(&world.tenant("acme").agent()).await;
    agent.call("memory_remember", note("meddled", "x")).await;
    let ana = Browser::signed_in(&world, 0, "ana", AUDITOR).await;
    let rest = world.tenant("acme").approver().named("ana").scoped(AUDITOR);
    until("everything is sealed", async || {
        let told = rest.rest().post("/v1/audit/verify", &json!({})).await.json();
        (told["ok"] == true && told["unsealed"] == 0).then_some(())
    })
    .await;
    // The oldest item goes, and something that is no entry comes.
    let store = world.part(0).store.of(&acme());
    let oldest = store.read(&StreamName::audit(), None, 1).await.unwrap()[0].0;
    let meddled = Commit {
        append: vec![(StreamName::audit(), b"not an entry".to_vec())],
        beside: vec![SideWrite::Trim(StreamName::audit(), oldest, 0)],
        ..Commit::write(RecordKey::usage("2001-01-01"), RecordVersion::NONE, Vec::new())
    };
    assert!(matches!(store.commit(meddled).await.unwrap(), Committed::Done(..)));
    let told = rest.rest().post("/v1/audit/verify", &json!({})).await.json();
    assert_eq!(told["ok"], false, "{told}");
    let token = field(&shown(&world, &ana, "/console/audit").await, "token");
    let bad = ana.submit(&world, 0, "/console/audit/verify", &[("token", &token)]).await;
    assert!(bad.status == 200 && bad.text().contains("is not as it was sealed"), "{}", bad.text());
}
