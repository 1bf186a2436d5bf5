//! What a token says, read strictly: every claim there, each of its own type, compared byte for byte.
//!
//! A claim of the wrong type is a refusal and never counts as absent (CVE-2026-25537). The times are judged by the
//! moment that is handed in: a token is good from `nbf - leeway` on, and up to but not including `exp + leeway`,
//! since RFC 7519 refuses it *on or after* its end.

use crate::refused::TokenRefused;
use crate::token;
use domain::job::RunnerLabel;
use domain::{Caller, Moment, Principal, Scopes, Tenant, TokenScope};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// Longer subjects are nobody's name, and they are written into every session and audit entry.
const MOST_SUBJECT_BYTES: usize = 256;
/// More labels are no runner's.
const MOST_LABELS: usize = 32;

/// The claims as they arrived. A claim that occurs twice is an error of the parser.
#[derive(Deserialize)]
pub(crate) struct Claims {
    #[serde(default, deserialize_with = "present")]
    iss: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    aud: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    exp: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    nbf: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    iat: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    sub: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    tenant: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    scope: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    labels: Option<Value>,
}

/// When a token is good. Kept with a verified caller, since time goes on after verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    not_before: Option<Moment>,
    pub(crate) expires_at: Moment,
}

impl Window {
    pub(crate) fn check(&self, now: Moment, leeway: Duration) -> Result<(), TokenRefused> {
        if self.not_before.is_some_and(|start| now.plus(leeway) < start) {
            return Err(TokenRefused::NotYetValid);
        }
        if now >= self.expires_at.plus(leeway) {
            return Err(TokenRefused::Expired);
        }
        Ok(())
    }
}

impl Claims {
    pub(crate) fn parse(payload: &[u8]) -> Result<Claims, TokenRefused> {
        token::object(payload)
    }

    /// Who claims to have issued this. All that is read before the signature is checked, to know whose key to take.
    pub(crate) fn issuer(&self) -> Result<&str, TokenRefused> {
        text("iss", self.iss.as_ref())
    }

    /// When the token is good.
    pub(crate) fn window(&self) -> Result<Window, TokenRefused> {
        let expires_at = moment("exp", self.exp.as_ref().ok_or(TokenRefused::MissingClaim { claim: "exp" })?)?;
        let not_before = self.nbf.as_ref().map(|nbf| moment("nbf", nbf)).transpose()?;
        Ok(Window { not_before, expires_at })
    }

    /// When the token says it was made.
    pub(crate) fn issued_at(&self) -> Result<Option<Moment>, TokenRefused> {
        self.iat.as_ref().map(|iat| moment("iat", iat)).transpose()
    }

