//! A custom resource definition read into kinds.

use serde_json::Value;

use super::{ApiKind, PrinterColumn, ScalePaths};
use crate::json;

/// The served versions of a definition.
pub(crate) fn read_definition(definition: &Value) -> Vec<ApiKind> {
    let text = |at: &str| json::text_or_empty(definition, at).to_owned();
    let texts = |at: &str| json::list(definition, at).iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let kind = text("/spec/names/kind");
    let versions = json::list(definition, "/spec/versions").iter().filter(|version| json::is_true(version, "/served"));
    let read = versions.map(|version| {
        let group = text("/spec/group");
        let name = json::text_or_empty(version, "/name").to_owned();
        ApiKind {
            type_name: format!("{group}.{name}.{kind}"),
            group,
            kind: kind.clone(),
            plural: text("/spec/names/plural"),
            singular: json::text(definition, "/spec/names/singular").map_or_else(|| kind.to_lowercase(), str::to_owned),
            short: texts("/spec/names/shortNames"),
            categories: texts("/spec/names/categories"),
            namespaced: json::text(definition, "/spec/scope") == Some("Namespaced"),
            counted: true,
            status: version.pointer("/subresources/status").is_some(),
            scale: version.pointer("/subresources/scale").map(read_scale),
            read_only: false,
            custom: true,
            columns: json::list(version, "/additionalPrinterColumns").iter().map(read_column).collect(),
            schema: version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or(Value::Null),
            version: name,
        }
    });
    read.collect()
}

fn read_scale(scale: &Value) -> ScalePaths {
    let pointer = |at: &str| json::text(scale, at).map(|path| path.replace('.', "/"));
    ScalePaths {
        wanted: pointer("/specReplicasPath").unwrap_or_default(),
        current: pointer("/statusReplicasPath").unwrap_or_default(),
        selector: pointer("/labelSelectorPath"),
    }
}

fn read_column(column: &Value) -> PrinterColumn {
    PrinterColumn {
        name: json::text_or_empty(column, "/name").to_owned(),
        kind: json::text_or_empty(column, "/type").to_owned(),
        path: json::text_or_empty(column, "/jsonPath").to_owned(),
        priority: json::int(column, "/priority", 0),
    }
}
