//! Every route, in one place. Only health and the well-known document answer without a caller.

use crate::http::{audit, catalog, health, mcp, memory, metadata, runs, schemas, secrets, servers, sessions, tenant};
use actix_web::web::{self, ServiceConfig, resource};

/// All routes.
pub fn all(config: &mut ServiceConfig) {
    config
        .route("/health", web::get().to(health::health))
        .route("/livez", web::get().to(health::livez))
        .route("/readyz", web::get().to(health::readyz))
        .route("/.well-known/oauth-protected-resource", web::get().to(metadata::document))
        .route("/.well-known/oauth-protected-resource/mcp", web::get().to(metadata::document))
        .service(
            resource("/mcp")
                .route(web::post().to(mcp::post))
                .route(web::get().to(mcp::get))
                .route(web::delete().to(mcp::delete))
                .default_service(web::to(mcp::other_method)),
        )
        .service(
            resource("/mcp/x/{selection}")
                .route(web::post().to(mcp::post_selected))
                .route(web::get().to(mcp::get))
                .route(web::delete().to(mcp::delete))
                .default_service(web::to(mcp::other_method)),
        )
        .route("/v1/sessions", web::post().to(sessions::open))
        .route("/v1/sessions/{id}", web::get().to(sessions::show))
        .route("/v1/sessions/{id}", web::delete().to(sessions::close))
        .route("/v1/sessions/{id}/tools", web::get().to(sessions::tools))
        .route("/v1/sessions/{id}/calls", web::post().to(sessions::call))
        .route("/v1/runs", web::get().to(runs::list))
        .route("/v1/runs/{id}", web::get().to(runs::show))
        .route("/v1/runs/{id}/approve", web::post().to(runs::approve))
        .route("/v1/runs/{id}/reject", web::post().to(runs::reject))
        .route("/v1/runs/{id}/cancel", web::post().to(runs::cancel))
        .route("/v1/runs/{id}/resolve", web::post().to(runs::resolve))
        .route("/v1/runs/{id}/clear", web::post().to(runs::clear))
        .route("/v1/memory/documents", web::get().to(memory::list))
        .route("/v1/memory/documents/{path:.*}", web::get().to(memory::show))
        .route("/v1/memory/documents/{path:.*}", web::put().to(memory::put))
        .route("/v1/memory/documents/{path:.*}", web::delete().to(memory::remove))
        .route("/v1/memory/history/{path:.*}", web::get().to(memory::history))
        .route("/v1/tenant/config", web::get().to(tenant::show))
        .route("/v1/tenant/config", web::put().to(tenant::put))
        .route("/v1/tenant/config", web::delete().to(tenant::remove))
        .route("/v1/tenant/config/check", web::post().to(tenant::check))
        .route("/v1/tenant/config/history", web::get().to(tenant::history))
        .route("/v1/tenant/config/history/{version}", web::get().to(tenant::version))
        .route("/v1/tenant/config/rollback", web::post().to(tenant::rollback))
        .route("/v1/tenant/secrets", web::get().to(secrets::list))
        .route("/v1/tenant/secrets/{name}", web::put().to(secrets::put))
        .route("/v1/tenant/secrets/{name}", web::delete().to(secrets::remove))
        .route("/v1/tenant/servers", web::get().to(servers::list))
        .route("/v1/tenant/servers/{id}", web::get().to(servers::show))
        .route("/v1/tenant/servers/{id}/accept", web::post().to(servers::accept))
        .route("/v1/tenant/servers/{id}/refresh", web::post().to(servers::refresh))
        .route("/v1/schemas/tenant.json", web::get().to(schemas::tenant))
        .route("/v1/audit", web::get().to(audit::list))
        .route("/v1/catalog", web::get().to(catalog::list))
        .route("/runs/{id}", web::get().to(runs::show))
        .route("/runs/{id}/approve", web::post().to(runs::approve))
        .route("/runs/{id}/reject", web::post().to(runs::reject))
        .default_service(web::to(sessions::nothing_here));
}
