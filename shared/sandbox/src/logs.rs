//! What simulated containers have written: the same story for every reader, made from the moment they started.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::clock;
use crate::images::{self, ProgramKind};
use crate::json;
use crate::program;
use crate::world::ClusterWorld;

/// One line and when it was written.
pub(crate) type TimedLine = (Timestamp, String);

/// How far back the log of a long-running container reaches.
const KEPT: Duration = Duration::from_secs(2 * 3600);

/// One life of a container: from its start to its end or to now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContainerLife {
    pub(crate) start: Timestamp,
    pub(crate) end: Option<Timestamp>,
    pub(crate) exit: i64,
}

/// The life a log request is about; the previous one if asked for.
pub(crate) fn life(status: &Value, previous: bool) -> Option<ContainerLife> {
    let moment = |state: &Value, at: &str| json::text(state, at).and_then(clock::read);
    let ended = |state: &Value| {
        Some(ContainerLife {
            start: moment(state, "/startedAt").or_else(|| moment(state, "/finishedAt"))?,
            end: moment(state, "/finishedAt"),
            exit: json::int(state, "/exitCode", 0),
        })
    };
    if previous {
        return status.pointer("/lastState/terminated").and_then(ended);
    }
    if let Some(running) = status.pointer("/state/running") {
        return Some(ContainerLife { start: moment(running, "/startedAt")?, end: None, exit: 0 });
    }
    // A container that waits to be restarted still has the log of its last life.
    status.pointer("/state/terminated").or_else(|| status.pointer("/lastState/terminated")).and_then(ended)
}

/// The lines a container wrote in one life, oldest first.
pub(crate) fn lines(world: &ClusterWorld, pod: &Value, container: &Value, life: ContainerLife) -> Vec<TimedLine> {
    let until = life.end.unwrap_or(world.now());
    let environment = program::environment(world, pod, container);
    let argv = program::started(container, &environment);
    if !argv.is_empty() {
        let ended = program::run(&argv, "", &environment);
        let text = format!("{}{}", ended.stdout, ended.stderr);
        return text.lines().map(|line| (life.start, line.to_owned())).collect();
    }
    let image = json::text_or_empty(container, "/image");
    let (name, tag) = images::parts(image);
    let name = name.rsplit('/').next().unwrap_or(name);
    let story = images::story(image);
    let mut lines = Vec::new();
    let mut say =
        |millis: u64, text: String| lines.push((clock::after(life.start, Duration::from_millis(millis)), text));
    say(0, format!("level=info msg=\"starting\" app={name} version={tag} pod={}", json::name(pod)));
    say(12, "level=info msg=\"reading configuration from the environment\"".to_owned());
    match (life.exit, story.needs) {
        (1, Some(variable)) => {
            say(31, format!("level=error msg=\"required environment variable {variable} is not set\" app={name}"));
            say(33, format!("level=fatal msg=\"cannot start without {variable}, exiting\" code=1"));
        }
        (137, _) => {
            say(40, "level=info msg=\"loading the whole catalogue into memory\"".to_owned());
            say(90, "level=warn msg=\"heap 498Mi of 512Mi\"".to_owned());
        }
        (0, _) if life.end.is_some() => {
            say(40, "level=info msg=\"working\"".to_owned());
            say(80, "level=info msg=\"done\"".to_owned());
        }
        (0, _) => {
            say(45, format!("level=info msg=\"ready\" app={name}"));
            lines.extend(work(pod, name, story.does, life.start, until));
        }
        (code, _) => {
            say(31, format!("level=error msg=\"unhandled failure in {name}\" code={code}"));
            say(33, format!("level=fatal msg=\"giving up\" code={code}"));
        }
    }
    lines.retain(|(at, _)| *at <= until || life.end.is_some());
    lines
}

/// The steady lines of a program at work: one every few seconds, the same for every reader.
fn work(pod: &Value, name: &str, does: ProgramKind, start: Timestamp, until: Timestamp) -> Vec<TimedLine> {
    let seed: u64 = json::uid(pod).bytes().fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let every = 11 + i64::try_from(seed % 9).unwrap_or_default();
    let first = start.max(clock::before(until, KEPT)).as_second();
    let mut lines = Vec::new();
    let mut second = first - first.rem_euclid(every) + every;
    while second <= until.as_second() {
        let turn =
            seed.wrapping_add(u64::try_from(second / every).unwrap_or_default()).wrapping_mul(2_654_435_761) >> 7;
        if let Ok(at) = Timestamp::from_millisecond(second * 1000 + i64::try_from(turn % 990).unwrap_or_default()) {
            lines.push((at, sentence(name, does, turn)));
        }
        second += every;
    }
    lines
}

fn sentence(name: &str, does: ProgramKind, turn: u64) -> String {
    let pick = |options: &[&'static str]| options[usize::try_from(turn).unwrap_or_default() % options.len()];
    let millis = 3 + turn % 47;
    match does {
        ProgramKind::Serve => {
            let path = pick(&["/healthz", "/api/items", "/api/items/42", "/api/orders", "/metrics", "/api/session"]);
            format!("level=info msg=\"request\" app={name} method=GET path={path} status=200 duration_ms={millis}")
        }
        ProgramKind::Work => format!(
            "level=info msg=\"message handled\" app={name} queue=orders id={} duration_ms={millis}",
            turn % 90_000
        ),
        ProgramKind::Store => pick(&[
            "level=info msg=\"background save done\"",
            "level=info msg=\"client connected\"",
            "level=info msg=\"checkpoint complete\"",
        ])
        .to_owned(),
        ProgramKind::Watch => {
            format!("level=info msg=\"batch sent\" app={name} records={} duration_ms={millis}", 100 + turn % 400)
        }
    }
}
