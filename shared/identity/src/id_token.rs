//! ID tokens of OpenID Connect: who signed in, as their issuer says it to a client of its own.
//!
//! Signature, algorithm, key, issuer, time, person and life are checked as for every token. The audience is the client
//! here and not the service, so neither kind of token is taken for the other. What a person may do is the operator's to
//! map; the bounds of the issuer hold for it as they hold for tokens ([`Verifier::vouched`]).

use crate::claims::{Claims, claim_named};
use crate::refused::TokenRefused;
use crate::token::ParsedToken;
use crate::verifier::Verifier;
use domain::{Caller, Moment, Principal, Scopes, Tenant};
use serde_json::Value;

/// The most values of one claim that are looked at.
const MOST_VALUES: usize = 1_000;

/// What an ID token must say.
#[derive(Debug, Clone, Copy)]
pub struct IdTokenChecks<'a> {
    /// Who must have issued it.
    pub issuer: &'a str,
    /// The client it must be for.
    pub client_id: &'a str,
    /// What was sent along when the sign-in began.
    pub nonce: &'a str,
}

/// Somebody who signed in.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// Who.
    pub principal: Principal,
    /// When they last proved it, if the issuer tells.
    pub proven_at: Option<Moment>,
    expires_at: Moment,
    payload: Vec<u8>,
}

impl SignedIn {
    /// A claim that is a text.
    pub fn text(&self, claim: &str) -> Option<String> {
        claim_named(&self.payload, claim).ok()??.as_str().map(str::to_owned)
    }

    /// A claim that is a list of texts, or one text. What is no text is passed over.
    pub fn texts(&self, claim: &str) -> Vec<String> {
        match claim_named(&self.payload, claim) {
            Ok(Some(Value::String(text))) => vec![text],
            Ok(Some(Value::Array(many))) => {
                many.iter().take(MOST_VALUES).filter_map(Value::as_str).map(str::to_owned).collect()
            }
            Ok(Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None) | Err(_) => Vec::new(),
        }
    }
}

impl Verifier {
    /// Verifies an ID token.
    pub async fn id_token(&self, text: &str, checks: IdTokenChecks<'_>, now: Moment) -> Result<SignedIn, TokenRefused> {
        let token = ParsedToken::parse(text)?;
        let claims = Claims::parse(&token.payload)?;
        if claims.issuer()? != checks.issuer {
            return Err(TokenRefused::UnknownIssuer);
        }
        let issuer = self.issuer(checks.issuer)?;
        let key = issuer.key(&token.header.alg, token.header.kid.as_deref(), now).await?;
        key.verify(token.message, token.signature)?;
        claims.check_audience(checks.client_id)?;
        let window = claims.window()?;
        window.check(now, self.leeway())?;
        issuer.bounds.check_life(&claims, window.expires_at, now, self.leeway())?;
        let text_of = |claim: &'static str| -> Result<Option<String>, TokenRefused> {
            let wrong = || TokenRefused::BadClaim { claim };
            claim_named(&token.payload, claim)?.map(|v| v.as_str().map(str::to_owned).ok_or_else(wrong)).transpose()
        };
        if text_of("nonce")?.as_deref() != Some(checks.nonce) {
            return Err(TokenRefused::BadClaim { claim: "nonce" });
        }
        // OpenID Connect, 3.1.3.7: with several audiences the token says for whom it was made.
        let party = text_of("azp")?;
        if party.as_deref().is_some_and(|party| party != checks.client_id)
            || (party.is_none() && claims.has_many_audiences())
        {
            return Err(TokenRefused::BadClaim { claim: "azp" });
        }
        let proven_at = match claim_named(&token.payload, "auth_time")? {
            None => None,
            Some(value) => {
                let wrong = TokenRefused::BadClaim { claim: "auth_time" };
                Some(value.as_u64().map(Moment::from_secs).ok_or(wrong)?)
            }
        };
        let mut principal = claims.principal()?;
        principal.person = issuer.bounds.person(&token.payload)?;
        Ok(SignedIn { principal, proven_at, expires_at: window.expires_at, payload: token.payload })
    }

    /// The caller that somebody who signed in is in a tenant, if their issuer may vouch for it.
    pub fn vouched(&self, signed_in: &SignedIn, tenant: Tenant, scopes: Scopes) -> Result<Caller, TokenRefused> {
        let issuer = self.issuer(&signed_in.principal.issuer)?;
        let principal = signed_in.principal.clone();
        let expires_at = signed_in.expires_at;
        let caller = Caller { tenant, principal, scopes, expires_at, token: None, labels: Vec::new() };
        issuer.bounds.check_caller(&caller)?;
        Ok(caller)
    }
}
