//! Every key there is. No other file writes one.
//!
//! A full key is `<prefix>:{<tenant>}:<name>`. The braces make all keys of a tenant share one Redis slot, so that one
//! script may touch several. Free text (a document's path) stands last, where it can be mistaken for nothing else.

use crate::document::DocScope;
use domain::job::RunnerLabel;
use domain::json::{hex, sha256_hex};
use domain::{JobId, Principal, RunId, RunnerId, SessionId, Tenant};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// Names one versioned record of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKey(String);

impl RecordKey {
    /// The record of a session.
    pub fn session(id: SessionId) -> RecordKey {
        RecordKey(format!("ses:{id}"))
    }

    /// Who holds the open stream of a session; apart from the session, so that the two never conflict.
    pub fn stream_owner(id: SessionId) -> RecordKey {
        RecordKey(format!("str:{id}"))
    }

    /// The record of a run.
    pub fn run(id: RunId) -> RecordKey {
        RecordKey(format!("run:{id}"))
    }

    /// What lists show of a run.
    pub fn run_brief(id: RunId) -> RecordKey {
        RecordKey(format!("runb:{id}"))
    }

    /// The record of a job.
    pub fn job(id: JobId) -> RecordKey {
        RecordKey(format!("job:{id}"))
    }

    /// One piece of a job's output.
    pub fn job_output(id: JobId, number: u64) -> RecordKey {
        RecordKey(format!("jobo:{id}:{number}"))
    }

    /// A runner that was heard of.
    pub fn runner(id: RunnerId) -> RecordKey {
        RecordKey(format!("rnr:{id}"))
    }

    /// Who is at work on a helm release. None of the three names can hold a slash.
    pub fn release(cluster: &str, namespace: &str, release: &str) -> RecordKey {
        RecordKey(format!("helm:{cluster}/{namespace}/{release}"))
    }

    /// How far the tenant's audit log is sealed.
    pub fn seal() -> RecordKey {
        RecordKey("seal".into())
    }

    /// The newest checkpoint of the tenant's audit log.
    pub fn checkpoint() -> RecordKey {
        RecordKey("ckpt".into())
    }

    /// How far the tenant's audit log was trimmed.
    pub fn trimmed() -> RecordKey {
        RecordKey("trim".into())
    }

    /// How far the tenant's audit log was exported to a sink.
    pub fn export(sink: &str) -> RecordKey {
        RecordKey(format!("exp:{sink}"))
    }

    /// The chart repositories that were added by a call.
    pub fn chart_repositories() -> RecordKey {
        RecordKey("charts".into())
    }

    /// What an external server offers, as it was last listed.
    pub fn server_tools(server: &str) -> RecordKey {
        RecordKey(format!("sch:{server}"))
    }

    /// When an external server was last listed, and who is listing it now.
    pub fn server_fetch(server: &str) -> RecordKey {
        RecordKey(format!("schf:{server}"))
    }

    /// Which of an external server's tools were accepted, and as what.
    pub fn server_pins(server: &str) -> RecordKey {
        RecordKey(format!("pin:{server}"))
    }

    /// The configuration that was set over HTTP.
    pub fn tenant_text() -> RecordKey {
        RecordKey("cfg".into())
    }

    /// One version of the configuration that was set over HTTP.
    pub fn tenant_text_version(number: u64) -> RecordKey {
        RecordKey(format!("cfgv:{number}"))
    }

    /// The kill switches of all tenants, beside the tenants.
    pub fn switches() -> RecordKey {
        RecordKey("switches".into())
    }

    /// What was used on one day.
    pub fn usage(day: &str) -> RecordKey {
        RecordKey(format!("usg:{day}"))
    }

    /// A person who signed in with a browser, by the digest of what the browser holds.
    pub fn browser_session(digest: &str) -> RecordKey {
        RecordKey(format!("web:{digest}"))
    }

    /// A sign-in that was begun, by the digest of what the browser holds meanwhile; beside the tenants.
    pub fn sign_in(digest: &str) -> RecordKey {
        RecordKey(format!("weblogin:{digest}"))
    }

    /// A link that signs somebody in once, by the digest of its secret; beside the tenants.
    pub fn sign_in_link(digest: &str) -> RecordKey {
        RecordKey(format!("weblink:{digest}"))
    }

