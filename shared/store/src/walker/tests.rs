use super::*;
use crate::StreamId;
use crate::chain::{KeptLink, LinkBatch};
use domain::Moment;
use proptest::prelude::*;

fn acme() -> Tenant {
    Tenant::parse("acme").unwrap()
}

/// Three entries stand in each item.
fn place(number: u64) -> EntryPlace {
    let at = Moment::from_millis(1_000 + (number - 1) / 3);
    EntryPlace { item: StreamId { at, seq: 0 }, index: u32::try_from((number - 1) % 3).unwrap() }
}

/// An audit log as it can be handed over, and changed before.
#[derive(Clone)]
struct AuditLog {
    entries: Vec<(EntryPlace, Vec<u8>)>,
    links: Vec<EntryLink>,
    /// The same, whole.
    chain: Vec<ChainLink>,
    seal: Option<ChainLink>,
}

/// That many entries, the first `sealed` of them sealed, six in a batch. Entry `n` stands at `place(n)`, counted from 1.
fn audit_log(entries: u64, sealed: u64) -> AuditLog {
    let mut chain = Chain::of(&acme());
    let entries: Vec<_> = (1..=entries).map(|n| (place(n), format!("entry {n}").into_bytes())).collect();
    let sealed = usize::try_from(sealed).unwrap();
    let chain: Vec<ChainLink> = entries.iter().take(sealed).map(|(id, body)| chain.add(*id, body)).collect();
    let batches: Vec<LinkBatch> = chain.chunks(6).filter_map(LinkBatch::of).collect();
    let links = batches.iter().flat_map(LinkBatch::links).collect();
    AuditLog { entries, seal: chain.last().copied(), links, chain }
}

/// Changes one bit of what was kept of a link.
fn edit(link: &mut EntryLink) {
    match &mut link.kept {
        KeptLink::Whole(bytes) => bytes[0] ^= 1,
        KeptLink::Short(bytes) => bytes[0] ^= 1,
    }
}

impl AuditLog {
    /// Handed over as a file is: each link behind its entry.
    fn verify(&self) -> Result<VerifiedAuditLog, ChainBreak> {
        let mut walker = Walker::new(&acme(), self.seal);
        let mut links = self.links.iter();
        for (id, body) in &self.entries {
            walker.entry(*id, body.clone())?;
            links.next().map_or(Ok(()), |link| walker.link(*link))?;
        }
        links.try_for_each(|link| walker.link(*link))?;
        walker.finish()
    }

    fn broken(&self) -> (u64, Option<EntryPlace>, AuditLogFlaw) {
        let ChainBreak { seq, entry, what } = self.verify().unwrap_err();
        (seq, entry, what)
    }
}

#[test]
fn an_audit_log_that_nobody_touched_is_verified_whole() {
    for (entries, sealed) in [(0, 0), (1, 0), (1, 1), (7, 5), (3_000, 3_000), (3_000, 0), (3_000, 1_500)] {
        let wanted = VerifiedAuditLog { entries, sealed, unsealed: entries - sealed };
        assert_eq!(audit_log(entries, sealed).verify(), Ok(wanted));
    }
}

#[test]
fn an_edited_entry_is_named() {
    for (total, at) in [(5, 1), (5, 5), (3_000, 1_700)] {
        let mut audit_log = audit_log(total, total);
        audit_log.entries[at - 1].1.push(b'!');
        let at = at as u64;
        assert_eq!(audit_log.broken(), (at, Some(place(at)), AuditLogFlaw::Edited));
    }
}

#[test]
fn an_edited_link_is_named_and_so_is_an_edited_seal() {
    for at in [3, 6] {
        let mut changed = audit_log(9, 9);
        edit(&mut changed.links[at - 1]);
        assert_eq!(changed.broken(), (at as u64, Some(place(at as u64)), AuditLogFlaw::Edited));
    }
    let mut changed = audit_log(5, 5);
    changed.seal.as_mut().unwrap().link[31] ^= 1;
    assert_eq!(changed.broken(), (5, Some(place(5)), AuditLogFlaw::Edited));
}

#[test]
fn a_missing_entry_is_named_whether_or_not_its_link_is_there() {
    for (total, at) in [(5, 1), (5, 4), (3_000, 1_700)] {
        let mut without = audit_log(total, total);
        without.entries.remove(at - 1);
        let seq = at as u64;
        assert_eq!(without.broken(), (seq, Some(place(seq)), AuditLogFlaw::Missing));
        without.links.remove(at - 1);
        assert_eq!(without.broken(), (seq, None, AuditLogFlaw::Missing));
    }
}

#[test]
fn an_entry_whose_link_is_gone_is_named() {
    let mut audit_log = audit_log(5, 5);
    audit_log.links.remove(1);
    assert_eq!(audit_log.broken(), (2, Some(place(2)), AuditLogFlaw::Unlinked));
}

#[test]
fn entries_that_changed_places_are_told_from_edited_ones() {
    let whole = audit_log(9, 9);
    let mut swapped = whole.clone();
    swapped.entries.swap(2, 6);
    assert_eq!(swapped.broken(), (3, Some(place(7)), AuditLogFlaw::Reordered));
    let mut bodies = whole.clone();
    let other = bodies.entries[6].1.clone();
    bodies.entries[6].1 = std::mem::replace(&mut bodies.entries[2].1, other);
    assert_eq!(bodies.broken(), (3, Some(place(3)), AuditLogFlaw::Reordered));
    let mut links = whole;
    links.links.swap(2, 6);
    assert_eq!(links.broken(), (3, Some(place(3)), AuditLogFlaw::Reordered));
}

