//! What anybody may know: the RFC 9728 document (which resource this is, and who issues tokens for it), and the public keys
//! of the audit log's checkpoints.

use crate::app::Gateway;
use actix_web::HttpResponse;
use actix_web::web::Data;
use serde_json::json;

/// `GET /.well-known/oauth-protected-resource`, public.
pub async fn document(gateway: Data<Gateway>) -> HttpResponse {
    let issuers: Vec<&str> = gateway.verifier.issuers().collect();
    let body = json!({
        "resource": gateway.settings.identity.resource,
        "authorization_servers": issuers,
        "scopes_supported": ["tools:read"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Quartermaster",
    });
    HttpResponse::Ok().content_type("application/json").body(body.to_string())
}

/// `GET /.well-known/quartermaster-audit-keys.json`, public: a JWK set, the key that signs now first.
pub async fn audit_keys(gateway: Data<Gateway>) -> HttpResponse {
    let keys = gateway.archive.keys.public.to_jwks();
    HttpResponse::Ok().content_type("application/jwk-set+json").body(keys.to_string())
}
