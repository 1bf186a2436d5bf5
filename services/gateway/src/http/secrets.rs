//! `/v1/tenant/secrets`: what a tenant's configuration names and nobody may read, for the people who administer it.
//!
//! A value only goes in. It is encrypted before it is stored; no answer, log, span or audit entry has it, and no path reads
//! it back. A value set here replaces the operator's file or variable of that name.

pub(crate) use crate::secret_desk::{SecretChange, SecretList};

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{body, catch, reply};
use crate::secret_desk;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, IF_MATCH, IF_NONE_MATCH};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::{Code, Failure};
use redact::SecretText;
use store::WritePrecondition;
use tracing::Instrument;
use vault::MOST_BYTES;

/// What a value may say it is.
const KINDS: [&str; 2] = ["application/octet-stream", "text/plain"];

/// `GET /v1/tenant/secrets`: by name.
pub async fn list(authed: AuthedRequest, gateway: Data<Gateway>) -> HttpResponse {
    let listed = secret_desk::list(&gateway, &authed);
    reply::operation(&gateway, &authed, "secrets.list", Box::pin(listed)).await
}

/// `PUT /v1/tenant/secrets/{name}`: the body is the value, byte for byte.
pub async fn put(
    authed: AuthedRequest,
    request: HttpRequest,
    name: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let set = async {
        secret_desk::may_change(&gateway, &authed)?;
        let (base, value) = (base_of(request.headers())?, value_of(&request, payload).await?);
        secret_desk::set(&gateway, &authed, &name, value, base).await
    };
    let set = Box::pin(set).instrument(reply::span(&authed, "secrets.put"));
    let response = async {
        let set: Result<SecretChange, Failure> = set.await;
        let version = set.as_ref().ok().and_then(SecretChange::version);
        reply::answer(&gateway, &authed, StatusCode::OK, version.map(|version| version.to_string()), set)
    };
    catch::on_rest(&authed, response).await
}

/// `DELETE /v1/tenant/secrets/{name}`: the operator's of that name counts again, if there is one.
pub async fn remove(
    authed: AuthedRequest,
    request: HttpRequest,
    name: Path<String>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let removed = async {
        secret_desk::may_change(&gateway, &authed)?;
        let version = match base_of(request.headers())? {
            None => None,
            Some(WritePrecondition::Version(version)) => Some(version),
            Some(WritePrecondition::Absent) => {
                return Err(Failure::new(Code::InvalidRequest, "what is not there cannot be removed"));
            }
        };
        secret_desk::remove(&gateway, &authed, &name, version).await
    };
    reply::operation(&gateway, &authed, "secrets.remove", Box::pin(removed)).await
}

/// What a change is made for: the version in `If-Match`, nothing at all by `If-None-Match: *`, or whatever is there.
fn base_of(headers: &HeaderMap) -> Result<Option<WritePrecondition>, Failure> {
    let wrong = |message: &str| Err(Failure::new(Code::InvalidRequest, message));
    let (mut matches, mut none) = (headers.get_all(IF_MATCH), headers.get_all(IF_NONE_MATCH));
    match (matches.next(), none.next()) {
        (None, None) => Ok(None),
        (Some(tag), None) => {
            let number =
                tag.to_str().ok().and_then(|tag| tag.trim().strip_prefix('"')?.strip_suffix('"')?.parse().ok());
            match (number, matches.next()) {
                (Some(number), None) => Ok(Some(WritePrecondition::Version(number))),
                (Some(_) | None, _) => wrong("If-Match names one version, in quotes"),
            }
        }
        (None, Some(star)) if star == "*" && none.next().is_none() => Ok(Some(WritePrecondition::Absent)),
        (None, Some(_)) => wrong("If-None-Match is `*`, or left out"),
        (Some(_), Some(_)) => wrong("If-Match and If-None-Match cannot both be meant"),
    }
}

async fn value_of(request: &HttpRequest, payload: Payload) -> Result<SecretText, Failure> {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if !KINDS.iter().any(|allowed| kind.eq_ignore_ascii_case(allowed)) {
        // A form or a JSON text would be stored as it is, quotes and all, which is nobody's intention.
        return Err(Failure::new(Code::InvalidRequest, "the body must be text/plain or application/octet-stream")
            .next("send the value alone, as it is to be used"));
    }
    let bytes = body::read(request, payload, MOST_BYTES).await.map_err(|status| {
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            return Failure::new(Code::TooLarge, format!("a secret has at most {MOST_BYTES} bytes"));
        }
        Failure::new(Code::InvalidRequest, "the body could not be read")
    })?;
    let text = std::str::from_utf8(&bytes);
    text.map(SecretText::new).map_err(|_| Failure::new(Code::InvalidRequest, "a secret is text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::{HeaderName, HeaderValue};

    fn of(headers: &[(HeaderName, &str)]) -> Result<Option<WritePrecondition>, Code> {
        let mut map = HeaderMap::new();
        headers.iter().for_each(|(name, value)| map.append(name.clone(), HeaderValue::from_str(value).unwrap()));
        base_of(&map).map_err(|failure| failure.code)
    }

    #[test]
    fn a_change_is_for_a_version_for_nothing_or_for_whatever_is_there() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[(IF_MATCH, "\"3\"")]), Ok(Some(WritePrecondition::Version(3))));
        assert_eq!(of(&[(IF_NONE_MATCH, "*")]), Ok(Some(WritePrecondition::Absent)));
        let bad = [
            &[(IF_MATCH, "*")][..],
            &[(IF_MATCH, "3")],
            &[(IF_MATCH, "\"a\"")],
            &[(IF_MATCH, "\"3\""), (IF_MATCH, "\"3\"")],
            &[(IF_NONE_MATCH, "\"3\"")],
            &[(IF_NONE_MATCH, "*"), (IF_NONE_MATCH, "*")],
            &[(IF_MATCH, "\"3\""), (IF_NONE_MATCH, "*")],
        ];
        for headers in bad {
            assert_eq!(of(headers), Err(Code::InvalidRequest), "{headers:?}");
        }
    }
}
