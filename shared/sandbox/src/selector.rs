//! Label and field selectors, parsed once and matched often.

use serde_json::Value;

use crate::json;
use crate::status::ApiStatus;

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    Greater(String, i64),
    Less(String, i64),
}

/// A label selector; all requirements must hold, and none means everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Labels(Vec<Requirement>);

impl Labels {
    /// Reads the query form: `app=web,tier in (a, b),!old,weight>3`.
    pub(crate) fn parse(text: &str) -> Result<Labels, ApiStatus> {
        let refuse = |why: String| ApiStatus::bad_request(format!("unable to parse requirement: {why}"));
        let mut requirements = Vec::new();
        for part in split_outside_brackets(text) {
            let part = part.trim();
            if part.is_empty() {
                if text.trim().is_empty() {
                    continue;
                }
                return Err(refuse("found '', expected: identifier".to_owned()));
            }
            requirements.push(parse_requirement(part).map_err(refuse)?);
        }
        Ok(Labels(requirements))
    }

    /// Reads the object form: `matchLabels` and `matchExpressions`.
    pub(crate) fn of_object(selector: &Value) -> Labels {
        let mut requirements = Vec::new();
        for (key, value) in json::map(selector, "/matchLabels").into_iter().flatten() {
            requirements.push(Requirement::In(key.clone(), vec![value.as_str().unwrap_or_default().to_owned()]));
        }
        for expression in json::list(selector, "/matchExpressions") {
            let key = json::text_or_empty(expression, "/key").to_owned();
            let values =
                json::list(expression, "/values").iter().filter_map(Value::as_str).map(str::to_owned).collect();
            requirements.push(match json::text_or_empty(expression, "/operator") {
                "In" => Requirement::In(key, values),
                "NotIn" => Requirement::NotIn(key, values),
                "Exists" => Requirement::Exists(key),
                _ => Requirement::Absent(key),
            });
        }
        Labels(requirements)
    }

    /// Reads the plain form of services: every label with its value.
    pub(crate) fn of_map(selector: &Value) -> Labels {
        let labels = selector.as_object().into_iter().flatten();
        let exact = |(key, value): (&String, &Value)| {
            Requirement::In(key.clone(), vec![value.as_str().unwrap_or_default().to_owned()])
        };
        Labels(labels.map(exact).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the labels of an object fulfil all requirements.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.matches_labels(json::at(object, "/metadata/labels").unwrap_or(&Value::Null))
    }

    pub(crate) fn matches_labels(&self, labels: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.holds(labels))
    }
}

impl Requirement {
    fn holds(&self, labels: &Value) -> bool {
        let value = |key: &String| labels.get(key).and_then(Value::as_str);
        let number = |key: &String| value(key).and_then(|text| text.parse::<i64>().ok());
        match self {
            Requirement::In(key, wanted) => value(key).is_some_and(|have| wanted.iter().any(|one| one == have)),
            Requirement::NotIn(key, refused) => value(key).is_none_or(|have| refused.iter().all(|one| one != have)),
            Requirement::Exists(key) => value(key).is_some(),
            Requirement::Absent(key) => value(key).is_none(),
            Requirement::Greater(key, than) => number(key).is_some_and(|have| have > *than),
            Requirement::Less(key, than) => number(key).is_some_and(|have| have < *than),
        }
    }
}

