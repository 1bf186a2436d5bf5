//! Who may reach a tool: the agents that refer to it, the operator, and nobody else.

use crate::on_a_cluster::yard::{Yard, using};
use serde_json::{Value, json};

/// The agents that a policy lets in.
fn let_in(policy: &Value) -> Value {
    policy.pointer("/spec/ingress/0/from/1/podSelector/matchExpressions/0/values").cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_lets_in_the_agents_that_refer_to_it_and_nobody_else() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    yard.tool("vault", json!({ "image": "registry.example/tool:1" })).await;
    let policy = yard.see("NetworkPolicy", "vault", "to be there", |_| true).await;
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress"]));
    assert_eq!(policy["spec"]["podSelector"]["matchLabels"], json!({ "langop.io/tool": "vault" }));
    let from = policy["spec"]["ingress"][0]["from"].as_array().unwrap();
    assert_eq!(from.len(), 1, "without agents only the operator: {from:?}");
    assert_eq!(from[0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"], yard.namespace.as_str());
    assert_eq!(from[0]["podSelector"]["matchLabels"]["app.kubernetes.io/name"], "quartermaster-operator");

    yard.agent("ana", using(&["vault"])).await;
    yard.see("NetworkPolicy", "vault", "ana", |policy| let_in(policy) == json!(["ana"])).await;
    yard.agent("ben", using(&["vault"])).await;
    yard.agent("cem", using(&[])).await;
    yard.see("NetworkPolicy", "vault", "both", |policy| let_in(policy) == json!(["ana", "ben"])).await;
    let pods = yard.see("Deployment", "ben", "to be there", |_| true).await;
    assert_eq!(pods["spec"]["template"]["metadata"]["labels"]["langop.io/agent"], "ben");

    // One does not refer to it any more, one switches it off, one goes.
    yard.agent("ana", using(&[])).await;
    yard.see("NetworkPolicy", "vault", "without ana", |policy| let_in(policy) == json!(["ben"])).await;
    let mut off = using(&["vault"]);
    off["tools"][0]["enabled"] = json!(false);
    yard.agent("ben", off).await;
    yard.see("NetworkPolicy", "vault", "nobody", |policy| let_in(policy).is_null()).await;
    yard.agent("cem", using(&["vault"])).await;
    yard.see("NetworkPolicy", "vault", "cem", |policy| let_in(policy) == json!(["cem"])).await;
    yard.delete("LanguageAgent", "cem").await;
    yard.see("NetworkPolicy", "vault", "nobody again", |policy| let_in(policy).is_null()).await;
    assert!(operator.stop().await);
}
