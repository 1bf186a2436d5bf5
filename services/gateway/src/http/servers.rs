//! `/v1/tenant/servers`: external MCP servers in the hands of people who administer the tenant. The work is done by
//! `server_desk`.

pub(crate) use crate::server_desk::AcceptRequest;

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, administers};
use crate::http::{reply, sessions};
use crate::openapi::shapes::AnyObject;
use crate::server_desk;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use external::ServerStanding;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerList {
    #[schemars(with = "Vec<AnyObject>")]
    servers: Vec<ServerStanding>,
}

/// `GET /v1/tenant/servers`: every server, and where each of its tools stands.
pub async fn list(authed: AuthedRequest, gateway: Data<Gateway>) -> HttpResponse {
    let listed = async { Ok(ServerList { servers: server_desk::list(&gateway, &authed).await? }) };
    reply::operation(&gateway, &authed, "list_servers", Box::pin(listed)).await
}

/// `GET /v1/tenant/servers/{id}`: one server, with the definitions that wait and what changed in them.
pub async fn show(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let server = server_desk::show(&gateway, &authed, &id);
    reply::operation(&gateway, &authed, "show_server", Box::pin(server)).await
}

/// `POST /v1/tenant/servers/{id}/refresh`: the server is asked for its list now.
pub async fn refresh(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let refreshed = server_desk::refresh(&gateway, &authed, &id);
    reply::operation(&gateway, &authed, "refresh_server", Box::pin(refreshed)).await
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AcceptResponse {
    accepted: Vec<String>,
    #[schemars(with = "AnyObject")]
    server: ServerStanding,
}

/// `POST /v1/tenant/servers/{id}/accept`.
pub async fn accept(
    authed: AuthedRequest,
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let accepted = async {
        administers(&authed)?;
        let accepting: AcceptRequest = sessions::read(&request, payload, &gateway).await?;
        let accepted = server_desk::accept(&gateway, &authed, &id, &accepting).await?;
        Ok(AcceptResponse { accepted, server: server_desk::show(&gateway, &authed, &id).await? })
    };
    reply::operation(&gateway, &authed, "accept_tools", Box::pin(accepted)).await
}