    /// The runs that a person has put off.
    pub fn put_off(person: &Principal) -> RecordKey {
        RecordKey(format!("weblater:{}", fingerprint(person)))
    }

    /// A sealed secret of the tenant.
    pub fn tenant_secret(name: &str) -> RecordKey {
        RecordKey(format!("sec:{name}"))
    }

    /// The current version of a document.
    pub fn document(scope: &DocScope, path: &str) -> RecordKey {
        RecordKey(format!("mem:{}:{path}", scope_name(scope)))
    }

    /// What lists show of a document.
    pub fn document_head(scope: &DocScope, path: &str) -> RecordKey {
        RecordKey(format!("memh:{}:{path}", scope_name(scope)))
    }

    /// An earlier version of a document.
    pub fn document_version(scope: &DocScope, path: &str, number: u64) -> RecordKey {
        RecordKey(format!("memn:{}:{number}:{path}", scope_name(scope)))
    }

    /// The name within the tenant.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    fn kind(&self) -> &str {
        self.0.split_once(':').map_or(self.0.as_str(), |(kind, _)| kind)
    }

    /// Whether the service seals it before it is written, because something is done by what it says.
    pub(crate) fn is_sealed(&self) -> bool {
        matches!(
            self.kind(),
            "run"
                | "runb"
                | "pin"
                | "sch"
                | "schf"
                | "cfg"
                | "cfgv"
                | "charts"
                | "sec"
                | "ses"
                | "switches"
                | "ckpt"
                | "trim"
                | "exp"
                | "job"
                | "jobo"
                | "web"
                | "weblater"
                | "weblogin"
                | "weblink"
        )
    }

    /// How many bytes at the beginning of the record stay in clear although it is sealed: by the mark of its owner the
    /// store itself moves the expiry of a session.
    pub(crate) fn clear_bytes(&self) -> usize {
        if self.kind() == "ses" { FINGERPRINT_LENGTH } else { 0 }
    }

    /// Whether it is the record of a run.
    pub(crate) fn is_run(&self) -> bool {
        self.kind() == "run"
    }

    /// Whether it counts its changes; what is written beside another record does not.
    pub(crate) fn has_version(&self) -> bool {
        !matches!(self.kind(), "runb" | "sch" | "cfgv" | "jobo")
    }

    /// Whether a process remembers its highest version, so that an older one cannot be put back.
    pub(crate) fn is_remembered(&self) -> bool {
        matches!(self.kind(), "run" | "job" | "pin" | "cfg" | "charts" | "sec" | "switches" | "ckpt" | "trim" | "exp")
    }

    /// Whether the service never deletes it; a secret that is forgotten leaves a mark behind for thirty days.
    pub(crate) fn is_kept_for_good(&self) -> bool {
        matches!(self.kind(), "pin" | "cfg" | "charts" | "sec" | "switches" | "ckpt" | "trim" | "exp")
    }
}

/// Names one append-only stream of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamName {
    name: String,
    pub(crate) lives: Option<Duration>,
}

impl StreamName {
    /// The tenant's audit log.
    pub fn audit() -> StreamName {
        StreamName { name: "audit".into(), lives: None }
    }

    /// The links of the audit log's entries.
    pub fn links() -> StreamName {
        StreamName { name: "links".into(), lives: None }
    }

    /// The signed checkpoints of the audit log.
    pub fn checkpoints() -> StreamName {
        StreamName { name: "checkpoints".into(), lives: None }
    }

    /// All versions of a document, as builds kept them that could not redact; each version is a record now.
    pub fn versions(scope: &DocScope, path: &str) -> StreamName {
        StreamName { name: format!("memv:{}:{path}", scope_name(scope)), lives: None }
    }

    /// The same stream, to be forgotten that long after its last entry.
    #[must_use]
    pub fn forgotten_after(self, lives: Option<Duration>) -> StreamName {
        StreamName { lives, ..self }
    }
}

/// Names one index of a tenant: members, each with a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexName {
    name: String,
    pub(crate) lives: Option<Duration>,
    pub(crate) summed: Summed,
}

/// Whether the ranks of an index are added up beside it. One that has a sum is changed by commits alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Summed {
    No,
    Apart,
    /// The sum is a part of the bytes stored for the tenant.
    IntoUsage,
}

