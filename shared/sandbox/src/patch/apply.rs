//! Server-side apply: the whole intent of one manager, merged by field ownership.
//!
//! What the manager applied before and leaves out now is taken away unless somebody else owns it too.
//! A field that another manager owns with another value is a conflict, or is taken over by force.

use serde_json::{Value, json};

use crate::fields::{self, FieldSet, Path};
use crate::json;
use crate::managers::{self, FieldAuthor, ManagerShare};
use crate::schema::{SchemaNode, Sharing, Types};
use crate::status::ApiStatus;

/// The applied object merged into the live one, with ownership written.
pub(crate) fn apply(
    live: &Value,
    intent: &Value,
    author: &FieldAuthor<'_>,
    force: bool,
    (types, place): (&Types, &SchemaNode),
) -> Result<Value, ApiStatus> {
    let applied = fields::fields_of(intent, types, place);
    let shares = managers::shares(live);
    let conflicts = conflicts(live, intent, &applied, &shares, author);
    if !conflicts.is_empty() && !force {
        return Err(refused(&conflicts));
    }
    let mut merged = live.clone();
    merge(&mut merged, intent, types, place);
    let previous = shares.iter().find(|share| share.apply && share.manager == author.manager);
    for path in left_out(previous, &applied, &shares, author) {
        fields::remove_at(&mut merged, &path);
    }
    let taken: FieldSet = conflicts.into_iter().map(|(_, path)| path).collect();
    let unchanged = previous.is_some_and(|previous| previous.fields == applied && taken.is_empty());
    let mut shares = managers::after_apply(shares, applied, &taken, author);
    if unchanged && same_but_ownership(&merged, live) {
        return Ok(live.clone());
    }
    shares.retain(|share| !share.fields.is_empty());
    managers::write(&mut merged, &shares);
    Ok(merged)
}

fn same_but_ownership(one: &Value, other: &Value) -> bool {
    let bare = |value: &Value| {
        let mut value = value.clone();
        json::take(&mut value, "/metadata/managedFields");
        value
    };
    bare(one) == bare(other)
}

/// Fields of others whose value this intent would change.
fn conflicts(
    live: &Value,
    intent: &Value,
    applied: &FieldSet,
    shares: &[ManagerShare],
    author: &FieldAuthor<'_>,
) -> Vec<(ManagerShare, Path)> {
    let mut found = Vec::new();
    let others = shares
        .iter()
        .filter(|share| share.manager != author.manager || !share.apply || share.subresource != author.subresource);
    for share in others {
        for path in share.fields.intersection(applied) {
            let is_item = path.last().is_some_and(|last| !last.starts_with("f:"));
            if !is_item && fields::value_at(live, path) != fields::value_at(intent, path) {
                found.push((share.clone(), path.clone()));
            }
        }
    }
    found
}

fn refused(conflicts: &[(ManagerShare, Path)]) -> ApiStatus {
    let causes = conflicts.iter().map(|(share, path)| {
        json!({
            "reason": "FieldManagerConflict",
            "message": format!("conflict with {}", share.shown()),
            "field": fields::shown(path),
        })
    });
    let causes = causes.collect();
    if let [(share, path)] = conflicts {
        let message = format!("Apply failed with 1 conflict: conflict with {}: {}", share.shown(), fields::shown(path));
        return ApiStatus::apply_conflict(message, causes);
    }
    let mut lines: Vec<String> = Vec::new();
    let mut managers: Vec<String> = conflicts.iter().map(|(share, _)| share.shown()).collect();
    managers.sort();
    managers.dedup();
    for manager in managers {
        lines.push(format!("conflicts with {manager}:"));
        let of_manager = conflicts.iter().filter(|(share, _)| share.shown() == manager);
        lines.extend(of_manager.map(|(_, path)| format!("- {}", fields::shown(path))));
    }
    let message = format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"));
    ApiStatus::apply_conflict(message, causes)
}

/// What this manager owned, does not apply any more, and nobody else holds; deepest first.
fn left_out(
    previous: Option<&ManagerShare>,
    applied: &FieldSet,
    shares: &[ManagerShare],
    author: &FieldAuthor<'_>,
) -> Vec<Path> {
    let Some(previous) = previous else { return Vec::new() };
    let is_held = |path: &Path| {
        shares.iter().any(|share| {
            let mine = share.apply && share.manager == author.manager;
            !mine && share.fields.iter().any(|other| other.starts_with(path))
        })
    };
    let still_applied = |path: &Path| applied.iter().any(|other| other.starts_with(path));
    let gone = previous.fields.iter().filter(|path| !still_applied(path) && !is_held(path));
    let mut gone: Vec<Path> = gone.cloned().collect();
    gone.sort_by_key(|path| std::cmp::Reverse(path.len()));
    gone
}

/// Folds the intent into the live object: maps by key, keyed lists by item, everything else as a whole.
fn merge(live: &mut Value, intent: &Value, types: &Types, place: &SchemaNode) {
    if let Value::Object(fields) = intent
        && live.is_object()
        && !types.is_atomic(place)
    {
        let live = json::object_of(live);
        for (key, value) in fields {
            let below = types.below(place, key).unwrap_or(SchemaNode::UNKNOWN);
            if value.is_null() {
                continue;
            }
            merge(live.entry(key.clone()).or_insert(Value::Null), value, types, &below);
        }
        return;
    }
    if let (Value::Array(items), Value::Array(live)) = (intent, &mut *live)
        && matches!(place.sharing, Sharing::Keyed(_) | Sharing::Set)
    {
        let below = types.items(place);
        for item in items {
            let element = fields::item_element(item, &place.sharing);
            match live.iter_mut().find(|one| fields::is_item(one, &element)) {
                Some(one) => merge(one, item, types, &below),
                None => live.push(item.clone()),
            }
        }
        return;
    }
    *live = intent.clone();
}
