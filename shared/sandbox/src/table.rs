//! The Table form of objects: the columns `kubectl get` shows.

mod columns;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock;
use crate::json;
use crate::kinds::ApiKind;
use crate::resources::TableInclusion;

/// Renders objects as a table.
pub(crate) fn table(kind: &ApiKind, objects: &[&Value], metadata: &Value, included: TableInclusion) -> Value {
    let now = Timestamp::now();
    let columns = columns::of(kind);
    let definitions: Vec<Value> = columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name, "type": column.kind, "format": if column.name == "Name" { "name" } else { "" },
                "description": column.name, "priority": column.priority,
            })
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<Value> = columns.iter().map(|column| (column.cell)(object, now)).collect();
            let object = match included {
                TableInclusion::Nothing => return json!({ "cells": cells }),
                TableInclusion::Object => (*object).clone(),
                TableInclusion::Metadata => {
                    let metadata = &object["metadata"];
                    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
                }
            };
            json!({ "cells": cells, "object": object })
        })
        .collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows,
    })
}

/// A span as kubectl writes it: `45s`, `3m20s`, `5h`, `12d`.
pub(crate) fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with_rest = |whole: u64, unit: char, rest: u64, small: char| {
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{small}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => with_rest(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with_rest(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with_rest(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

fn age(object: &Value, at: &str, now: Timestamp) -> Value {
    let then = json::text(object, at).and_then(clock::read);
    then.map_or_else(|| json!("<unknown>"), |then| json!(span(clock::since(then, now).as_secs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_like_those_of_kubectl() {
        let shown: Vec<String> = [45, 200, 1_200, 11_000, 90_000, 1_000_000].map(span).to_vec();
        assert_eq!(shown, ["45s", "3m20s", "20m", "3h3m", "25h", "11d"]);
    }
}
