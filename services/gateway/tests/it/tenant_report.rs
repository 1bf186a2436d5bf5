//! The report for whoever writes the folder of tenants: which text is in force, and what is wrong with a newer one.

use crate::here::in_process;
use serde_json::Value;
use tenancy::text_digest;
use testkit::{Plan, until};

#[tokio::test(flavor = "multi_thread")]
async fn the_report_names_the_text_in_force_and_what_is_wrong_with_a_newer_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let plan = Plan::embedded().setting("QM_TENANTS__REPORT", path.to_str().unwrap());
    let world = plan.start(in_process()).await;
    let reported = async |what: &str, is: &dyn Fn(&Value) -> bool| {
        until(what, async || {
            let report: Value = serde_json::from_str(&std::fs::read_to_string(&path).ok()?).ok()?;
            is(&report["tenants"]["acme"]).then_some(report)
        })
        .await
    };
    let (good, bad) = ("tenant: acme\nmode: read\n", "tenant: acme\nmode: fly\n");
    world.write_tenant("acme", good);
    let first = reported("the good text", &|acme| acme["in_force"] == text_digest(good)).await;
    assert_eq!(first["tenants"]["acme"]["judged"], text_digest(good));
    assert_eq!(first["tenants"]["acme"]["problems"], Value::Null);

    world.write_tenant("acme", bad);
    let faulty = reported("the faulty text", &|acme| acme["judged"] == text_digest(bad)).await;
    let acme = &faulty["tenants"]["acme"];
    assert_eq!(acme["in_force"], text_digest(good), "what was good is served");
    assert_eq!(
        (&acme["problems"][0]["line"], faulty["process"] == first["process"]),
        (&Value::from(2), true),
        "{acme}"
    );
    assert!(faulty["tenants"]["other"]["in_force"].is_string(), "nobody else is concerned");

    world.remove_tenant("acme");
    reported("a tenant that is gone", &Value::is_null).await;
}
