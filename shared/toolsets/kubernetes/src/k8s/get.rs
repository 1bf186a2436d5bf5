//! `k8s_get`: one object by name, or the objects of a kind.
//!
//! How the kind is spelled decides nothing: the cluster's handles mask by the kind of what comes back.

mod describe;
mod list;

use super::at;
use super::clean;
use super::grammar::{KindText, Label, Namespaces, ObjectName};
use super::pick::Pick;
use super::project::{self, ObjectRow};
use super::reply::{ClusterNote, ClusterReplyFields, ROOM, size_of, thin};
use super::selector::{FieldSelector, LabelSelector};
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, KindScope, ListQuery, MaskDetail, ResourceRef};
use catalog::{Progress, Tool, ToolSpec};
use describe::DescribeContext;
pub(super) use describe::events;
pub(crate) use describe::{conditions, visible};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use target::cursor::Cursor;

pub(super) struct K8sGet {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    kind: KindText,
    name: Option<ObjectName>,
    namespace: Option<Namespaces>,
    selector: Option<LabelSelector>,
    field_selector: Option<FieldSelector>,
    view: Option<GetView>,
    path: Option<Pick>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum GetView {
    Summary,
    Full,
    Describe,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct K8sGetOutput {
    kind: String,
    api_version: String,
    /// One object, in the view that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Value>,
    /// The field that `path` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<ObjectRow>>,
    /// How many are in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    /// How many more there are, if the cluster says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(flatten)]
    around: DescribeContext,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl K8sGetOutput {
    fn of(place: &KindScope, common: ClusterReplyFields) -> K8sGetOutput {
        K8sGetOutput {
            kind: place.kind().kind().to_owned(),
            api_version: place.kind().api_version(),
            object: None,
            value: None,
            items: None,
            count: None,
            remaining: None,
            around: DescribeContext::default(),
            common,
        }
    }
}

impl Args {
    fn view(&self) -> GetView {
        self.view.unwrap_or(GetView::Summary)
    }

    /// Which of cluster and namespace the call names itself.
    fn named(&self) -> (bool, bool) {
        (self.cluster.is_some(), self.namespace.is_some())
    }

    fn detail(&self) -> MaskDetail {
        match self.view() {
            GetView::Full => MaskDetail::Full,
            GetView::Summary | GetView::Describe => MaskDetail::Clean,
        }
    }

    fn everywhere(&self) -> bool {
        self.namespace.as_ref().is_some_and(Namespaces::is_all)
    }

    /// Leaves out what no view shows. Who names `managedFields` in `path` gets them, with `view: full`.
    fn clean(&self, object: &mut Value) {
        match &self.path {
            Some(path) if path.begins_with(&["metadata", "managedFields"]) => clean::hidden(object),
            Some(_) | None => clean::full(object),
        }
    }

    /// Refuses what contradicts itself.
    fn check(&self) -> Result<(), Failure> {
        let told = |message: &str, next: &str| Err(Failure::new(Code::InvalidArgument, message).next(next));
        let narrowed = self.selector.is_some() || self.field_selector.is_some() || self.cursor.is_some();
        match (&self.name, self.view()) {
            (Some(_), _) if narrowed => {
                told("name asks for one object; selector, field_selector and cursor ask for several", "leave one out")
            }
            (None, GetView::Describe) => {
                told("view=describe is for one object", "give its name, or list with view=summary first")
            }
            (_, _) => Ok(()),
        }
    }
}

impl Tool for K8sGet {
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
    type Output = K8sGetOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.kind.about())
    }

    /// The messages of events are prose, and anybody who runs there can write one.
    fn taints(found: &K8sGetOutput) -> bool {
        found.kind == "Event" || found.around.tells_events()
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<K8sGetOutput, Failure> {
        args.check()?;
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let kind = at::kind(&cluster, permit, &args.kind).await?;
        let place = at::places(&cluster, &kind, args.namespace.as_ref()).await?;
        match &args.name {
            Some(name) => {
                let target = at::target(&place, name)?;
                Box::pin(self.one(&cluster, &place, &target, &args)).await
            }
            None => {
                let token = self.page_token(permit, &args)?;
                let page = Box::pin(self.page(&cluster, &place, &args, token.c.clone())).await?;
                if page.rows.is_empty() && args.cursor.is_none() {
                    at::explain_empty(&cluster, &place).await?;
                }
                let answer = K8sGetOutput::of(&place, ClusterNote::answer_at(&cluster, &place, args.named()));
                self.fitted(permit, answer, &args, token, page)
            }
        }
    }
}

impl K8sGet {
    async fn one(
        &self,
        cluster: &Cluster<'_>,
        place: &KindScope,
        target: &ResourceRef,
        args: &Args,
    ) -> Result<K8sGetOutput, Failure> {
        let mut object = at::get(cluster, place, target, args.detail()).await?;
        args.clean(&mut object);
        let mut found = K8sGetOutput::of(place, ClusterNote::answer_at(cluster, place, args.named()));
        if let Some(path) = &args.path {
            let mut value = path.get(&object)?.clone();
            let bytes = thin(&mut value, ROOM);
            found.value = Some(value);
            found.common.cut_bytes(bytes, "pick a smaller part with path");
            return Ok(found);
        }
        match args.view() {
            GetView::Summary => {
                let row = self.summary(cluster, place, target, &object).await?;
                found.object = Some(row);
            }
            GetView::Full => {
                let bytes = thin(&mut object, ROOM);
                found.object = Some(object);
                found.common.cut_bytes(bytes, "pick a part with path, such as path=spec");
            }
            GetView::Describe => {
                found.around = describe::around(cluster, target, &object, self.kit.cursors.now()).await?;
                let bytes = thin(&mut object, ROOM.saturating_sub(size_of(&found.around)));
                found.object = Some(object);
                found.common.cut_bytes(bytes, "pick a part with path, such as path=spec");
            }
        }
        Ok(found)
    }

    /// The row of one object; for kinds without a projection, in the server's own columns.
    async fn summary(
        &self,
        cluster: &Cluster<'_>,
        place: &KindScope,
        target: &ResourceRef,
        object: &Value,
    ) -> Result<Value, Failure> {
        let (group, kind) = (place.kind().group(), place.kind().kind());
        let row = project::row(group, kind, object, false, self.kit.cursors.now());
        if project::knows(group, kind) {
            return Ok(row.into());
        }
        let query = ListQuery { fields: Some(format!("metadata.name={}", target.name())), ..ListQuery::default() };
        let table = cluster.table(place, &query).await?;
        let mut rows = list::table_rows(table.columns, table.rows, false);
        let found = rows.iter().position(|r| r.get("name").and_then(Value::as_str) == Some(target.name()));
        Ok(found.map_or(row, |n| rows.swap_remove(n)).into())
    }
}
