//! The methods we serve, and their parameters.
//!
//! We declare the capability `tools` and nothing else, so every other method is unknown, whatever the era.

use crate::codes::MessageFault;
use crate::era::Era;
use crate::meta::ClientInfo;
use crate::refusal::WireError;
use serde_json::{Map, Value};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Legacy: opens a session.
    Initialize {
        /// The asked revision; see [`LegacyRevision::negotiate`](crate::LegacyRevision::negotiate).
        requested: String,
        /// Who the client says it is.
        client: ClientInfo,
    },
    /// Legacy: `{}` is the answer.
    Ping,
    /// Modern: versions, capabilities and instructions.
    Discover,
    /// A page of the tools.
    ToolsList {
        /// Where to go on; not yet looked at.
        cursor: Option<String>,
    },
    /// One call.
    ToolsCall {
        /// The tool, as given.
        name: String,
        /// Its arguments, not yet looked at.
        arguments: Map<String, Value>,
    },
    /// Modern: a stream of change notices.
    Listen {
        /// Whether notices about the list of tools are wanted, the only ones we have.
        tools_list_changed: bool,
    },
}

/// A method of an era.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Initialize,
    Ping,
    Discover,
    ToolsList,
    ToolsCall,
    Listen,
}

impl Method {
    /// Rung 6: names are compared with case, and each era has its own.
    pub(crate) fn find(era: Era, name: &str) -> Option<Method> {
        match (era, name) {
            (Era::Legacy(_), "initialize") => Some(Method::Initialize),
            (Era::Legacy(_), "ping") => Some(Method::Ping),
            (Era::Modern, "server/discover") => Some(Method::Discover),
            (Era::Modern, "subscriptions/listen") => Some(Method::Listen),
            (_, "tools/list") => Some(Method::ToolsList),
            (_, "tools/call") => Some(Method::ToolsCall),
            (Era::Legacy(_) | Era::Modern, _) => None,
        }
    }
}

impl Request {
    pub(crate) fn read(method: Method, mut params: Map<String, Value>) -> Result<Request, WireError> {
        match method {
            Method::Ping => Ok(Request::Ping),
            Method::Discover => Ok(Request::Discover),
            Method::Initialize => initialize(params),
            Method::ToolsList => match params.remove("cursor") {
                None | Some(Value::Null) => Ok(Request::ToolsList { cursor: None }),
                Some(Value::String(cursor)) => Ok(Request::ToolsList { cursor: Some(cursor) }),
                Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    Err(invalid("params.cursor must be a string"))
                }
            },
            Method::ToolsCall => call(params),
            Method::Listen => listen(&params),
        }
    }
}

fn initialize(mut params: Map<String, Value>) -> Result<Request, WireError> {
    let Some(Value::String(requested)) = params.remove("protocolVersion") else {
        return Err(invalid("params.protocolVersion must be a string"));
    };
    if !params.get("capabilities").is_some_and(Value::is_object) {
        return Err(invalid("params.capabilities must be an object"));
    }
    match params.get("clientInfo") {
        Some(Value::Object(told)) => Ok(Request::Initialize { requested, client: ClientInfo::read(told) }),
        None | Some(_) => Err(invalid("params.clientInfo must be an object")),
    }
}

fn call(mut params: Map<String, Value>) -> Result<Request, WireError> {
    let Some(Value::String(name)) = params.remove("name") else {
        return Err(invalid("params.name must be a string"));
    };
    match params.remove("arguments") {
        Some(Value::Object(arguments)) => Ok(Request::ToolsCall { name, arguments }),
        None | Some(Value::Null) => Ok(Request::ToolsCall { name, arguments: Map::new() }),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(invalid("params.arguments must be an object"))
        }
    }
}

fn listen(params: &Map<String, Value>) -> Result<Request, WireError> {
    let Some(Value::Object(filter)) = params.get("notifications") else {
        return Err(invalid("params.notifications must be an object"));
    };
    match filter.get("toolsListChanged") {
        None => Ok(Request::Listen { tools_list_changed: false }),
        Some(Value::Bool(wanted)) => Ok(Request::Listen { tools_list_changed: *wanted }),
        Some(_) => Err(invalid("params.notifications.toolsListChanged must be a boolean")),
    }
}

fn invalid(message: &str) -> WireError {
    WireError::new(MessageFault::InvalidParams, message)
}
