//! `call_tool`: for hosts that cannot add a tool to their list. It unwraps into the ordinary path and adds nothing.

use crate::request::CallRequest;
use crate::snapshot::Snapshot;
use crate::virtuals::arguments::{take_session, typed};
use catalog::ControlTool;
use catalog::virtuals::CallArgs;
use domain::{Code, Failure};

/// The call inside the call.
pub(crate) fn unwrap(snapshot: &Snapshot, request: CallRequest) -> Result<CallRequest, Failure> {
    let CallRequest { arguments, mut handle, .. } = request;
    let arguments = snapshot.catalog.check_virtual(ControlTool::CallTool, arguments)?;
    take_session(&arguments, &mut handle);
    let CallArgs { tool, arguments } = typed(arguments)?;
    if tool == ControlTool::CallTool.name() {
        return Err(Failure::new(Code::InvalidArgument, "call_tool cannot call itself").next("name the tool you want"));
    }
    Ok(CallRequest { tool, arguments, handle, ..request })
}
