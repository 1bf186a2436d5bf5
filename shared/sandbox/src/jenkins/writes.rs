//! What changes something: starting, stopping, cancelling and labelling builds.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::access::Permission;
use super::build::{Order, ParameterSetting, SimulatedCause};
use super::exports::below;
use super::job::SimulatedJob;
use super::page;
use super::plan::StopResistance;
use super::queue::Cancelled;
use super::route::{JenkinsRequest, RouteContext, RoutedReply, denied};
use crate::reply;

/// `build` and `buildWithParameters`: puts a build into the queue.
pub(super) fn build(server: &mut RouteContext, ask: &JenkinsRequest, path: &str, verb: &str) -> RoutedReply {
    if !ask.is_post() {
        return (page::post_only(), false);
    }
    if !server.access.may(Permission::Build) {
        return (denied(server, Permission::Build), false);
    }
    let Some(job) = server.world.jobs.get(path) else { return (page::not_found(), false) };
    if job.disabled {
        return (page::error(StatusCode::CONFLICT, &format!("{path} is not buildable")), false);
    }
    let settings = match verb {
        "buildWithParameters" => by_fields(job, ask),
        _ => by_form(job, ask),
    };
    let settings = match settings {
        Ok(settings) => settings,
        Err((status, why)) => return (page::error(status, &why), false),
    };
    let quiet = ask.field("delay").and_then(seconds).unwrap_or(job.quiet);
    let causes = vec![SimulatedCause::User(server.access.user.clone())];
    let id = server.world.schedule(path, quiet, Order { causes, settings, ..Order::default() });
    (page::redirect(StatusCode::CREATED, &server.site, &format!("/queue/item/{id}/")), true)
}

/// Values by the names of fields. A field nobody declared is dropped without a word.
fn by_fields(job: &SimulatedJob, ask: &JenkinsRequest) -> Result<Vec<ParameterSetting>, (StatusCode, String)> {
    if job.parameters.is_empty() {
        return Err((StatusCode::INTERNAL_SERVER_ERROR, "This build is not parameterized!".to_owned()));
    }
    let settings = job.parameters.iter().map(|parameter| match ask.field(&parameter.name) {
        Some(text) => parameter.read(text).map_err(|why| (StatusCode::INTERNAL_SERVER_ERROR, why)),
        None => Ok(parameter.default()),
    });
    settings.collect()
}

/// Values as the page's own form sends them; a job without parameters needs none.
fn by_form(job: &SimulatedJob, ask: &JenkinsRequest) -> Result<Vec<ParameterSetting>, (StatusCode, String)> {
    if job.parameters.is_empty() {
        return Ok(Vec::new());
    }
    let form = submitted(ask).ok_or((StatusCode::BAD_REQUEST, "Nothing is submitted".to_owned()))?;
    // A form with one parameter sends it alone and not in a list.
    let given = match form.get("parameter") {
        Some(Value::Array(given)) => given.clone(),
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    };
    let refused = |why: String| (StatusCode::INTERNAL_SERVER_ERROR, why);
    let settings = given.iter().map(|given| {
        let name = given["name"].as_str().unwrap_or_default();
        let parameter = job.parameters.iter().find(|parameter| parameter.name == name);
        let parameter = parameter.ok_or_else(|| refused(format!("No such parameter definition: {name}")))?;
        let text = given["value"].as_str().map_or_else(|| given["value"].to_string(), str::to_owned);
        parameter.read(&text).map_err(refused)
    });
    settings.collect()
}

/// The JSON that pages of Jenkins send along with their forms.
pub(super) fn submitted(ask: &JenkinsRequest) -> Option<Value> {
    serde_json::from_str(ask.field("json")?).ok().filter(Value::is_object)
}

fn seconds(text: &str) -> Option<Duration> {
    text.trim_end_matches("sec").trim_end_matches('s').parse().ok().map(Duration::from_secs)
}

