use super::*;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::json;

const ALL: [Algorithm; 3] = [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa];

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn rsa() -> Value {
    json!({ "kty": "RSA", "kid": "r", "n": b64(&[0xc1; 256]), "e": "AQAB" })
}

fn ec() -> Value {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let point = pair.public_key().as_ref();
    json!({ "kty": "EC", "crv": "P-256", "kid": "e", "x": b64(&point[1..33]), "y": b64(&point[33..]) })
}

fn okp() -> Value {
    let pair = Ed25519KeyPair::generate().unwrap();
    json!({ "kty": "OKP", "crv": "Ed25519", "kid": "o", "x": b64(pair.public_key().as_ref()) })
}

fn usable(keys: &[Value], allowed: &[Algorithm]) -> usize {
    parse(json!({ "keys": keys, "other": 1 }).to_string().as_bytes(), allowed).unwrap().len()
}

fn changed(mut key: Value, field: &str, value: Value) -> Value {
    key[field] = value;
    key
}

#[test]
fn each_kind_of_key_serves_its_own_algorithm() {
    let keys = parse(json!({ "keys": [rsa(), ec(), okp()] }).to_string().as_bytes(), &ALL).unwrap();

    assert!(keys.find(Some("r"), Algorithm::Rs256).is_ok());
    assert!(keys.find(Some("e"), Algorithm::Es256).is_ok());
    assert!(keys.find(Some("o"), Algorithm::EdDsa).is_ok());
}

#[test]
fn keys_beyond_the_issuers_algorithms_are_passed_over() {
    assert_eq!(usable(&[rsa(), ec(), okp()], &[Algorithm::Es256]), 1);
    assert_eq!(usable(&[rsa(), ec(), okp()], &[Algorithm::Hs256]), 0);
}

#[test]
fn keys_for_another_purpose_are_passed_over() {
    let others = [
        changed(rsa(), "use", json!("enc")),
        changed(rsa(), "key_ops", json!(["encrypt"])),
        changed(rsa(), "alg", json!("RS512")),
        changed(rsa(), "alg", json!("HS256")),
        changed(ec(), "alg", json!("RS256")),
        changed(rsa(), "d", json!("AQAB")),
        json!({ "kty": "oct", "kid": "s", "k": b64(&[7; 32]), "alg": "HS256" }),
    ];
    assert_eq!(usable(&others, &[ALL.as_slice(), &[Algorithm::Hs256]].concat()), 0);
    let ours = [changed(rsa(), "use", json!("sig")), changed(ec(), "key_ops", json!(["verify"]))];
    assert_eq!(usable(&ours, &ALL), 2);
}

#[test]
fn one_broken_key_does_not_spoil_the_others() {
    let broken = [
        json!(null),
        json!("key"),
        json!({}),
        json!({ "kty": 7 }),
        json!({ "kty": "RSA" }),
        changed(rsa(), "n", json!("not base64!")),
        changed(rsa(), "kid", json!(["r"])),
        changed(ec(), "crv", json!("P-384")),
        changed(ec(), "y", json!(b64(&[1; 32]))),
        changed(ec(), "x", json!(b64(&[1; 31]))),
        changed(okp(), "crv", json!("Ed448")),
        changed(okp(), "x", json!("AA")),
        rsa(),
    ];
    assert_eq!(usable(&broken, &ALL), 1);
}

#[test]
fn what_is_no_key_set_is_an_error() {
    for bad in ["", "null", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":null}"#, "<html>"] {
        assert!(matches!(parse(bad.as_bytes(), &ALL), Err(JwksError::NotAKeySet)), "{bad}");
    }
}

#[test]
fn a_set_has_at_most_sixty_four_keys() {
    let keys = |count| json!({ "keys": vec![json!({}); count] }).to_string();
    assert!(parse(keys(64).as_bytes(), &ALL).is_ok());
    assert!(matches!(parse(keys(65).as_bytes(), &ALL), Err(JwksError::TooMany)));
}
