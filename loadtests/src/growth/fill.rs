//! Writes what is to be many, by the store's own code and under the service's own seal.

use crate::installation::{PREFIX, SERVICE_KEY};
use anyhow::{Context, ensure};
use domain::run::{OnReject, Preview, Run, RunRequest};
use domain::{
    Assignment, Effect, Level, LoadedToolsets, Moment, Principal, RunId, Session, SessionDoor, SessionId, SessionMode,
    Tenant, ToolName, ToolsetName,
};
use futures_util::StreamExt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use store::{AuditEntry, Config, Phase, RunCasOutcome, SessionConfig, Store, StoreLimits, TenantStore};
use vault::RecordSealer;

/// How many writes are under way at once.
const AT_ONCE: usize = 64;
/// How many callers share the sessions and runs.
const CALLERS: usize = 1_000;
const LONG: Duration = Duration::from_secs(24 * 3600);

/// The store of the tenant `dev`.
pub(super) struct Filler {
    tenant: TenantStore,
    now: Moment,
}

impl Filler {
    pub(super) async fn open(redis: &str) -> anyhow::Result<Filler> {
        let config = Config { prefix: PREFIX.to_owned(), deadline: Duration::from_secs(30), ..Config::at(redis) };
        let limits = StoreLimits {
            sessions_per_caller: u64::MAX,
            sessions_per_tenant: u64::MAX,
            run_bytes_per_caller: u64::MAX >> 1,
            run_bytes_per_tenant: u64::MAX >> 1,
            bytes_per_tenant: u64::MAX >> 1,
        };
        let sealer = RecordSealer::new(SERVICE_KEY, &[]).ok().context("the service key cannot be used")?;
        let store = Store::open_sealed_with(&config, Arc::new(sealer), limits).await.context("the store")?;
        let now = store.now().await.context("the store's time")?;
        Ok(Filler { tenant: store.of(&Tenant::parse("dev").ok().context("a tenant")?), now })
    }

    /// Sessions that nobody uses, each with the audit entry of its opening.
    pub(super) async fn sessions(&self, range: Range<usize>) -> anyhow::Result<()> {
        let lives = SessionConfig { idle: LONG, longest: LONG, carry_over: LONG };
        let (sessions, entry) = (self.tenant.sessions(), AuditEntry::new(Phase::Transition));
        let work = range.map(|number| {
            let session = Session {
                id: SessionId::from_random(bits(1, number)),
                owner: caller(number),
                mode: SessionMode::Write,
                loaded: LoadedToolsets::default(),
                grown: false,
                catalog: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef".into(),
                tainted: false,
                assignment: Assignment::default(),
                client: Some("loadtests/1".into()),
                door: Some(SessionDoor::Modern),
                opened_at: self.now,
            };
            let (sessions, entry) = (&sessions, &entry);
            async move { sessions.open(&session, lives, entry).await.map(drop).context("a session") }
        });
        all(work).await
    }

    /// Runs that wait for a person.
    pub(super) async fn waiting_runs(&self, range: Range<usize>) -> anyhow::Result<()> {
        let (runs, entry) = (self.tenant.runs(), AuditEntry::new(Phase::Transition));
        let work = range.map(|number| {
            let run = Run::new(RunId::from_random(bits(2, number)), self.asked(number));
            let (runs, entry) = (&runs, &entry);
            async move {
                let opened = runs.open(&run, None, u64::MAX, entry).await.context("a run")?;
                ensure!(matches!(opened, RunCasOutcome::Done(_)), "a run was not opened");
                Ok(())
            }
        });
        all(work).await
    }

    fn asked(&self, number: usize) -> RunRequest {
        RunRequest {
            requester: caller(number),
            scopes: "tools:read tools:write".into(),
            session: Some(SessionId::from_random(bits(1, number))),
            tool: ToolName::parse("k8s_scale").unwrap_or_else(|_| unreachable!("a name of a tool")),
            toolset: ToolsetName::parse("k8s").unwrap_or_else(|_| unreachable!("a name of a toolset")),
            needs: Level::Write,
            schema: "5c".into(),
            arguments: r#"{"kind":"Deployment","name":"web","namespace":"shop","replicas":3}"#.into(),
            effect: Effect::Change,
            about: Some("deployments".into()),
            digest: format!("{number:064x}"),
            idempotent: true,
            preview: Preview {
                summary: "scale shop/web from 1 to 3".into(),
                text: "replicas 1 -> 3\n".repeat(20),
                warnings: Vec::new(),
                fingerprint: "uid:7".into(),
                arguments: None,
                hidden: Vec::new(),
            },
            kept_object: None,
            reviewed: false,
            on_reject: OnReject::Continue,
            deciders: 1,
            tainted: false,
            assignment: Assignment::default(),
            asked_at: self.now,
            expires_at: self.now.plus(LONG),
            execute_within_ms: 600_000,
            trace: None,
            span: None,
        }
    }

    /// Records of the audit log.
    pub(super) async fn audit_records(&self, range: Range<usize>) -> anyhow::Result<()> {
        let (audit, entry) = (self.tenant.audit(), AuditEntry::new(Phase::Transition));
        let work = range.map(|_| async { audit.note(&entry).await.map(drop).context("an audit record") });
        all(work).await
    }
}

async fn all<W: Future<Output = anyhow::Result<()>>>(work: impl Iterator<Item = W>) -> anyhow::Result<()> {
    let mut under_way = futures_util::stream::iter(work).buffer_unordered(AT_ONCE);
    while let Some(done) = under_way.next().await {
        done?;
    }
    Ok(())
}

fn caller(number: usize) -> Principal {
    Principal::new("loadtests", format!("agent{}", number % CALLERS))
}

fn bits(kind: u8, number: usize) -> [u8; 16] {
    let mut bits = [kind; 16];
    bits[..8].copy_from_slice(&(number as u64).to_be_bytes());
    bits
}
