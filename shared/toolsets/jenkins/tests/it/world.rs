//! A tenant with a simulated Jenkins, and calls made the way the service makes them: shown, signed for, carried out,
//! probed.

use catalog::{CatalogEntry, ParsedCall, ProbeResult, Progress, ToolPreview};
use domain::{Effect, Failure, Moment, RunId};
use egress::{AddressGuard, Url};
use jenkins::client::{JenkinsServerConfig, JenkinsServers, SecretSource, SecretText};
use jenkins::tools::{JenkinsDeps, list};
use policy::{Decision, PermitApproval};
use sandbox::jenkins::{JenkinsSeed, SimulatedJenkins};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use target::Cursors;
pub(crate) use testkit::bench::tenant;
use testkit::bench::{call, fits, judged, looking};

/// A tenant `acme` whose one server is simulated.
pub(crate) struct World {
    pub(crate) jenkins: SimulatedJenkins,
    pub(crate) kit: JenkinsDeps,
    entries: Vec<Arc<CatalogEntry>>,
    clock: Arc<AtomicU64>,
    decided: Moment,
}

/// The run that is signed for.
pub(crate) fn run() -> RunId {
    RunId::from_random([3; 16])
}

impl World {
    pub(crate) async fn shop() -> World {
        World::of(JenkinsSeed::shop()).await
    }

    pub(crate) async fn of(seed: JenkinsSeed) -> World {
        let jenkins = SimulatedJenkins::start(seed).await.unwrap();
        let servers = JenkinsServers::build(&tenant(), vec![config("main", &jenkins)], None).unwrap();
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let clock = Arc::new(AtomicU64::new(u64::try_from(millis).unwrap()));
        let told = Arc::clone(&clock);
        let now = move || Moment::from_millis(told.load(Ordering::SeqCst));
        let kit = JenkinsDeps { servers, cursors: Cursors::with_clock([7; 32], Arc::new(now)) };
        let decided = Moment::from_millis(clock.load(Ordering::SeqCst));
        let entries = list(&kit, &catalog::CompiledTools::default(), false).unwrap();
        World { jenkins, kit, entries, clock, decided }
    }

    /// Gives the tenant other servers; those that stay as they were keep their connections.
    pub(crate) fn set(
        &mut self,
        configs: Vec<jenkins::client::JenkinsServerConfig>,
    ) -> Result<(), jenkins::client::BadServer> {
        self.kit.servers = JenkinsServers::build(&tenant(), configs, Some(&self.kit.servers))?;
        self.entries = list(&self.kit, &catalog::CompiledTools::default(), false).unwrap();
        Ok(())
    }

    /// Lets the service's clock go on; the server's own is moved by `jenkins.advance`.
    pub(crate) fn wait(&self, time: Duration) {
        self.clock.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    fn parsed(&self, tool: &str, args: Value) -> Result<(&CatalogEntry, ParsedCall), Failure> {
        let entry = self.entries.iter().find(|entry| entry.name().as_str() == tool).expect("a tool of that name");
        let Value::Object(args) = args else { panic!("arguments are an object") };
        Ok((entry, entry.parse(args)?))
    }

    /// What an approver would be shown.
    pub(crate) async fn preview(&self, tool: &str, args: Value) -> Result<ToolPreview, Failure> {
        let (_, parsed) = self.parsed(tool, args)?;
        assert_ne!(parsed.effect, Effect::Read, "nobody is asked about a look");
        let Decision::Ask(_, rehearsal) = judged(call(tool, &parsed), None) else { panic!("a change is asked about") };
        Ok(parsed.work.preview(&rehearsal).await?.expect("a preview"))
    }

    /// Carries it out: approved, or at once if it only looks. The answer is held to its schema and its bound.
    pub(crate) async fn run(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        self.run_as(tool, args, run()).await
    }

    pub(crate) async fn run_as(&self, tool: &str, args: Value, run: RunId) -> Result<Value, Failure> {
        let (entry, parsed) = self.parsed(tool, args)?;
        let approved = (parsed.effect != Effect::Read).then(|| self.approval(run));
        let Decision::Permit(permit) = judged(call(tool, &parsed), approved) else { panic!("it is permitted") };
        let text = parsed.work.run(&permit, &Progress::default()).await?.structured.expect("a structured result");
        assert!(text.len() <= 24 * 1024, "{tool} answered {} bytes", text.len());
        fits(entry, &text);
        Ok(serde_json::from_str(&text).unwrap())
    }

    /// Carries it out under a permit that may only rehearse.
    pub(crate) async fn rehearse(&self, tool: &str, args: Value) -> Result<(), Failure> {
        let (_, parsed) = self.parsed(tool, args)?;
        let Decision::Ask(_, rehearsal) = judged(call(tool, &parsed), None) else { panic!("a change is asked about") };
        parsed.work.run(&rehearsal, &Progress::default()).await.map(drop)
    }

    /// What a look says about a run whose answer was lost. A result it tells is held to the schema.
    pub(crate) async fn probe(&self, tool: &str, args: Value, run: RunId) -> ProbeResult {
        let (entry, parsed) = self.parsed(tool, args).unwrap();
        let look = looking(call(tool, &parsed), self.approval(run));
        let probe = parsed.work.probe(&look).await;
        if let ProbeResult::Done(Some(text)) = &probe {
            fits(entry, text);
        }
        probe
    }

    fn approval(&self, run: RunId) -> PermitApproval {
        PermitApproval { run, by: Vec::new(), at: self.decided }
    }

    /// How many requests of this method went out.
    pub(crate) fn sent(&self, method: &str) -> usize {
        self.jenkins.requests().iter().filter(|request| request.method == method).count()
    }
}

/// How a tenant reaches a simulated server: the operator allows this machine and this port.
pub(crate) fn config(name: &str, jenkins: &SimulatedJenkins) -> JenkinsServerConfig {
    let token = SecretSource::Text(SecretText::new(jenkins.token()));
    JenkinsServerConfig {
        guard: AddressGuard { private: true, ports: vec![jenkins.address().port()] },
        ..JenkinsServerConfig::new(name, Url::parse(&jenkins.url()).unwrap(), jenkins.user(), token)
    }
}
