//! The OpenAPI 3.1 description of the HTTP API.
//!
//! Built from the table of routes (addresses, methods, who may call), from the types that handlers read and write, and
//! from the table of codes (which errors have which status). What is said beside that stands in `operations`.

mod operation;
mod operations;
pub(crate) mod shapes;

use crate::routes::{ApiRoute, ROUTES, RouteAccess};
use domain::{Code, TokenScope};
use operation::{Answered, Operation, RequestBody, generator};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Statuses that any operation with a token can be answered with: a bad request, no token, too little scope, over the
/// rate, a fault of ours, a store that is away.
const ALWAYS: [u16; 6] = [400, 401, 403, 429, 500, 503];
/// `/mcp` has no 5xx for a call that failed, and the status of its answers is the protocol's.
const ON_MCP: [u16; 4] = [400, 401, 403, 429];

/// The description, for a service at this address, with these codes of toolsets beside those of the path of a call.
pub fn document(server: Option<&str>, of_toolsets: &[Code]) -> Value {
    let (mut reads, mut writes) = (generator(false), generator(true));
    let operations = operations::all();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES {
        let Some(method) = &route.method else { continue };
        let described = operations.iter().find(|o| o.method == method.as_str() && o.path == route.path);
        let Some(described) = described else { continue };
        let written = write(route, described, &mut reads, &mut writes);
        paths.entry(address(route.path)).or_default().insert(method.as_str().to_ascii_lowercase(), written);
    }
    let mut schemas = reads.take_definitions(true);
    schemas.extend(writes.take_definitions(true));
    // By name and each once, whoever raises it: a service has them in the order of its toolsets.
    let mut codes: Vec<Code> = Code::ALL.iter().chain(of_toolsets).copied().collect();
    codes.sort_by_key(|code| code.as_str());
    codes.dedup();
    let statuses: BTreeSet<u16> = codes
        .iter()
        .map(|code| mcp::codes::rest_status(*code))
        .chain(operations.iter().flat_map(|one| one.errors.iter().copied()))
        .collect();
    let responses: BTreeMap<String, Value> =
        statuses.iter().map(|status| (format!("Error{status}"), error(*status, &codes))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Quartermaster",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A multi-tenant tool service for hosted AI agents. docs/API.md explains every path.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": server.unwrap_or("http://127.0.0.1:8080") }],
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "bearer": {
                "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
                "description": format!("A JWT of a configured issuer. Its claim `scope` holds some of: {}.", scopes()),
            } },
            "schemas": schemas,
            "responses": responses,
        },
    })
}

fn scopes() -> String {
    TokenScope::ALL.map(|scope| scope.as_str()).join(", ")
}

/// An address as OpenAPI writes it: a parameter without its pattern.
fn address(path: &str) -> String {
    path.replace(":.*}", "}")
}

fn write(route: &ApiRoute, of: &Operation, reads: &mut SchemaGenerator, writes: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = path_parameters(route.path);
    if let Some(query) = of.query {
        parameters.extend(query_parameters(&query(reads), reads));
    }
    parameters.extend(of.headers.iter().map(|(name, what)| {
        json!({ "name": name, "in": "header", "required": false, "description": what, "schema": { "type": "string" } })
    }));
    let mut written = json!({
        "operationId": of.id,
        "summary": of.summary,
        "tags": [tag(route.path)],
        "security": security(route.access),
        "responses": responses(route, of, writes),
    });
    if let Some(who) = who(route.access) {
        written["description"] = json!(who);
    }
    if !parameters.is_empty() {
        written["parameters"] = json!(parameters);
    }
    if let Some(body) = &of.body {
        let content: Map<String, Value> = match body {
            RequestBody::Json(schema) => {
                Map::from_iter([("application/json".to_owned(), json!({ "schema": schema(reads) }))])
            }
            RequestBody::Text(media) => {
                media.iter().map(|kind| ((*kind).to_owned(), json!({ "schema": { "type": "string" } }))).collect()
            }
        };
        written["requestBody"] = json!({ "required": true, "content": content });
    }
    written
}

