//! The stage of the crash matrix: replicas as processes, a target that counts, and one run of each class of tool.
//!
//! The first replica is the one that dies. On Redis another lives on; on the embedded store it comes back by itself.

use crate::runs_desk::{ended, pending, show};
use crate::runs_invariants::{Effects, Watched};
use crate::runs_replica::{Errand, TENANT, replicas};
use crate::runs_target::Target;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{Actor, Answer, Legacy, Outcome, Plan, Process, World, until};

/// Where the state of a scene lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// That many replicas on one Redis.
    Redis(usize),
    /// One process and its file.
    File,
}

impl Ground {
    /// The plan of a world there, whose leases are as short as a busy machine allows.
    pub(crate) fn plan(self) -> Plan {
        let plan = match self {
            Ground::Redis(replicas) => Plan::redis(replicas),
            Ground::File => Plan::file(),
        };
        plan.setting("QM_APPROVALS__LEASE", "1500ms")
            .setting("QM_APPROVALS__RENEW_EVERY", "300ms")
            .setting("QM_APPROVALS__SWEEP_EVERY", "100ms")
    }

    /// The replica that is there when the first one has died.
    pub(crate) fn alive(self) -> usize {
        match self {
            Ground::Redis(_) => 1,
            Ground::File => 0,
        }
    }
}

/// Every replica but the first, frozen: whoever takes the yes is then the one that claims the run, and nobody is quicker.
#[must_use = "they have to be woken"]
pub(crate) struct Asleep(Vec<Process>);

impl Asleep {
    /// Puts them to sleep.
    pub(crate) fn others(world: &World<Process>, ground: Ground) -> Asleep {
        let others: Vec<Process> = match ground {
            Ground::Redis(replicas) => (1..replicas).map(|replica| world.part(replica).clone()).collect(),
            Ground::File => Vec::new(),
        };
        others.iter().for_each(|process| process.signal("-STOP"));
        Asleep(others)
    }

    /// They go on.
    pub(crate) fn wake(self) {
        self.0.iter().for_each(|process| process.signal("-CONT"));
    }
}

/// Waits until a process has stopped that often at a failpoint.
pub(crate) async fn stopped(process: &Process, stop: &str, times: usize) {
    let line = format!("at failpoint {stop}");
    until(&line, async || {
        assert!(process.ended().is_none(), "it should stop, not end: {}", process.log());
        (process.log().lines().filter(|said| **said == line).count() >= times).then_some(())
    })
    .await;
}

/// One scene.
pub(crate) struct Scene {
    pub(crate) world: World<Process>,
    pub(crate) target: Arc<Target>,
    pub(crate) ground: Ground,
    /// The session that asks, at a replica that stays.
    pub(crate) client: Legacy,
    runs: Vec<(Errand, String)>,
}

impl Scene {
    /// Replicas, of which the first ones stop where `stops` says, and one run of each tool that waits for a person.
    pub(crate) async fn open(ground: Ground, stops: &[&str]) -> Scene {
        let target = Target::start().await;
        let world = ground.plan().start(replicas(&target, stops)).await;
        Scene::on(world, target, ground).await
    }

    /// The same in a world that is there, whose tools act on this target.
    pub(crate) async fn on(world: World<Process>, target: Arc<Target>, ground: Ground) -> Scene {
        let client = world.tenant(TENANT).agent().on(ground.alive()).legacy().await;
        client.load("yard:write").await;
        let mut scene = Scene { world, target, ground, client, runs: Vec::new() };
        for errand in Errand::ALL {
            let run = pending(&scene.call(errand).await);
            scene.runs.push((errand, run));
        }
        scene
    }

    /// The run of a tool.
    pub(crate) fn run(&self, errand: Errand) -> &str {
        &self.runs.iter().find(|(known, _)| *known == errand).unwrap().1
    }

    /// What is asked for with a tool, always the same.
    pub(crate) fn arguments(errand: Errand) -> Value {
        json!({ "lot": errand.name(), "n": 7 })
    }

    /// The agent asks, or asks again.
    pub(crate) async fn call(&self, errand: Errand) -> Outcome {
        self.client.call(errand.name(), Scene::arguments(errand)).await
    }

    /// A person says yes to everything at the first replica, which may die over it.
    pub(crate) async fn approve_all(&self) -> Vec<Option<Answer>> {
        let (ana, first) = (self.world.tenant(TENANT).approver(), self.world.address(0));
        let say = |run: &str| ana.post(&format!("/v1/runs/{run}/approve"), &json!({}));
        let requests: Vec<_> = self.runs.iter().map(|(_, run)| say(run)).collect();
        futures_util::future::join_all(requests.iter().map(|request| request.try_send(first))).await
    }

    /// A person says yes to everything; the first replica stops at the failpoint with each of them, and is killed there.
    pub(crate) async fn die_at(ground: Ground, stop: &str) -> Scene {
        let mut scene = Scene::open(ground, &[&format!("{stop}=return")]).await;
        let (first, asleep) = (scene.world.part(0).clone(), scene.others_asleep());
        tokio::join!(scene.approve_all(), async {
            stopped(&first, stop, Errand::ALL.len()).await;
            first.kill();
        });
        scene.go_on(asleep).await;
        scene
    }

    /// Only the first replica is awake.
    pub(crate) fn others_asleep(&self) -> Asleep {
        Asleep::others(&self.world, self.ground)
    }

    /// The first replica is gone and the others wake; on the embedded store it starts again, without failpoints.
    pub(crate) async fn go_on(&mut self, asleep: Asleep) {
        drop(self.world.take(0));
        asleep.wake();
        if self.ground == Ground::File {
            self.world.begin(0).await;
        }
    }

    /// A person at a replica that lives.
    pub(crate) fn ana(&self) -> Actor {
        self.world.tenant(TENANT).approver().on(self.ground.alive())
    }

    /// The run of a tool as it stands.
    pub(crate) async fn now(&self, errand: Errand) -> Value {
        show(&self.ana(), self.run(errand)).await
    }

    /// Waits until the run of a tool is in a state.
    pub(crate) async fn becomes(&self, errand: Errand, state: &str) -> Value {
        ended(&self.ana(), self.run(errand)).await;
        until(&format!("the run of {} to be {state}", errand.name()), async || {
            let told = self.now(errand).await;
            (told["state"] == state).then_some(told)
        })
        .await
    }

    /// Effects and sendings of a tool's run, as the target counted them.
    pub(crate) fn counted(&self, errand: Errand) -> (usize, usize) {
        (self.target.effects(self.run(errand)), self.target.sent(self.run(errand)))
    }

    /// The tenant, through a replica that lives.
    pub(crate) fn watched(&self) -> Watched<'_> {
        Watched { world: &self.world, on: self.ground.alive(), tenant: TENANT }
    }

    /// Everything that must hold after any fault.
    pub(crate) async fn invariants(&self) {
        let effects = self.runs.iter().map(|(_, run)| Effects {
            run: run.clone(),
            count: self.target.effects(run),
            digests: self.target.digests(run),
        });
        self.watched().invariants(&effects.collect::<Vec<_>>()).await;
        let known = |run: &String| self.runs.iter().any(|(_, known)| known == run);
        assert!(self.target.runs().iter().all(known), "I1: something was sent without a run: {:?}", self.target.runs());
    }
}
