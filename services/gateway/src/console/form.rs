//! What a form must prove before anything is done by it: that it was sent by a page of ours, and by this session.
//!
//! Both are asked for: the browser's word about where the request comes from, which no page of others can change, and a
//! token that only pages of this session hold. A form that was sent twice is judged by what it is about.

use super::Console;
use super::person::ConsolePerson;
use super::session::same;
use crate::app::Gateway;
use crate::http::body;
use actix_web::HttpRequest;
use actix_web::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use actix_web::web::{Payload, Query};
use domain::{Code, Failure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The largest form.
const LARGEST: usize = 64 * 1024;

#[derive(Deserialize)]
struct FormToken {
    #[serde(default)]
    token: String,
}

/// A form that carries nothing but its token.
#[derive(Deserialize)]
pub(super) struct EmptyForm {}

/// Reads a form of a page that this person was shown.
pub(super) async fn read<T: DeserializeOwned>(
    gateway: &Gateway,
    person: &ConsolePerson,
    request: &HttpRequest,
    payload: Payload,
) -> Result<T, Failure> {
    read_up_to(LARGEST, gateway, person, request, payload).await
}

/// The same for a form that holds a long text.
pub(super) async fn read_up_to<T: DeserializeOwned>(
    largest: usize,
    gateway: &Gateway,
    person: &ConsolePerson,
    request: &HttpRequest,
    payload: Payload,
) -> Result<T, Failure> {
    let console = gateway.console.as_ref().ok_or_else(foreign)?;
    if !is_of_ours(console, gateway, request) {
        return Err(foreign());
    }
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return Err(Failure::new(Code::InvalidRequest, "this is no form"));
    }
    let bytes = body::read(request, payload, largest)
        .await
        .map_err(|_| Failure::new(Code::TooLarge, "the form could not be read, or is too large"))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Failure::new(Code::InvalidRequest, "the form is not UTF-8"))?;
    let wrong = |_| Failure::new(Code::InvalidRequest, "a field of the form holds something that cannot be there");
    let sent = Query::<FormToken>::from_query(text).map_err(wrong)?.into_inner().token;
    if !same(&sent, &person.key.form_token()) {
        return Err(foreign());
    }
    Query::<T>::from_query(text).map(Query::into_inner).map_err(wrong)
}

/// A text as its writer meant it: browsers end the lines of a field with two characters.
pub(super) fn text_of_field(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn foreign() -> Failure {
    Failure::new(Code::BadOrigin, "this form was not sent by a page of this session; nothing was done")
        .next("Open the page again and send the form from there.")
}

/// Whether the browser says that a page of ours sent the request. One that says nothing is not believed.
fn is_of_ours(console: &Console, gateway: &Gateway, request: &HttpRequest) -> bool {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = header("sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = header(ORIGIN.as_str()) else { return false };
    let loopback = gateway.settings.listen.address.ip().is_loopback() && !console.secure;
    let own_host = || header(HOST.as_str()).is_some_and(|host| origin == format!("http://{host}"));
    origin == console.origin || (loopback && own_host())
}
