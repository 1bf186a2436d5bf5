//! CronJobs: a Job at each full minute that the schedule names.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{Occurrence, conditions};
use crate::clock;
use crate::json;
use crate::world::{self, ClusterWorld};

/// How far ahead the next minute of a schedule is looked for; a rarer one is looked for again then.
const HORIZON: i64 = 25 * 60;

/// Looks at every schedule; says which minute is the next that one of them names.
pub(super) fn look(world: &mut ClusterWorld) -> Option<Timestamp> {
    let all = world.all("cronjobs.batch", "");
    for cron_job in all.iter().filter(|one| !json::is_going(one)) {
        reconcile(world, cron_job);
    }
    let minute = world.now().as_second().div_euclid(60);
    let schedules: Vec<&str> = all.iter().map(|one| json::text_or_empty(one, "/spec/schedule")).collect();
    let named = |minute: &i64| {
        let at = Timestamp::from_second(minute * 60);
        at.is_ok_and(|at| schedules.iter().any(|schedule| matches(schedule, at)))
    };
    let next = (minute + 1..=minute + HORIZON).find(named).unwrap_or(minute + HORIZON);
    (!all.is_empty()).then(|| Timestamp::from_second(next * 60).ok()).flatten()
}

fn reconcile(world: &mut ClusterWorld, cron_job: &Arc<Value>) {
    let jobs = world.owned("jobs.batch", cron_job);
    let running: Vec<&Arc<Value>> = jobs.iter().filter(|job| !is_over(job)).collect();
    let minute = world.now().as_second().div_euclid(60);
    let Ok(now) = Timestamp::from_second(minute * 60) else { return };
    let last = json::text(cron_job, "/status/lastScheduleTime").and_then(clock::read);
    let created = json::text(cron_job, "/metadata/creationTimestamp").and_then(clock::read);
    let fresh = last.or(created).is_some_and(|then| then < now);
    let due = fresh
        && !json::is_true(cron_job, "/spec/suspend")
        && matches(json::text_or_empty(cron_job, "/spec/schedule"), now)
        && (running.is_empty() || cron_job["spec"]["concurrencyPolicy"] != "Forbid");
    if due {
        make_job(world, cron_job, now);
    }
    forget(world, cron_job, &jobs);
    let active = world.owned("jobs.batch", cron_job);
    let active: Vec<Value> = active
        .iter()
        .filter(|job| !is_over(job))
        .map(|job| {
            json!({ "apiVersion": "batch/v1", "kind": "Job", "name": json::name(job), "namespace": json::namespace(job), "uid": json::uid(job) })
        })
        .collect();
    let finished = jobs.iter().filter_map(|job| json::text(job, "/status/completionTime")).max().map(str::to_owned);
    world.change("cronjobs.batch", cron_job, |cron_job| {
        if due {
            json::set(cron_job, "/status/lastScheduleTime", clock::stamp(now));
        }
        if let Some(finished) = finished {
            json::set(cron_job, "/status/lastSuccessfulTime", finished);
        }
        if active.is_empty() {
            json::take(cron_job, "/status/active");
        } else {
            json::set(cron_job, "/status/active", active);
        }
    });
}

fn is_over(job: &Value) -> bool {
    conditions::holds(job, "Complete") || conditions::holds(job, "Failed")
}

fn make_job(world: &mut ClusterWorld, cron_job: &Value, at: Timestamp) {
    let name = format!("{}-{}", json::name(cron_job), at.as_second() / 60);
    let template = &cron_job["spec"]["jobTemplate"];
    let mut metadata = template.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json::set(&mut metadata, "/name", name.clone());
    json::set(&mut metadata, "/namespace", json::namespace(cron_job));
    json::set(&mut metadata, "/ownerReferences", json!([world::owner_reference(cron_job)]));
    if world.objects.find("jobs.batch", json::namespace(cron_job), &name).is_some() {
        return;
    }
    world.make("jobs.batch", json!({ "metadata": metadata, "spec": template["spec"] }));
    let message = format!("Created job {name}");
    let what =
        Occurrence { warning: false, reason: "SuccessfulCreate", message: &message, source: "cronjob-controller" };
    world.note(cron_job, what);
}

/// Keeps only the newest finished jobs.
fn forget(world: &mut ClusterWorld, cron_job: &Value, jobs: &[Arc<Value>]) {
    for (kind, field, otherwise) in
        [("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)]
    {
        let limit = usize::try_from(json::int(cron_job, &format!("/spec/{field}"), otherwise)).unwrap_or_default();
        let mut done: Vec<&Arc<Value>> = jobs.iter().filter(|job| conditions::holds(job, kind)).collect();
        done.sort_by_key(|job| json::text_or_empty(job, "/metadata/creationTimestamp").to_owned());
        let surplus = done.len().saturating_sub(limit);
        for job in done.into_iter().take(surplus) {
            world.objects.remove("jobs.batch", json::namespace(job), json::name(job));
        }
    }
}

/// Whether a five-field schedule names this minute (UTC).
fn matches(schedule: &str, at: Timestamp) -> bool {
    let schedule = match schedule {
        "@hourly" => "0 * * * *",
        "@daily" | "@midnight" => "0 0 * * *",
        "@weekly" => "0 0 * * 0",
        "@monthly" => "0 0 1 * *",
        "@yearly" | "@annually" => "0 0 1 1 *",
        other => other,
    };
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else { return false };
    // Most minutes are ruled out by plain arithmetic, which matters when a whole day is searched.
    let minutes = at.as_second().div_euclid(60);
    if !field_matches(minute, minutes.rem_euclid(60)) || !field_matches(hour, minutes.div_euclid(60).rem_euclid(24)) {
        return false;
    }
    let at = at.to_zoned(TimeZone::UTC);
    let sunday = i64::from(at.weekday().to_sunday_zero_offset());
    field_matches(day, i64::from(at.day()))
        && field_matches(month, i64::from(at.month()))
        && (field_matches(weekday, sunday) || (sunday == 0 && field_matches(weekday, 7)))
}

fn field_matches(field: &str, value: i64) -> bool {
    field.split(',').any(|part| {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let step: i64 = step.parse().unwrap_or(1).max(1);
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (0, i64::MAX),
            Some((from, to)) => (from.parse().unwrap_or(i64::MAX), to.parse().unwrap_or(i64::MIN)),
            None => (
                range.parse().unwrap_or(i64::MAX),
                if part.contains('/') { i64::MAX } else { range.parse().unwrap_or(i64::MIN) },
            ),
        };
        (from..=to).contains(&value) && (value - from) % step == 0
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_schedule_names_its_minutes() {
        let at: Timestamp = "2026-03-04T05:30:00Z".parse().unwrap();
        assert!(matches("*/15 * * * *", at) && matches("30 5 4 3 3", at) && matches("0-40/10 5 * * *", at));
        assert!(!matches("*/7 * * * *", at) && !matches("@hourly", at) && !matches("nonsense", at));
        assert!(matches("@daily", clock::before(at, Duration::from_secs(5 * 3600 + 1800))));
    }
}
