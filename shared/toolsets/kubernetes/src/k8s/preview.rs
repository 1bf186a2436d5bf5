//! What an approver is shown of a change of objects, and what must still be so when it is carried out.
//!
//! What is judged, and goes into the fingerprint: which object, its uid and generation (or a digest of the object without
//! its status, for kinds that count no generations), every difference in full, and the warnings. So a status that moves
//! leaves a yes alone, and whatever the approver judged voids it.
//!
//! The shown text holds all of the difference, with what the caller brought as it is; what is hidden of it is told. It
//! carries the uid and a digest of the difference. Two texts are therefore the same only if they are about the same objects
//! and the same difference, also where some of it is hidden. That digest is blind to masked values, or it could be used to
//! guess them; the fingerprint sees them, and nobody sees the fingerprint.
//!
//! Not here: what the live target adds to a change (see [`radius`](super::radius)).

use super::clean;
use super::diff_text::whole;
use super::kind_name::is_wide;
use crate::client::{BroughtTexts, Cluster, HiddenText, JudgedDigest, ObjectPair, ResourceRef, without_marks};
use crate::risks;
use catalog::ToolPreview;
use catalog::preview::{PreviewBlock, PreviewBuilder, digest, short, target_name};
use domain::Failure;
use serde_json::{Value, json};

/// An empty preview about this cluster.
pub(crate) fn of(cluster: &Cluster<'_>) -> PreviewBuilder {
    let mut preview = PreviewBuilder::new(format!("cluster {}", target_name(cluster.name(), cluster.simulated())));
    preview.fact(json!({ "cluster": cluster.name() }));
    preview
}

/// The object a change is about, as it is now. Kinds that reach far are named as such.
pub(crate) fn about(preview: &mut PreviewBuilder, what: &str, target: &ResourceRef, live: &Value) {
    let title = identified(preview, what, target, live);
    preview.line(title);
}

/// A change of one object, as it is drawn: where, and with which texts that the caller brought.
pub(crate) struct ObjectChange<'a> {
    pub(crate) cluster: &'a Cluster<'a>,
    pub(crate) brought: &'a BroughtTexts,
}

impl ObjectChange<'_> {
    /// An object that would be made. What the server adds to it differs from try to try (addresses, labels with a uid), so
    /// what was asked for is judged.
    pub(crate) fn creates(&self, preview: &mut PreviewBuilder, target: &ResourceRef, asked: &Value, then: &Value) {
        preview.fact(json!({ "object": name(target), "uid": null, "asked": asked }));
        wide(preview, target);
        risky(preview, &target.to_string(), None, then);
        let pair = self.pair(preview, &target.to_string(), None, then);
        asks(preview, &format!("create {target}"), asked, whole(None, pair.then.as_ref()));
    }

    /// An object whose kind or namespace is only made by the same call, so that the server cannot try it.
    pub(crate) fn untried(&self, preview: &mut PreviewBuilder, what: &str, asked: &Value) {
        preview.fact(json!({ "untried": what, "asked": asked }));
        risky(preview, what, None, asked);
        let pair = self.pair(preview, what, None, asked);
        asks(preview, &format!("create {what}, untried"), asked, whole(None, pair.then.as_ref()));
    }

    /// An object that would be changed, and whether it would be at all.
    pub(crate) fn changes(
        &self,
        preview: &mut PreviewBuilder,
        target: &ResourceRef,
        now: &Value,
        then: &Value,
    ) -> bool {
        let changes = all_differences(now, then);
        let any = !changes.is_empty();
        let title = identified(preview, if any { "change" } else { "leave as it is:" }, target, now);
        preview.fact(json!({ "difference": changes }));
        risky(preview, &target.to_string(), Some(now), then);
        if any {
            preview.hidden(Value::Array(changes));
            let named = ObjectPair::named(Some(now), Some(then));
            let plain = named.now.as_ref().zip(named.then.as_ref()).map(|(now, then)| all_differences(now, then));
            let digest = digest(&without_marks(&Value::Array(plain.unwrap_or_default())));
            let pair = self.pair(preview, &target.to_string(), Some(now), then);
            difference(preview, &title, &digest, whole(pair.now.as_ref(), pair.then.as_ref()).unwrap_or_default());
        } else {
            preview.line(title);
        }
        any
    }

    /// The two states as whoever decides sees them; what stays hidden is told.
    pub(crate) fn pair(
        &self,
        preview: &mut PreviewBuilder,
        what: &str,
        now: Option<&Value>,
        then: &Value,
    ) -> ObjectPair {
        // Bookkeeping is no part of a difference, so nothing is told of it.
        let (now, then) = (now.map(cleaned), cleaned(then));
        let (pair, hidden) = ObjectPair::for_deciders(self.cluster, now.as_ref(), Some(&then), self.brought);
        hidden.iter().for_each(|hidden| tell_hidden(preview, what, hidden));
        pair
    }
}

