//! The calls the service answers itself, one file each.

mod arguments;
mod await_run;
pub(crate) mod call_tool;
mod load_toolset;
mod search_tools;
mod unload_toolset;

use crate::call_count::CallCount;
use crate::executor::Executor;
use crate::failures::random;
use crate::perform::{AtDeadline, BoundCall, CallBounds, OpenEntry};
use crate::request::{CallRequest, read_handle};
use crate::snapshot::Snapshot;
use arguments::take_session;
use catalog::ControlTool;
use domain::{Call, CallId, Caller, Code, Failure, Outcome, SessionId, ToolName, ToolsetName, json};
use policy::Decision;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a call of one may take beyond the store's own deadlines.
const DEADLINE: Duration = Duration::from_secs(5);
/// What they are counted and recorded under.
const TOOLSET: &str = "virtual";

impl Executor {
    /// Takes the same steps as any other call: arguments, slot, open audit entry, verdict, and the one place where tools
    /// run.
    pub(crate) async fn call_virtual(
        &self,
        snapshot: &Arc<Snapshot>,
        which: ControlTool,
        mut request: CallRequest,
        count: &mut CallCount<'_>,
    ) -> Result<Outcome, Failure> {
        count.of_toolset(TOOLSET);
        let arguments = snapshot.catalog.check_virtual(which, request.arguments)?;
        request.arguments = Map::new();
        take_session(&arguments, &mut request.handle);
        let _slot = match which {
            // A call that waits holds no slot: others may call meanwhile.
            ControlTool::AwaitRun => self.admission.waiting(&request.caller)?,
            ControlTool::LoadToolset
            | ControlTool::UnloadToolset
            | ControlTool::SearchTools
            | ControlTool::CallTool => self.admission.slot(&request.caller, snapshot.in_flight)?,
        };
        let session = read_handle(&request.handle)?;
        let call = call_of(which, Arc::clone(&request.caller), session, &arguments)?;
        let given = arguments.to_string();
        let (mut open, evidence, _) = self.open(snapshot, &call, (None, &given), &request).await?;
        count.effect(call.effect);
        let decided = policy::decide(&snapshot.policy, call, &evidence);
        open.decided(&decided, snapshot);
        count.decided(&decided, &open);
        let outcome = match decided {
            Decision::Permit(permit) => {
                let deadline = match which {
                    ControlTool::AwaitRun => await_run::LONGEST + DEADLINE,
                    ControlTool::LoadToolset
                    | ControlTool::UnloadToolset
                    | ControlTool::SearchTools
                    | ControlTool::CallTool => DEADLINE,
                };
                let work = async {
                    match which {
                        ControlTool::LoadToolset => {
                            self.load_toolset(snapshot, &request, &open, arguments).await.map(Outcome::Done)
                        }
                        ControlTool::UnloadToolset => {
                            self.unload_toolset(snapshot, &request, &open, arguments).await.map(Outcome::Done)
                        }
                        ControlTool::SearchTools => {
                            search_tools::run(snapshot, evidence.loaded(), arguments).map(Outcome::Done)
                        }
                        ControlTool::AwaitRun => self.await_run(&request, &open, arguments).await,
                        ControlTool::CallTool => {
                            Err(Failure::new(Code::Internal, "call_tool is unwrapped before it gets here"))
                        }
                    }
                };
                let bounds = CallBounds {
                    secrets: snapshot.secrets.clone(),
                    // Its size follows from the tenant's own catalog, or was held to the cap when the run was done.
                    cap: usize::MAX,
                    shape: std::convert::identity,
                    // The one that waits for long listens for a cancellation itself.
                    cancel: CancellationToken::new(),
                    at_deadline: AtDeadline::Stop,
                };
                let call = BoundCall::Control { work: Box::pin(work), deadline };
                self.perform(OpenEntry::Call(&open), &permit, call, bounds).await.into_outcome()
            }
            Decision::Deny(reason) => Outcome::Failed(reason.0),
            Decision::Ask(..) => Outcome::Failed(Failure::new(Code::Internal, "nobody can be asked about this tool")),
        };
        open.close(&outcome).await;
        Ok(outcome)
    }
}

/// A call of one, as policy judges it.
fn call_of(
    which: ControlTool,
    caller: Arc<Caller>,
    session: Option<SessionId>,
    arguments: &Value,
) -> Result<Call, Failure> {
    let broken = || Failure::new(Code::Internal, "a virtual tool has no proper name");
    let tool = ToolName::parse(which.name()).map_err(|_| broken())?;
    let toolset = ToolsetName::parse(TOOLSET).map_err(|_| broken())?;
    let id = CallId::from_random(random()?);
    Ok(Call::of_control_tool(id, caller, session, (tool, toolset), &json::canonical(arguments)))
}