impl IndexName {
    /// The documents of a scope: paths, ranked by when they last changed.
    pub fn documents(scope: &DocScope) -> IndexName {
        IndexName { name: format!("memi:{}", scope_name(scope)), lives: None, summed: Summed::No }
    }

    /// The documents of a scope: paths, ranked by how many bytes they hold.
    pub fn document_sizes(scope: &DocScope) -> IndexName {
        IndexName { name: format!("memz:{}", scope_name(scope)), lives: None, summed: Summed::No }
    }

    /// All that ever happened to the documents of a scope: paths, deleted ones as well, ranked by their last change so
    /// that no two share a rank and every change is above those before it.
    pub fn document_changes(scope: &DocScope) -> IndexName {
        IndexName { name: format!("memc:{}", scope_name(scope)), lives: None, summed: Summed::No }
    }

    /// The deleted documents of a scope: paths, ranked by when that was.
    pub fn deleted_documents(scope: &DocScope) -> IndexName {
        IndexName { name: format!("memx:{}", scope_name(scope)), lives: None, summed: Summed::No }
    }

    /// The sealed secrets of the tenant: names, ranked by when they were last set.
    pub fn tenant_secrets() -> IndexName {
        IndexName { name: "secs".into(), lives: None, summed: Summed::No }
    }

    /// All changes of the tenant's sealed secrets: names, ranked so that every change is above those before it.
    pub fn tenant_secret_changes() -> IndexName {
        IndexName { name: "secc".into(), lives: None, summed: Summed::No }
    }

    /// The versions of the configuration that was set over HTTP: numbers, ranked by themselves.
    pub fn tenant_text_versions() -> IndexName {
        IndexName { name: "cfgi".into(), lives: None, summed: Summed::No }
    }

    /// All runs, newest first.
    pub fn runs() -> IndexName {
        IndexName { name: "runs".into(), lives: None, summed: Summed::No }
    }

    /// Runs that a principal asked for, newest first.
    pub fn runs_of(requester: &Principal) -> IndexName {
        IndexName { name: format!("runs:{}", fingerprint(requester)), lives: None, summed: Summed::No }
    }

    /// All runs, ranked by how many bytes they hold; added up.
    pub fn run_sizes() -> IndexName {
        IndexName { name: "runz".into(), lives: None, summed: Summed::IntoUsage }
    }

    /// Runs that a principal asked for, ranked by how many bytes they hold; added up.
    pub fn run_sizes_of(requester: &Principal) -> IndexName {
        IndexName { name: format!("runz:{}", fingerprint(requester)), lives: None, summed: Summed::Apart }
    }

    /// All sessions, ranked by when to look whether they are over.
    pub fn sessions() -> IndexName {
        IndexName { name: "sess".into(), lives: None, summed: Summed::No }
    }

    /// The sessions of a principal, ranked by when to look whether they are over.
    pub fn sessions_of(owner: &Principal) -> IndexName {
        IndexName { name: format!("sess:{}", fingerprint(owner)), lives: None, summed: Summed::No }
    }

    /// Runs somebody has to look at, ranked by when.
    pub fn due() -> IndexName {
        IndexName { name: "due".into(), lives: None, summed: Summed::No }
    }

    /// What is due in all tenants, ranked by when; stands beside the tenants.
    pub fn duties() -> IndexName {
        IndexName { name: "duties".into(), lives: None, summed: Summed::No }
    }

    /// The replicas of the service, ranked by until when they count as there; stands beside the tenants.
    pub fn replicas() -> IndexName {
        IndexName { name: "replicas".into(), lives: None, summed: Summed::No }
    }

    /// The tenants whose configuration, secrets or accepted tools were changed by a call, ranked by when that last was;
    /// stands beside the tenants.
    pub fn moved() -> IndexName {
        IndexName { name: "moved".into(), lives: None, summed: Summed::No }
    }

    /// Jobs that runners of a label may claim, ranked by from when on.
    pub fn claimable_jobs(label: &RunnerLabel) -> IndexName {
        IndexName { name: format!("jobq:{label}"), lives: None, summed: Summed::No }
    }

    /// Runners of a label that were heard of, ranked by until when they count as there.
    pub fn runners(label: &RunnerLabel) -> IndexName {
        IndexName { name: format!("rnrs:{label}"), lives: None, summed: Summed::No }
    }

