//! A server's tool names and ours: `mcp_<server>__<tool>`, at most 64 letters, no two alike.
//!
//! Pure, and the same whatever the order of the list. A server's id holds no underscore, so the first `__` ends it and no
//! two servers can ever meet; nothing built in begins with `mcp_`, which is checked all the same.

use domain::{ToolName, ToolsetName, json};
use std::collections::{BTreeMap, BTreeSet};

/// The longest name a server may give a tool, in bytes.
pub(crate) const LONGEST: usize = 256;
/// The longest name of ours.
const MOST: usize = 64;
/// How much of a digest tells two names apart that would read alike.
const TAIL: usize = 8;

/// Why a name of a server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadName {
    #[error("it has no name")]
    Empty,
    #[error("its name is longer than {LONGEST} bytes")]
    Long,
    #[error("its name holds control characters")]
    Control,
    #[error("its name cannot be told from another one of this service")]
    Taken,
}

/// The toolset of a server.
pub(crate) fn toolset(server: &str) -> Option<ToolsetName> {
    ToolsetName::parse(&format!("mcp_{server}")).ok()
}

/// Our name for each of a server's names. What is `reserved` is never given away.
pub(crate) fn names<'a>(
    server: &str,
    originals: impl IntoIterator<Item = &'a str>,
    reserved: &BTreeSet<String>,
) -> BTreeMap<String, Result<ToolName, BadName>> {
    let originals: BTreeSet<&str> = originals.into_iter().collect();
    let fitting: Vec<&str> = originals.iter().copied().filter(|name| check(name).is_ok()).collect();
    let mut short: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in &fitting {
        short.entry(plain(server, name)).or_default().push(name);
    }
    // A name that needs no change keeps it; of those that were changed into the same, none does.
    let keeps = |name: &str| {
        let plain = plain(server, name);
        let alone = short.get(&plain).is_some_and(|all| all.len() == 1);
        plain.len() <= MOST && !reserved.contains(&plain) && (alone || is_ours(name))
    };
    let given = |name: &str| if keeps(name) { plain(server, name) } else { tailed(server, name) };
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for name in &fitting {
        *taken.entry(given(name)).or_default() += 1;
    }
    // What ends like one of ours by design, or by a digest somebody searched for, is left out: all that read so.
    let decide = |name: &str| {
        check(name)?;
        let ours = given(name);
        let free = taken.get(&ours) == Some(&1) && !reserved.contains(&ours);
        ToolName::parse(&ours).ok().filter(|_| free).ok_or(BadName::Taken)
    };
    originals.iter().map(|name| ((*name).to_owned(), decide(name))).collect()
}

fn check(name: &str) -> Result<(), BadName> {
    match name {
        "" => Err(BadName::Empty),
        _ if name.len() > LONGEST => Err(BadName::Long),
        _ if name.chars().any(char::is_control) => Err(BadName::Control),
        _ => Ok(()),
    }
}

fn is_ours(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// The name with every letter that ours cannot hold as `_`, however long.
fn plain(server: &str, name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    format!("mcp_{server}__{}", name.chars().map(letter).collect::<String>())
}

/// The name cut, with a piece of the digest of the original behind it.
fn tailed(server: &str, name: &str) -> String {
    let digest = json::sha256_hex(name.as_bytes());
    let head: String = plain(server, name).chars().take(MOST - TAIL - 1).collect();
    format!("{head}_{}", &digest[..TAIL])
}

#[cfg(test)]
mod tests;
