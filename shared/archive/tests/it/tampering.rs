//! Every line of an exported audit log, meddled with in every way: each is found.
//!
//! One checkpoint is known from elsewhere, as an auditor keeps it. Without that, an archive whose end was cut off
//! together with its checkpoints is one that was made earlier.

use crate::exporting::judge;
use crate::world::World;
use archive::{ArchiveReader, Checkpoint, Expectations, PublicKeys, SigningKey};
use domain::{Moment, Tenant};
use store::{Chain, ChainLink, EntryPlace};

/// Ten entries in two files, with checkpoints behind 3, 7 and 10; and the last checkpoint.
async fn exported() -> (World, Vec<Vec<String>>, Vec<Checkpoint>) {
    let world = World::with_folder().await;
    for (count, export) in [(3, false), (4, true), (3, true)] {
        world.write(count).await;
        world.sign().await;
        if export {
            world.export().await;
        }
    }
    let files = world.exported();
    assert_eq!(files.len(), 2);
    let known = files.iter().flatten().rev().find_map(|line| Checkpoint::read(line)).unwrap();
    assert_eq!(judge(&world, &files, std::slice::from_ref(&known)).unwrap().entries, 10);
    (world, files, vec![known])
}

/// A line with one character of its last text or number changed.
fn edited(line: &str) -> String {
    let at = line.rfind(|c: char| c.is_ascii_alphanumeric()).unwrap();
    let other = if &line[at..=at] == "1" { "2" } else { "1" };
    format!("{}{other}{}", &line[..at], &line[at + 1..])
}

/// Entries, links and checkpoints follow each other among their own kind only.
fn kind(line: &str) -> &str {
    &line[..line.find(':').unwrap()]
}

#[tokio::test]
async fn whatever_is_done_to_any_line_is_found() {
    let (world, files, known) = exported().await;
    let mut tried = 0;
    for file in 0..files.len() {
        for at in 0..files[file].len() {
            let mut ways: Vec<(&str, Vec<String>)> = Vec::new();
            let lines = &files[file];
            let with = |change: &dyn Fn(&mut Vec<String>)| {
                let mut bent = lines.clone();
                change(&mut bent);
                bent
            };
            ways.push(("deleted", with(&|lines| drop(lines.remove(at)))));
            ways.push(("doubled", with(&|lines| lines.insert(at, lines[at].clone()))));
            ways.push(("edited", with(&|lines| lines[at] = edited(&lines[at]))));
            ways.push(("truncated", with(&|lines| lines.truncate(at))));
            ways.push((
                "cut in half",
                with(&|lines| {
                    let half = lines[at].len() / 2;
                    lines[at].truncate(half);
                }),
            ));
            if at + 1 < lines.len() && (at == 0 || kind(&lines[at]) == kind(&lines[at + 1])) {
                ways.push(("swapped", with(&|lines| lines.swap(at, at + 1))));
            }
            // The next one of the same kind, wherever it stands.
            if let Some(next) = (at + 1..lines.len()).find(|next| kind(&lines[*next]) == kind(&lines[at])) {
                ways.push(("exchanged", with(&|lines| lines.swap(at, next))));
            }
            for (way, bent) in ways {
                let mut all = files.clone();
                all[file] = bent;
                let found = judge(&world, &all, &known);
                assert!(found.is_err(), "line {} of file {file}, {way}: {found:?}", at + 1);
                tried += 1;
            }
        }
    }
    assert!(tried > 100, "{tried}");
}

#[tokio::test]
async fn what_is_done_to_whole_files_is_named() {
    let (world, files, known) = exported().await;
    let [first, second] = files.try_into().unwrap();
    let told = |files: &[Vec<String>]| judge(&world, files, &known).unwrap_err();
    assert_eq!(told(std::slice::from_ref(&first)), "checkpoint 3 is missing");
    assert_eq!(told(std::slice::from_ref(&second)), "checkpoint 1 is missing", "the first file is gone");
    assert_eq!(told(&[first.clone(), first.clone()]), "entry 1 is forked: this file holds another history");
    assert_eq!(told(&[second.clone(), first.clone()]), "entry 1 is forked: this file holds another history");
    assert_eq!(judge(&world, &[first, second], &known).unwrap().signed, 10);
}

