//! What a hostile caller may write into every string argument.

/// Flags, shells, paths and queries.
pub(crate) const CORPUS: [&str; 28] = [
    "--server=x",
    "-sx",
    "-Ashttps://x",
    "--kubeconfig=",
    "--all",
    "-f http://169.254.169.254/",
    "--values=/proc/self/environ",
    ";id",
    "a;id",
    "$(id)",
    "`id`",
    "a b",
    "a\nb",
    "a\0b",
    "%0a",
    "%2e%2e",
    "../../secrets/x",
    "a/../../secrets",
    "..",
    "?fieldSelector=a",
    "a?dryRun=All",
    "a#b",
    "pods/x/exec",
    "nodes/x/proxy",
    "search/status",
    "redis-0/exec",
    "\u{202e}a",
    "",
];

/// Those of them that are sound references of images, and go into a body, where they mean nothing else.
pub(crate) const IMAGES: [&str; 4] = ["pods/x/exec", "nodes/x/proxy", "search/status", "redis-0/exec"];
