//! The values of a release as a chart of somebody's choice may be given them: with something else in place of each secret.
//!
//! A template can spell a value out in any form, and no mask finds it afterwards. So what the caller may not see is not
//! rendered. What stands in for a secret follows from its mark under the key of this call: no caller knows it before, and
//! no chart can make the one of a guess. Where a chart leaves it as it is, the mark is put back, so that what was rendered
//! compares with what is there.

use super::marks::{each_text, replace_marks};
use super::{KnownSecrets, Masker};
use crate::client::cluster::Cluster;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What stands in for which mark.
#[derive(Debug, Clone, Default)]
pub struct StandIns(BTreeMap<String, String>);

impl Cluster<'_> {
    /// Stored values with stand-ins for what [`Cluster::masked_values`] masks.
    pub fn stand_ins(&self, values: Value, known: &KnownSecrets) -> (Value, StandIns) {
        replaced(self.masker(), self.masked_values(values, known))
    }
}

fn replaced(masker: &Masker, mut masked: Value) -> (Value, StandIns) {
    let found = RefCell::new(BTreeMap::new());
    let stand_in = |mark: &str| {
        let stand_in = masker.mark(format!("stand-in for {mark}").as_bytes());
        found.borrow_mut().insert(stand_in.clone(), mark.to_owned());
        stand_in
    };
    each_text(&mut masked, &|text: &str| replace_marks(text, stand_in));
    (masked, StandIns(found.into_inner()))
}

impl StandIns {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A rendered text with the marks in place of the stand-ins, plain or as the value of a Secret.
    pub fn put_back(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (stand_in, mark) in &self.0 {
            text = text.replace(&STANDARD.encode(stand_in), mark).replace(stand_in.as_str(), mark);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Tenant;
    use serde_json::json;

    #[test]
    fn a_stand_in_is_neither_the_value_nor_its_mark_and_leads_back_to_the_mark() {
        let masker = Masker::new(&[1; 32], &Tenant::parse("acme").unwrap(), &[]);
        let mark = masker.mark(b"hunter2");
        let (given, stand_ins) = replaced(&masker, json!({ "a": mark, "b": [format!("u:{mark}@h")], "c": "plain" }));
        let stand_in = given["a"].as_str().unwrap();
        assert!(redact::looks::is_mark(stand_in) && stand_in != mark, "{given}");
        assert_eq!(
            (given["b"][0].as_str().unwrap(), &given["c"]),
            (format!("u:{stand_in}@h").as_str(), &json!("plain"))
        );
        let rendered = format!("x: {stand_in}\ny: {}\nz: u:{stand_in}@h", STANDARD.encode(stand_in));
        assert_eq!(stand_ins.put_back(&rendered), format!("x: {mark}\ny: {mark}\nz: u:{mark}@h"));
        assert!(!stand_ins.is_empty() && replaced(&masker, json!({ "c": "plain" })).1.is_empty());
    }
}
