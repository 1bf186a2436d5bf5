//! Keys from files: shared secrets and PEM.

use crate::support::{LOGIN, NOW, Pair, RSA, US, after, claims, config, http, pem};
use identity::mint::{MintedClaims, SigningKey, mint};
use identity::{KeyFileError, TokenRefused, Verifier, VerifierError};
use serde_json::json;
use std::path::Path;

async fn with_key(path: &Path, algorithms: &[&str]) -> Result<Verifier, VerifierError> {
    Verifier::new(config(json!([{ "issuer": LOGIN, "algorithms": algorithms, "key_file": path }])), http()).await
}

async fn with_pem(text: &str, algorithms: &[&str]) -> Result<Verifier, VerifierError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("issuer.pem");
    std::fs::write(&path, text).expect("a written key");
    with_key(&path, algorithms).await
}

fn minted() -> MintedClaims {
    MintedClaims {
        iss: LOGIN.into(),
        aud: US.into(),
        sub: "dev".into(),
        tenant: "dev".into(),
        scope: "tools:write".into(),
        email: String::new(),
        labels: Vec::new(),
        exp: after(3600),
        iat: NOW,
    }
}

#[tokio::test]
async fn a_minted_token_makes_its_caller() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signing.key");
    let key = SigningKey::generate().unwrap();
    key.save(&path).unwrap();
    let verifier = with_key(&path, &["HS256"]).await.unwrap();

    let caller = verifier.caller(&mint(&key, &minted()), NOW).await.unwrap();

    assert!(verifier.usable(NOW));
    assert_eq!((caller.tenant.as_str(), caller.principal.subject.as_str()), ("dev", "dev"));
    assert_eq!(caller.expires_at, after(3600));
    let stranger = SigningKey::generate().unwrap();
    assert_eq!(verifier.caller(&mint(&stranger, &minted()), NOW).await, Err(TokenRefused::BadSignature));
    assert_eq!(verifier.caller(&RSA.token("r"), NOW).await, Err(TokenRefused::WrongAlgorithm));
}

#[tokio::test]
async fn a_pem_key_of_each_kind_verifies_its_issuer() {
    for pair in [&*RSA, &Pair::ec(), &Pair::ed()] {
        for algorithms in [&[pair.alg()][..], &["RS256", "ES256", "EdDSA"]] {
            let verifier = with_pem(&pair.pem(), algorithms).await.unwrap();

            assert!(verifier.caller(&pair.token("any key id"), NOW).await.is_ok(), "{}", pair.alg());
            assert!(verifier.caller(&pair.sign(&json!({ "alg": pair.alg() }), &claims()), NOW).await.is_ok());
        }
    }
}

#[tokio::test]
async fn a_pem_key_verifies_only_its_own_algorithm() {
    let verifier = with_pem(&RSA.pem(), &["RS256", "ES256", "EdDSA"]).await.unwrap();

    assert_eq!(verifier.caller(&Pair::ec().token("r"), NOW).await, Err(TokenRefused::WrongAlgorithm));
    assert_eq!(verifier.caller(&Pair::rsa().token("r"), NOW).await, Err(TokenRefused::BadSignature));
}

#[tokio::test]
async fn key_files_that_hold_something_else_stop_the_start() {
    let fault = async |text: &str, algorithms: &[&str]| match with_pem(text, algorithms).await {
        Err(VerifierError::KeyFile { source, .. }) => source,
        Err(VerifierError::Config(error)) => panic!("the settings were meant to be good: {error}"),
        Ok(_) => panic!("a verifier started with {text:?}"),
    };
    let Pair::Ec(ec) = Pair::ec() else { unreachable!("an EC pair") };
    let private = pem("PRIVATE KEY", ec.to_pkcs8v1().unwrap().as_ref());

    assert!(matches!(fault(&private, &["ES256"]).await, KeyFileError::Private));
    assert!(matches!(fault(&RSA.pem(), &["ES256"]).await, KeyFileError::NotAPublicKey));
    assert!(matches!(fault("", &["RS256"]).await, KeyFileError::NotAPublicKey));
    assert!(matches!(fault("secret", &["RS256"]).await, KeyFileError::NotAPublicKey));
    assert!(matches!(fault("c2hvcnQ", &["HS256"]).await, KeyFileError::Secret(_)));
    assert!(matches!(fault(&RSA.pem(), &["HS256"]).await, KeyFileError::Secret(_)));
    let missing = with_key(Path::new("no/such/file"), &["HS256"]).await;
    assert!(matches!(missing, Err(VerifierError::KeyFile { source: KeyFileError::Unreadable(_), .. })));
}

#[tokio::test]
async fn nothing_starts_on_settings_that_are_refused() {
    let refused = Verifier::new(config(json!([])), http()).await;

    assert!(matches!(refused, Err(VerifierError::Config(identity::ConfigError::NoIssuer))));
}
