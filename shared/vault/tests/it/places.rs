//! Where a secret comes from, and when nothing is said.

use crate::bench::*;
use domain::{Code, Failure};
use redact::NotAtHand;
use store::Store;
use testkit::redis::RedisServer;
use vault::{Environment, Missing, SealState, SecretLocation, Vault};

on_every_store!(
    the_store_goes_before_a_file_and_a_file_before_the_environment,
    a_list_says_everything_but_the_value,
    a_secret_is_one_tenants,
    a_client_that_holds_on_to_a_secret_reads_it_anew,
    what_is_an_operators_to_bring_is_not_taken_from_the_store,
    what_the_operator_brought_is_not_given_out_as_a_tenants_own,
);

const VARIABLES: [(&str, &str); 3] = [
    ("QUARTERMASTER_SECRET__ACME__PULL", "from the environment"),
    ("QUARTERMASTER_SECRET__ACME__ONLY_HERE", "from the environment"),
    ("QUARTERMASTER_SECRET__GLOBEX__PULL", "of another"),
];

async fn the_store_goes_before_a_file_and_a_file_before_the_environment(bench: Bench) {
    let vault = bench.vault_with(sealer(1, &[]), &VARIABLES);
    assert!(vault.refresh(&acme()).await.unwrap());
    assert_eq!(read(&vault, "pull").as_deref(), Ok("from the environment"));
    bench.mount("acme", "pull", "from a file\n");
    assert_eq!(read(&vault, "pull").as_deref(), Ok("from a file"));
    set(&vault, "pull", "from the store").await;
    assert_eq!(read(&vault, "pull").as_deref(), Ok("from the store"), "without a refresh: it was set here");

    vault.forget(&acme(), "pull", &ada(), None).await.unwrap();
    assert_eq!(read(&vault, "pull").as_deref(), Ok("from a file"));
    // One that is there but cannot be used does not give way to what is below it.
    bench.mount("acme", "pull", "");
    assert_eq!(read(&vault, "pull"), Err(Missing::File { name: "pull".into() }));
    assert_eq!(read(&vault, "none"), unknown("none"));
    for bad in ["../globex/pull", "..data", "", "a/b", "."] {
        assert_eq!(read(&vault, bad), Err(Missing::NotAName), "{bad}");
    }
}

async fn what_is_an_operators_to_bring_is_not_taken_from_the_store(bench: Bench) {
    let vault = bench.vault_with(sealer(1, &[]), &[]);
    vault.refresh(&acme()).await.unwrap();
    bench.mount("acme", "kubeconfig", "of the operator");
    let kept = vault.kept_by_operator(&acme(), "kubeconfig");
    assert_eq!(kept.read().unwrap().expose(), "of the operator");
    set(&vault, "kubeconfig", "of a tenant").await;
    assert_eq!(kept.read().unwrap_err(), NotAtHand::Gone, "neither of the two: nobody can tell which was meant");
    vault.forget(&acme(), "kubeconfig", &ada(), None).await.unwrap();
    assert_eq!(kept.read().unwrap().expose(), "of the operator");
}

async fn what_the_operator_brought_is_not_given_out_as_a_tenants_own(bench: Bench) {
    let vault = bench.vault_with(sealer(1, &[]), &VARIABLES);
    vault.refresh(&acme()).await.unwrap();
    bench.mount("acme", "token", "of the operator");
    let kept = vault.kept_by_tenant(&acme(), "token");
    assert_eq!(kept.read().unwrap_err(), NotAtHand::Gone);
    assert_eq!(vault.read_by_tenant(&acme(), "token").unwrap_err(), Missing::NotGranted { name: "token".into() });
    assert_eq!(
        vault.read_by_tenant(&acme(), "only_here").unwrap_err(),
        Missing::NotGranted { name: "only_here".into() }
    );
    assert_ne!(kept, vault.kept(&acme(), "token"), "a client with the one is not kept for the other");
    set(&vault, "token", "of the tenant").await;
    assert_eq!(kept.read().unwrap().expose(), "of the tenant");
    vault.forget(&acme(), "token", &ada(), None).await.unwrap();
    assert_eq!(kept.read().unwrap_err(), NotAtHand::Gone, "what lies beneath does not come up");
}

