//! What waits to be built.

use crate::client::build::BuildAction;
use crate::client::mask;
use crate::client::path::JobPath;
use crate::client::request::{MissingSubject, ServerRequest};
use crate::client::server::PermittedServer;
use domain::Failure;
use serde::Deserialize;

const ITEM: &str = "id,why,inQueueSince,stuck,task[fullName,name],actions[causes[_class,shortDescription,userId],parameters[_class,name,value]]";

/// One item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueItem {
    /// Its id.
    pub id: u64,
    /// The job it is of; what its author called it, where it is none.
    pub job: String,
    /// Why it waits.
    pub why: Option<String>,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// Whether it has waited longer than is usual.
    pub stuck: bool,
    /// Whether somebody took it out.
    pub cancelled: bool,
    /// The build it became.
    pub build: Option<u32>,
    /// Who asked for it, if a user did.
    pub by: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueItemBody {
    id: u64,
    why: Option<String>,
    #[serde(default)]
    in_queue_since: u64,
    #[serde(default)]
    stuck: bool,
    #[serde(default)]
    cancelled: bool,
    task: Option<Task>,
    executable: Option<Executable>,
    #[serde(default)]
    actions: Vec<Option<BuildAction>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    full_name: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Executable {
    number: Option<u32>,
}

impl PermittedServer<'_> {
    /// Everything that waits.
    pub async fn queue(&self) -> Result<Vec<QueueItem>, Failure> {
        Ok(self.waiting().await?.into_iter().map(QueueItem::from).collect())
    }

    /// One item, also for about five minutes after it left the queue.
    pub async fn item(&self, id: u64) -> Result<QueueItem, Failure> {
        let path = format!("/queue/item/{id}/api/json");
        let request = ServerRequest::get(path, "/queue/item/{id}/api/json", MissingSubject::Item(id));
        let wire: QueueItemBody = self.read_json(&request.tree(format!("{ITEM},cancelled,executable[number]"))).await?;
        Ok(QueueItem::from(wire))
    }

    /// The item of a job that carries this value in this parameter.
    pub async fn item_with(&self, job: &JobPath, name: &str, value: &str) -> Result<Option<QueueItem>, Failure> {
        let carries = |wire: &QueueItemBody| {
            let of_job = wire.task.as_ref().is_some_and(|task| task.full_name.as_deref() == Some(job.as_str()));
            of_job && wire.actions.iter().flatten().any(|action| action.parameters.iter().any(|p| p.is(name, value)))
        };
        Ok(self.waiting().await?.into_iter().find(carries).map(QueueItem::from))
    }

    async fn waiting(&self) -> Result<Vec<QueueItemBody>, Failure> {
        #[derive(Deserialize)]
        struct QueueBody {
            #[serde(default)]
            items: Vec<QueueItemBody>,
        }
        let request = ServerRequest::get("/queue/api/json", "/queue/api/json", MissingSubject::Server);
        Ok(self.read_json::<QueueBody>(&request.tree(format!("items[{ITEM}]"))).await?.items)
    }
}

impl From<QueueItemBody> for QueueItem {
    fn from(wire: QueueItemBody) -> QueueItem {
        let task = wire.task.and_then(|task| task.full_name.or(task.name));
        let by = wire.actions.iter().flatten().flat_map(|action| &action.causes).find_map(|cause| cause.user());
        QueueItem {
            id: wire.id,
            job: mask::line(&task.unwrap_or_default()),
            why: wire.why.map(|why| mask::line(&why)),
            since_ms: wire.in_queue_since,
            stuck: wire.stuck,
            cancelled: wire.cancelled,
            build: wire.executable.and_then(|build| build.number),
            by: by.map(str::to_owned),
        }
    }
}