/// `stop`, `term` and `kill`. One that ended long ago is not an error.
pub(super) fn stop(
    server: &mut RouteContext,
    ask: &JenkinsRequest,
    (path, number): (&str, u64),
    verb: &str,
) -> RoutedReply {
    if !ask.is_post() {
        return (page::post_only(), false);
    }
    if !server.access.may(Permission::Cancel) {
        return (denied(server, Permission::Cancel), false);
    }
    let user = server.access.user.clone();
    let (force, line) = match verb {
        "term" => (StopResistance::UntilTerm, "Terminating sh".to_owned()),
        "kill" => (StopResistance::UntilKill, "Hard kill!".to_owned()),
        _ => (StopResistance::Never, format!("Aborted by {user}")),
    };
    let Some(job) = server.world.jobs.get_mut(path) else { return (page::not_found(), false) };
    let answer = match verb {
        "stop" => page::redirect(StatusCode::FOUND, &server.site, &format!("{}/{number}/", below(job))),
        _ => reply::with_type(StatusCode::OK, "text/html;charset=utf-8", ""),
    };
    let Some(build) = job.builds.get_mut(&number).filter(|build| !build.over) else { return (answer, false) };
    if force >= build.plan.stubborn {
        server.world.abort(path, number, line);
    } else {
        build.stopped.push(line);
    }
    (answer, true)
}

/// `queue/cancelItem?id=N`.
pub(super) fn cancel(server: &mut RouteContext, ask: &JenkinsRequest) -> RoutedReply {
    if !ask.is_post() {
        return (page::post_only(), false);
    }
    let Some(id) = ask.field("id").and_then(|id| id.parse::<u64>().ok()) else { return (page::not_found(), false) };
    let known = server.world.waiting.iter().any(|item| item.id == id);
    if known && !server.access.may(Permission::Cancel) {
        let refused = page::error(StatusCode::UNPROCESSABLE_ENTITY, &format!("Item for id ({id}) is not cancellable"));
        return (refused, false);
    }
    match server.world.cancel(id) {
        Cancelled::Yes => (reply::with_type(StatusCode::NO_CONTENT, "text/html;charset=utf-8", ""), true),
        Cancelled::TooLate => {
            let refused = page::error(StatusCode::INTERNAL_SERVER_ERROR, &format!("Could not cancel run for id {id}"));
            (refused, false)
        }
        Cancelled::Unknown => (page::error(StatusCode::NOT_FOUND, &format!("Provided id ({id}) not found")), false),
    }
}

/// `configSubmit`: name and description, both of which the form must have.
pub(super) fn update(server: &mut RouteContext, ask: &JenkinsRequest, (path, number): (&str, u64)) -> RoutedReply {
    if !ask.is_post() {
        return (page::post_only(), false);
    }
    if !server.access.may(Permission::Update) {
        return (denied(server, Permission::Update), false);
    }
    let Some(form) = submitted(ask) else {
        return (page::error(StatusCode::BAD_REQUEST, "Nothing is submitted"), false);
    };
    let (Some(name), Some(description)) = (form["displayName"].as_str(), form["description"].as_str()) else {
        let missing = if form["displayName"].is_string() { "description" } else { "displayName" };
        let why = format!("JSONObject[\"{missing}\"] not found.");
        return (page::error(StatusCode::INTERNAL_SERVER_ERROR, &why), false);
    };
    let Some(job) = server.world.jobs.get_mut(path) else { return (page::not_found(), false) };
    let Some(build) = job.builds.get_mut(&number) else { return (page::not_found(), false) };
    build.display_name = Some(name.trim().to_owned()).filter(|name| !name.is_empty());
    build.description = Some(description.to_owned());
    let back = format!("{}/{number}/", below(job));
    (page::redirect(StatusCode::FOUND, &server.site, &back), true)
}

/// `toggleLogKeep`: whichever way it stands, it stands the other way afterwards.
pub(super) fn keep(server: &mut RouteContext, ask: &JenkinsRequest, (path, number): (&str, u64)) -> RoutedReply {
    if !ask.is_post() {
        return (page::post_only(), false);
    }
    let Some(build) = server.world.jobs.get(path).and_then(|job| job.builds.get(&number)) else {
        return (page::not_found(), false);
    };
    // To let go of a build is to let it be deleted.
    let needed = if build.keep { Permission::Delete } else { Permission::Update };
    if !server.access.may(needed) {
        return (denied(server, needed), false);
    }
    let Some(job) = server.world.jobs.get_mut(path) else { return (page::not_found(), false) };
    if let Some(build) = job.builds.get_mut(&number) {
        build.keep = !build.keep;
    }
    let back = format!("{}/{number}/", below(job));
    (page::redirect(StatusCode::FOUND, &server.site, &back), true)
}
