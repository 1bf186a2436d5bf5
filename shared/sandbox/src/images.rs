//! The simulated registry: which images can be pulled, what they need, and what they say.
//!
//! Any image is taken to exist and to run well, except tags that say otherwise and the few the seed tells about.

use sha2::{Digest as _, Sha256};

/// What the sandbox knows about an image.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ImageStory {
    /// The tags that exist; empty means all.
    pub(crate) tags: &'static [&'static str],
    /// An environment variable without which the program stops at once.
    pub(crate) needs: Option<&'static str>,
    /// What it does, for its log.
    pub(crate) does: ProgramKind,
}

/// The kind of work a program does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// Answers requests over HTTP.
    #[default]
    Serve,
    /// Takes messages from a queue.
    Work,
    /// Keeps data.
    Store,
    /// Watches over others.
    Watch,
}

#[rustfmt::skip]
const STORIES: &[(&str, ImageStory)] = &[
    ("shop/checkout", ImageStory { tags: &["2.6.4", "2.7.0", "2.7.1"], needs: None, does: ProgramKind::Serve }),
    ("shop/cart-worker", ImageStory { tags: &["1.4.0", "1.5.0"], needs: Some("REDIS_URL"), does: ProgramKind::Work }),
    ("shop/mailer", ImageStory { tags: &[], needs: None, does: ProgramKind::Work }),
    ("redis", ImageStory { tags: &[], needs: None, does: ProgramKind::Store }),
    ("postgres", ImageStory { tags: &[], needs: None, does: ProgramKind::Store }),
    ("platform/log-agent", ImageStory { tags: &[], needs: None, does: ProgramKind::Watch }),
    ("platform/metrics", ImageStory { tags: &[], needs: None, does: ProgramKind::Watch }),
];

/// What is known about an image.
pub(crate) fn story(image: &str) -> ImageStory {
    let (name, _) = parts(image);
    let found = STORIES.iter().find(|(known, _)| name == *known || name.ends_with(&format!("/{known}")));
    found.map(|(_, story)| *story).unwrap_or_default()
}

/// Why an image cannot be fetched, if it cannot.
pub(crate) fn why_not_pulled(image: &str) -> Option<String> {
    let (_, tag) = parts(image);
    let tags = story(image).tags;
    let told = tag == "missing" || tag.starts_with("does-not-exist");
    let unknown = !tags.is_empty() && !tags.contains(&tag) && !image.contains('@');
    if image.chars().any(char::is_whitespace) || image.ends_with(':') {
        return Some(format!("couldn't parse image name {image:?}: invalid reference format"));
    }
    (told || unknown).then(|| not_found(image))
}

/// What the container runtime says about an image the registry does not have.
pub(crate) fn not_found(image: &str) -> String {
    format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image {image:?}: failed to resolve reference \
         {image:?}: {image}: not found"
    )
}

/// The name and tag of a reference.
pub(crate) fn parts(image: &str) -> (&str, &str) {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

/// A made-up but stable digest.
pub(crate) fn digest(image: &str) -> String {
    Sha256::digest(image.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tags_that_say_so_or_that_the_story_lacks_cannot_be_pulled() {
        assert_eq!(why_not_pulled("nginx:1.27"), None);
        assert_eq!(why_not_pulled("registry.test:5000/team/app"), None);
        assert!(why_not_pulled("nginx:missing").is_some());
        assert!(why_not_pulled("nginx:does-not-exist-7").is_some());
        assert!(why_not_pulled("registry.sandbox/shop/checkout:2.8.0").unwrap().ends_with("checkout:2.8.0: not found"));
        assert_eq!(why_not_pulled("registry.sandbox/shop/checkout:2.7.1"), None);
    }
}
