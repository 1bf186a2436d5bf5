//! Versions and ranges of them, with helm's meaning.
//!
//! `1.2.3` is that version; `1.2`, `1.2.x`, `~1.2`, `^1.2`, comparisons, `1.2 - 1.4`, `||` between alternatives, a comma or
//! a blank between conditions that must all hold. A version before a release (`-rc.1`) fits only conditions that name
//! one themselves. Without a range the newest release is meant.
//!
//! What differs from helm: `!=` is not understood.

use semver::Version;
use std::fmt;

/// The longest text of a range.
const MOST_BYTES: usize = 64;

/// A version, or a range of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    text: String,
    /// One of these must hold, and of it every condition.
    alternatives: Vec<Vec<VersionBounds>>,
}

/// Versions between two bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct VersionBounds {
    from: Option<(Version, Bound)>,
    to: Option<(Version, Bound)>,
    /// Whether it names a version before a release, and so speaks about such versions.
    early: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    With,
    Without,
}

impl Range {
    /// Reads a range; `None` where it means nothing.
    pub fn parse(text: &str) -> Option<Range> {
        let letter = |b: u8| b.is_ascii_alphanumeric() || b".+*^~<>=|, -".contains(&b);
        if !(1..=MOST_BYTES).contains(&text.len()) || !text.bytes().all(letter) || text.starts_with('-') {
            return None;
        }
        let alternatives = text.split("||").map(conditions).collect::<Option<Vec<_>>>()?;
        Some(Range { text: text.to_owned(), alternatives })
    }

    /// Any release.
    pub fn newest() -> Range {
        Range { text: "*".to_owned(), alternatives: vec![vec![VersionBounds::default()]] }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The one version it means, if it is no range.
    pub fn exact(&self) -> Option<Version> {
        let plain = self.text.strip_prefix('v').unwrap_or(&self.text);
        Version::parse(plain).ok()
    }

    /// Whether the version is in the range.
    pub fn holds(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|all| all.iter().all(|condition| condition.holds(version)))
    }

    /// The best of some spellings: the one that was written exactly so, else the highest that fits.
    pub fn best<'a, T>(&self, of: &'a [T], spelled: impl Fn(&T) -> &str) -> Option<&'a T> {
        let exactly = of.iter().find(|item| spelled(item) == self.text);
        exactly.or_else(|| {
            let read = of.iter().filter_map(|item| Some((version(spelled(item))?, item)));
            read.filter(|(version, _)| self.holds(version)).max_by(|a, b| a.0.cmp(&b.0)).map(|(_, item)| item)
        })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl VersionBounds {
    fn holds(&self, version: &Version) -> bool {
        let from = self.from.as_ref().is_none_or(|(from, bound)| match bound {
            Bound::With => version.cmp_precedence(from).is_ge(),
            Bound::Without => version.cmp_precedence(from).is_gt(),
        });
        let to = self.to.as_ref().is_none_or(|(to, bound)| match bound {
            Bound::With => version.cmp_precedence(to).is_le(),
            Bound::Without => version.cmp_precedence(to).is_lt(),
        });
        from && to && (version.pre.is_empty() || self.early)
    }
}

/// A version as repositories spell it: with or without `v`, missing parts being zero.
pub fn version(text: &str) -> Option<Version> {
    let partial = Partial::parse(text)?;
    (!partial.open).then_some(partial.lowest)
}

/// A version of which the last parts may be missing.
struct Partial {
    lowest: Version,
    /// How many of the three numbers were given.
    given: usize,
    /// Whether a wildcard stands for what is missing.
    open: bool,
}

