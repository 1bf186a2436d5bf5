//! Narrow Kubernetes handles that need a permit.
//!
//! Reading order: [`config`] (what a tenant's cluster is), [`clusters`] (all of them, by tenant), [`cluster`] (one of
//! them, for one permit), [`kinds`] and [`place`] (what and where), [`read`], [`logs`], [`watch`], [`ask`] (looking),
//! [`mod@write`] and [`exec`] (changing), [`mask`] (what is never shown), `fault` (a target's refusal as a failure).
//!
//! # The face
//! ```text
//! Clusters::build(&tenant, &key, configs, before)    those of one tenant; what stays as it was keeps its connections
//!   .names() -> Vec<&str>                            in the order of the configuration
//!   .of(&permit, Option<&str>) -> Cluster<'_>        refuses a permit of another tenant
//!
//! Cluster<'_>                                        reads; 30 s from its making unless `.within(duration)`
//!   .name() .simulated() .default_namespace() .allowed() .protects(namespace) .time_left()
//!   .kind("deploy") -> Kind          .kinds() -> Vec<Kind>       .metrics(Measured) -> Kind
//!   .place(&kind, Option<namespace>, Wildcard) -> Place          place.object(name) -> Target
//!   .get(&target, Detail) -> Value   .find(..) -> Option<Value>  .sealed(&target) -> Sealed
//!   .list(&place, &Query, Detail) -> Page                        .table(&place, &Query) -> Table
//!   .events_of(&target, uid) -> Page                             .scale_of(&target) -> Value
//!   .logs(&pod, &LogQuery) -> Logs                               .wait(&target, |Option<&Value>| bool) -> Waited
//!   .version() .ready() -> Ready     .openapi(&kind) -> Value    .may(&Deed) -> Verdict   .rules(namespace) -> Value
//!   .dry_run() -> Writer                             every request carries dryRun=All
//!   .write() -> Result<Writer, Failure>              only for a permit of Change or Disrupt; dry under a rehearsal
//!
//! Writer<'_>                                         one attempt each, never sent again
//!   .apply(&target, body, Force)  .patch(&target, Patch, version)  .patch_status(&target, Patch, version)
//!   .create(&place, body)  .delete(&target, &Deletion)  .set_scale(&target, replicas, version)
//!   .evict(&pod, uid, grace)  .add_ephemeral(&pod, container, version)    -> Written { object, created }
//!   .exec(&pod, &Exec) -> Ran  .probe(&target, &Probe) -> Probed
//!
//! For helm, which is another program with the same rights:
//!   .hand_over(&path)                                a kubeconfig of this cluster and identity, in a file of ours
//!   .masked_text(text, &known) .masked_object(value, &known) .masked_values(value, &known)   KnownSecrets::of(..)
//!   .stand_ins(values, &known) -> (Value, StandIns)  values that a chart of the caller's choice may be given
//! marker::carries(&object, run)                      whether an object (read in full) was written by this run
//! ```
//! Everything that looks or writes is async and answers `Result<_, domain::Failure>`; everything shown is masked.
//! A version is a `resourceVersion` as precondition: another one means `conflict` and nothing is changed.
//! A [`SealedValue`] value is an object as the cluster holds it: it can be changed and written back, and shown only masked.
//! Bodies are `impl Into<Sealed>`, so a plain JSON value will do.
//!
//! Not here: what a tool does with an object, what an approver is shown, manifests as YAML.

mod answer;
pub mod ask;
pub mod bounds;
pub mod cluster;
pub mod clusters;
pub mod config;
mod connect;
mod connection;
pub mod excerpt;
pub mod exec;
mod fault;
pub mod fields;
mod grammar;
mod hand_over;
mod health;
pub mod kinds;
mod kubeconfig;
pub mod logs;
pub mod marker;
pub mod mask;
pub mod place;
pub mod reach;
pub mod read;
mod request;
pub mod sealed;
pub mod watch;
pub mod write;

pub use ask::{AccessReview, AccessVerdict, ClusterHealth};
pub use bounds::{ImagePattern, NotAnImagePattern, WorkloadBounds};
pub use cluster::Cluster;
pub use clusters::Clusters;
pub use config::{
    BadCluster, ClusterConfig, ClusterEndpoint, Impersonation, KeptKubeconfig, KeptSecret, NamespacePattern,
    NotANamespacePattern, SecretText,
};
pub use exec::{CommandResult, HttpProbeResult, PodCommand, ProbeRequest};
pub use fields::FieldTree;
pub use kinds::Kind;
#[cfg(feature = "fuzz")]
pub use kubeconfig::fuzz::kubeconfig as fuzz_kubeconfig;
pub use logs::{ContainerLogRequest, LogQuery};
pub use mask::{
    BroughtTexts, HiddenText, JudgedDigest, KnownSecrets, MaskDetail, ObjectPair, StandIns, hide_all, without_marks,
};
pub use place::{KindScope, NamespaceSpan, ResourceRef, Wildcard};
pub use reach::ClusterReach;
pub use read::{ListQuery, MetricsSubject, ObjectPage, Table, TableRow};
pub use sealed::SealedValue;
pub use watch::WaitResult;
pub use write::{ClusterWriter, DeleteCascade, DeleteOptions, FIELD_MANAGER, Force, ObjectPatch, ObjectWriteResult};
