//! `k8s_get`: one object by name, or the objects of a kind.
//!
//! How the kind is spelled decides nothing: the cluster's handles mask by the kind of what comes back.

mod describe;
mod list;

use super::at;
use super::clean;
use super::grammar::{KindText, Label, Namespaces, ObjectName};
use super::pick::Pick;
use super::project::{self, Row};
use super::reply::{Common, Omitted, ROOM, size_of, thin};
use super::selector::{FieldSelector, LabelSelector};
use super::{K8sKit, TOOLSET};
use crate::cursor::Cursor;
use catalog::{Progress, Tool, ToolSpec};
use cluster::{Cluster, Detail, Place, Query, Target};
use describe::Around;
pub(super) use describe::events;
pub(crate) use describe::{conditions, visible};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) struct Get {
    pub(super) kit: K8sKit,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    kind: KindText,
    name: Option<ObjectName>,
    namespace: Option<Namespaces>,
    selector: Option<LabelSelector>,
    field_selector: Option<FieldSelector>,
    view: Option<View>,
    path: Option<Pick>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum View {
    Summary,
    Full,
    Describe,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    kind: String,
    api_version: String,
    /// One object, in the view that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
    /// The field that `path` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<Row>>,
    /// How many are in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    /// How many more there are, if the cluster says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(flatten)]
    around: Around,
    #[serde(flatten)]
    common: Common,
}

impl Found {
    fn of(place: &Place, common: Common) -> Found {
        Found {
            kind: place.kind().kind().to_owned(),
            api_version: place.kind().api_version(),
            object: None,
            value: None,
            items: None,
            count: None,
            remaining: None,
            around: Around::default(),
            common,
        }
    }
}

impl Args {
    fn view(&self) -> View {
        self.view.unwrap_or(View::Summary)
    }

    /// Which of cluster and namespace the call names itself.
    fn named(&self) -> (bool, bool) {
        (self.cluster.is_some(), self.namespace.is_some())
    }

    fn everywhere(&self) -> bool {
        self.namespace.as_ref().is_some_and(Namespaces::is_all)
    }

    /// Refuses what contradicts itself.
    fn check(&self) -> Result<(), Failure> {
        let told = |message: &str, next: &str| Err(Failure::new(Code::InvalidArgument, message).next(next));
        let narrowed = self.selector.is_some() || self.field_selector.is_some() || self.cursor.is_some();
        match (&self.name, self.view()) {
            (Some(_), _) if narrowed => {
                told("name asks for one object; selector, field_selector and cursor ask for several", "leave one out")
            }
            (None, View::Describe) => {
                told("view=describe is for one object", "give its name, or list with view=summary first")
            }
            (_, _) => Ok(()),
        }
    }
}

impl Tool for Get {
    const SPEC: ToolSpec = ToolSpec::new("k8s_get", TOOLSET, Effect::Read)
        .says(
            "Get Kubernetes objects",
            "Get one object by name, or list a kind (Event: newest first). view: summary (default), full, describe (adds events, owner, pods). path picks a field. namespace '*' = all.",
        )
        .hint(
            "The first tool of any agent that looks at clusters; a rule such as `k8s_get:secrets` keeps single kinds \
             behind a person, and namespaces in the cluster's entry keep the rest out of sight.",
        )
        .idempotent();
    type Args = Args;
    type Output = Found;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.kind.about())
    }

    /// The messages of events are prose, and anybody who runs there can write one.
    fn taints(found: &Found) -> bool {
        found.kind == "Event" || found.around.tells_events()
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Found, Failure> {
        args.check()?;
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let kind = at::kind(&cluster, permit, &args.kind).await?;
        let place = at::places(&cluster, &kind, args.namespace.as_ref()).await?;
        match &args.name {
            Some(name) => {
                let target = at::target(&place, name)?;
                Box::pin(self.one(&cluster, &place, &target, &args)).await
            }
            None => Box::pin(self.several(permit, &cluster, &place, &args)).await,
        }
    }
}

impl Get {
    async fn one(&self, cluster: &Cluster<'_>, place: &Place, target: &Target, args: &Args) -> Result<Found, Failure> {
        let detail = match args.view() {
            View::Full => Detail::Full,
            View::Summary | View::Describe => Detail::Clean,
        };
        let mut object = at::get(cluster, place, target, detail).await?;
        clean::full(&mut object);
        let mut found = Found::of(place, Common::at(cluster, place, args.named()));
        if let Some(path) = &args.path {
            let mut value = path.get(&object)?.clone();
            let bytes = thin(&mut value, ROOM);
            found.value = Some(value);
            note(&mut found.common, bytes, "pick a smaller part with path");
            return Ok(found);
        }
        match args.view() {
            View::Summary => {
                let row = self.summary(cluster, place, target, &object).await?;
                found.object = Some(row);
            }
            View::Full => {
                let bytes = thin(&mut object, ROOM);
                found.object = Some(object);
                note(&mut found.common, bytes, "pick a part with path, such as path=spec");
            }
            View::Describe => {
                found.around = describe::around(cluster, target, &object, self.kit.cursors.now()).await?;
                let bytes = thin(&mut object, ROOM.saturating_sub(size_of(&found.around)));
                found.object = Some(object);
                note(&mut found.common, bytes, "pick a part with path, such as path=spec");
            }
        }
        Ok(found)
    }

    /// The row of one object; for kinds without a projection, in the server's own columns.
    async fn summary(
        &self,
        cluster: &Cluster<'_>,
        place: &Place,
        target: &Target,
        object: &Value,
    ) -> Result<Value, Failure> {
        let (group, kind) = (place.kind().group(), place.kind().kind());
        let row = project::row(group, kind, object, false, self.kit.cursors.now());
        if project::knows(group, kind) {
            return Ok(row.into());
        }
        let query = Query { fields: Some(format!("metadata.name={}", target.name())), ..Query::default() };
        let table = cluster.table(place, &query).await?;
        let mut rows = list::table_rows(table.columns, table.rows, false);
        let found = rows.iter().position(|r| r.get("name").and_then(Value::as_str) == Some(target.name()));
        Ok(found.map_or(row, |n| rows.swap_remove(n)).into())
    }
}

fn note(common: &mut Common, bytes: u64, hint: &str) {
    if bytes > 0 {
        common.cut(Omitted { bytes, ..Omitted::default() }, hint);
    }
}
