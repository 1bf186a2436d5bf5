//! What a person's request may say: who asks, about which document, and within which bounds.

use super::DocumentPutBody;
use crate::http::caller::{AuthedRequest, needs};
use actix_web::http::header::{HeaderMap, IF_MATCH};
use domain::{Code, Failure};
use memory::documents::{DocPath, DocumentAuthor, DocumentReader, DocumentScope, ForgetDepth};

/// Bounds of what a person writes beside the text, the same as for agents.
const MOST_TITLE: usize = 240;
const MOST_EVIDENCE: usize = 2_000;
const MOST_REASON: usize = 500;
const MOST_TAGS: usize = 16;

/// Who asks must be a person who administers the tenant. A token that can call tools may be an agent's, and those go
/// through the gate.
fn person(authed: &AuthedRequest) -> Result<(), Failure> {
    needs(authed, domain::TokenScope::TenantAdmin)?;
    if authed.caller.scopes.allow(domain::TokenScope::ToolsRead) {
        let message = "a token that may call tools is no person's; agents use the memory tools";
        let details = serde_json::json!({ "scope": domain::TokenScope::TenantAdmin.as_str() });
        return Err(Failure::new(Code::InsufficientScope, message).details(details));
    }
    Ok(())
}

pub(crate) fn reader(authed: &AuthedRequest) -> Result<DocumentReader, Failure> {
    person(authed).map(|()| DocumentReader::person(&authed.caller))
}

pub(crate) fn author(authed: &AuthedRequest) -> Result<DocumentAuthor, Failure> {
    person(authed).map(|()| DocumentAuthor::person(&authed.caller))
}

/// A path of the tenant's own; any other answers like one where nothing is.
pub(crate) fn place(text: &str) -> Result<DocPath, Failure> {
    match DocPath::parse(text) {
        Ok(path) if path.scope() == DocumentScope::Tenant => Ok(path),
        Ok(path) => Err(Failure::new(memory::codes::DOC_NOT_FOUND, format!("there is no such document at {path}"))
            .next("only documents under tenant/ are kept here")),
        Err(error) => {
            Err(Failure::new(memory::codes::DOC_NOT_FOUND, format!("there can be no such document: {error}")))
        }
    }
}

/// The digest in `If-Match`: one, in quotes.
pub(super) fn tag(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let mut sent = headers.get_all(IF_MATCH);
    let Some(only) = sent.next() else { return Ok(None) };
    let digest = only.to_str().ok().and_then(|text| text.trim().strip_prefix('"')?.strip_suffix('"'));
    let digest = digest.filter(|text| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()));
    match (digest, sent.next()) {
        (Some(digest), None) => Ok(Some(digest.to_ascii_lowercase())),
        (Some(_) | None, _) => {
            let failure = Failure::new(Code::InvalidRequest, "If-Match names one sha256, in quotes");
            Err(failure.next("send the ETag that a read gave"))
        }
    }
}

/// Holds what stands beside the text to its bounds; the text has its own.
pub(super) fn bounded(putting: &DocumentPutBody) -> Result<(), Failure> {
    let wrong = |message: String| Err(Failure::new(Code::InvalidArgument, message));
    if !(1..=MOST_EVIDENCE).contains(&putting.evidence.trim().len()) {
        return wrong(format!("evidence has 1 to {MOST_EVIDENCE} bytes: how you know"));
    }
    if putting.title.as_ref().is_some_and(|title| title.chars().count() > MOST_TITLE) {
        return wrong(format!("a title has at most {MOST_TITLE} characters"));
    }
    let label = |tag: &String| domain::text::is_label(tag);
    if putting.tags.len() > MOST_TAGS || !putting.tags.iter().all(label) {
        return wrong(format!("at most {MOST_TAGS} tags, each of a-z, 0-9 and '-'"));
    }
    Ok(())
}

pub(crate) fn reason(text: Option<&str>) -> Result<String, Failure> {
    match text.map(str::trim) {
        Some(reason) if (1..=MOST_REASON).contains(&reason.len()) => Ok(reason.to_owned()),
        Some(_) | None => Err(Failure::new(Code::InvalidRequest, format!("reason has 1 to {MOST_REASON} bytes"))
            .next("say why it is removed; that stays in the history")),
    }
}

pub(crate) fn extent(redact: Option<&str>) -> Result<ForgetDepth, Failure> {
    match redact {
        None => Ok(ForgetDepth::Deleted),
        Some("all") => Ok(ForgetDepth::Everything),
        Some(number) => number
            .parse()
            .map(ForgetDepth::Version)
            .map_err(|_| Failure::new(Code::InvalidRequest, "redact is `all` or the number of a version")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    #[test]
    fn if_match_names_one_digest_or_is_refused() {
        let digest = "aB".repeat(32);
        let of = |values: &[String]| {
            let mut headers = HeaderMap::new();
            values.iter().for_each(|v| headers.append(IF_MATCH, HeaderValue::from_str(v).unwrap()));
            tag(&headers)
        };
        assert_eq!(of(&[]).unwrap(), None);
        assert_eq!(of(&[format!("\"{digest}\"")]).unwrap(), Some(digest.to_lowercase()));
        let quoted = format!("\"{digest}\"");
        for bad in [
            vec!["*".to_owned()],
            vec![digest.clone()],
            vec![format!("W/{quoted}")],
            vec![format!("{quoted}, {quoted}")],
            vec![quoted.clone(), quoted.clone()],
            vec!["\"ab\"".to_owned()],
        ] {
            assert_eq!(of(&bad).unwrap_err().code, Code::InvalidRequest, "{bad:?}");
        }
    }

    #[test]
    fn only_paths_of_the_tenant_lead_anywhere() {
        assert!(place("tenant/runbooks/a").is_ok());
        for bad in ["user/notes/a", "session/notes/a", "tenant/runbooks", "tenant/../x/y", "", "tenant/runbooks/A"] {
            assert_eq!(place(bad).unwrap_err().code, memory::codes::DOC_NOT_FOUND, "{bad}");
        }
    }

    #[test]
    fn a_removal_says_why_and_how_thoroughly() {
        assert_eq!(extent(None).unwrap(), ForgetDepth::Deleted);
        assert_eq!(extent(Some("all")).unwrap(), ForgetDepth::Everything);
        assert_eq!(extent(Some("3")).unwrap(), ForgetDepth::Version(3));
        assert!(extent(Some("")).is_err() && extent(Some("-1")).is_err() && extent(Some("ALL")).is_err());
        assert!(reason(None).is_err() && reason(Some("  ")).is_err() && reason(Some(&"x".repeat(501))).is_err());
        assert_eq!(reason(Some(" wrong ")).unwrap(), "wrong");
    }
}
