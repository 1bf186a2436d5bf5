//! The calls the service answers itself, one file each.

mod await_run;
pub(crate) mod call_tool;
mod load_toolset;
mod search_tools;
mod unload_toolset;

use crate::call::{CallRequest, Executor, Handle, VIRTUAL_DEADLINE, read_handle, slot, virtual_call};
use crate::snapshot::Snapshot;
use catalog::Virtual;
use domain::{Code, Failure, Outcome};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

impl Executor {
    /// A virtual call takes the same first steps as any other: arguments, slot, receipt, limits.
    pub(crate) async fn call_virtual(
        &self,
        snapshot: &Arc<Snapshot>,
        which: Virtual,
        mut request: CallRequest,
    ) -> Outcome {
        let arguments = snapshot.catalog.check_virtual(which, request.arguments)?;
        request.arguments = Map::new();
        take_session(&arguments, &mut request.handle);
        let _slot = slot(snapshot)?;
        let session = read_handle(&request.handle)?;
        let call = virtual_call(which, Arc::clone(&request.caller), session, &arguments)?;
        let selection = request.selection.clone();
        let (open, evidence, _) = self.open(snapshot, &call, &mut request).await?;
        request.selection = selection;
        let limited = evidence.calls_this_minute > snapshot.policy.calls_per_minute;
        let longest = match which {
            Virtual::AwaitRun => await_run::LONGEST + VIRTUAL_DEADLINE,
            Virtual::LoadToolset | Virtual::UnloadToolset | Virtual::SearchTools | Virtual::CallTool => {
                VIRTUAL_DEADLINE
            }
        };
        let work = async {
            if limited {
                return Err(too_many(snapshot));
            }
            match which {
                Virtual::LoadToolset => self.load_toolset(snapshot, &request, &open, arguments).await,
                Virtual::UnloadToolset => self.unload_toolset(snapshot, &request, &open, arguments).await,
                Virtual::SearchTools => search_tools::run(snapshot, &evidence.loaded, arguments),
                Virtual::AwaitRun => self.await_run(&request, &open, arguments).await,
                Virtual::CallTool => Err(Failure::new(Code::Internal, "call_tool is unwrapped before it gets here")),
            }
        };
        let outcome = tokio::time::timeout(longest, work)
            .await
            .unwrap_or_else(|_| Err(Failure::new(Code::Deadline, format!("{} took too long", which.name()))));
        open.close(&outcome).await;
        outcome
    }
}

/// A handle in the arguments counts where the request itself brought none.
fn take_session(arguments: &Value, handle: &mut Handle) {
    if let (Handle::None, Some(text)) = (&handle, arguments.get("session").and_then(Value::as_str)) {
        *handle = Handle::Told(text.to_owned());
    }
}

fn too_many(snapshot: &Snapshot) -> Failure {
    let message = format!("the tenant's limit of {} calls a minute is used up", snapshot.policy.calls_per_minute);
    Failure::new(Code::RateLimited, message).next("wait, then call again").retry_after_ms(10_000)
}

/// Reads arguments that have passed their schema.
fn typed<T: DeserializeOwned>(arguments: Value) -> Result<T, Failure> {
    serde_json::from_value(arguments).map_err(|error| Failure::new(Code::InvalidArgument, error.to_string()))
}
