//! What a path means, and the answers to reads.

use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Value, json};

use super::access::{Access, CRUMB_FIELD, JenkinsCaller, Permission};
use super::build::SimulatedBuild;
use super::config;
use super::exports::{self, PERMALINKS, Site, below};
use super::job::{SimulatedJob, SimulatedJobKind};
use super::log;
use super::page;
use super::people;
use super::pipeline::PipelineView;
use super::queue;
use super::replay;
use super::reports;
use super::tree::{Pruner, Tree};
use super::world::JenkinsWorld;
use super::writes;
use crate::query::{UrlQuery, decoded};
use crate::reply::{self, SandboxReply};

/// Everything a request meets.
#[derive(Debug)]
pub(super) struct RouteContext {
    pub(super) world: JenkinsWorld,
    pub(super) access: Access,
    /// Whether the Pipeline, Git and JUnit plugins are there.
    pub(super) plugins: bool,
    pub(super) site: Site,
}

/// One request, read.
pub(super) struct JenkinsRequest {
    pub(super) method: Method,
    /// The path below the root, by decoded segments.
    pub(super) path: Vec<String>,
    pub(super) query: UrlQuery,
    /// The fields of a form; those of the query count too, as in any servlet.
    pub(super) form: UrlQuery,
    pub(super) headers: HeaderMap,
    pub(super) caller: JenkinsCaller,
}

impl JenkinsRequest {
    /// Reads a path; nothing if it lies outside of the server's root.
    pub(super) fn segments(path: &str, context: &str) -> Option<Vec<String>> {
        let inside = path.strip_prefix(context)?;
        inside.starts_with('/').then(|| inside[1..].split('/').map(|segment| decoded(segment, false)).collect())
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.form.get(name).or_else(|| self.query.get(name))
    }

    pub(super) fn is_post(&self) -> bool {
        self.method == Method::POST
    }
}

/// The answer, and whether something was changed.
pub(super) type RoutedReply = (SandboxReply, bool);

pub(super) fn answer(server: &mut RouteContext, ask: &JenkinsRequest) -> RoutedReply {
    let path: Vec<&str> = ask.path.iter().map(String::as_str).collect();
    if path == ["whoAmI", "api", "json"] && ask.caller != JenkinsCaller::Wrong {
        let user = (ask.caller == JenkinsCaller::User).then_some(server.access.user.as_str());
        return (shown(ask, |pruner| pruner.cut(people::who_am_i(user))), false);
    }
    if ask.is_post() && !server.access.has_crumb(&ask.headers, ask.caller) && ask.caller != JenkinsCaller::Wrong {
        return (page::error(StatusCode::FORBIDDEN, "No valid crumb was included in the request"), false);
    }
    match ask.caller {
        JenkinsCaller::User => {}
        JenkinsCaller::Anonymous => {
            return (page::forbidden("anonymous", "hudson.model.Hudson.Read", "Overall"), false);
        }
        JenkinsCaller::Wrong => {
            let refused = page::error(StatusCode::UNAUTHORIZED, "Invalid password/token for user");
            return (page::with(refused, header::WWW_AUTHENTICATE, "Basic realm=\"Jenkins\""), false);
        }
    }
    server.world.settle();
    if let [first, ..] = path[..]
        && first == "job"
    {
        return job_or_build(server, ask, &path);
    }
    match path[..] {
        ["queue", "cancelItem"] => writes::cancel(server, ask),
        ["crumbIssuer", "api", "json"] => (crumb(server, ask), false),
        _ => (top(server, ask, &path), false),
    }
}

fn top(server: &RouteContext, ask: &JenkinsRequest, path: &[&str]) -> SandboxReply {
    let (world, site) = (&server.world, &server.site);
    match path {
        ["api", "json"] => shown(ask, |pruner| exports::root(world, site, pruner)),
        ["me", "api", "json"] => shown(ask, |pruner| pruner.cut(people::me(site, &server.access.user))),
        ["computer", "api", "json"] => shown(ask, |pruner| pruner.cut(people::computers(world))),
        ["queue", "api", "json"] => shown(ask, |pruner| queue::list(world, site, pruner)),
        ["queue", "item", id, "api", "json"] => match id.parse() {
            Ok(id) => maybe(ask, |pruner| queue::item(world, site, id, pruner)),
            Err(_) => page::not_found(),
        },
        _ => page::not_found(),
    }
}

/// Finds the job a path goes through, then what is wanted of it.
fn job_or_build(server: &mut RouteContext, ask: &JenkinsRequest, path: &[&str]) -> RoutedReply {
    let mut names = Vec::new();
    let mut rest = path;
    while let ["job", name, inner @ ..] = rest {
        names.push(*name);
        rest = inner;
    }
    let full = names.join("/");
    let Some(job) = server.world.jobs.get(&full) else { return (page::not_found(), false) };
    match rest {
        [] => (page::redirect(StatusCode::FOUND, &server.site, &format!("{}/", below(job))), false),
        ["api", "json"] => (shown(ask, |pruner| exports::job(&server.world, &server.site, job, pruner)), false),
        ["config.xml"] => (configuration(server, job), false),
        [verb @ ("build" | "buildWithParameters")] if job.is_job() => writes::build(server, ask, &full, verb),
        [build, inner @ ..] if job.is_job() => match number(job, build) {
            Some(number) => of_build(server, ask, (&full, number), inner),
            None => (page::not_found(), false),
        },
        _ => (page::not_found(), false),
    }
}

