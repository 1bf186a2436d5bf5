//! Every way a token can fail to make a caller.
//!
//! The sentences go into answers and logs, so none of them holds anything the token said.

/// Why there is no caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TokenRefused {
    /// It does not have the shape of a signed token.
    #[error("the token is not a signed JWT")]
    NotAToken,
    /// It is longer than any token we look at.
    #[error("the token is longer than {} bytes", crate::token::MOST_BYTES)]
    TooLong,
    /// Nobody we believe issued it.
    #[error("the issuer of the token is not accepted here")]
    UnknownIssuer,
    /// It is signed in a way its issuer may not use, or that does not fit the key.
    #[error("the algorithm of the token is not accepted for its issuer")]
    WrongAlgorithm,
    /// Its issuer has no such key, or it names none where there are several.
    #[error("the key of the token is not one of its issuer's")]
    UnknownKey,
    /// The key did not sign these bytes.
    #[error("the signature of the token does not fit")]
    BadSignature,
    /// A claim that must be there is not.
    #[error("the token has no claim `{claim}`")]
    MissingClaim {
        /// The claim's name.
        claim: &'static str,
    },
    /// A claim has the wrong type or a value no honest token has.
    #[error("the claim `{claim}` of the token is malformed")]
    BadClaim {
        /// The claim's name.
        claim: &'static str,
    },
    /// It was made for somebody else.
    #[error("the token is not meant for this service")]
    WrongAudience,
    /// Its time has not come.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// It is genuine, but names no possible tenant.
    #[error("the token names no valid tenant")]
    BadTenant,
    /// It lives longer than its issuer's tokens may.
    #[error("the token lives longer than tokens of its issuer may")]
    LivesTooLong,
    /// Its issuer is to name the person behind each token, and this one names none that can be believed.
    #[error("the token does not name the person who holds it, as tokens of its issuer must")]
    NoPerson,
    /// It is genuine, but its issuer may not vouch for its tenant.
    #[error("the issuer of the token may not vouch for this tenant")]
    ForeignTenant,
    /// It is genuine, but its issuer may not grant one of its scopes.
    #[error("the issuer of the token may not grant one of its scopes")]
    ForeignScope,
    /// The issuer's keys could not be had, so nothing can be said about the token.
    #[error("the keys of the token's issuer are not available")]
    KeysUnavailable,
}

impl TokenRefused {
    /// The HTTP status that says this.
    pub const fn status(&self) -> u16 {
        match self {
            TokenRefused::NotAToken
            | TokenRefused::TooLong
            | TokenRefused::UnknownIssuer
            | TokenRefused::WrongAlgorithm
            | TokenRefused::UnknownKey
            | TokenRefused::BadSignature
            | TokenRefused::MissingClaim { .. }
            | TokenRefused::BadClaim { .. }
            | TokenRefused::WrongAudience
            | TokenRefused::NotYetValid
            | TokenRefused::Expired
            | TokenRefused::LivesTooLong
            | TokenRefused::NoPerson => 401,
            TokenRefused::BadTenant | TokenRefused::ForeignTenant | TokenRefused::ForeignScope => 403,
            TokenRefused::KeysUnavailable => 503,
        }
    }

    /// Every reason there is, for whoever counts them from nothing.
    pub const REASONS: [&'static str; 17] = [
        "not_a_token",
        "too_long",
        "unknown_issuer",
        "wrong_algorithm",
        "unknown_key",
        "bad_signature",
        "missing_claim",
        "bad_claim",
        "wrong_audience",
        "not_yet_valid",
        "expired",
        "bad_tenant",
        "lives_too_long",
        "no_person",
        "foreign_tenant",
        "foreign_scope",
        "keys_unavailable",
    ];

    /// The stable name of this refusal in metrics; one of [`TokenRefused::REASONS`].
    pub const fn reason(&self) -> &'static str {
        match self {
            TokenRefused::NotAToken => "not_a_token",
            TokenRefused::TooLong => "too_long",
            TokenRefused::UnknownIssuer => "unknown_issuer",
            TokenRefused::WrongAlgorithm => "wrong_algorithm",
            TokenRefused::UnknownKey => "unknown_key",
            TokenRefused::BadSignature => "bad_signature",
            TokenRefused::MissingClaim { .. } => "missing_claim",
            TokenRefused::BadClaim { .. } => "bad_claim",
            TokenRefused::WrongAudience => "wrong_audience",
            TokenRefused::NotYetValid => "not_yet_valid",
            TokenRefused::Expired => "expired",
            TokenRefused::BadTenant => "bad_tenant",
            TokenRefused::LivesTooLong => "lives_too_long",
            TokenRefused::NoPerson => "no_person",
            TokenRefused::ForeignTenant => "foreign_tenant",
            TokenRefused::ForeignScope => "foreign_scope",
            TokenRefused::KeysUnavailable => "keys_unavailable",
        }
    }
}
