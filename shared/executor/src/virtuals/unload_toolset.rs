//! `unload_toolset`: hands toolsets back, so that the list is short again.

use crate::executor::Executor;
use crate::open_call::OpenCall;
use crate::request::{CallRequest, Handle};
use crate::snapshot::Snapshot;
use crate::virtuals::arguments::{known, typed};
use catalog::ListAudience;
use catalog::virtuals::ToolsetArgs;
use domain::{Code, Failure, ToolOutput};
use serde_json::{Value, json};

impl Executor {
    pub(super) async fn unload_toolset(
        &self,
        snapshot: &Snapshot,
        request: &CallRequest,
        open: &OpenCall,
        arguments: Value,
    ) -> Result<ToolOutput, Failure> {
        if open.held.is_none() {
            return Err(Failure::new(Code::SessionRequired, "unloading needs the session it was loaded in")
                .next("pass the session's handle"));
        }
        let args: ToolsetArgs = typed(arguments)?;
        let names = known(&snapshot.catalog, args.toolset.names())?;
        let (session, before) = self.fold(open, &request.caller, |session| session.unload(&names)).await?;
        let removed: Vec<&str> =
            names.iter().filter(|n| before.loaded.level(n).is_some()).map(domain::ToolsetName::as_str).collect();
        let growing = matches!(request.handle, Handle::Transport(_));
        let view = if growing { ListAudience::Growing { grown: true } } else { ListAudience::Fixed };
        let tokens = snapshot.catalog.tokens(&session.loaded, view);
        let text = json!({
            "session": session.id.to_string(), "loaded": session.loaded, "removed": removed, "tokens": { "loaded": tokens },
        });
        Ok(ToolOutput::structured(text.to_string()))
    }
}
