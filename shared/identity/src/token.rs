//! The three parts of a token, taken apart but not believed.
//!
//! Of the header only `alg`, `kid` and `crit` are read. Headers that point to keys (`jku`, `x5u`, `jwk`, `x5c`) have
//! no field here, so nothing can follow them.

use crate::refused::TokenRefused;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};

/// Longer than any real token; what is longer is refused before it is looked at.
pub(crate) const MOST_BYTES: usize = 16 * 1024;

/// A token taken apart.
pub(crate) struct ParsedToken<'a> {
    pub(crate) header: Header,
    /// The claims as JSON text, unverified.
    pub(crate) payload: Vec<u8>,
    /// What is signed: header and payload as they arrived.
    pub(crate) message: &'a str,
    /// The signature as it arrived.
    pub(crate) signature: &'a str,
}

/// What is read of a header. A name that occurs twice is an error, not a choice.
#[derive(Deserialize)]
pub(crate) struct Header {
    pub(crate) alg: String,
    #[serde(default, deserialize_with = "a_string")]
    pub(crate) kid: Option<String>,
    #[serde(default, deserialize_with = "anything")]
    crit: bool,
}

impl<'a> ParsedToken<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<ParsedToken<'a>, TokenRefused> {
        if text.len() > MOST_BYTES {
            return Err(TokenRefused::TooLong);
        }
        let (message, signature) = text.rsplit_once('.').ok_or(TokenRefused::NotAToken)?;
        let (header, payload) = message.split_once('.').ok_or(TokenRefused::NotAToken)?;
        let header: Header = object(&decode(header)?)?;
        // RFC 7515, 4.1.11: an extension that must be understood and is not makes the token invalid.
        if header.crit {
            return Err(TokenRefused::NotAToken);
        }
        // A dot left in the payload is no base64url, so four parts end here.
        Ok(ParsedToken { header, payload: decode(payload)?, message, signature })
    }
}

fn decode(part: &str) -> Result<Vec<u8>, TokenRefused> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenRefused::NotAToken)
}

/// Reads a JSON object. serde would take a list for a struct as well, with its elements in the order of the fields.
pub(crate) fn object<T: DeserializeOwned>(json: &[u8]) -> Result<T, TokenRefused> {
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(TokenRefused::NotAToken);
    }
    serde_json::from_slice(json).map_err(|_| TokenRefused::NotAToken)
}

/// Notes that something is there, whatever it is.
fn anything<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(from).map(|_| true)
}

/// `null` is not a way to leave something out.
fn a_string<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    String::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(header: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.{}", part(header), part("{}"), part("signature"))
    }

    fn refusal(text: &str) -> Option<TokenRefused> {
        ParsedToken::parse(text).err()
    }

    #[test]
    fn a_token_has_three_parts_and_a_header_with_an_algorithm() {
        let text = token(r#"{"alg":"RS256","kid":"k1","typ":"JWT"}"#);
        let token = ParsedToken::parse(&text).unwrap();
        assert_eq!((token.header.alg.as_str(), token.header.kid.as_deref()), ("RS256", Some("k1")));
        assert_eq!(token.payload, b"{}");
    }

    #[test]
    fn other_shapes_are_refused() {
        let good = token(r#"{"alg":"RS256"}"#);
        let (header, rest) = good.split_once('.').unwrap();
        for bad in ["", ".", "..", "a.b", header, &format!("{good}.x"), &format!(" {good}"), &format!(".{rest}")] {
            assert_eq!(refusal(bad), Some(TokenRefused::NotAToken), "{bad}");
        }
        assert_eq!(refusal(&"a".repeat(MOST_BYTES)), Some(TokenRefused::NotAToken));
        assert_eq!(refusal(&"a".repeat(MOST_BYTES + 1)), Some(TokenRefused::TooLong));
    }

    #[test]
    fn headers_that_are_not_quite_right_are_refused() {
        for bad in [
            "",
            "null",
            "[]",
            r#"{"kid":"k1"}"#,
            r#"{"alg":null}"#,
            r#"{"alg":["RS256"]}"#,
            r#"{"alg":"RS256","alg":"none"}"#,
            r#"{"alg":"RS256","kid":"a","kid":"b"}"#,
            r#"{"alg":"RS256","kid":null}"#,
            r#"{"alg":"RS256","kid":7}"#,
            r#"{"alg":"RS256","crit":["exp"],"exp":1}"#,
            r#"{"alg":"RS256","crit":null}"#,
            r#"["RS256"]"#,
            r#"["RS256","k1",null]"#,
            r#"{"alg":"RS256"} trailing"#,
        ] {
            assert_eq!(refusal(&token(bad)), Some(TokenRefused::NotAToken), "{bad}");
        }
    }
}