/// The whole audit log as somebody writes it anew who can write everything, with another entry 5, all links computed
/// again, and signed with a key.
fn rewritten(files: &[Vec<String>], key: &SigningKey) -> Vec<String> {
    let tenant = Tenant::parse("acme").unwrap();
    let (mut chain, mut lines, mut former) = (Chain::of(&tenant), Vec::new(), None::<Checkpoint>);
    let mut last = None::<ChainLink>;
    for line in files.iter().flatten() {
        if let Some(checkpoint) = Checkpoint::read(line) {
            let made = Checkpoint::sign(&tenant, &last.unwrap(), former.as_ref(), checkpoint.made_at().unwrap(), key);
            lines.push(made.to_line());
            former = Some(made);
        } else if let Some(rest) = line.strip_prefix(r#"{"id":""#) {
            let (place, entry) = rest.split_once(r#"","entry":"#).unwrap();
            let mut entry = entry.strip_suffix('}').unwrap().to_owned();
            if chain.len() == 4 {
                entry = entry.replace(r#""phase":"admin""#, r#""phase":"close""#);
                assert!(entry.contains("close"));
            }
            let link = chain.add(EntryPlace::parse(place).unwrap(), entry.as_bytes());
            lines.push(format!(r#"{{"id":"{place}","entry":{entry}}}"#));
            lines.push(serde_json::to_string(&link).unwrap());
            last = Some(link);
        }
    }
    let seal = serde_json::to_string(&last).unwrap();
    lines.insert(0, format!(r#"{{"ledger":2,"tenant":"acme","after":null,"seal":{seal}}}"#));
    lines
}

#[tokio::test]
async fn an_audit_log_that_was_written_anew_and_signed_anew_is_found() {
    let (world, files, known) = exported().await;
    let stranger = SigningKey::derive(&[9; 32]).unwrap();
    let anew = rewritten(&files, &stranger);
    assert_eq!(
        judge(&world, std::slice::from_ref(&anew), &[]).unwrap_err(),
        "checkpoint 1 is signed by an unknown key"
    );
    // Whoever has the key itself is found by what was kept elsewhere, and by nothing else.
    let stolen = rewritten(&files, &world.archive.keys.signing);
    assert_eq!(judge(&world, std::slice::from_ref(&stolen), &[]).unwrap().entries, 10);
    assert_eq!(judge(&world, &[stolen], &known).unwrap_err(), "checkpoint 3 is forked");
    // Links that were computed anew under the old checkpoints.
    let mut mixed = anew;
    let mut old = files.iter().flatten().filter(|line| line.starts_with(r#"{"checkpoint""#));
    mixed
        .iter_mut()
        .filter(|line| line.starts_with(r#"{"checkpoint""#))
        .for_each(|line| line.clone_from(old.next().unwrap()));
    assert_eq!(judge(&world, &[mixed], &[]).unwrap_err(), "checkpoint 2 is contradicted by the entries");
}

#[test]
fn sealed_entries_without_any_checkpoint_are_told_of() {
    let tenant = Tenant::parse("acme").unwrap();
    let judge = |count: u64, apart: u64| {
        let (mut chain, mut lines, mut last) = (Chain::of(&tenant), Vec::new(), None);
        for number in 0..count {
            let at = Moment::from_millis(1_763_280_000_000 + number * apart);
            let place = EntryPlace::from(store::StreamId { at, seq: 0 });
            let link = chain.add(place, b"{}");
            lines.push(format!(r#"{{"id":"{place}","entry":{{}}}}"#));
            lines.push(serde_json::to_string(&link).unwrap());
            last = Some(link);
        }
        let seal = serde_json::to_string(&last).unwrap();
        lines.insert(0, format!(r#"{{"ledger":2,"tenant":"acme","after":null,"seal":{seal}}}"#));
        let mut reader = ArchiveReader::default();
        lines.iter().for_each(|line| reader.line(line).unwrap());
        let keys = PublicKeys::default();
        let expected = Expectations { keys: Some(&keys), known: &[], whole: true };
        reader.finish(expected).map(|verified| verified.unwrap().entries).map_err(|flaw| flaw.to_string())
    };
    assert_eq!(judge(2_000, 1), Ok(2_000));
    let missing = Err("checkpoint 1 is missing for entries that are long sealed".to_owned());
    assert_eq!(judge(2_001, 1), missing, "too many");
    assert_eq!(judge(3, 3_600_000), Ok(3));
    assert_eq!(judge(3, 3_600_001), missing, "too long");
}
