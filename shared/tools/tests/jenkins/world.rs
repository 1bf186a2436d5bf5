//! A tenant with a simulated Jenkins, and calls made the way the service makes them: shown, signed for, carried out,
//! probed.

pub(crate) use crate::bench::tenant;
use crate::bench::{call, fits, judged};
use catalog::{Drawn, Entry, Parsed, Probe, Progress};
use domain::{Effect, Failure, Moment, RunId};
use egress::{Guard, Url};
use jenkins::{SecretSource, SecretText, ServerConfig, Servers};
use policy::{Approval, Approved, Decision};
use sandbox::jenkins::{Jenkins, JenkinsSeed};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tools::Cursors;
use tools::jenkins::{JenkinsKit, list};

/// A tenant `acme` whose one server is simulated.
pub(crate) struct World {
    pub(crate) jenkins: Jenkins,
    pub(crate) servers: Servers,
    entries: Vec<Arc<Entry>>,
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
        let jenkins = Jenkins::start(seed).await.unwrap();
        let servers = Servers::default();
        servers.replace(&tenant(), vec![config("main", &jenkins)]).unwrap();
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let clock = Arc::new(AtomicU64::new(u64::try_from(millis).unwrap()));
        let told = Arc::clone(&clock);
        let now = move || Moment::from_millis(told.load(Ordering::SeqCst));
        let kit = JenkinsKit { servers: servers.clone(), cursors: Cursors::with_clock([7; 32], Arc::new(now)) };
        let decided = Moment::from_millis(clock.load(Ordering::SeqCst));
        World { jenkins, servers, entries: list(&kit, false).unwrap(), clock, decided }
    }

    /// Lets the service's clock go on; the server's own is moved by `jenkins.advance`.
    pub(crate) fn wait(&self, time: Duration) {
        self.clock.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    fn parsed(&self, tool: &str, args: Value) -> Result<(&Entry, Parsed), Failure> {
        let entry = self.entries.iter().find(|entry| entry.name().as_str() == tool).expect("a tool of that name");
        let Value::Object(args) = args else { panic!("arguments are an object") };
        Ok((entry, entry.parse(args)?))
    }

    /// What an approver would be shown.
    pub(crate) async fn preview(&self, tool: &str, args: Value) -> Result<Drawn, Failure> {
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
        let approved =
            (parsed.effect != Effect::Read).then(|| Approved { approval: self.approval(run), digest: "d".to_owned() });
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
    pub(crate) async fn probe(&self, tool: &str, args: Value, run: RunId) -> Probe {
        let (entry, parsed) = self.parsed(tool, args).unwrap();
        let look = policy::look(call(tool, &parsed), self.approval(run));
        let probe = parsed.work.probe(&look).await;
        if let Probe::Done(Some(text)) = &probe {
            fits(entry, text);
        }
        probe
    }

    fn approval(&self, run: RunId) -> Approval {
        Approval { run, by: Vec::new(), at: self.decided }
    }

    /// How many requests of this method went out.
    pub(crate) fn sent(&self, method: &str) -> usize {
        self.jenkins.requests().iter().filter(|request| request.method == method).count()
    }
}

/// How a tenant reaches a simulated server: the operator allows this machine and this port.
pub(crate) fn config(name: &str, jenkins: &Jenkins) -> ServerConfig {
    let token = SecretSource::Text(SecretText::new(jenkins.token()));
    ServerConfig {
        guard: Guard { private: true, ports: vec![jenkins.address().port()] },
        ..ServerConfig::new(name, Url::parse(&jenkins.url()).unwrap(), jenkins.user(), token)
    }
}
