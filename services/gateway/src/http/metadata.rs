//! The RFC 9728 document: which resource this is, and who issues tokens for it.

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
