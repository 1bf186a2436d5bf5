//! The arguments of the tools the service answers itself.

use crate::request::Handle;
use catalog::Catalog;
use domain::outcome::near;
use domain::{Code, Failure, ToolsetName};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A handle in the arguments counts where the request itself brought none.
pub(super) fn take_session(arguments: &Value, handle: &mut Handle) {
    if let (Handle::None, Some(text)) = (&handle, arguments.get("session").and_then(Value::as_str)) {
        *handle = Handle::Told(text.to_owned());
    }
}

/// Reads arguments that have passed their schema.
pub(super) fn typed<T: DeserializeOwned>(arguments: Value) -> Result<T, Failure> {
    serde_json::from_value(arguments).map_err(|error| Failure::new(Code::InvalidArgument, error.to_string()))
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