impl Partial {
    fn parse(text: &str) -> Option<Partial> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let numbers_end = text.find(['-', '+']).unwrap_or(text.len());
        let (numbers, tail) = text.split_at(numbers_end);
        let (mut parts, mut given, mut open) = ([0_u64; 3], 0, false);
        for (n, part) in numbers.split('.').enumerate() {
            match part {
                "x" | "X" | "*" if n < 3 => open = true,
                // A number behind a wildcard says nothing.
                _ if open || n > 2 => return None,
                _ => {
                    parts[n] = number(part)?;
                    given = n + 1;
                }
            }
        }
        let [major, minor, patch] = parts;
        let mut lowest = Version::parse(&format!("{major}.{minor}.{patch}{tail}")).ok()?;
        if open {
            lowest = Version::new(major, minor, patch);
        }
        Some(Partial { lowest, given, open })
    }

    /// The first version behind everything that begins with the given numbers. Even its own early versions are behind.
    fn behind(&self, numbers: usize) -> Option<(Version, Bound)> {
        let Version { major, minor, patch, .. } = self.lowest;
        let next = match numbers {
            0 => return None,
            1 => Version::new(major.checked_add(1)?, 0, 0),
            2 => Version::new(major, minor.checked_add(1)?, 0),
            _ => Version::new(major, minor, patch.checked_add(1)?),
        };
        Some((early(next), Bound::Without))
    }
}

/// The very first version before a release.
fn early(mut version: Version) -> Version {
    if let Ok(pre) = semver::Prerelease::new("0") {
        version.pre = pre;
    }
    version
}

fn number(text: &str) -> Option<u64> {
    let digits = (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

fn conditions(text: &str) -> Option<Vec<VersionBounds>> {
    let words: Vec<&str> = text.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    let (mut found, mut rest) = (Vec::new(), words.as_slice());
    loop {
        rest = match rest {
            [] => break,
            [from, "-", to, behind @ ..] => {
                found.extend([condition(">=", from)?, condition("<=", to)?]);
                behind
            }
            // An operator may stand apart from its version.
            [operator, version, behind @ ..] if OPERATORS.contains(operator) => {
                found.push(condition(operator, version)?);
                behind
            }
            [word, behind @ ..] => {
                let operator = OPERATORS.iter().find(|operator| word.starts_with(**operator)).copied().unwrap_or("");
                found.push(condition(operator, &word[operator.len()..])?);
                behind
            }
        };
    }
    (!found.is_empty()).then_some(found)
}

/// Longer ones first, so that none is taken for the beginning of another.
const OPERATORS: [&str; 10] = [">=", "=>", "<=", "=<", "~>", "~", "^", ">", "<", "="];

fn condition(operator: &str, text: &str) -> Option<VersionBounds> {
    let partial = Partial::parse(text)?;
    let (lowest, given) = (partial.lowest.clone(), partial.given);
    let early = !lowest.pre.is_empty();
    let from = Some((lowest.clone(), Bound::With));
    let between = |to: Option<(Version, Bound)>| VersionBounds { from: from.clone(), to, early };
    if given == 0 {
        // `*` and everything said about it; only `<*` and `>*` would mean nothing.
        return (!matches!(operator, "<" | ">")).then(|| VersionBounds { early: false, ..VersionBounds::default() });
    }
    Some(match operator {
        "" | "=" if given == 3 => between(Some((lowest, Bound::With))),
        "" | "=" => between(partial.behind(given)),
        "~" | "~>" => between(partial.behind(given.min(2))),
        "^" => between(partial.behind(caret(&lowest, given))),
        ">=" | "=>" => between(None),
        ">" if given == 3 => VersionBounds { from: Some((lowest, Bound::Without)), to: None, early },
        ">" => VersionBounds { from: partial.behind(given).map(|(first, _)| (first, Bound::With)), to: None, early },
        "<" => VersionBounds { from: None, to: Some((lowest, Bound::Without)), early },
        "<=" | "=<" if given == 3 => VersionBounds { from: None, to: Some((lowest, Bound::With)), early },
        "<=" | "=<" => VersionBounds { from: None, to: partial.behind(given), early },
        _ => return None,
    })
}

/// How many numbers a caret holds fast: up to the first that is not zero.
fn caret(version: &Version, given: usize) -> usize {
    match (version.major, version.minor) {
        (1.., _) => 1,
        (0, _) if given == 1 => 1,
        (0, 1..) => 2,
        (0, 0) => given,
    }
}

#[cfg(test)]
mod tests;
