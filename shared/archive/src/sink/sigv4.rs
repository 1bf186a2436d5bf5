//! AWS Signature Version 4, as S3-compatible services check it: over method, path, headers and the digest of the body.

use aws_lc_rs::hmac;
use domain::json;
use sha2::{Digest, Sha256};

/// Whose signature it is, and for which service.
pub(super) struct Credentials<'a> {
    pub(super) access_key: &'a str,
    pub(super) secret_key: &'a str,
    pub(super) region: &'a str,
}

/// What is signed. A path with other characters than letters, digits and `-_.~/` has to be encoded already.
pub(super) struct SignedRequest<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// Names in lower case, sorted; `host` is among them.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// The digest of the body, in hexadecimal.
    pub(super) body: &'a str,
    /// The moment as `20130524T000000Z`.
    pub(super) at: &'a str,
}

/// The value of the `Authorization` header.
pub(super) fn authorization(credentials: &Credentials<'_>, request: &SignedRequest<'_>) -> String {
    let Credentials { access_key, secret_key, region } = credentials;
    let SignedRequest { method, path, headers, body, at } = request;
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let canonical = format!("{method}\n{path}\n\n{lines}\n{names}\n{body}");
    let day = at.split('T').next().unwrap_or_default();
    let scope = format!("{day}/{region}/s3/aws4_request");
    let signed = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{}", json::hex(&Sha256::digest(canonical)));
    let key = [day, region, "s3", "aws4_request"]
        .iter()
        .fold(format!("AWS4{secret_key}").into_bytes(), |key, part| keyed(&key, part));
    let signature = json::hex(&keyed(&key, &signed));
    format!("AWS4-HMAC-SHA256 Credential={access_key}/{scope},SignedHeaders={names},Signature={signature}")
}

fn keyed(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Amazon's documentation: "Example: PUT Object" of the page on signatures in the header.
    #[test]
    fn the_published_example_gets_the_published_signature() {
        let credentials = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE",
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            region: "us-east-1",
        };
        let body = json::hex(&Sha256::digest(b"Welcome to Amazon S3."));
        let headers = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("host", "examplebucket.s3.amazonaws.com"),
            ("x-amz-content-sha256", body.as_str()),
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let request = SignedRequest {
            method: "PUT",
            path: "/test%24file.text",
            headers: &headers,
            body: &body,
            at: "20130524T000000Z",
        };
        assert_eq!(
            authorization(&credentials, &request),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class,\
             Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
    }
}
