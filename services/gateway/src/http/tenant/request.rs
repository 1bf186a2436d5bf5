//! What a request about a configuration may say.

use crate::config_desk::{MOST_BYTES, too_large};
use crate::http::body;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, IF_MATCH};
use actix_web::web::Payload;
use domain::{Code, Failure};
use schemars::JsonSchema;
use serde::Deserialize;

/// What YAML is called.
const YAML: [&str; 4] = ["text/yaml", "application/yaml", "application/x-yaml", "text/x-yaml"];

/// The one tag in `If-Match`, without which nothing is changed: who did not see what holds cannot mean to replace it.
pub(super) fn match_of(headers: &HeaderMap) -> Result<String, Failure> {
    let mut sent = headers.get_all(IF_MATCH);
    let only = sent.next().and_then(|value| value.to_str().ok()).map(str::trim);
    let tag = only.and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    match (tag.filter(|tag| !tag.is_empty() && tag.bytes().all(|b| b.is_ascii_alphanumeric())), sent.next()) {
        (Some(tag), None) => Ok(tag.to_ascii_lowercase()),
        (Some(_) | None, _) => {
            let failure = Failure::new(Code::InvalidRequest, "a change needs If-Match with one ETag, in quotes");
            Err(failure.next("send the ETag that GET /v1/tenant/config gave"))
        }
    }
}

/// The query of a change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeNote {
    pub(super) note: Option<String>,
}

/// The text in a body.
pub(super) async fn text_of(request: &HttpRequest, payload: Payload) -> Result<String, Failure> {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if !YAML.iter().any(|yaml| kind.eq_ignore_ascii_case(yaml)) {
        return Err(Failure::new(Code::InvalidRequest, "the body must be text/yaml or application/yaml"));
    }
    let bytes = body::read(request, payload, MOST_BYTES).await.map_err(|status| {
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            return too_large();
        }
        Failure::new(Code::InvalidRequest, "the body could not be read")
    })?;
    String::from_utf8(bytes.into()).map_err(|_| Failure::new(Code::InvalidRequest, "the body is not UTF-8"))
}

/// Whether the answer shall be JSON. Whoever takes anything gets the text, which is what can be sent back.
pub(super) fn wants_json(request: &HttpRequest) -> bool {
    let ranges = request.headers().get_all(ACCEPT).filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
    ranges.map(|range| range.split(';').next().unwrap_or_default().trim()).any(|kind| kind == "application/json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;

    #[test]
    fn a_change_names_exactly_one_tag() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            values.iter().for_each(|v| headers.append(IF_MATCH, HeaderValue::from_str(v).unwrap()));
            match_of(&headers)
        };
        assert_eq!(of(&["\"12\""]).unwrap(), "12");
        assert_eq!(of(&[" \"aB3\" "]).unwrap(), "ab3");
        for bad in [&[][..], &["*"], &["12"], &["W/\"12\""], &["\"1\", \"2\""], &["\"1\"", "\"1\""], &["\"\""]] {
            assert_eq!(of(bad).unwrap_err().code, Code::InvalidRequest, "{bad:?}");
        }
    }

    #[test]
    fn json_is_given_to_whoever_names_it() {
        let of = |accept: &str| wants_json(&TestRequest::default().insert_header((ACCEPT, accept)).to_http_request());
        assert!(of("application/json") && of("text/html, application/json;q=0.9"));
        assert!(!of("*/*") && !of("text/yaml") && !of("application/*"));
        assert!(!wants_json(&TestRequest::default().to_http_request()));
    }
}
