//! Running a pipeline build again, unchanged or with another script.

use std::time::Duration;

use http::StatusCode;

use super::access::Permission;
use super::build::{Order, SimulatedBuild, SimulatedCause};
use super::exports::below;
use super::job::SimulatedJob;
use super::page::{self, escaped};
use super::route::{JenkinsRequest, RouteContext, RoutedReply, denied};
use super::writes::submitted;
use crate::reply::{self, SandboxReply};

/// The page with the script in a form. Who may only build finds a button and no script.
pub(super) fn form(server: &RouteContext, job: &SimulatedJob, build: &SimulatedBuild) -> SandboxReply {
    let may_edit = server.access.may(Permission::Replay);
    if job.disabled || !(may_edit || server.access.may(Permission::Build)) {
        return page::not_found();
    }
    let (title, form) = if may_edit {
        let script = escaped(script_of(job, build));
        // The first line break of a text area is not part of its text.
        let area = format!("<textarea name=\"_.mainScript\" class=\"jenkins-input\" rows=\"5\">\n{script}</textarea>");
        let form = format!("<form method=\"POST\" action=\"run\" name=\"config\" class=\"jenkins-form\">{area}</form>");
        (format!("Replay #{}", build.number), form)
    } else {
        (
            format!("Rebuild #{}", build.number),
            "<form method=\"POST\" action=\"rebuild\" name=\"rebuild\"></form>".to_owned(),
        )
    };
    let text =
        format!("<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>{form}</body></html>\n");
    reply::with_type(StatusCode::OK, "text/html;charset=utf-8", text)
}

/// `replay/run` takes the script from the form, `replay/rebuild` runs what ran before.
pub(super) fn again(
    server: &mut RouteContext,
    ask: &JenkinsRequest,
    (path, number): (&str, u64),
    edited: bool,
) -> RoutedReply {
    if !ask.is_post() {
        return (page::post_only(), false);
    }
    let needed = if edited { Permission::Replay } else { Permission::Build };
    if !server.access.may(needed) {
        return (denied(server, needed), false);
    }
    let Some(job) = server.world.jobs.get(path) else { return (page::not_found(), false) };
    let Some(build) = job.builds.get(&number) else { return (page::not_found(), false) };
    if job.disabled {
        return (page::error(StatusCode::CONFLICT, &format!("{path} is not buildable")), false);
    }
    let script = if edited {
        let Some(form) = submitted(ask) else {
            return (page::error(StatusCode::BAD_REQUEST, "Nothing is submitted"), false);
        };
        let Some(script) = form["mainScript"].as_str() else {
            let why = "JSONObject[\"mainScript\"] not found.";
            return (page::error(StatusCode::INTERNAL_SERVER_ERROR, why), false);
        };
        script.to_owned()
    } else {
        script_of(job, build).to_owned()
    };
    if build.has_password() {
        let why = "Replay is not allowed when password parameters are used.";
        return (page::error(StatusCode::BAD_REQUEST, why), false);
    }
    let order = Order {
        causes: vec![SimulatedCause::User(server.access.user.clone()), SimulatedCause::Replay(number)],
        settings: build.order.settings.clone(),
        script: Some(script),
        revision: Some(build.revision.clone()),
    };
    let back = format!("{}/", below(job));
    server.world.schedule(path, Duration::ZERO, order);
    // Only back to the job: the new build may not have a number yet.
    (page::redirect(StatusCode::FOUND, &server.site, &back), true)
}

fn script_of<'a>(job: &'a SimulatedJob, build: &'a SimulatedBuild) -> &'a str {
    build.order.script.as_deref().unwrap_or(&job.script)
}