fn parse_requirement(part: &str) -> Result<Requirement, String> {
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Requirement::Absent(label_key(key)?));
    }
    for (sign, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((key, value)) = part.split_once(sign) {
            let (key, values) = (label_key(key)?, vec![label_value(value)?]);
            return Ok(if equal { Requirement::In(key, values) } else { Requirement::NotIn(key, values) });
        }
    }
    for (sign, greater) in [('>', true), ('<', false)] {
        if let Some((key, value)) = part.split_once(sign) {
            let bound = value.trim().parse().map_err(|_| "for 'Gt', 'Lt' operators, the value must be an integer")?;
            let key = label_key(key)?;
            return Ok(if greater { Requirement::Greater(key, bound) } else { Requirement::Less(key, bound) });
        }
    }
    let Some((key, rest)) = part.split_once(char::is_whitespace) else {
        return Ok(Requirement::Exists(label_key(part)?));
    };
    let rest = rest.trim();
    let (operator, values) = rest.split_once('(').ok_or_else(|| format!("found '{rest}', expected: '('"))?;
    let values = values.strip_suffix(')').ok_or_else(|| format!("found '{values}', expected: ',' or ')'"))?;
    let values = values.split(',').map(label_value).collect::<Result<Vec<_>, _>>()?;
    match operator.trim() {
        "in" => Ok(Requirement::In(label_key(key)?, values)),
        "notin" => Ok(Requirement::NotIn(label_key(key)?, values)),
        other => Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
    }
}

fn label_key(key: &str) -> Result<String, String> {
    let key = key.trim();
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 63 || !name.chars().all(fits) || key.matches('/').count() > 1 {
        let rule = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                    an alphanumeric character";
        return Err(format!("key: Invalid value: {key:?}: {rule}"));
    }
    Ok(key.to_owned())
}

fn label_value(value: &str) -> Result<String, String> {
    let value = value.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if value.len() > 63 || !value.chars().all(fits) {
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'";
        return Err(format!("values[0][{value}]: Invalid value: {value:?}: {rule}"));
    }
    Ok(value.to_owned())
}

fn split_outside_brackets(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// A field selector: places that must or must not hold a value.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldSelector(Vec<(String, bool, String)>);

impl FieldSelector {
    /// Reads `metadata.name=web,status.phase!=Running` for one resource; unknown fields are refused.
    pub(crate) fn parse(text: &str, resource: &str) -> Result<FieldSelector, ApiStatus> {
        let mut fields = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, equal, value) = if let Some((key, value)) = part.split_once("!=") {
                (key, false, value)
            } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (key, true, value)
            } else {
                return Err(ApiStatus::bad_request(format!(
                    "invalid field selector: invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            if !selectable(resource).contains(&key) && !["metadata.name", "metadata.namespace"].contains(&key) {
                return Err(ApiStatus::bad_request(format!("field label not supported: {key}")));
            }
            fields.push((format!("/{}", key.replace('.', "/")), equal, value.to_owned()));
        }
        Ok(FieldSelector(fields))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(at, equal, wanted)| {
            let have = match object.pointer(at) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            (have == *wanted) == *equal
                || (at == "/spec/unschedulable" && have.is_empty() && (wanted == "false") == *equal)
        })
    }
}

/// The fields each resource offers besides name and namespace.
fn selectable(resource: &str) -> &'static [&'static str] {
    match resource {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        "events" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "secrets" => &["type"],
        "namespaces" => &["status.phase"],
        "nodes" => &["spec.unschedulable"],
        "replicasets.apps" => &["status.replicas"],
        "jobs.batch" => &["status.successful"],
        "services" => &["spec.clusterIP", "spec.type"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_whole_label_grammar_is_understood() {
        let object = json!({ "metadata": { "labels": { "app": "web", "tier": "front", "weight": "5" } } });
        let holds = |text: &str| Labels::parse(text).unwrap().matches(&object);
        assert!(holds("app=web,tier==front,weight>4,weight<6"));
        assert!(holds("app in (web, cart),tier notin (back),!old,app"));
        assert!(holds("old!=x") && holds(""));
        assert!(!holds("app!=web") && !holds("old") && !holds("app in (cart)") && !holds("weight>5"));
        assert!(
            Labels::parse("app in web").is_err() && Labels::parse("a=b,,c").is_err() && Labels::parse("a=$").is_err()
        );
    }

    #[test]
    fn an_unknown_field_is_refused_by_name() {
        let refused = FieldSelector::parse("spec.image=x", "pods").unwrap_err();
        assert_eq!(refused.message, "field label not supported: spec.image");
    }
}
