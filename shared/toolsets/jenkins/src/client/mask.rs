//! What is never shown: values of password parameters, user parts of addresses, and whatever reads like a secret.

use redact::looks::{SettingPlace, is_secret_setting};
use redact::redact;

/// What stands where a value may not be seen.
pub const MASKED: &str = "masked";

/// Free text of others, as it may be shown: no secrets, no control characters but line ends and tabs.
pub fn text(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    redact(&plain)
}

/// One line of the same, cut.
pub fn line(text: &str) -> String {
    redact::message(text)
}

/// An address without its user part, whatever that holds. One in the short form of ssh keeps its user: there it is part
/// of where the repository is, and no password can stand in it.
pub fn address(text: &str) -> String {
    let shown = match text.split_once("://") {
        Some((scheme, rest)) => {
            let host_ends = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (host, path) = rest.split_at(host_ends);
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => text.to_owned(),
    };
    line(&shown)
}

/// The value of a parameter: masked if its kind is secret, or if its name says so.
pub fn parameter(name: &str, value: &str, secret: bool) -> String {
    if secret || is_secret_setting(name, value, SettingPlace::Setting) { MASKED.to_owned() } else { text(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_loses_its_user_part() {
        for (given, shown) in [
            ("https://robot:hunter2@git.example/a.git", "https://git.example/a.git"),
            ("https://ghp_abc@git.example/a@b.git", "https://git.example/a@b.git"),
            ("ssh://git@git.example:22/a.git", "ssh://git.example:22/a.git"),
            ("https://a@b@git.example", "https://git.example"),
            ("git@git.example:shop/a.git", "git@git.example:shop/a.git"),
            ("https://git.example/a.git", "https://git.example/a.git"),
        ] {
            assert_eq!(address(given), shown);
        }
    }

    #[test]
    fn a_secret_parameter_is_masked_by_kind_by_name_and_by_look() {
        assert_eq!(parameter("DEPLOY", "x", true), MASKED);
        assert_eq!(parameter("NPM_TOKEN", "x", false), MASKED);
        for name in ["dbPassword", "deploy_pass", "DB_PASS", "smtpPwd", "BASIC_AUTH", "JWT_KEY", "vendorCreds"] {
            assert_eq!(parameter(name, "hunter22", false), MASKED, "{name}");
        }
        assert_eq!(parameter("ENV", "staging", false), "staging");
        assert!(!parameter("URL", "https://a:secretword@b/", false).contains("secretword"));
        assert!(!parameter("KEY", "AKIAIOSFODNN7EXAMPLE", false).contains("AKIAIOSFODNN7EXAMPLE"));
        assert_eq!(parameter("BRANCH", "", false), "");
    }
}
