//! Scrubbers follow the values.

use crate::bench::*;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn a_scrubber_knows_the_values_of_now_and_is_built_once_for_them() {
    let bench = Bench::memory().await;
    let vault = bench.vault_with(sealer(1, &[]), &[("QUARTERMASTER_SECRET__ACME__ENV", "canary-env")]);
    bench.mount("acme", "file", "canary-file\n");
    vault.refresh(&acme()).await.unwrap();
    set(&vault, "kept", "canary-kept").await;
    let text = "canary-env canary-file canary-kept canary-new";

    let one = vault.scrubber(&acme(), &["kept".into(), "absent".into()]);
    assert_eq!(one.scrub(text), "canary-env canary-file [redacted: secret] canary-new");
    assert!(Arc::ptr_eq(&one, &vault.scrubber(&acme(), &["kept".into()])));
    let all = vault.scrubber_of_all(&acme());
    assert_eq!(all.scrub(text), "[redacted: secret] [redacted: secret] [redacted: secret] canary-new");
    assert!(Arc::ptr_eq(&all, &vault.scrubber_of_all(&acme())));
    assert!(vault.scrubber_of_all(&tenant("globex")).is_empty());

    set(&vault, "kept", "canary-new").await;
    let shown = vault.scrubber_of_all(&acme()).scrub(text).into_owned();
    assert_eq!(shown, "[redacted: secret] [redacted: secret] canary-kept [redacted: secret]");
    // What was read from a file is searched for at once, whenever the folder was looked through last.
    for number in 0..20 {
        let value = format!("canary-{number:03}");
        bench.mount("acme", "file", &value);
        assert_eq!(read(&vault, "file").as_deref(), Ok(value.as_str()));
        assert_eq!(vault.scrubber_of_all(&acme()).scrub(&value), "[redacted: secret]");
    }
    // What nobody has read is found after a while.
    bench.mount("acme", "file", "canary-kept");
    let noticed = async {
        while vault.scrubber_of_all(&acme()).scrub(text).contains("canary-kept") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), noticed).await.unwrap();
}