fn tag(path: &str) -> &str {
    let mut parts = path.trim_start_matches('/').split('/');
    match parts.next() {
        Some("v1") => parts.next().unwrap_or_default().trim_end_matches(".json"),
        Some("mcp") => "mcp",
        Some("runs") => "runs",
        _ => "service",
    }
}

fn security(access: RouteAccess) -> Value {
    let one = |scope: &TokenScope| json!({ "bearer": [scope.as_str()] });
    match access {
        RouteAccess::Anyone => json!([]),
        RouteAccess::Caller => json!([{ "bearer": [] }]),
        RouteAccess::OneOf(scopes) | RouteAccess::OnePerson(scopes) => scopes.iter().map(one).collect(),
        RouteAccess::Person(scope) => json!([one(&scope)]),
        RouteAccess::Runner => json!([one(&TokenScope::RunnerWork)]),
    }
}

fn who(access: RouteAccess) -> Option<&'static str> {
    match access {
        RouteAccess::Person(_) | RouteAccess::OnePerson(_) => Some("For people: a token with a tool scope is refused."),
        RouteAccess::Runner => Some("For runners: a token with any other scope is refused."),
        RouteAccess::Anyone | RouteAccess::Caller | RouteAccess::OneOf(_) => None,
    }
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('{').skip(1).filter_map(|rest| rest.split(['}', ':']).next());
    let parameter = |name: &str| {
        let schema = match name {
            "version" => json!({ "type": "integer", "minimum": 1 }),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    };
    names.map(parameter).collect()
}

/// The fields of a query's type, each as a parameter.
fn query_parameters(reference: &Schema, generator: &SchemaGenerator) -> Vec<Value> {
    let name = reference.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let schema = name.and_then(|name| generator.definitions().get(name)).cloned();
    let schema = schema.unwrap_or_else(|| reference.clone().to_value());
    let fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let parameter = |(name, mut schema): (String, Value)| {
        // A parameter that may be absent has no null: there is no way to write one into an address.
        if let Some(kinds) = schema["type"].as_array() {
            schema["type"] = kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default();
        }
        if let Some(one) = schema["anyOf"].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null")) {
            schema = one.clone();
        }
        json!({ "name": name, "in": "query", "required": false, "schema": schema })
    };
    fields.into_iter().map(parameter).collect()
}

fn responses(route: &ApiRoute, of: &Operation, writes: &mut SchemaGenerator) -> Value {
    let mut all: BTreeMap<String, Value> = BTreeMap::new();
    for Answered { status, media, schema } in &of.answers {
        let answer = all.entry(status.to_string()).or_insert_with(|| json!({ "description": reason(*status) }));
        if !media.is_empty() {
            answer["content"][*media] = schema.map_or_else(|| json!({}), |schema| json!({ "schema": schema(writes) }));
        }
    }
    let on_mcp = route.path.starts_with("/mcp");
    let always: &[u16] = match (route.access == RouteAccess::Anyone, on_mcp) {
        (true, _) => &[],
        (false, true) => &ON_MCP,
        (false, false) => &ALWAYS,
    };
    let too_large = of.body.is_some() && !on_mcp;
    for status in of.errors.iter().chain(always).chain(too_large.then_some(&413)) {
        let answer = if on_mcp {
            let schema = writes.subschema_for::<shapes::JsonRpcAnswer>();
            json!({ "description": reason(*status), "content": { "application/json": { "schema": schema } } })
        } else {
            json!({ "$ref": format!("#/components/responses/Error{status}") })
        };
        all.entry(status.to_string()).or_insert(answer);
    }
    for status in &of.bare {
        all.insert(status.to_string(), json!({ "description": reason(*status) }));
    }
    json!(all)
}