/// Tells that something in an object is hidden.
pub(crate) fn tell_hidden(preview: &mut PreviewBuilder, what: &str, hidden: &HiddenText) {
    let HiddenText { path, characters } = hidden;
    match characters {
        Some(characters) => preview.withhold(*characters, format!("a known secret in {what}, at {path}")),
        None => {
            preview.withhold_value(format!("{what}, at {path}; it was read from the cluster and looks like a secret"))
        }
    }
}

/// Tells that the contents of a Secret are hidden.
pub(crate) fn tell_contents(preview: &mut PreviewBuilder, what: &str, hidden: &[HiddenText]) {
    for HiddenText { path, characters } in hidden {
        let key = path.trim_start_matches("/data/").trim_start_matches("/stringData/");
        preview.withhold(
            characters.unwrap_or_default(),
            format!("value of {what}, key {key}; contents of Secrets are not shown"),
        );
    }
}

/// What a look found. Where the cluster lets nobody look, the approver is told that instead; a kind the cluster does not
/// have is nothing to look at; whatever else went wrong leaves no preview.
pub(crate) fn seen<T>(
    preview: &mut PreviewBuilder,
    looked: Result<T, Failure>,
    what: &str,
) -> Result<Option<T>, Failure> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.code == crate::codes::UNKNOWN_KIND => Ok(None),
        Err(failure) if failure.code == target::codes::FORBIDDEN => {
            preview.warn(format!("The tenant's credential may not look at {what}, so they are not counted here."));
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// The finished preview.
pub(crate) fn drawn(cluster: &Cluster<'_>, preview: PreviewBuilder, summary: impl Into<String>) -> ToolPreview {
    finished(&cluster.judged_digest(), preview, summary)
}

fn finished(digest: &JudgedDigest, preview: PreviewBuilder, summary: impl Into<String>) -> ToolPreview {
    let text = joined(preview.lines(), preview.blocks());
    // Behind the sign stands what the text is blind to.
    let fingerprint = format!("k8s:{}#{}", digest.of(&preview.judged()), digest.of(&preview.all_hidden()));
    preview.build(summary, text, fingerprint)
}

/// Lines and differences. The first two lines of a difference say which side is which, and are left out.
pub(crate) fn joined(lines: &[String], differences: &[PreviewBlock]) -> String {
    let mut text = lines.join("\n");
    for PreviewBlock { title, text: difference } in differences {
        text.push_str(&format!("\n\n{title}"));
        difference.lines().skip(2).for_each(|line| {
            text.push('\n');
            text.push_str(line);
        });
    }
    text
}

/// What is asked for, and how it reads.
fn asks(preview: &mut PreviewBuilder, title: &str, asked: &Value, text: Option<String>) {
    preview.hidden(asked.clone());
    difference(preview, title, &digest(&without_marks(asked)), text.unwrap_or_default());
}

fn difference(preview: &mut PreviewBuilder, title: &str, digest: &str, text: String) {
    preview.block(format!("{title}, sha256 {}", short(digest)), text);
}

/// Judges which object it is, and gives the line that says so.
fn identified(preview: &mut PreviewBuilder, what: &str, target: &ResourceRef, live: &Value) -> String {
    let uid = live["metadata"]["uid"].as_str().unwrap_or("none");
    preview.fact(json!({ "object": name(target), "uid": uid, "version": version(live) }));
    wide(preview, target);
    format!("{what} {target}, uid {uid}")
}

/// Warns of what makes a change dangerous.
pub(crate) fn risky(preview: &mut PreviewBuilder, what: &str, before: Option<&Value>, after: &Value) {
    for risk in risks::of_change(before, after) {
        preview.warn(format!("{what}: {}.", risk.detail));
    }
}

fn wide(preview: &mut PreviewBuilder, target: &ResourceRef) {
    if is_wide(target.kind().plural()) {
        preview.warn(format!("A {} reaches further than one workload.", target.kind().kind()));
    }
}

/// The resolved name of an object: two of them are the same only if they are one object.
fn name(target: &ResourceRef) -> Value {
    json!([target.kind().full_name(), target.namespace(), target.name()])
}

/// What a live object would have to keep for a yes to still be about it.
pub(crate) fn version(live: &Value) -> Value {
    match live["metadata"]["generation"].as_u64() {
        Some(generation) => json!(generation),
        None => cleaned(live),
    }
}

fn cleaned(object: &Value) -> Value {
    let mut object = object.clone();
    clean::for_diff(&mut object);
    object
}

/// Every place where two objects differ, apart from bookkeeping.
fn all_differences(now: &Value, then: &Value) -> Vec<Value> {
    let mut places = Vec::new();
    differences("", Some(&cleaned(now)), Some(&cleaned(then)), &mut places);
    places
}

/// Every place where two values differ, with what stands there.
fn differences(at: &str, now: Option<&Value>, then: Option<&Value>, found: &mut Vec<Value>) {
    match (now, then) {
        (now, then) if now == then => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for (key, value) in before {
                differences(&format!("{at}/{key}"), Some(value), after.get(key), found);
            }
            for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
                differences(&format!("{at}/{key}"), None, Some(value), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if before.len() == after.len() => {
            for (n, (before, after)) in before.iter().zip(after).enumerate() {
                differences(&format!("{at}/{n}"), Some(before), Some(after), found);
            }
        }
        (now, then) => found.push(json!([at, now, then])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(now: &Value, then: &Value) -> Vec<Value> {
        let mut out = Vec::new();
        differences("", Some(now), Some(then), &mut out);
        out
    }

    #[test]
    fn every_difference_is_found_once_and_nothing_else() {
        let now = json!({ "a": 1, "b": { "c": [1, 2], "d": "x" }, "gone": true });
        let then = json!({ "a": 1, "b": { "c": [1, 3], "d": "x" }, "new": [] });
        assert_eq!(
            found(&now, &then),
            [json!(["/b/c/1", 2, 3]), json!(["/gone", true, null]), json!(["/new", null, []])]
        );
        assert_eq!(found(&now, &now), Vec::<Value>::new());
        assert_eq!(found(&json!({ "a": [1] }), &json!({ "a": [1, 2] })), [json!(["/a", [1], [1, 2]])]);
    }

    #[test]
    fn a_secret_is_shown_by_the_name_of_its_key() {
        let mark = |n: u8| format!("masked:0123456789a{n}");
        let now = json!({ "kind": "Secret", "data": { "same": mark(1), "other": mark(2), "gone": mark(3) } });
        let then = json!({ "kind": "Secret", "data": { "same": mark(1), "other": mark(4), "new": mark(5) } });
        let pair = ObjectPair::named(Some(&now), Some(&then));
        let text = whole(pair.now.as_ref(), pair.then.as_ref()).unwrap();
        assert!(!text.contains("masked:"), "{text}");
        for line in ["-  gone: \"(secret)\"", "+  other: \"(secret, another one)\"", "+  new: \"(secret)\""] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("-  same") && !text.contains("+  same"), "{text}");
    }

    #[test]
    fn a_version_is_blind_to_status_and_bookkeeping() {
        let counted = |generation: u64, status: &str| json!({ "metadata": { "generation": generation, "resourceVersion": status }, "status": status });
        assert_eq!(version(&counted(3, "a")), version(&counted(3, "b")));
        assert_ne!(version(&counted(3, "a")), version(&counted(4, "a")));
        let plain = |data: &str, at: &str| json!({ "metadata": { "resourceVersion": at }, "data": data });
        assert_eq!(version(&plain("x", "1")), version(&plain("x", "2")));
        assert_ne!(version(&plain("x", "1")), version(&plain("y", "1")));
    }

    #[test]
    fn every_difference_is_shown_whole() {
        let long = (0..5_000).map(|n| format!("+line {n}")).collect::<Vec<_>>().join("\n");
        let long = format!("--- now\n+++ then\n@@ -1 +1 @@\n{long}\n+{}", "x".repeat(10_000));
        let mut preview = PreviewBuilder::new("cluster a");
        (0..3).for_each(|n| difference(&mut preview, &format!("object {n}"), &"0".repeat(64), long.clone()));
        let text = finished(&JudgedDigest::fixed(), preview, "all").text;
        let rest = long.split_once("+++ then\n").unwrap().1;
        assert_eq!(text.matches(rest).count(), 3);
        assert!((0..3).all(|n| text.contains(&format!("\n\nobject {n}, sha256 0000"))), "{}", &text[..200]);
    }
}
