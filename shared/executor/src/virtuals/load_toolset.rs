//! `load_toolset`: issues toolsets to a session, in this process, without approval.
//!
//! Loading is a permission and is judged like one; what is loaded is written to the session's record in one
//! compare-and-set with its audit entry and the wake-up that tells every open stream of the session.
//! The answer holds the full schemas, so a host that ignores or loses `list_changed` still works.

use crate::executor::Executor;
use crate::open_call::OpenCall;
use crate::request::{CallRequest, Handle, no_session};
use crate::sessions::fresh;
use crate::snapshot::Snapshot;
use crate::virtuals::arguments::{known, typed};
use catalog::virtuals::ToolsetArgs;
use catalog::{Catalog, ListAudience};
use domain::{Caller, Failure, Level, Session, SessionDoor, SessionMode, ToolOutput, ToolsetName};
use serde_json::{Value, json};
use std::fmt::Write as _;

impl Executor {
    pub(super) async fn load_toolset(
        &self,
        snapshot: &Snapshot,
        request: &CallRequest,
        open: &OpenCall,
        arguments: Value,
    ) -> Result<ToolOutput, Failure> {
        let args: ToolsetArgs = typed(arguments)?;
        let names = known(&snapshot.catalog, args.toolset.names())?;
        let wanted: Vec<(ToolsetName, Level)> = names.into_iter().map(|name| (name, args.level())).collect();
        let mode = open.held.as_ref().map_or(SessionMode::Write, |held| held.session.mode);
        let count = |result| {
            for (toolset, level) in &wanted {
                let mode = if *level == Level::Write { "write" } else { "read" };
                telemetry::metrics::TOOLSET_LOADS.add([toolset.as_str(), mode, result], 1);
            }
        };
        if let Err(reason) = policy::decide_load(&snapshot.policy, &request.caller, mode, &wanted) {
            count("denied");
            return Err(reason.0);
        }
        let (session, before) = match &open.held {
            Some(_) => {
                let (session, before) = self.fold(open, &request.caller, |session| session.load(&wanted)).await?;
                (session, Some(before))
            }
            None => {
                let caller = &request.caller;
                let (carried, now) = self.carried_over(caller).await?;
                let fresh = fresh(snapshot, caller, SessionMode::Write, request.selection.clone(), now)?;
                let client = request.client.as_deref().map(Into::into);
                let door = Some(SessionDoor::Modern);
                let loaded = Session { client, door, ..fresh.load(&wanted).unwrap_or(fresh) };
                (self.keep(caller, loaded, carried).await?.session, None)
            }
        };
        count("ok");
        let growing = matches!(request.handle, Handle::Transport(_));
        Ok(ToolOutput::structured(answer(&snapshot.catalog, &session, before.as_ref(), &wanted, growing)))
    }

    /// Folds a transition into the session of an open call. Gives the session as it now is, and as it was.
    pub(super) async fn fold(
        &self,
        open: &OpenCall,
        caller: &Caller,
        step: impl Fn(&Session) -> Option<Session>,
    ) -> Result<(Session, Session), Failure> {
        let Some(held) = open.held.clone() else { return Err(no_session(&Handle::None)) };
        self.fold_session(&open.shelf.sessions(), held, caller, "toolsets", step).await
    }
}

/// Names, full schemas and cost. Schemas are spliced in as they stand in the catalog; nothing is serialised again.
fn answer(
    catalog: &Catalog,
    session: &Session,
    before: Option<&Session>,
    wanted: &[(ToolsetName, Level)],
    growing: bool,
) -> String {
    let asked = |name: &ToolsetName| wanted.iter().any(|(wanted, _)| wanted == name);
    let by_default =
        |entry: &catalog::CatalogEntry| catalog.defaults().level(&entry.definition().toolset) >= Some(entry.list());
    let issued = |s: &Session, e: &catalog::CatalogEntry| s.loaded.level(&e.definition().toolset) >= Some(e.list());
    // Everything asked for that is not in the list a session opens with: the same on every repetition.
    let tools =
        catalog.entries().iter().filter(|e| asked(&e.definition().toolset) && !by_default(e) && issued(session, e));
    let had = |e: &catalog::CatalogEntry| before.map_or(by_default(e), |before| issued(before, e));

    let (mut added, mut cost) = (String::new(), 0);
    for entry in tools {
        if !added.is_empty() {
            added.push(',');
        }
        added.push_str(&entry.issue());
        cost += if had(entry) { 0 } else { entry.tokens() };
    }
    let view = if growing { ListAudience::Growing { grown: true } } else { ListAudience::Fixed };
    let total = catalog.tokens(&session.loaded, view);
    let next = if growing {
        "Call these by name."
    } else {
        "Call these by name with _meta quartermaster/session, or through call_tool with this session. Idle sessions expire."
    };
    let mut text = String::with_capacity(added.len() + 512);
    write!(
        text,
        r#"{{"session":"{}","loaded":{},"added":[{added}],"tokens":{{"added":{cost},"loaded":{total}}},"next":{}}}"#,
        session.id,
        json!(session.loaded),
        json!(next),
    )
    .ok();
    text
}