    /// Runs that asked for exactly this, newest first.
    pub fn same_digest(digest: &str) -> IndexName {
        IndexName { name: format!("dig:{digest}"), lives: None, summed: Summed::No }
    }

    /// Runs that a principal asked for under this key of its own, newest first.
    pub fn same_key(owner: &Principal, key: &str) -> IndexName {
        let word = sha256_hex(key.as_bytes());
        IndexName { name: format!("key:{}:{word}", fingerprint(owner)), lives: None, summed: Summed::No }
    }

    /// Runs of a principal that wait for a person. Those that people review at their own pace are counted apart, so that
    /// they never stand in the way of what is urgent.
    pub fn waiting(owner: &Principal, reviewed: bool) -> IndexName {
        let queue = if reviewed { "rev" } else { "wait" };
        IndexName { name: format!("{queue}:{}", fingerprint(owner)), lives: None, summed: Summed::No }
    }

    /// All runs that wait for a person, each with the rank 1; added up, so that their number is known without counting.
    pub fn undecided() -> IndexName {
        IndexName { name: "undecided".into(), lives: None, summed: Summed::Apart }
    }

    /// Rejected runs that ended a session's step and were not cleared since.
    pub fn stopped(session: SessionId) -> IndexName {
        IndexName { name: format!("stop:{session}"), lives: None, summed: Summed::No }
    }

    /// What new sessions of a principal begin with, newest first.
    pub fn carried_over(owner: &Principal) -> IndexName {
        IndexName { name: format!("carry:{}", fingerprint(owner)), lives: None, summed: Summed::No }
    }

    /// The same index, to be forgotten that long after its last change.
    #[must_use]
    pub fn forgotten_after(self, lives: Option<Duration>) -> IndexName {
        IndexName { lives, ..self }
    }
}

/// The part of the key space that belongs to one tenant.
#[derive(Debug, Clone)]
pub(crate) struct KeySpace(Arc<str>);

impl KeySpace {
    pub(crate) fn of(prefix: &str, tenant: &Tenant) -> KeySpace {
        KeySpace(format!("{prefix}:{{{tenant}}}:").into())
    }

    pub(crate) fn record(&self, key: &RecordKey) -> String {
        format!("{}{}", self.0, key.0)
    }

    pub(crate) fn stream(&self, stream: &StreamName) -> String {
        format!("{}{}", self.0, stream.name)
    }

    pub(crate) fn index(&self, index: &IndexName) -> String {
        format!("{}{}", self.0, index.name)
    }

    /// What the ranks of an index add up to.
    pub(crate) fn sum(&self, index: &IndexName) -> String {
        format!("{}{}:sum", self.0, index.name)
    }

    /// The bytes stored for the tenant.
    pub(crate) fn usage(&self) -> String {
        format!("{}use", self.0)
    }

    /// Calls of the tenant in the present minute, and those of each caller.
    pub(crate) fn minute(&self) -> String {
        format!("{}lim:minute", self.0)
    }

    /// Set while a caller's refusals of the present minute are noted already.
    pub(crate) fn refused(&self, caller: &Principal) -> String {
        format!("{}lim:refused:{}", self.0, fingerprint(caller))
    }

    /// Written so that replicas have something to catch up with.
    pub(crate) fn ack(&self) -> String {
        format!("{}ack", self.0)
    }

    /// The channel of the tenant's wake-ups.
    pub(crate) fn wake(&self) -> String {
        format!("{}wake", self.0)
    }
}

/// Written now and then to see whether writing works; belongs to no tenant, since `~` is in no slug.
pub(crate) fn probe(prefix: &str) -> String {
    format!("{prefix}:{{~}}:probe")
}

/// The store's own mark, by whose absence a loss is known.
pub(crate) fn mark(prefix: &str) -> String {
    format!("{prefix}:{{~}}:mark")
}

/// The same for one shard of a cluster, which serves this slot.
pub(crate) fn mark_of_slot(prefix: &str, slot: u16) -> String {
    format!("{prefix}:{{{}}}:mark", tag_of(slot))
}

/// What is written now and then to the shard of a cluster that serves this slot.
pub(crate) fn probe_of_slot(prefix: &str, slot: u16) -> String {
    format!("{prefix}:{{{}}}:probe", tag_of(slot))
}

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16_384;