    /// Whether the token is meant for `resource`: the claim is that text, or a list of texts that holds it.
    pub(crate) fn check_audience(&self, resource: &str) -> Result<(), TokenRefused> {
        let malformed = TokenRefused::BadClaim { claim: "aud" };
        let meant = match self.aud.as_ref().ok_or(TokenRefused::MissingClaim { claim: "aud" })? {
            Value::String(one) => one == resource,
            Value::Array(many) => {
                let names: Option<Vec<&str>> = many.iter().map(Value::as_str).collect();
                names.ok_or(malformed)?.contains(&resource)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return Err(malformed),
        };
        if meant { Ok(()) } else { Err(TokenRefused::WrongAudience) }
    }

    /// Whether the token is meant for several.
    pub(crate) fn has_many_audiences(&self) -> bool {
        self.aud.as_ref().and_then(Value::as_array).is_some_and(|many| many.len() > 1)
    }

    /// Whom these claims are about.
    pub(crate) fn principal(&self) -> Result<Principal, TokenRefused> {
        let issuer = self.issuer()?.to_owned();
        let subject = text("sub", self.sub.as_ref())?;
        if subject.is_empty() || subject.len() > MOST_SUBJECT_BYTES || subject.chars().any(char::is_control) {
            return Err(TokenRefused::BadClaim { claim: "sub" });
        }
        Ok(Principal::new(issuer, subject))
    }

    /// The caller these claims describe. The tenant comes last: its refusal tells that the rest was good.
    pub(crate) fn caller(&self, expires_at: Moment) -> Result<Caller, TokenRefused> {
        let principal = self.principal()?;
        let scopes = Scopes::parse(text("scope", self.scope.as_ref())?);
        let slug = self.tenant.as_ref().and_then(Value::as_str).ok_or(TokenRefused::BadTenant)?;
        let tenant = Tenant::parse(slug).map_err(|_| TokenRefused::BadTenant)?;
        // Other services may have a claim of that name, with another meaning.
        let labels = if scopes.allow(TokenScope::RunnerWork) { self.labels()? } else { Vec::new() };
        Ok(Caller { tenant, principal, scopes, expires_at, token: None, labels })
    }

    /// The labels whose jobs a runner may take: a text with blanks between them, or a list of texts. Absent means none.
    fn labels(&self) -> Result<Vec<RunnerLabel>, TokenRefused> {
        let malformed = TokenRefused::BadClaim { claim: "labels" };
        let words: Vec<&str> = match &self.labels {
            None => return Ok(Vec::new()),
            Some(Value::String(text)) => text.split(' ').filter(|word| !word.is_empty()).collect(),
            Some(Value::Array(many)) => many.iter().map(Value::as_str).collect::<Option<_>>().ok_or(malformed)?,
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => return Err(malformed),
        };
        if words.len() > MOST_LABELS {
            return Err(TokenRefused::BadClaim { claim: "labels" });
        }
        let labels = words.into_iter().map(RunnerLabel::parse).collect::<Option<_>>();
        labels.ok_or(TokenRefused::BadClaim { claim: "labels" })
    }
}

/// The one claim of that name, which only the settings know. Twice is as wrong here as for every other claim.
pub(crate) fn claim_named(payload: &[u8], name: &str) -> Result<Option<Value>, TokenRefused> {
    let mut reader = serde_json::Deserializer::from_slice(payload);
    let claim = NamedClaim(name).deserialize(&mut reader).map_err(|_| TokenRefused::NotAToken)?;
    reader.end().map_err(|_| TokenRefused::NotAToken)?;
    Ok(claim)
}

/// Picks one claim out of an object.
struct NamedClaim<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for NamedClaim<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Value>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NamedClaim<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the claims of a token")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut claims: A) -> Result<Option<Value>, A::Error> {
        let mut value = None;
        while let Some(name) = claims.next_key::<String>()? {
            if name != self.0 {
                claims.next_value::<IgnoredAny>()?;
            } else if value.replace(claims.next_value()?).is_some() {
                return Err(A::Error::custom("a claim stands there twice"));
            }
        }
        Ok(value)
    }
}

/// Keeps `null` as a value of the wrong type instead of taking it for absence.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

fn text<'a>(claim: &'static str, value: Option<&'a Value>) -> Result<&'a str, TokenRefused> {
    value.ok_or(TokenRefused::MissingClaim { claim })?.as_str().ok_or(TokenRefused::BadClaim { claim })
}

/// A NumericDate of RFC 7519: seconds since 1970, possibly with a fraction. What lies before 1970 is nobody's time.
fn moment(claim: &'static str, value: &Value) -> Result<Moment, TokenRefused> {
    let malformed = TokenRefused::BadClaim { claim };
    let number = match value {
        Value::Number(number) => number,
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => return Err(malformed),
    };
    if let Some(secs) = number.as_u64() {
        return Ok(Moment::from_secs(secs));
    }
    match number.as_f64() {
        // The cast saturates, and a moment beyond all others is still a moment.
        Some(secs) if secs.is_finite() && secs >= 0.0 => Ok(Moment::from_millis((secs * 1000.0) as u64)),
        Some(_) | None => Err(malformed),
    }
}

#[cfg(test)]
mod tests;