async fn a_list_says_everything_but_the_value(bench: Bench) {
    let vault = bench.vault_with(sealer(1, &[]), &VARIABLES);
    bench.mount("acme", "pull", "canary-in-a-file");
    bench.mount("acme", "tls.crt", "canary-in-a-file");
    set(&vault, "pull", "canary-in-the-store").await;
    let told = set(&vault, "pull", "canary-in-the-store").await;

    let list = vault.list(&acme()).await.unwrap();

    let shown: Vec<_> = list.iter().map(|facts| (facts.name.as_str(), facts.sources.as_slice())).collect();
    assert_eq!(
        shown,
        [
            ("only_here", &[SecretLocation::Environment][..]),
            ("pull", &[SecretLocation::Store, SecretLocation::File, SecretLocation::Environment]),
            ("tls.crt", &[SecretLocation::File]),
        ]
    );
    assert_eq!(list[1].kept.as_ref(), Some(&told));
    assert_eq!((told.version, told.by.subject.as_str(), told.standing), (2, "ada", SealState::Current));
    assert!(told.at <= bench.store.now().await.unwrap());
    let scrubber = vault.scrubber_of_all(&acme());
    let printed = format!(
        "{list:?} {vault:?} {scrubber:?} {:?} {:?} {:?} {:?}",
        vault.read(&acme(), "pull"),
        vault.kept(&acme(), "pull"),
        Environment::of([("QUARTERMASTER_SECRET__ACME__X", "canary")]),
        bench.store.of(&acme()).secrets().get_many(&["pull".to_owned()]).await,
    );
    assert!(!printed.contains("canary"), "{printed}");
}

async fn a_secret_is_one_tenants(bench: Bench) {
    let (vault, globex) = (bench.vault_with(sealer(1, &[]), &VARIABLES), tenant("globex"));
    bench.mount("acme", "own", "acme's");
    set(&vault, "set", "acme's").await;
    for who in [acme(), globex.clone()] {
        vault.refresh(&who).await.unwrap();
    }
    assert_eq!(vault.read(&globex, "pull").unwrap().expose(), "of another");
    for name in ["own", "set", "only_here"] {
        assert_eq!(vault.read(&globex, name), Err(Missing::Unknown { name: name.into() }), "{name}");
    }
    assert_eq!(vault.names(&globex), ["pull"]);
    // A blob that somebody copies over in the store does not open.
    let stolen =
        bench.store.of(&acme()).secrets().get_many(&["set".to_owned()]).await.unwrap().remove(0).unwrap().unwrap();
    let entry = store::AuditEntry::new(store::Phase::Admin);
    let theirs = bench.store.of(&globex).secrets();
    assert!(matches!(
        theirs.put("set", stolen.sealed, &ada().principal, None, &entry).await.unwrap(),
        store::SecretPut::Done(_)
    ));
    vault.refresh(&globex).await.unwrap();
    assert_eq!(vault.read(&globex, "set"), Err(Missing::Sealed { name: "set".into() }));
    assert_eq!(vault.list(&globex).await.unwrap()[1].kept.as_ref().unwrap().standing, SealState::Unopenable);
}

async fn a_client_that_holds_on_to_a_secret_reads_it_anew(bench: Bench) {
    let vault = bench.vault.clone();
    let kept = vault.kept(&acme(), "token");
    assert_eq!(kept.read(), Err(NotAtHand::Unreadable), "the store may hold it");
    vault.refresh(&acme()).await.unwrap();
    assert_eq!(kept.read(), Err(NotAtHand::Gone));
    for value in ["first", "second"] {
        set(&vault, "token", value).await;
        assert_eq!(kept.read().unwrap().expose(), value);
    }
    vault.forget(&acme(), "token", &ada(), None).await.unwrap();
    assert_eq!(kept.read(), Err(NotAtHand::Gone));
    assert_eq!((kept.name(), kept == vault.kept(&acme(), "token")), ("token", true));
    assert_ne!(kept, vault.kept(&acme(), "other"));
}

#[tokio::test]
async fn while_the_store_was_never_read_nothing_below_it_counts() {
    let mut server = RedisServer::reserved();
    let settings = store::Config { deadline: std::time::Duration::from_millis(300), ..config(server.url()) };
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("acme")).unwrap();
    std::fs::write(folder.path().join("acme/pull"), "what was replaced").unwrap();
    let store = Store::open(&settings).await.unwrap();
    let vault = Vault::new(store, sealer(1, &[]), folder.path().to_owned(), Environment::default());

    assert!(vault.refresh(&acme()).await.is_err());
    let missing = vault.read(&acme(), "pull").unwrap_err();
    assert_eq!(missing, Missing::NotKnownYet { name: "pull".into() });
    assert_eq!(Failure::from(missing).code, Code::StoreUnavailable);
    assert!(vault.list(&acme()).await.is_err());
    assert!(vault.scrubber_of_all(&acme()).is_empty());

    server.restart();
    let back = async {
        while vault.refresh(&acme()).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), back).await.unwrap();
    assert_eq!(read(&vault, "pull").as_deref(), Ok("what was replaced"));
    assert!(!vault.scrubber_of_all(&acme()).is_empty());

    // What was known stays when the store goes away again, and so does what was set.
    let written = async {
        while vault.set(&acme(), "pull", text("what counts"), &ada(), None).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), written).await.unwrap();
    server.stop();
    assert!(vault.refresh(&acme()).await.is_err());
    assert_eq!(read(&vault, "pull").as_deref(), Ok("what counts"));
    vault.drop_tenant(&acme());
    assert_eq!(read(&vault, "pull"), Err(Missing::NotKnownYet { name: "pull".into() }));
}
