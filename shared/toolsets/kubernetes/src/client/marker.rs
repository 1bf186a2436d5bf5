//! The mark a run leaves on what it writes, by which a lost answer is settled.

use crate::client::sealed::{self, SealedValue};
use domain::{Failure, RunId};
use serde_json::{Value, json};

/// The annotation.
pub const RUN: &str = "quartermaster/run";

/// Where it stands in an object.
const PLACE: &str = "/metadata/annotations/quartermaster~1run";
/// How a conflict names that place.
const FIELD: &str = ".metadata.annotations.quartermaster/run:";

/// Adds the mark of a run to an object, or to a merge patch of one.
pub(in crate::client) fn put(object: &mut Value, run: RunId) {
    sealed::set(object, PLACE, json!(run.to_string()));
}

/// Takes the mark out of an object.
pub(in crate::client) fn take(object: Value) -> Value {
    let mut object = SealedValue::from(object);
    object.remove(PLACE);
    object.value
}

/// Whether a conflict is about the mark and about nothing else.
pub(in crate::client) fn is_all_disputed(failure: &Failure) -> bool {
    let causes = failure.details.as_ref().and_then(|details| details["causes"].as_array());
    let is_ours = |cause: &Value| cause.as_str().is_some_and(|cause| cause.starts_with(FIELD));
    failure.code == crate::codes::FIELD_CONFLICT
        && causes.is_some_and(|causes| !causes.is_empty() && causes.iter().all(is_ours))
}

/// Whether an object read with [`MaskDetail::Full`](crate::client::MaskDetail::Full) carries the mark of this run.
pub fn carries(object: &Value, run: RunId) -> bool {
    object["metadata"]["annotations"][RUN].as_str() == Some(run.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_conflict_about_nothing_else_is_about_the_mark() {
        let told = |causes: Value| Failure::new(crate::codes::FIELD_CONFLICT, "x").details(json!({ "causes": causes }));
        let mark = ".metadata.annotations.quartermaster/run: conflict with \"quartermaster\" using v1";
        assert!(is_all_disputed(&told(json!([mark]))));
        assert!(!is_all_disputed(&told(json!([mark, ".data.a: conflict with \"kubectl\" using v1"]))));
        assert!(!is_all_disputed(&told(json!([]))));
        let other = Failure::new(domain::Code::Conflict, "x").details(json!({ "causes": [mark] }));
        assert!(!is_all_disputed(&other));
    }

    #[test]
    fn what_is_put_is_taken() {
        let object = json!({ "metadata": { "annotations": { "a": "b" } } });
        let mut marked = object.clone();
        put(&mut marked, RunId::from_random([1; 16]));
        assert!(carries(&marked, RunId::from_random([1; 16])));
        assert_eq!(take(marked), object);
    }
}
