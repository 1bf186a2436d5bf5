//! Names of environment variables: which there can be, and which nobody may set.

/// Names by which a program is told to load or to start something else.
const NAMES: [&str; 38] = [
    "BASHOPTS",
    "BASH_ENV",
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLOBIGNORE",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCALDOMAIN",
    "LOCPATH",
    "NIS_PATH",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "TERMINFO",
    "TZDIR",
    "VISUAL",
    "_JAVA_OPTIONS",
];
/// The same, by how the name begins.
const BEGINNINGS: [&str; 9] = ["BASH_FUNC_", "DYLD_", "GIT_", "LD_", "MALLOC_", "PERL", "PYTHON", "RUBY", "QM_"];

/// Whether a text can name a variable: letters, digits and `_`, not beginning with a digit.
pub fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && !text.as_bytes()[0].is_ascii_digit()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a variable changes how programs are found, loaded or begun, or is one of the service's own (`QM_`). Neither a
/// runbook nor a call may set it.
pub fn is_reserved(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    NAMES.contains(&upper.as_str()) || BEGINNINGS.iter().any(|start| upper.starts_with(start))
}

/// The variable in which a command finds an argument: `QM_ARG_` and its name in capitals, `-` as `_`.
pub fn of_argument(name: &str) -> String {
    format!("QM_ARG_{}", name.to_ascii_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_how_programs_load_is_reserved_in_any_spelling() {
        for name in
            ["PATH", "path", "LD_PRELOAD", "Ld_Library_Path", "DYLD_X", "PYTHONPATH", "GIT_SSH_COMMAND", "QM_ARG_X"]
        {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["REGION", "TOKEN", "MY_PATH", "HOMEPAGE"] {
            assert!(!is_reserved(name), "{name}");
        }
    }

    #[test]
    fn a_name_is_letters_digits_and_underscores() {
        for good in ["A", "_a", "A1_b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "1A", "A-B", "A=B", "A B", "\u{c4}", "A\0"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert_eq!(of_argument("dry-run"), "QM_ARG_DRY_RUN");
    }
}
