//! What arrives at each kind of sink, and that it arrives again after a failure.

use crate::world::World;
use archive::{ArchiveReader, Checkpoint, Expectations, ExportError, ExportOutcome, VerifiedArchive};
use domain::json::hex;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::time::Duration;
use store::{AuditEntry, EntryContents, Phase};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Verifies files one after the other.
pub(crate) fn judge(world: &World, files: &[Vec<String>], known: &[Checkpoint]) -> Result<VerifiedArchive, String> {
    let mut reader = ArchiveReader::default();
    for file in files {
        for line in file {
            reader.line(line).map_err(|flaw| flaw.to_string())?;
        }
        reader.end_of_file().map_err(|flaw| flaw.to_string())?;
    }
    let expected = Expectations { keys: Some(&world.archive.keys.public), known, whole: true };
    reader.finish(expected).map_err(|flaw| flaw.to_string())?.ok_or_else(|| "nothing".to_owned())
}

#[tokio::test]
async fn a_folder_gets_files_that_verify_alone_and_together() {
    let world = World::with_folder().await;
    world.write(4).await;
    world.export().await;
    world.sign().await;
    world.write(5).await;
    world.sign().await;
    world.export().await;
    world.write(1).await;
    world.export().await;
    let files = world.exported();
    let names: Vec<String> =
        world.files().iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(
        names,
        [
            "000000000001-000000000004-00000000.jsonl",
            "000000000005-000000000009-00000002.jsonl",
            "000000000010-000000000010-00000002.jsonl"
        ]
    );
    let whole = judge(&world, &files, &[]).unwrap();
    assert_eq!((whole.after, whole.entries, whole.sealed, whole.unsealed), (0, 10, 10, 0));
    assert_eq!((whole.checkpoints, whole.signed), (2, 9));
    for (file, entries) in files.iter().zip([4, 5, 1]) {
        let mut reader = ArchiveReader::default();
        file.iter().for_each(|line| reader.line(line).unwrap());
        let alone = Expectations { keys: Some(&world.archive.keys.public), ..Expectations::default() };
        assert_eq!(reader.finish(alone).unwrap().unwrap().entries, entries);
    }
    assert_eq!(world.archive.export(0, &world.shelf).await.unwrap(), ExportOutcome::Nothing);
}

/// One request as it arrived.
struct Arrived {
    head: String,
    body: Vec<u8>,
}

impl Arrived {
    fn header(&self, name: &str) -> &str {
        let found =
            self.head.lines().filter_map(|line| line.split_once(": ")).find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

/// A receiver that answers the statuses in turn, and 200 from then on.
async fn receiver(statuses: Vec<u16>) -> (SocketAddr, mpsc::Receiver<Arrived>) {
    answering(statuses.into_iter().map(|status| (status, Vec::new())).collect()).await
}

/// The same with a body of each answer.
async fn answering(answers: Vec<(u16, Vec<u8>)>) -> (SocketAddr, mpsc::Receiver<Arrived>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, arrived) = mpsc::channel(64);
    #[expect(clippy::disallowed_methods, reason = "the receiver lives as long as the test's runtime")]
    tokio::spawn(async move {
        let mut answers = answers.into_iter();
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut bytes, mut part) = (Vec::new(), [0; 65_536]);
            let arrived = loop {
                let read = stream.read(&mut part).await.unwrap();
                bytes.extend_from_slice(&part[..read]);
                let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
                let arrived = Arrived {
                    head: String::from_utf8(bytes[..end].to_vec()).unwrap(),
                    body: bytes[end + 4..].to_vec(),
                };
                if arrived.header("content-length").parse() == Ok(arrived.body.len()) {
                    break arrived;
                }
            };
            sender.send(arrived).await.unwrap();
            let (status, body) = answers.next().unwrap_or((200, Vec::new()));
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        }
    });
    (address, arrived)
}