/// The error of a status, with every code that has it.
fn error(status: u16, codes: &[Code]) -> Value {
    let of_status = codes.iter().filter(|code| mcp::codes::rest_status(**code) == status);
    let names: BTreeSet<&str> = of_status.map(|code| code.as_str()).collect();
    let mut response = json!({
        "description": reason(status),
        "headers": { "X-Trace-Id": { "description": "the trace, for reports", "schema": { "type": "string" } } },
        "content": { "application/json": { "schema": {
            "type": "object",
            "required": ["error"],
            "properties": { "error": {
                "type": "object",
                "required": ["code", "message", "retryable", "trace_id"],
                "properties": {
                    "code": { "type": "string", "enum": names, "description": "stable" },
                    "message": { "type": "string", "description": "for people; may change" },
                    "hint": { "type": "string", "description": "what to do" },
                    "did_you_mean": { "type": "array", "items": { "type": "string" } },
                    "details": { "description": "more, by code" },
                    "retryable": { "type": "boolean", "description": "whether the same request may succeed later" },
                    "trace_id": { "type": "string" },
                },
            } },
        } } },
    });
    let text = |what: &str| json!({ "description": what, "schema": { "type": "string" } });
    match status {
        401 => response["headers"]["WWW-Authenticate"] = text("where the resource's metadata is"),
        429 | 503 => response["headers"]["Retry-After"] = text("seconds, if known"),
        _ => {}
    }
    response
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "Done",
        201 => "Created",
        202 => "Accepted: it waits for a person, or wants no answer",
        204 => "Done, without a body",
        304 => "Not modified",
        400 => "The request is wrong",
        401 => "No valid token",
        403 => "Not allowed",
        404 => "Not found",
        405 => "This method is not served here",
        406 => "The answer would be of a kind that the client does not accept",
        408 => "The body took too long",
        409 => "The present state does not allow it",
        410 => "Gone",
        412 => "If-Match does not name the current version",
        413 => "Too large",
        415 => "The body is not JSON",
        422 => "It cannot be carried out as it is",
        429 => "Too many requests",
        500 => "A fault of the service",
        502 => "A target answered with an error",
        503 => "Not available now",
        504 => "It took too long",
        _ => "See docs/API.md",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let routes: BTreeSet<(String, &str)> =
            ROUTES.iter().filter_map(|route| Some((route.method.as_ref()?.to_string(), route.path))).collect();
        let described: Vec<(String, &str)> =
            operations::all().iter().map(|one| (one.method.to_owned(), one.path)).collect();
        assert_eq!(described.iter().cloned().collect::<BTreeSet<_>>(), routes);
        assert_eq!(described.len(), routes.len(), "an operation is described twice");
    }

    #[test]
    fn an_operations_name_is_its_own() {
        let all = operations::all();
        let names: BTreeSet<&str> = all.iter().map(|one| one.id).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn every_code_stands_under_its_status_and_every_reference_leads_somewhere() {
        let document = document(None, &[]);
        for code in Code::ALL {
            let status = mcp::codes::rest_status(code);
            let error = &document["components"]["responses"][format!("Error{status}")];
            let codes = &error["content"]["application/json"]["schema"]["properties"]["error"]["properties"]["code"];
            assert!(codes["enum"].as_array().unwrap().contains(&json!(code.as_str())), "{}", code.as_str());
        }
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(document.pointer(reference).is_some(), "{reference} leads nowhere");
        }
    }

    #[test]
    fn who_may_call_stands_beside_each_operation() {
        let document = document(None, &[]);
        let security = |path: &str, method: &str| document["paths"][path][method]["security"].clone();
        assert_eq!(security("/health", "get"), json!([]));
        assert_eq!(security("/v1/runs/{run}/approve", "post"), json!([{ "bearer": ["runs:decide"] }]));
        assert_eq!(
            security("/v1/switches", "get"),
            json!([{ "bearer": ["tenant:admin"] }, { "bearer": ["operator:switch"] }])
        );
    }
}
