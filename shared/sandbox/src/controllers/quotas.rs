//! ResourceQuotas: how many objects a namespace has of what is counted.

use serde_json::{Value, json};

use crate::json;
use crate::world::ClusterWorld;

pub(super) fn look(world: &mut ClusterWorld) {
    for quota in world.all("resourcequotas", "") {
        let hard = quota.pointer("/spec/hard").cloned().unwrap_or_else(|| json!({}));
        let mut used = json!({});
        for (key, _) in hard.as_object().into_iter().flatten() {
            let resource = key.strip_prefix("count/").unwrap_or(key);
            let count = world.objects.within(resource, json::namespace(&quota)).count();
            json::object_of(&mut used).insert(key.clone(), Value::String(count.to_string()));
        }
        world.change("resourcequotas", &quota, |quota| {
            json::set(quota, "/status", json!({ "hard": hard, "used": used }));
        });
    }
}
