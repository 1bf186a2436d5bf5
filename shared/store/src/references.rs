//! What a text says it rests on, looked up: calls of one session and runs of one principal.
//!
//! A run has a record of its own. A call stands only in the audit log, which has no index by call, because every call would
//! pay for it and hardly any is ever cited: the newest entries are looked through, and what lies further back is unknown.

use crate::document::Reference;
use crate::place::entries_of;
use crate::{StoreError, StreamName, TenantStore};
use domain::{CallId, Principal, RunId, SessionId};
use serde::Deserialize;
use std::collections::HashMap;

/// So many names of one text are looked up.
const MOST_CITED: usize = 32;
/// Items of the audit log that are read at once; each may hold many entries.
const ITEMS: usize = 128;
/// Entries that are looked through.
const LOOKED_THROUGH: usize = 4_096;

/// What a text cites.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvidenceCitation {
    /// What the audit log knows, in the order of the text.
    pub known: Vec<Reference>,
    /// What it does not know, or not of this session and this principal.
    pub unknown: Vec<String>,
}

impl TenantStore {
    /// Looks up every call and run that a text names. Somebody else's are as unknown as those that never were.
    pub async fn references(
        &self,
        session: Option<SessionId>,
        owner: &Principal,
        text: &str,
    ) -> Result<EvidenceCitation, StoreError> {
        let names = named_in(text);
        let looked_up = &names[..names.len().min(MOST_CITED)];
        let calls = looked_up.iter().filter(|name| CallId::parse(name).is_ok()).map(String::as_str).collect();
        let mut found = match session {
            Some(session) => self.calls_of(session, owner, calls).await?,
            None => HashMap::new(),
        };
        let runs = looked_up.iter().filter_map(|name| RunId::parse(name).ok()).collect();
        for run in self.runs().read(runs).await?.into_iter().filter(|run| run.asked.requester == *owner) {
            let (id, tool, at) = (run.id.to_string(), run.asked.tool.to_string(), run.asked.asked_at);
            found.insert(id.clone(), Reference { id, tool, at, outcome: run.state.as_str().to_owned() });
        }
        let mut cited = EvidenceCitation::default();
        for name in names {
            match found.remove(&name) {
                Some(reference) => cited.known.push(reference),
                None => cited.unknown.push(name),
            }
        }
        Ok(cited)
    }

    /// Those of these calls that a session made, as far back as is looked.
    async fn calls_of(
        &self,
        session: SessionId,
        owner: &Principal,
        mut wanted: Vec<&str>,
    ) -> Result<HashMap<String, Reference>, StoreError> {
        let (session, mut before) = (session.to_string(), None);
        let mut found = HashMap::new();
        let mut ends: HashMap<String, String> = HashMap::new();
        let mut left = LOOKED_THROUGH;
        while !wanted.is_empty() && left > 0 {
            let items = self.read_back(&StreamName::audit(), before, ITEMS).await?;
            let more = items.len() == ITEMS;
            before = items.last().map(|(id, _)| *id);
            for (place, body) in items.into_iter().flat_map(|item| entries_of(item).into_iter().rev()).take(left) {
                left -= 1;
                let Some(entry) = CallEntry::read(&body).filter(|entry| entry.session == session) else { continue };
                let Some(at) = wanted.iter().position(|call| *call == entry.call) else { continue };
                // Somebody else may have tried the name of this session; that is no call of it.
                let own = entry.actor.is_some_and(|who| (&who.iss, &who.sub) == (&owner.issuer, &owner.subject));
                match (entry.phase.as_str(), entry.tool, entry.outcome) {
                    // Newest first: how it ended comes before how it began.
                    ("close", _, Some(RecordedOutcome { code })) => {
                        ends.insert(entry.call, code);
                    }
                    ("open", Some(tool), _) if own => {
                        wanted.swap_remove(at);
                        let outcome = ends.remove(&entry.call).unwrap_or_else(|| "open".to_owned());
                        let reference = Reference { id: entry.call.clone(), tool, at: place.item.at, outcome };
                        found.insert(entry.call, reference);
                    }
                    (_, _, _) => {}
                }
            }
            if !more {
                break;
            }
        }
        Ok(found)
    }
}

/// The calls and runs a text names, each once, in order. Words that only begin alike, such as `run_id`, are none.
fn named_in(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let is_one = CallId::parse(word).is_ok() || RunId::parse(word).is_ok();
        if is_one && !names.iter().any(|name| name == word) {
            names.push(word.to_owned());
        }
    }
    names
}

/// As much of an entry as tells about a call.
#[derive(Deserialize)]
struct CallEntry {
    phase: String,
    #[serde(default)]
    session: String,
    #[serde(default)]
    call: String,
    #[serde(default)]
    actor: Option<RecordedCaller>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    outcome: Option<RecordedOutcome>,
}

#[derive(Deserialize)]
struct RecordedCaller {
    iss: String,
    sub: String,
}

#[derive(Deserialize)]
struct RecordedOutcome {
    code: String,
}

impl CallEntry {
    fn read(body: &[u8]) -> Option<CallEntry> {
        serde_json::from_slice(body).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_read_out_of_a_text() {
        let (call, run) = (CallId::from_random([1; 16]).to_string(), RunId::from_random([2; 16]).to_string());
        let text =
            format!("seen in `{call}`, done by {run}; not run_id, call_tool, x{run}, {run}x or {call}. Again {run}");
        assert_eq!(named_in(&text), [call, run]);
        assert_eq!(named_in(""), Vec::<String>::new());
    }
}