/// The slot of a key, as Redis computes it: of what stands between the first braces, if anything does.
pub(crate) fn slot(key: &str) -> u16 {
    let tagged = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let hashed = tagged.filter(|tag| !tag.is_empty()).unwrap_or(key);
    crc16(hashed.as_bytes()) % SLOTS
}

/// The shortest tag of no tenant that leads to a slot; `~` is in no slug.
fn tag_of(slot: u16) -> String {
    (0_u32..).map(|number| format!("~{number}")).find(|tag| crc16(tag.as_bytes()) % SLOTS == slot).unwrap_or_default()
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    let shift = |crc: u16, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ (u16::from(*byte) << 8), shift))
}

fn scope_name(scope: &DocScope) -> String {
    match scope {
        DocScope::Session(id) => format!("s/{id}"),
        DocScope::User(principal) => format!("u/{}", fingerprint(principal)),
        DocScope::Tenant => "t".to_owned(),
    }
}

/// How long a [`fingerprint`] is.
pub(crate) const FINGERPRINT_LENGTH: usize = 64;

/// Issuer and subject as one short word. The length in front keeps two pairs from reading alike.
pub(crate) fn fingerprint(principal: &Principal) -> String {
    let mut hash = Sha256::new();
    hash.update((principal.issuer.len() as u64).to_be_bytes());
    hash.update(&principal.issuer);
    hash.update(&principal.subject);
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(issuer: &str, subject: &str) -> DocScope {
        DocScope::User(Principal::new(issuer, subject))
    }

    #[test]
    fn a_key_is_tagged_by_its_tenant() {
        let space = KeySpace::of("qm", &Tenant::parse("acme").unwrap());
        let id = SessionId::from_random([0; 16]);
        assert_eq!(space.record(&RecordKey::session(id)), "qm:{acme}:ses:ses_0000000000000000000000");
        assert_eq!(space.stream(&StreamName::audit()), "qm:{acme}:audit");
        assert_eq!(space.stream(&StreamName::links()), "qm:{acme}:links");
        assert_eq!(space.record(&RecordKey::seal()), "qm:{acme}:seal");
        assert_eq!(space.wake(), "qm:{acme}:wake");
        assert_eq!(probe("qm"), "qm:{~}:probe");
    }

    #[test]
    fn principals_that_read_alike_have_keys_of_their_own() {
        let key = |scope: &DocScope| RecordKey::document(scope, "notes/a");
        assert_ne!(key(&user("ab", "c")), key(&user("a", "bc")));
        assert_ne!(key(&user("a", "b")), key(&DocScope::Tenant));
    }

    #[test]
    fn a_path_cannot_reach_another_scope() {
        let id = SessionId::from_random([0; 16]);
        let odd = RecordKey::document(&DocScope::Tenant, &format!("s/{id}:a"));
        assert_ne!(odd, RecordKey::document(&DocScope::Session(id), "a"));
    }

    #[test]
    fn slots_are_those_that_redis_computes() {
        // From the cluster specification, and as `CLUSTER KEYSLOT` answers.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, expected) in [("foo", 12_182), ("{user1000}.following", 3_443), ("foo{}{bar}", 8_363), ("{}", 15_257)]
        {
            assert_eq!(slot(key), expected, "{key}");
        }
        assert_eq!(slot("foo{{bar}}zap"), slot("{bar"));
        assert_eq!(slot("foo{bar}{zap}"), slot("bar"));
    }

    #[test]
    fn every_slot_has_a_mark_that_is_in_it_and_no_tenants() {
        for wanted in [0, 1, 5_461, 8_192, SLOTS - 1] {
            let (mark, probe) = (mark_of_slot("qm", wanted), probe_of_slot("qm", wanted));
            assert_eq!((slot(&mark), slot(&probe)), (wanted, wanted));
            assert!(mark.starts_with("qm:{~"), "{mark}");
        }
    }

    /// Every way to make a key of a tenant, from text that may hold anything.
    fn every_key(space: &KeySpace, text: &str, number: u64) -> Vec<String> {
        let bits = u128::from(number).to_be_bytes();
        let (session, run) = (SessionId::from_random(bits), RunId::from_random(bits));
        let (job, runner, principal) = (JobId::of(text), RunnerId::from_random(bits), Principal::new(text, text));
        let label = RunnerLabel::parse("shop-hosts").unwrap();
        let scopes = [DocScope::Session(session), DocScope::User(principal.clone()), DocScope::Tenant];
        let mut records = vec![
            RecordKey::session(session),
            RecordKey::stream_owner(session),
            RecordKey::run(run),
            RecordKey::run_brief(run),
            RecordKey::job(job),
            RecordKey::job_output(job, number),
            RecordKey::runner(runner),
            RecordKey::release(text, text, text),
            RecordKey::seal(),
            RecordKey::checkpoint(),
            RecordKey::trimmed(),
            RecordKey::export(text),
            RecordKey::chart_repositories(),
            RecordKey::server_tools(text),
            RecordKey::server_fetch(text),
            RecordKey::server_pins(text),
            RecordKey::tenant_text(),
            RecordKey::tenant_text_version(number),
            RecordKey::switches(),
            RecordKey::usage(text),
            RecordKey::browser_session(text),
            RecordKey::put_off(&principal),
            RecordKey::sign_in(text),
            RecordKey::sign_in_link(text),
            RecordKey::tenant_secret(text),
        ];
        let mut streams = vec![StreamName::audit(), StreamName::links(), StreamName::checkpoints()];
        let mut indexes = vec![
            IndexName::tenant_secrets(),
            IndexName::tenant_secret_changes(),
            IndexName::tenant_text_versions(),
            IndexName::runs(),
            IndexName::runs_of(&principal),
            IndexName::run_sizes(),
            IndexName::run_sizes_of(&principal),
            IndexName::sessions(),
            IndexName::sessions_of(&principal),
            IndexName::due(),
            IndexName::duties(),
            IndexName::replicas(),
            IndexName::moved(),
            IndexName::undecided(),
            IndexName::claimable_jobs(&label),
            IndexName::runners(&label),
            IndexName::same_digest(text),
            IndexName::same_key(&principal, text),
            IndexName::waiting(&principal, true),
            IndexName::waiting(&principal, false),
            IndexName::stopped(session),
            IndexName::carried_over(&principal),
        ];
        for scope in &scopes {
            records.push(RecordKey::document(scope, text));
            records.push(RecordKey::document_head(scope, text));
            records.push(RecordKey::document_version(scope, text, number));
            streams.push(StreamName::versions(scope, text));
            indexes.push(IndexName::documents(scope));
            indexes.push(IndexName::document_sizes(scope));
            indexes.push(IndexName::document_changes(scope));
            indexes.push(IndexName::deleted_documents(scope));
        }
        let mut keys: Vec<String> = records.iter().map(|key| space.record(key)).collect();
        keys.extend(streams.iter().map(|name| space.stream(name)));
        keys.extend(indexes.iter().flat_map(|name| [space.index(name), space.sum(name)]));
        keys.extend([space.usage(), space.minute(), space.refused(&principal), space.ack(), space.wake()]);
        keys
    }

    proptest::proptest! {
        #[test]
        fn every_key_of_a_tenant_is_in_the_tenants_slot(
            name in "[a-z][a-z0-9-]{0,20}[a-z0-9]",
            text in ".{0,40}",
            number in proptest::prelude::any::<u64>(),
        ) {
            let tenant = Tenant::parse(&name).unwrap();
            let expected = slot(tenant.as_str());
            for key in every_key(&KeySpace::of("qm", &tenant), &text, number) {
                proptest::prop_assert_eq!(slot(&key), expected, "{}", key);
            }
        }
    }

    #[test]
    fn the_property_above_knows_every_key_there_is() {
        let source = include_str!("keys.rs").split("#[cfg(test)]").next().unwrap();
        let tests = include_str!("keys.rs").split("fn every_key").nth(1).unwrap();
        let makers = source
            .lines()
            .filter_map(|line| line.trim().strip_prefix("pub fn ").or(line.trim().strip_prefix("pub(crate) fn ")));
        let named = makers.filter(|line| {
            line.ends_with("-> RecordKey {") || line.ends_with("-> StreamName {") || line.ends_with("-> IndexName {")
        });
        let names: Vec<&str> =
            named.filter_map(|line| line.split('(').next()).filter(|name| *name != "forgotten_after").collect();
        assert!(names.len() > 40, "{names:?}");
        for name in names {
            assert!(tests.contains(&format!("::{name}(")), "{name} is not tried");
        }
    }
}
