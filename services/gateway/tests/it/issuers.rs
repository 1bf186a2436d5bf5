//! Several issuers: what each may vouch for, and that one human with two accounts is one person.

use crate::here::{World, in_process, processes};
use crate::runs_desk::{PENDING, approve, ask, asker, asking, audit_log, ended, refusal, say, show, versions};
use serde_json::json;
use testkit::actor::Mint;
use testkit::{Actor, Plan};

/// The second issuer.
const PARTNER: &str = "https://login.partner.example";

/// Two issuers with these bounds, on the one key of the world.
fn issuers(key: &std::path::Path, first: &str, second: &str) -> String {
    let issuer = |name: &str, bounds: &str| {
        format!(r#"{{ issuer = "{name}", algorithms = ["HS256"], key_file = "{}", {bounds} }}"#, key.display())
    };
    format!("[{}, {}]", issuer(Mint::ISSUER, first), issuer(PARTNER, second))
}

/// A world that believes both issuers, each within its bounds.
async fn believing(approval: &str, first: &str, second: &str) -> World {
    let mut world = asking(Plan::embedded(), approval).start(in_process()).await;
    let key = world.settings_file().with_file_name("signing.key");
    world.set("QM_IDENTITY__ISSUERS", &issuers(&key, first, second));
    world.stop(0).await;
    world.begin(0).await;
    world
}

/// The account that the first issuer has given to somebody.
fn home(actor: &Actor, email: &str) -> Actor {
    actor.claiming(|claims| email.clone_into(&mut claims.email))
}

/// The account of that name at the second issuer.
fn partner(actor: &Actor, subject: &str, email: &str) -> Actor {
    actor.claiming(|claims| {
        PARTNER.clone_into(&mut claims.iss);
        subject.clone_into(&mut claims.sub);
        email.clone_into(&mut claims.email);
    })
}

const NAMED: &str = r#"person_claim = "email""#;

#[tokio::test(flavor = "multi_thread")]
async fn one_human_with_accounts_at_two_issuers_cannot_approve_what_they_asked_for() {
    let world = believing("deciders: 1", NAMED, NAMED).await;
    let tenant = world.tenant("acme");
    let client = asker(&home(&tenant.agent(), "ruth@acme.example")).await;
    let run = ask(&client, "own", "x").await;

    let other_account = partner(&tenant.approver(), "r-4711", "Ruth@ACME.example");
    for verdict in ["approve", "reject"] {
        let answer = say(&other_account, &run, verdict, json!({})).await;
        assert_eq!(refusal(&answer), (403, "own_request".into()), "{verdict}");
    }
    let settled = say(&other_account, &run, "resolve", json!({ "outcome": "succeeded" })).await;
    assert_eq!(refusal(&settled), (403, "own_request".into()));
    let cleared = say(&other_account, &run, "clear", json!({})).await;
    assert_eq!(refusal(&cleared), (403, "own_request".into()));
    assert_eq!(show(&other_account, &run).await["decisions"], json!([]));
    assert_eq!(versions(&world, "own").await, 0);

    let somebody = partner(&tenant.approver(), "a-1", "ana@acme.example");
    approve(&somebody, &run).await;
    assert_eq!(ended(&somebody, &run).await["state"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_human_with_accounts_at_two_issuers_is_one_decider() {
    let world = believing("deciders: 2", NAMED, NAMED).await;
    let tenant = world.tenant("acme");
    let client = asker(&home(&tenant.agent(), "robot@acme.example")).await;
    let run = ask(&client, "quorum", "x").await;

    let ana = home(&tenant.approver(), "ana@acme.example");
    assert_eq!(approve(&ana, &run).await["state"], PENDING);
    let again = approve(&partner(&tenant.approver(), "a-1", "ana@acme.example"), &run).await;
    assert_eq!((&again["state"], again["decisions"].as_array().unwrap().len()), (&json!(PENDING), 1));
    assert_eq!(versions(&world, "quorum").await, 0);

    approve(&partner(&tenant.approver(), "b-2", "bo@acme.example"), &run).await;
    assert_eq!(ended(&ana, &run).await["state"], "succeeded");
    let people: Vec<_> = audit_log(&world, &run).await.iter().map(|entry| entry["actor"]["person"].clone()).collect();
    for person in ["robot@acme.example", "ana@acme.example", "bo@acme.example"] {
        assert!(people.contains(&json!(person)), "the audit log names {person}: {people:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_person_claim_issuer_and_subject_are_the_person() {
    let world = believing("deciders: 1", "", "").await;
    let tenant = world.tenant("acme");
    let client = asker(&home(&tenant.agent(), "ruth@acme.example")).await;
    let run = ask(&client, "as-before", "x").await;
    let same = say(&tenant.approver().named("agent"), &run, "approve", json!({})).await;
    assert_eq!(refusal(&same), (403, "own_request".into()));
    approve(&partner(&tenant.approver(), "r-4711", "ruth@acme.example"), &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_is_believed_within_its_bounds_and_told_what_it_may_not_say() {
    let bounds = r#"tenants = ["other", "shop-*"], scopes = ["tools:write"], longest_token = "10m""#;
    let world = believing("deciders: 1", "", bounds).await;
    let (acme, other) = (world.tenant("acme"), world.tenant("other"));
    let short = |actor: &Actor| {
        actor.claiming(|claims| {
            PARTNER.clone_into(&mut claims.iss);
            claims.exp = claims.iat.plus(std::time::Duration::from_secs(600));
        })
    };
    assert_eq!(short(&other.agent()).rest().get("/v1/runs").await.status, 200);
    let answer = short(&acme.agent()).rest().get("/v1/runs").await;
    assert_eq!(refusal(&answer), (403, "forbidden_tenant".into()));
    assert_eq!(answer.json()["error"]["message"], "the issuer of the token may not vouch for this tenant");
    let answer = short(&other.approver()).rest().get("/v1/runs").await;
    assert_eq!(refusal(&answer), (403, "forbidden_scope".into()));
    let long = other.agent().claiming(|claims| PARTNER.clone_into(&mut claims.iss)).rest().get("/v1/runs").await;
    assert_eq!(refusal(&long), (401, "unauthenticated".into()));
    assert_eq!(long.json()["error"]["message"], "the token lives longer than tokens of its issuer may");
    assert_eq!(acme.approver().rest().get("/v1/runs").await.status, 200, "the first issuer is not bound");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_warns_of_several_issuers_that_nothing_binds() {
    let world = Plan::redis(1).start(processes()).await;
    let key = world.settings_file().with_file_name("signing.key");
    let lines = crate::doctor::with(world.settings_file(), &[("QM_IDENTITY__ISSUERS", &issuers(&key, "", ""))]).await.1;
    let about: Vec<_> = lines.iter().filter(|line| line["what"] == "bounds of issuers").collect();
    assert_eq!(about.len(), 2, "{lines:#?}");
    for line in about {
        assert!(line["how"] == "doubtful" && line["todo"].is_string(), "{line}");
    }
    let lines = crate::doctor::with(world.settings_file(), &[]).await.1;
    assert!(!lines.iter().any(|line| line["what"] == "bounds of issuers"), "one issuer needs no bounds: {lines:#?}");
}
