use crate::notebook::world::{AGENT, World, note, path};
use domain::Code;
use memory::documents::{ForgetDepth, ForgetRequest, Prefix, Write};
use store::DocOp;

fn forget(at: &str, extent: ForgetDepth) -> ForgetRequest {
    ForgetRequest { path: path(at), reason: "no longer true".into(), extent, if_sha256: None }
}

#[tokio::test]
async fn a_deleted_document_leaves_lists_and_its_versions_stay_and_its_numbers_go_on() {
    let world = World::new().await;
    let (author, at) = (AGENT.author(None), "session/notes/a");
    world.notebook.write(&author, &note(at, "one")).await.unwrap();
    let gone = world.notebook.forget(&author, &forget(at, ForgetDepth::Deleted)).await.unwrap();
    let again = world.notebook.forget(&author, &forget(at, ForgetDepth::Deleted)).await.unwrap();
    assert!(gone.deleted && gone == again);

    let reader = AGENT.reader();
    assert_eq!(world.notebook.read(&reader, &path(at), None).await.unwrap_err().code, memory::codes::DOC_NOT_FOUND);
    assert!(world.notebook.list(&reader, &Prefix::parse("session").unwrap(), None, 10).await.unwrap().items.is_empty());
    assert_eq!(world.notebook.read(&reader, &path(at), Some(1)).await.unwrap().content, "one");
    assert_eq!(world.notebook.read(&reader, &path(at), Some(2)).await.unwrap_err().code, memory::codes::DOC_NOT_FOUND);
    let past = world.notebook.history(&reader, &path(at), None, 10).await.unwrap();
    let ops: Vec<_> = past.versions.iter().map(|version| (version.version, version.op)).collect();
    assert_eq!(ops, [(2, DocOp::Delete), (1, DocOp::Create)]);

    let anew = world.notebook.write(&author, &note(at, "two")).await.unwrap();
    assert_eq!((anew.created, anew.document.version, anew.document.op), (true, 3, DocOp::Create));
}

#[tokio::test]
async fn a_redacted_version_has_no_text_and_says_who_and_why() {
    let world = World::new().await;
    let (person, at) = (AGENT.person(), "user/notes/a");
    let first = world.notebook.write(&person, &note(at, "one, with a canary")).await.unwrap().document;
    let second = Write { if_sha256: Some(first.sha256), ..note(at, "two") };
    world.notebook.write(&person, &second).await.unwrap();

    let left = world.notebook.forget(&person, &forget(at, ForgetDepth::Version(1))).await.unwrap();
    assert_eq!((left.deleted, left.redacted), (false, vec![1]));
    let failure = world.notebook.read(&AGENT.reader(), &path(at), Some(1)).await.unwrap_err();
    let details = failure.details.unwrap();
    assert_eq!((failure.code, details["reason"].as_str()), (memory::codes::REDACTED, Some("no longer true")));
    assert_eq!(world.notebook.read(&AGENT.reader(), &path(at), None).await.unwrap().content, "two");
    let past = world.notebook.history(&AGENT.reader(), &path(at), None, 10).await.unwrap();
    assert!(!format!("{past:?}").contains("canary"));

    world.notebook.forget(&person, &forget(at, ForgetDepth::Everything)).await.unwrap();
    assert_eq!(world.notebook.read(&AGENT.reader(), &path(at), None).await.unwrap_err().code, memory::codes::REDACTED);
    assert_eq!(
        world.notebook.forget(&person, &forget(at, ForgetDepth::Version(9))).await.unwrap_err().code,
        memory::codes::DOC_NOT_FOUND
    );
}

#[tokio::test]
async fn what_was_approved_to_go_is_what_goes() {
    let world = World::new().await;
    let (person, at) = (AGENT.person(), "user/notes/a");
    let first = world.notebook.write(&person, &note(at, "one")).await.unwrap().document;
    let wanted = forget(at, ForgetDepth::Deleted);
    let sketch = world.notebook.sketch_forget(&AGENT.asking(), &wanted).await.unwrap();
    assert!(sketch.text.contains("one") && sketch.text.contains("no longer true"), "{}", sketch.text);
    let redact = world.notebook.sketch_forget(&AGENT.asking(), &forget(at, ForgetDepth::Everything)).await.unwrap();
    assert!(!redact.text.contains("> one"), "a picture of the text would outlive it: {}", redact.text);
    let run = world.approved(AGENT, 5, &sketch).await;

    let second = Write { if_sha256: Some(first.sha256), ..note(at, "two, and worth keeping") };
    world.notebook.write(&person, &second).await.unwrap();
    assert_eq!(world.notebook.forget(&run, &wanted).await.unwrap_err().code, Code::Stale);
    assert_eq!(world.notebook.read(&AGENT.reader(), &path(at), None).await.unwrap().version, 2);

    let sketch = world.notebook.sketch_forget(&AGENT.asking(), &wanted).await.unwrap();
    let run = world.approved(AGENT, 6, &sketch).await;
    assert_eq!(world.notebook.forgotten(&run, &wanted).await.unwrap(), None);
    world.notebook.forget(&run, &wanted).await.unwrap();
    assert!(world.notebook.forgotten(&run, &wanted).await.unwrap().unwrap().deleted);
    assert!(world.notebook.forget(&run, &wanted).await.unwrap().deleted, "sent again, nothing more happens");
    assert_eq!(world.notebook.history(&AGENT.reader(), &path(at), None, 10).await.unwrap().versions.len(), 3);
}

#[tokio::test]
async fn an_agent_forgets_nothing_beyond_its_session_by_itself_and_nothing_of_people_at_all() {
    let world = World::new().await;
    world.notebook.write(&AGENT.person(), &note("user/notes/a", "one")).await.unwrap();
    world.notebook.write(&AGENT.person(), &note("tenant/conventions/a", "one")).await.unwrap();
    let unasked = world.notebook.forget(&AGENT.asking(), &forget("user/notes/a", ForgetDepth::Deleted)).await;
    assert_eq!(unasked.unwrap_err().code, Code::Internal);
    let theirs =
        world.notebook.sketch_forget(&AGENT.asking(), &forget("tenant/conventions/a", ForgetDepth::Deleted)).await;
    assert_eq!(theirs.unwrap_err().code, memory::codes::READ_ONLY_STORE);
    let secret =
        ForgetRequest { reason: "it held AKIAIOSFODNN7EXAMPLE".into(), ..forget("user/notes/a", ForgetDepth::Deleted) };
    assert_eq!(world.notebook.forget(&AGENT.person(), &secret).await.unwrap_err().code, memory::codes::SECRET_FOUND);
}