#[test]
fn an_audit_log_cut_off_before_its_seal_is_truncated() {
    let whole = audit_log(9, 9);
    let mut entries = whole.clone();
    entries.entries.truncate(6);
    assert_eq!(entries.broken(), (7, Some(place(7)), AuditLogFlaw::Truncated));
    let mut both = entries;
    both.links.truncate(6);
    assert_eq!(both.broken(), (7, None, AuditLogFlaw::Truncated));
    let mut links = whole.clone();
    links.links.truncate(6);
    assert_eq!(links.broken(), (7, Some(place(7)), AuditLogFlaw::Truncated));
    let nothing = AuditLog { entries: Vec::new(), links: Vec::new(), ..whole };
    assert_eq!(nothing.broken(), (1, None, AuditLogFlaw::Truncated));
}

#[test]
fn what_was_never_sealed_there_is_inserted() {
    let whole = audit_log(9, 9);
    let foreign = EntryPlace { index: 77, ..place(4) };
    let mut entry = whole.clone();
    entry.entries.insert(4, (foreign, b"forged".to_vec()));
    assert_eq!(entry.broken(), (5, Some(foreign), AuditLogFlaw::Inserted));
    let mut unsealed = whole.clone();
    unsealed.seal = Some(whole.chain[6]);
    assert_eq!(unsealed.broken(), (8, Some(place(8)), AuditLogFlaw::Inserted));
    let mut again = whole.clone();
    again.links.extend_from_slice(&whole.links);
    assert_eq!(again.broken(), (1, Some(place(1)), AuditLogFlaw::Inserted));
    let without = AuditLog { seal: None, ..whole };
    assert_eq!(without.broken(), (1, Some(place(1)), AuditLogFlaw::Inserted));
}

#[test]
fn unsealed_entries_are_held_to_their_order() {
    let mut audit_log = audit_log(9, 5);
    audit_log.entries.swap(6, 7);
    assert_eq!(audit_log.broken(), (8, Some(place(7)), AuditLogFlaw::Reordered));
}

#[test]
fn another_tenants_audit_log_does_not_pass_for_this_one() {
    let AuditLog { entries, links, seal, .. } = audit_log(1, 1);
    let mut walker = Walker::new(&Tenant::parse("other").unwrap(), seal);
    walker.entry(entries[0].0, entries[0].1.clone()).unwrap();
    walker.link(links[0]).unwrap();
    assert_eq!(walker.finish().unwrap_err().what, AuditLogFlaw::Edited);
}

#[test]
fn a_side_that_has_ended_is_noticed_long_before_the_other_one_ends() {
    let audit_log = audit_log(100_000, 100_000);
    let mut walker = Walker::new(&acme(), audit_log.seal);
    let taken = audit_log.entries.into_iter().take_while(|(id, body)| walker.entry(*id, body.clone()).is_ok()).count();
    assert_eq!(taken, FAR_AHEAD);
}

#[test]
fn links_that_were_computed_anew_up_to_the_end_of_a_batch_do_not_hide_an_edit() {
    let whole = audit_log(12, 12);
    let mut forged = whole.clone();
    forged.entries[1].1.push(b'!');
    let mut chain = Chain::of(&acme());
    let anew: Vec<ChainLink> = forged.entries.iter().map(|(id, body)| chain.add(*id, body)).collect();
    let batches = anew[..6].chunks(6).filter_map(LinkBatch::of).collect::<Vec<_>>();
    forged.links.splice(..6, batches.iter().flat_map(LinkBatch::links));
    assert_eq!(forged.broken(), (7, Some(place(7)), AuditLogFlaw::Edited), "the next batch does not follow it");
    forged.links[5] = whole.links[5];
    assert_eq!(forged.broken(), (6, Some(place(6)), AuditLogFlaw::Edited), "the whole link is another one");
}

#[test]
fn a_break_is_told_in_one_sentence() {
    let known = ChainBreak { seq: 12, entry: Some(place(12)), what: AuditLogFlaw::Edited };
    assert_eq!(known.to_string(), "entry 12 (1003-0.2) is edited");
    let gone = ChainBreak { seq: 12, entry: None, what: AuditLogFlaw::Missing };
    assert_eq!(gone.to_string(), "entry 12 is missing");
}

proptest! {
    #[test]
    fn no_change_to_what_is_sealed_goes_unseen(kind in 0..5_usize, at in 0..40_usize, to in 0..40_usize, byte in 0..7_usize) {
        let whole = audit_log(40, 40);
        let mut changed = whole.clone();
        match kind {
            0 => changed.entries[at].1[byte] ^= 0x20,
            1 => drop(changed.entries.remove(at)),
            2 => changed.entries.swap(at, to),
            3 => drop(changed.links.remove(at)),
            _ => changed.entries.truncate(at),
        }
        let same = changed.entries == whole.entries && changed.links == whole.links;
        prop_assert_eq!(changed.verify().is_ok(), same);
    }
}