#[tokio::test]
async fn an_endpoint_that_failed_gets_the_same_chunk_again_under_the_same_key() {
    let (address, mut arrived) = receiver(vec![503]).await;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cr3t\n").unwrap();
    let sink = json!({ "name": "siem", "kind": "http", "url": format!("http://{address}/in"), "token_file": token, "every": "1ms" });
    let world = World::with(folder, &json!([sink])).await;
    world.write(2).await;
    world.sign().await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    let error = world.archive.export(0, &world.shelf).await.unwrap_err();
    assert!(
        matches!(&error, ExportError::Sink(error) if error.to_string() == "the sink answered with status 503"),
        "{error}"
    );
    let now = world.shelf.store().now().await.unwrap();
    assert!(world.archive.status.export_lag(now.plus(Duration::from_secs(9))) >= Duration::from_secs(9));
    // What comes meanwhile does not become a part of the chunk that was claimed.
    world.write(1).await;
    assert_eq!(world.archive.export(0, &world.shelf).await.unwrap(), ExportOutcome::Sent);
    world.export().await;
    let (first, again, rest) =
        (arrived.recv().await.unwrap(), arrived.recv().await.unwrap(), arrived.recv().await.unwrap());
    assert_eq!(first.body, again.body);
    assert_eq!(first.header("idempotency-key"), again.header("idempotency-key"));
    assert_ne!(first.header("idempotency-key"), rest.header("idempotency-key"));
    assert_eq!(
        (first.header("authorization"), first.header("content-type")),
        ("Bearer s3cr3t", "application/x-ndjson")
    );
    assert!(first.head.starts_with("POST /in HTTP/1.1"), "{}", first.head);
    let file =
        |arrived: &Arrived| String::from_utf8(arrived.body.clone()).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(judge(&world, &[file(&again), file(&rest)], &[]).unwrap().entries, 3);
    assert!(!format!("{:?}", world.archive).contains("s3cr3t"));
    let now = world.shelf.store().now().await.unwrap();
    assert_eq!(world.archive.status.export_lag(now), Duration::ZERO);
}

/// The signature of a request as a service computes it, from what arrived alone.
fn signature(arrived: &Arrived, secret: &str) -> String {
    let keyed = |key: &[u8], text: &str| {
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, key);
        aws_lc_rs::hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
    };
    let authorization = arrived.header("authorization");
    let part = |name: &str| {
        let (_, rest) = authorization.split_once(&format!("{name}=")).unwrap();
        rest.split(',').next().unwrap().to_owned()
    };
    let (scope, names) = (part("Credential"), part("SignedHeaders"));
    let (_, scope) = scope.split_once('/').unwrap();
    let request = arrived.head.lines().next().unwrap();
    let [method, path, _] = request.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let headers: String = names.split(';').map(|name| format!("{name}:{}\n", arrived.header(name))).collect();
    let body = hex(&Sha256::digest(&arrived.body));
    let canonical = format!("{method}\n{path}\n\n{headers}\n{names}\n{body}");
    let text =
        format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{}", arrived.header("x-amz-date"), hex(&Sha256::digest(canonical)));
    let key = scope.split('/').fold(format!("AWS4{secret}").into_bytes(), |key, part| keyed(&key, part));
    hex(&keyed(&key, &text))
}

#[tokio::test]
async fn a_bucket_gets_objects_with_a_signature_over_what_arrives() {
    let (address, mut arrived) = receiver(vec![]).await;
    let folder = tempfile::tempdir().unwrap();
    let (access, secret) = (folder.path().join("access"), folder.path().join("secret"));
    std::fs::write(&access, "AKID\n").unwrap();
    std::fs::write(&secret, "very/secret+key\n").unwrap();
    let sink = json!({ "name": "cold", "kind": "s3", "url": format!("http://{address}"), "bucket": "audit-logs",
        "region": "eu-central-1", "prefix": "qm/", "access_key_file": access, "secret_key_file": secret, "every": "1ms" });
    let world = World::with(folder, &json!([sink])).await;
    world.write(3).await;
    world.sign().await;
    world.export().await;
    let object = arrived.recv().await.unwrap();
    let (line, _) = object.head.split_once("\r\n").unwrap();
    assert!(line.starts_with("PUT /audit-logs/qm/acme/20"), "{line}");
    assert!(line.ends_with("/000000000001-000000000003-00000001.jsonl HTTP/1.1"), "{line}");
    let authorization = object.header("authorization");
    assert!(authorization.contains("Credential=AKID/") && authorization.contains("/eu-central-1/s3/aws4_request"));
    assert!(
        authorization.ends_with(&format!("Signature={}", signature(&object, "very/secret+key"))),
        "{authorization}"
    );
    assert!(!authorization.ends_with(&signature(&object, "another")));
    assert!(!object.header("x-amz-checksum-sha256").is_empty());
    let file = String::from_utf8(object.body).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(judge(&world, &[file], &[]).unwrap().signed, 3);
    assert!(!format!("{:?}", world.archive).contains("very/secret"));
}

