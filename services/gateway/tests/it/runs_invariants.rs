//! What must hold after every fault, whatever the fault was: asserted by one function, from outside.
//!
//! It sees what people, agents and targets see: the API of a replica that lives, the audit log, and the effects that were
//! counted where they landed.

use crate::runs_desk::{refusal, say, show};
use serde_json::{Value, json};
use testkit::{Process, Request, World, until};

/// The states in which a run may be left when everything has healed.
const LEFT: [&str; 9] = [
    "rejected",
    "expired",
    "cancelled",
    "succeeded",
    "failed",
    "outcome_unknown",
    "reconciled_succeeded",
    "reconciled_failed",
    "pending_approval",
];

/// What a target has seen of one run.
pub(crate) struct Effects {
    /// Which run.
    pub(crate) run: String,
    /// How often it changed something.
    pub(crate) count: usize,
    /// The digests it was sent under.
    pub(crate) digests: Vec<String>,
}

/// A tenant, seen through a replica that lives.
pub(crate) struct Watched<'a> {
    pub(crate) world: &'a World<Process>,
    pub(crate) on: usize,
    pub(crate) tenant: &'a str,
}

impl Watched<'_> {
    /// Asserts I1 to I8 for these runs, which are all there are.
    pub(crate) async fn invariants(&self, effects: &[Effects]) {
        for seen in effects {
            let told = show(&self.world.tenant(self.tenant).approver().on(self.on), &seen.run).await;
            self.ended_honestly(&told, seen);
            self.decided_once(&told, &seen.run).await;
            self.found_again(&told, &seen.run).await;
            self.hidden_from_others(&seen.run).await;
            moved_by_edges(&told, &self.audit_log(&seen.run).await);
        }
        self.chain_is_whole().await;
    }

    /// Everything the audit log holds about a run, oldest first.
    pub(crate) async fn audit_log(&self, run: &str) -> Vec<Value> {
        let entries = self.whole_audit_log(self.tenant).await;
        entries.into_iter().filter(|entry| entry["run"]["id"] == run).collect()
    }

    /// I1, I2, I5 and I8: it ended, the effect is the one that was approved, and what is told is what happened.
    fn ended_honestly(&self, told: &Value, seen: &Effects) {
        let state = told["state"].as_str().unwrap();
        assert!(LEFT.contains(&state), "I8: a run that is left {state}: {told}");
        match state {
            "succeeded" | "reconciled_succeeded" => assert_eq!(seen.count, 1, "I2, I5: {told}"),
            "outcome_unknown" => assert!(seen.count <= 1, "I2: {} effects of {told}", seen.count),
            _ => assert_eq!(seen.count, 0, "I1, I5: {told}"),
        }
        for digest in &seen.digests {
            assert_eq!(told["digest"], digest.as_str(), "I1: what was sent is what was approved");
        }
    }

    /// I3: one decision, and whoever comes later learns whose.
    async fn decided_once(&self, told: &Value, run: &str) {
        if told["state"] == "pending_approval" {
            return;
        }
        let decisions = told["decisions"].as_array().unwrap();
        assert_eq!(decisions.len(), 1, "I3: {told}");
        let zoe = self.world.tenant(self.tenant).approver().named("zoe").on(self.on);
        let late = say(&zoe, run, "reject", json!({ "reason": "too late" })).await;
        assert_eq!(refusal(&late), (409, "already_decided".to_owned()), "I3: {}", late.text());
        assert!(late.text().contains(decisions[0]["by"].as_str().unwrap()), "I3: {}", late.text());
    }

    /// I5: the outcome can be fetched again, and is the same.
    async fn found_again(&self, told: &Value, run: &str) {
        let tenant = self.world.tenant(self.tenant);
        assert_eq!(&show(&tenant.approver().on(self.on), run).await, told, "I5");
        let asked = tenant.agent().on(self.on).rest().get(&format!("/v1/runs/{run}")).await;
        assert_eq!((asked.status, &asked.json()["state"]), (200, &told["state"]), "I5: whoever asked sees the same");
    }

    /// I6: another tenant finds nothing of it, by whichever door.
    async fn hidden_from_others(&self, run: &str) {
        let other = self.world.tenant("other");
        let approver = other.approver().on(self.on).rest();
        assert_eq!(approver.get(&format!("/v1/runs/{run}")).await.status, 404, "I6");
        assert_eq!(approver.post(&format!("/v1/runs/{run}/approve"), &json!({})).await.status, 404, "I6");
        assert!(!approver.get("/v1/runs").await.text().contains(run), "I6");
        let awaited = other.agent().on(self.on).modern().call("await_run", json!({ "run_id": run })).await;
        assert_eq!(awaited.code(), "not_found", "I6");
        let audit_log = Value::from(self.whole_audit_log("other").await).to_string();
        assert!(!audit_log.contains(run), "I6: the other's audit log names it");
    }

    /// I7: the program that people verify an audit log with says that it is whole.
    #[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
    async fn chain_is_whole(&self) {
        until("the audit log to be sealed", async || {
            let page = self.page(self.tenant).await;
            page["entries"].as_array().unwrap().iter().all(|entry| !entry["link"].is_null()).then_some(())
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, self.auditor(self.tenant)).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.args(["audit", "verify", "--url", &format!("http://{}", self.world.address(self.on))]);
        command.arg("--token-file").arg(&file);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("is intact"), "I7: {said} {output:?}");
    }

    async fn whole_audit_log(&self, tenant: &str) -> Vec<Value> {
        let page = self.page(tenant).await;
        assert!(page["next_cursor"].is_null(), "the audit log of a cell should fit on a page");
        page["entries"].as_array().unwrap().iter().map(|entry| entry["entry"].clone()).collect()
    }

    async fn page(&self, tenant: &str) -> Value {
        let bearer = format!("Bearer {}", self.auditor(tenant));
        let request = Request::new("GET", "/v1/audit?limit=1000").header("Authorization", bearer);
        let answer = request.send(self.world.address(self.on)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    fn auditor(&self, tenant: &str) -> String {
        self.world.mint().token(|claims| {
            claims.sub = "auditor".to_owned();
            claims.scope = "audit:read".to_owned();
            claims.tenant = tenant.to_owned();
        })
    }
}

/// I7: each move stands in the audit log once, begins where the one before it ended, and the last one led to where it is.
fn moved_by_edges(told: &Value, audit_log: &[Value]) {
    let (mut at, mut epoch, mut moves) = (Value::Null, 0, Vec::new());
    for entry in audit_log.iter().filter(|entry| entry["phase"] == "transition") {
        let run = &entry["run"];
        assert_eq!(run["from"], at, "I7: a move is missing before {entry}");
        let now = run["epoch"].as_u64().unwrap();
        assert!(now >= epoch, "I7: an epoch came back: {entry}");
        if run["to"] != at || now != epoch {
            moves.push((at.to_string(), run["to"].to_string(), now));
        }
        (at, epoch) = (run["to"].clone(), now);
    }
    let all = moves.len();
    moves.sort();
    moves.dedup();
    assert_eq!(moves.len(), all, "I7: a move stands twice in {audit_log:?}");
    assert_eq!(at, told["state"], "I7: the last move is not in the audit log");
    let decided = audit_log.iter().filter(|entry| !entry["decision"].is_null()).count();
    assert_eq!(decided, told["decisions"].as_array().unwrap().len(), "I3, I7: one entry per decision");
}
