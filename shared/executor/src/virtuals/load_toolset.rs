//! `load_toolset`: issues toolsets to a session, in this process, without approval.
//!
//! Loading is a permission and is judged like one; what is loaded is written to the session's record in one
//! compare-and-set with its audit entry and the wake-up that tells every open stream of the session.
//! The answer holds the full schemas, so a host that ignores or loses `list_changed` still works.

use crate::call::{CallRequest, Executor, Handle, OpenCall, no_session};
use crate::sessions::fresh;
use crate::snapshot::Snapshot;
use crate::virtuals::typed;
use catalog::virtuals::ToolsetArgs;
use catalog::{Catalog, View};
use domain::outcome::near;
use domain::{Caller, Code, Failure, Level, Mode, Outcome, Output, Session, ToolsetName};
use serde_json::{Value, json};
use std::fmt::Write as _;

impl Executor {
    pub(super) async fn load_toolset(
        &self,
        snapshot: &Snapshot,
        request: &CallRequest,
        open: &OpenCall,
        arguments: Value,
    ) -> Outcome {
        let args: ToolsetArgs = typed(arguments)?;
        let names = known(&snapshot.catalog, args.toolset.names())?;
        let wanted: Vec<(ToolsetName, Level)> = names.into_iter().map(|name| (name, args.level())).collect();
        let mode = open.held.as_ref().map_or(Mode::Write, |held| held.session.mode);
        policy::decide_load(&snapshot.policy, &request.caller, mode, &wanted).map_err(|reason| reason.0)?;
        let (session, before) = match &open.held {
            Some(_) => {
                let (session, before) = self.fold(open, &request.caller, |session| session.load(&wanted)).await?;
                (session, Some(before))
            }
            None => {
                let caller = &request.caller;
                let fresh = fresh(snapshot, caller, Mode::Write, request.selection.clone(), open.now)?;
                let loaded = fresh.load(&wanted).unwrap_or(fresh);
                (self.keep(caller, loaded).await?, None)
            }
        };
        let growing = matches!(request.handle, Handle::Transport(_));
        Ok(Output::structured(answer(&snapshot.catalog, &session, before.as_ref(), &wanted, growing)))
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

/// The toolsets by these names; an unknown one is answered with those there are.
pub(super) fn known(catalog: &Catalog, names: &[String]) -> Result<Vec<ToolsetName>, Failure> {
    let all = || catalog.toolsets().iter().map(|set| set.name.as_str());
    names
        .iter()
        .map(|name| {
            let found = catalog.toolsets().iter().find(|set| set.name.as_str() == name);
            found.map(|set| set.name.clone()).ok_or_else(|| {
                let valid: Vec<&str> = all().collect();
                let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
                Failure::new(Code::UnknownToolset, format!("there is no toolset `{shown}`"))
                    .next(format!("choose from: {}", valid.join(", ")))
                    .did_you_mean(near(name, all()))
                    .details(json!({ "toolsets": valid }))
            })
        })
        .collect()
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
        |entry: &catalog::Entry| catalog.defaults().level(&entry.definition().toolset) >= Some(entry.list());
    let issued = |s: &Session, e: &catalog::Entry| s.loaded.level(&e.definition().toolset) >= Some(e.list());
    // Everything asked for that is not in the list a session opens with: the same on every repetition.
    let tools =
        catalog.entries().iter().filter(|e| asked(&e.definition().toolset) && !by_default(e) && issued(session, e));
    let had = |e: &catalog::Entry| before.map_or(by_default(e), |before| issued(before, e));

    let (mut added, mut cost) = (String::new(), 0);
    for entry in tools {
        if !added.is_empty() {
            added.push(',');
        }
        added.push_str(&entry.issue());
        cost += if had(entry) { 0 } else { entry.tokens() };
    }
    let view = if growing { View::Growing { grown: true } } else { View::Fixed };
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