#[tokio::test]
async fn a_collector_that_leaves_records_out_gets_the_chunk_again() {
    // The answer of a collector that took the request and left two records out.
    let partial = vec![0x0a, 0x02, 0x08, 0x02];
    let (address, mut arrived) = answering(vec![(200, partial)]).await;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cr3t\n").unwrap();
    let sink = json!({ "name": "otel", "kind": "otlp", "url": format!("http://{address}/v1/logs"), "token_file": token, "every": "1ms" });
    let world = World::with(folder, &json!([sink])).await;
    world.write(2).await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    let error = world.archive.export(0, &world.shelf).await.unwrap_err();
    assert_eq!(error.to_string(), "the sink left out 2 records");
    world.export().await;
    let (first, again) = (arrived.recv().await.unwrap(), arrived.recv().await.unwrap());
    assert_eq!(
        (first.header("authorization"), first.header("content-type")),
        ("Bearer s3cr3t", "application/x-protobuf")
    );
    assert!(first.head.starts_with("POST /v1/logs HTTP/1.1"), "{}", first.head);
    for entry in world.shelf.audit().page(None, 9).await.unwrap() {
        let id = entry.entry["id"].as_str().unwrap().as_bytes();
        for body in [&first.body, &again.body] {
            assert!(body.windows(id.len()).any(|window| window == id), "every entry is in it, both times");
        }
    }
    assert!(!format!("{:?}", world.archive).contains("s3cr3t"));
}

#[tokio::test]
async fn opened_contents_stand_beside_their_entries_and_are_held_to_their_digest() {
    let folder = tempfile::tempdir().unwrap();
    let sink = json!({ "name": "disk", "kind": "folder", "path": folder.path().join("out"), "every": "1ms", "contents": "opened" });
    let world = World::with(folder, &json!([sink])).await;
    for (text, most) in [("three whooping cranes", 99), ("a text that is cut", 6), ("only a digest", 0)] {
        let contents = Some(EntryContents { text: text.to_owned(), most });
        world.shelf.audit().note(&AuditEntry { contents, ..AuditEntry::new(Phase::Admin) }).await.unwrap();
    }
    world.write(1).await;
    world.export().await;
    let files = world.exported();
    assert_eq!(judge(&world, &files, &[]).unwrap().entries, 4);
    let text = files.concat().join("\n");
    assert!(text.contains(r#""contents":{"text":"three whooping cranes","whole":true,"salt":""#), "{text}");
    assert!(text.contains(r#""contents":{"text":"a text","whole":false,"salt":""#), "{text}");
    assert_eq!(text.matches(r#""salt":"#).count(), 2, "a tenant that wants digests keeps its salts: {text}");
    for (from, to) in [("three whooping", "seven whooping"), ("cranes\",\"whole\":true", "cranes\",\"whole\":false")] {
        let bent: Vec<Vec<String>> =
            files.iter().map(|file| file.iter().map(|line| line.replace(from, to)).collect()).collect();
        assert_ne!(bent, files);
        let flaw = judge(&world, &bent, &[]).unwrap_err();
        assert!(flaw.starts_with("entry 1 (") && flaw.ends_with("is edited"), "{flaw}");
    }
}

/// An S3-compatible service that somebody runs: its address, and the id and secret of an access key that may write to the
/// bucket `audit-logs`. `deploy/s3-for-tests` starts one.
#[expect(clippy::disallowed_methods, reason = "a test is told where the service is; the program has settings")]
fn real_bucket() -> Option<[String; 3]> {
    let told = std::env::var("QUARTERMASTER_TEST_S3").ok()?;
    told.split(' ').map(str::to_owned).collect::<Vec<_>>().try_into().ok()
}

#[tokio::test]
async fn a_real_bucket_takes_what_is_signed_and_refuses_what_is_not() {
    let Some([url, id, key]) = real_bucket() else {
        println!("SKIPPED: QUARTERMASTER_TEST_S3 names no service");
        return;
    };
    for (key, taken) in [(key.as_str(), true), ("another", false)] {
        let folder = tempfile::tempdir().unwrap();
        let (access, secret) = (folder.path().join("access"), folder.path().join("secret"));
        std::fs::write(&access, &id).unwrap();
        std::fs::write(&secret, key).unwrap();
        let sink = json!({ "name": "cold", "kind": "s3", "url": url, "bucket": "audit-logs", "region": "us-east-1",
            "prefix": "qm/", "access_key_file": access, "secret_key_file": secret, "every": "1ms" });
        let world = World::with(folder, &json!([sink])).await;
        world.write(3).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
        match world.archive.export(0, &world.shelf).await {
            Ok(outcome) => assert!(taken && outcome == ExportOutcome::Sent, "{outcome:?}"),
            Err(error) => assert!(!taken && error.to_string() == "the sink answered with status 403", "{error}"),
        }
    }
}