fn number(job: &SimulatedJob, name: &str) -> Option<u64> {
    if PERMALINKS.contains(&name) {
        return exports::permalink(job, name).map(|build| build.number);
    }
    name.parse().ok().filter(|number| job.builds.contains_key(number))
}

fn of_build(
    server: &mut RouteContext,
    ask: &JenkinsRequest,
    (path, number): (&str, u64),
    rest: &[&str],
) -> RoutedReply {
    let verb = rest.join("/");
    let is_pipeline = server.world.jobs.get(path).is_some_and(|job| job.kind == SimulatedJobKind::Pipeline);
    match verb.as_str() {
        "stop" => return writes::stop(server, ask, (path, number), &verb),
        "term" | "kill" if is_pipeline => return writes::stop(server, ask, (path, number), &verb),
        "configSubmit" => return writes::update(server, ask, (path, number)),
        "toggleLogKeep" => return writes::keep(server, ask, (path, number)),
        "replay/run" | "replay/rebuild" if is_pipeline && server.plugins => {
            return replay::again(server, ask, (path, number), verb == "replay/run");
        }
        _ => {}
    }
    let Some(job) = server.world.jobs.get(path) else { return (page::not_found(), false) };
    let Some(build) = job.builds.get(&number) else { return (page::not_found(), false) };
    (read_build(server, ask, (job, build), rest), false)
}

fn read_build(
    server: &RouteContext,
    ask: &JenkinsRequest,
    (job, build): (&SimulatedJob, &SimulatedBuild),
    rest: &[&str],
) -> SandboxReply {
    let (site, now) = (&server.site, server.world.now());
    let view = PipelineView { site, job, build, now };
    let staged = job.kind == SimulatedJobKind::Pipeline && server.plugins;
    let node = |id: &str| id.parse::<usize>().ok();
    match rest {
        ["api", "json"] => shown(ask, |pruner| exports::build(&server.world, site, (job, build), pruner)),
        ["consoleText"] => {
            let text = log::shown(&log::stored(job, build, now));
            reply::with_type(StatusCode::OK, "text/plain;charset=utf-8", text)
        }
        ["logText", "progressiveText"] => {
            let start = ask.query.number("start").and_then(|start| usize::try_from(start).ok());
            log::progressive(&log::stored(job, build, now), start.unwrap_or_default(), !build.over)
        }
        ["artifact", path @ ..] => log::artifact(build, &path.join("/")),
        ["testReport", "api", "json"] if server.plugins => {
            maybe(ask, |pruner| Some(pruner.cut(reports::tests(build)?)))
        }
        ["wfapi"] | ["wfapi", "describe"] if staged => page::json(&view.describe()),
        ["wfapi", "artifacts"] if staged => page::json(&view.artifacts()),
        ["execution", "node", id, "wfapi"] | ["execution", "node", id, "wfapi", "describe"] if staged => {
            found(node(id).and_then(|id| view.node(id)))
        }
        ["execution", "node", id, "wfapi", "log"] if staged => found(node(id).and_then(|id| view.log(id))),
        ["replay"] if staged => {
            page::redirect(StatusCode::FOUND, site, &format!("{}/{}/replay/", below(job), build.number))
        }
        ["replay", ""] if staged => replay::form(server, job, build),
        _ => page::not_found(),
    }
}

fn configuration(server: &RouteContext, job: &SimulatedJob) -> SandboxReply {
    if !server.access.may(Permission::ExtendedRead) {
        return denied(server, Permission::ExtendedRead);
    }
    reply::with_type(StatusCode::OK, "application/xml", config::xml(job))
}

fn crumb(server: &mut RouteContext, ask: &JenkinsRequest) -> SandboxReply {
    let (crumb, cookie) = server.access.crumb(&ask.headers);
    let class = "hudson.security.csrf.DefaultCrumbIssuer";
    let value = json!({ "_class": class, "crumb": crumb, "crumbRequestField": CRUMB_FIELD });
    let reply = shown(ask, |pruner| pruner.cut(value));
    match cookie {
        Some(cookie) => page::with(reply, header::SET_COOKIE, &cookie),
        None => reply,
    }
}

/// A refusal for want of a permission.
pub(super) fn denied(server: &RouteContext, permission: Permission) -> SandboxReply {
    let (name, group) = permission.name();
    page::forbidden(&server.access.user, name, group)
}

/// An object of the remote API, as much of it as was asked for.
fn shown(ask: &JenkinsRequest, make: impl FnOnce(Pruner<'_>) -> Value) -> SandboxReply {
    maybe(ask, |pruner| Some(make(pruner)))
}

fn maybe(ask: &JenkinsRequest, make: impl FnOnce(Pruner<'_>) -> Option<Value>) -> SandboxReply {
    let depth = ask.query.number("depth").and_then(|depth| i64::try_from(depth).ok()).unwrap_or_default();
    let made = match ask.query.get("tree").map(Tree::parse) {
        None => make(Pruner::Depth(1 - depth)),
        Some(Ok(tree)) => make(Pruner::Tree(&tree)),
        Some(Err(why)) => {
            return page::error(StatusCode::INTERNAL_SERVER_ERROR, &format!("Malformed tree expression: {why}"));
        }
    };
    found(made)
}

fn found(value: Option<Value>) -> SandboxReply {
    value.map_or_else(page::not_found, |value| page::json(&value))
}
