//! Secrets that are known by their own shape or by the words right around them, within one line.
//!
//! A shape is tried on a line only where one of its hints stands in it; all hints are looked for in one pass.

use super::{LookCost, SecretSpan};
use aho_corasick::AhoCorasick;
use regex::Regex;
use std::sync::LazyLock;

/// One shape. The group `s` of the pattern is the secret; without one, the whole match is.
struct SecretShape {
    rule: &'static str,
    /// One of these stands in every text that fits; letters in either case.
    hints: &'static [&'static str],
    pattern: &'static str,
}

const fn shape(rule: &'static str, hints: &'static [&'static str], pattern: &'static str) -> SecretShape {
    SecretShape { rule, hints, pattern }
}

const CLOUD: &str = "cloud access key";
const VENDOR: &str = "vendor token";
const JWT: &str = "JSON web token";
const HEADER: &str = "authorization header";
const ADDRESS: &str = "password in an address";
const ASSIGNED: &str = "password-like assignment";
const HOOK: &str = "webhook address";
const HASH: &str = "password hash";
const COMMAND: &str = "password in a command";

const SHAPES: &[SecretShape] = &[
    shape(CLOUD, &["akia", "asia", "abia", "acca"], r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?-u:\b)"),
    shape(CLOUD, &["x-amz-signature", "x-goog-signature"], r"(?i)X-(?:Amz|Goog)-Signature=(?P<s>[0-9a-f]{32,})"),
    shape(CLOUD, &["signature="], r"(?i)(?-u:\b)Signature=(?P<s>[A-Za-z0-9%+/=_-]{24,})"),
    shape(CLOUD, &["sig="], r"(?i)[?&;]sig=(?P<s>[A-Za-z0-9%+/=_-]{20,})"),
    shape(CLOUD, &["8q~", "7q~"], r"(?-u:\b)[A-Za-z0-9_.~-]{3}[78]Q~[A-Za-z0-9_.~-]{31,34}"),
    shape(CLOUD, &["k8s-aws-v1."], r"k8s-aws-v1\.[A-Za-z0-9_=-]{20,}"),
    shape(VENDOR, &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"(?-u:\b)gh[pousr]_[A-Za-z0-9]{30,}"),
    shape(VENDOR, &["github_pat_"], r"(?-u:\b)github_pat_[A-Za-z0-9_]{30,}"),
    shape(
        VENDOR,
        &["glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-", "glcbt-", "gloas-"],
        r"(?-u:\b)gl(?:pat|dt|rt|ptt|ft|soat|imt|agent|cbt|oas)-[A-Za-z0-9_.-]{16,}",
    ),
    shape(VENDOR, &["gr1348941"], r"(?-u:\b)GR1348941[A-Za-z0-9_-]{16,}"),
    shape(VENDOR, &["xox", "xapp-"], r"(?-u:\b)(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{10,}"),
    shape(VENDOR, &["sk-"], r"(?-u:\b)sk-[A-Za-z0-9_-]{20,}"),
    shape(VENDOR, &["k_live_", "k_test_"], r"(?-u:\b)[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    shape(VENDOR, &["whsec_"], r"(?-u:\b)whsec_[A-Za-z0-9+/=]{20,}"),
    shape(VENDOR, &["aiza"], r"(?-u:\b)AIza[0-9A-Za-z_-]{35}"),
    shape(VENDOR, &["ya29."], r"(?-u:\b)ya29\.[A-Za-z0-9_.-]{20,}"),
    shape(VENDOR, &["1//0"], r"(?-u:\b)1//0[A-Za-z0-9_-]{30,}"),
    shape(VENDOR, &["gocspx-"], r"(?-u:\b)GOCSPX-[A-Za-z0-9_-]{20,}"),
    shape(VENDOR, &["npm_"], r"(?-u:\b)npm_[A-Za-z0-9]{30,}"),
    shape(VENDOR, &["pypi-"], r"(?-u:\b)pypi-[A-Za-z0-9_-]{30,}"),
    shape(VENDOR, &["rubygems_"], r"(?-u:\b)rubygems_[0-9a-f]{40,}"),
    shape(VENDOR, &["hvs.", "hvb.", "hvr."], r"(?-u:\b)hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    shape(VENDOR, &["atlasv1."], r"(?-u:\b)[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    shape(VENDOR, &["sg."], r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    shape(VENDOR, &["dop_v1_", "doo_v1_", "dor_v1_"], r"(?-u:\b)do[opr]_v1_[0-9a-f]{64}"),
    shape(VENDOR, &["dapi"], r"(?-u:\b)dapi[0-9a-f]{32}"),
    shape(VENDOR, &["shpat_", "shpca_", "shppa_", "shpss_"], r"(?-u:\b)shp(?:at|ca|pa|ss)_[0-9a-f]{32}"),
    shape(VENDOR, &["atatt3", "atctt3"], r"(?-u:\b)AT[AC]TT3[A-Za-z0-9_=-]{20,}"),
    shape(VENDOR, &["atbb"], r"(?-u:\b)ATBB[A-Za-z0-9]{24,}"),
    shape(VENDOR, &["age-secret-key-1"], r"(?-u:\b)AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    shape(VENDOR, &["eaaa"], r"(?-u:\b)EAAA[A-Za-z0-9_-]{50,}"),
    shape(VENDOR, &["access_token$"], r"access_token\$(?:production|sandbox)\$[a-z0-9]{10,}\$[0-9a-f]{32}"),
    shape(VENDOR, &["sk"], r"(?-u:\b)SK[0-9a-f]{32}(?-u:\b)"),
    shape(VENDOR, &["key-"], r"(?-u:\b)key-[0-9a-f]{32}(?-u:\b)"),
    shape(VENDOR, &["-us"], r"(?-u:\b)[0-9a-f]{32}-us[0-9]{1,2}(?-u:\b)"),
    shape(VENDOR, &["hrku-"], r"(?-u:\b)HRKU-[A-Za-z0-9_-]{30,}"),
    shape(VENDOR, &["flyv1"], r"(?-u:\b)FlyV1 fm[0-9][a-z]?_[A-Za-z0-9+/=,_]{40,}"),
    shape(VENDOR, &["cio"], r"(?-u:\b)cio[A-Za-z0-9]{32}(?-u:\b)"),
    shape(VENDOR, &["dckr_"], r"(?-u:\b)dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    shape(VENDOR, &["hf_"], r"(?-u:\b)hf_[A-Za-z0-9]{30,}"),
    shape(VENDOR, &["r8_"], r"(?-u:\b)r8_[A-Za-z0-9]{30,}"),
    shape(VENDOR, &["glsa_", "glc_"], r"(?-u:\b)(?:glsa|glc)_[A-Za-z0-9_=+/-]{30,}"),
    shape(VENDOR, &["nrak-", "nrii-", "nrra-", "nrjs-"], r"(?-u:\b)NR(?:AK|II|RA|JS)-[A-Za-z0-9_-]{15,}"),
    shape(VENDOR, &["nral"], r"(?-u:\b)[0-9a-f]{36}NRAL(?-u:\b)"),
    shape(VENDOR, &["sntrys_", "sntryu_"], r"(?-u:\b)sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    shape(VENDOR, &["lin_api_", "lin_oauth_"], r"(?-u:\b)lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    shape(VENDOR, &["ntn_"], r"(?-u:\b)ntn_[A-Za-z0-9]{40,}"),
    shape(VENDOR, &["secret_"], r"(?-u:\b)secret_[A-Za-z0-9]{43}(?-u:\b)"),
    shape(VENDOR, &["figd_"], r"(?-u:\b)figd_[A-Za-z0-9_-]{36,}"),
    shape(VENDOR, &["pmak-"], r"(?-u:\b)PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    shape(VENDOR, &["pat"], r"(?-u:\b)pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    shape(VENDOR, &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."], r"(?-u:\b)dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{36,}"),
    shape(VENDOR, &["ops_eyj"], r"(?-u:\b)ops_eyJ[A-Za-z0-9+/=_-]{60,}"),
    shape(VENDOR, &["pscale_"], r"(?-u:\b)pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}"),
    shape(VENDOR, &["sbp_"], r"(?-u:\b)sbp_[0-9a-f]{40}"),
    shape(VENDOR, &["tskey-"], r"(?-u:\b)tskey-[a-z]+-[A-Za-z0-9-]{20,}"),
    shape(VENDOR, &["."], r"(?-u:\b)[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?-u:\b)"),
    shape(VENDOR, &[":aa"], r"(?P<s>[0-9]{8,10}:AA[A-Za-z0-9_-]{32,34})"),
    shape(VENDOR, &["oy2"], r"(?-u:\b)oy2[a-z0-9]{43}(?-u:\b)"),
    shape(VENDOR, &["akcp"], r"(?-u:\b)AKCp[A-Za-z0-9]{60,}"),
    shape(VENDOR, &["cmvmdgtu"], r"(?-u:\b)cmVmdGtu[A-Za-z0-9]{50,}"),
    shape(VENDOR, &["bkua_"], r"(?-u:\b)bkua_[0-9a-f]{40}"),
    shape(VENDOR, &["ccipat_", "ccipra_"], r"(?-u:\b)CCIP(?:AT|RA)_[A-Za-z0-9]{20,}_[0-9a-f]{40}"),
    shape(VENDOR, &["pul-"], r"(?-u:\b)pul-[0-9a-f]{40}"),
    shape(VENDOR, &["sqp_", "squ_", "sqa_"], r"(?-u:\b)sq[pua]_[0-9a-f]{40}"),
    shape(VENDOR, &["::server:", "::node:"], r"(?-u:\b)K10[0-9a-f]{64}::[a-z]+:[A-Za-z0-9]{16,}"),
    shape(
        HOOK,
        &["hooks.slack.com/"],
        r"(?:https?://)?hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}",
    ),
    shape(
        HOOK,
        &["/api/webhooks/"],
        r"(?:https?://)?(?:[a-z]+\.)?discord(?:app)?\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{30,}",
    ),
    shape(HOOK, &["/webhookb2/"], r"(?:https?://)?[a-z0-9.-]+/webhookb2/[A-Za-z0-9@/_-]{30,}"),
    shape(JWT, &["eyj"], r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){0,2}"),
    shape(HEADER, &["bearer"], r"(?i)(?-u:\b)bearer\s+(?P<s>[A-Za-z0-9+/=._~-]{16,})"),
    shape(HEADER, &["basic"], r"(?i)(?-u:\b)basic\s+(?P<s>[A-Za-z0-9+/=_-]{12,})"),
    shape(ADDRESS, &["://"], r#"(?i)(?-u:\b)[a-z][a-z0-9+.-]*://(?P<s>[^\s/:@'"\x60<>]*:[^\s/'"\x60]+)@[^\s@]"#),
    shape(ADDRESS, &["://"], r"(?i)(?-u:\b)https?://(?P<s>[A-Za-z0-9_%-]{20,})@[a-z0-9.-]+"),
    shape(ADDRESS, &["@tcp(", "@unix("], r#"(?P<s>[^\s:@/'"=]+:[^\s'"]+)@(?:tcp|unix)\("#),
    shape(ADDRESS, &["jdbc:oracle"], r"(?i)jdbc:oracle:[a-z]+:(?P<s>[^\s/@]+/[^\s@]+)@"),
    shape(
        ASSIGNED,
        &["password", "passwd", "identified"],
        r"(?i)(?-u:\b)(?:identified\s+(?:with\s+\S+\s+)?(?:by|as)|(?:encrypted\s+)?passw(?:or)?d(?:\s+for\s+[^=]{1,80}=)?)\s+'(?P<s>[^']{3,})'",
    ),
    shape(ASSIGNED, &["password", "passwd"], r"(?i)^\s*passw(?:or)?d\s+(?P<s>\S{3,})\s*$"),
    shape(ASSIGNED, &["password"], r"(?i)(?-u:\b)login\s+\S+\s+password\s+(?P<s>\S+)"),
    shape(
        ASSIGNED,
        &["password is", "passwort ist", "secret is", "token is"],
        r#"(?i)(?-u:\b)(?:password|passwort|secret|token)\s+is\s+["'\x60]?(?P<s>\S*[0-9]\S*)"#,
    ),
    shape(
        ASSIGNED,
        &["password"],
        r#"(?i)(?-u:\b)password\b[^:=\n"']{3,60}:\s+["'\x60]?(?P<s>[^\s"'\x60=]{3,}[0-9][^\s"'\x60=]*|[0-9][^\s"'\x60=]{5,})\s*$"#,
    ),
    shape(ASSIGNED, &[":"], r"^\s*[A-Za-z0-9.*_-]+:(?:[0-9]{2,5}|\*):[A-Za-z0-9.*_-]+:[A-Za-z0-9.*_-]+:(?P<s>\S+)$"),
    shape(
        ASSIGNED,
        &["bindpw", "_secret ", "requirepass", "masterauth"],
        r"(?i)^\s*(?:bindpw|\w+_secret|requirepass|masterauth)\s+(?P<s>\S+)\s*$",
    ),
    shape(ASSIGNED, &["psk "], r#"(?-u:\b)PSK\s+"(?P<s>[^"]+)""#),
    shape(
        ASSIGNED,
        &["set"],
        r"(?i)(?-u:\b)(?:define|put|set(?:env)?|setProperty)\s*\(\s*['\x22][a-z0-9_.-]*(?:passw(?:or)?d|secret|token|key|pass)['\x22]\s*,\s*['\x22](?P<s>[^'\x22]+)",
    ),
    shape(
        ASSIGNED,
        &["define"],
        r"(?i)(?-u:\b)define\s*\(\s*['\x22][a-z0-9_.-]*(?:passw(?:or)?d|secret|token|_key|pass|salt)['\x22]\s*,\s*['\x22](?P<s>[^'\x22]+)",
    ),
    shape(ASSIGNED, &[".setpassword(", ".password("], r"(?i)\.(?:set)?password\(\s*['\x22](?P<s>[^'\x22]+)"),
    shape(ASSIGNED, &["securestring"], r#"(?i)SecureString\s+(?:-String\s+)?["'](?P<s>[^"']+)"#),
    shape(ASSIGNED, &["private-mac:"], r"(?i)Private-MAC:\s*(?P<s>[0-9a-f]{32,})"),
    shape(ASSIGNED, &["smtp", "mail"], r"^\S+:[0-9]{2,5}\s+\S+@\S+?:(?P<s>\S+)$"),
    shape(
        HASH,
        &["$"],
        r"\$(?:1|2[abxy]?|5|6|7|y|gy|apr1|sha1|md5|argon2(?:id|i|d)|pbkdf2[a-z0-9-]*|scrypt)\$[./A-Za-z0-9$=,+-]{16,}",
    ),
    shape(HASH, &["{ssha", "{sha"], r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/=]{20,}"),
    shape(
        COMMAND,
        &["mysql", "mariadb"],
        r"(?-u:\b)(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb|mariadb-dump)(?-u:\b)(?:\s+\S+)*?\s+-p(?P<s>[^\s-]\S*)",
    ),
    shape(
        COMMAND,
        &["-p"],
        r#"(?-u:\b)(?:docker|podman|nerdctl|helm|skopeo|buildah|crane|oras|az|cf|oc|twine|mongo|mongosh|mongodump|sshpass|ansible-galaxy)(?-u:\b)(?:\s+\S+)*?\s+-p[ =](?P<s>['"]?[^\s:'"-][^\s:'"]{3,}['"]?)(?:\s|$)"#,
    ),
    shape(COMMAND, &["sshpass"], r#"(?-u:\b)sshpass\s+-p\s*(?P<s>'[^']+'|"[^"]+"|\S+)"#),
    shape(COMMAND, &["sqlcmd", "bcp "], r"(?-u:\b)(?:sqlcmd|bcp)(?-u:\b)(?:\s+\S+)*?\s+-P\s*(?P<s>\S+)"),
    shape(COMMAND, &["redis-cli"], r"(?-u:\b)redis-cli(?-u:\b)(?:\s+\S+)*?\s+-a\s+(?P<s>\S+)"),
    shape(COMMAND, &["ldap"], r"(?-u:\b)ldap[a-z]+(?-u:\b)(?:\s+\S+)*?\s+-w\s+(?P<s>\S+)"),
    shape(
        COMMAND,
        &["-u ", "-u\"", "--user", "--proxy-user"],
        r#"(?:\s-u|--user|--proxy-user)[ =]*["']?[^\s:"'$<]*["']?:["']?(?P<s>[^\s:"'$\[(<][^\s"']*[^\s"'0-9][^\s"']*)"#,
    ),
    shape(COMMAND, &["curl"], r#"(?-u:\b)curl(?-u:\b).*?\s(?:-u|--user)[ =]+["']?(?P<s>[^\s:"'$<]{8,}):["']?(?:\s|$)"#),
    shape(
        COMMAND,
        &["-u ", "-u%"],
        r"(?-u:\b)(?:smbclient|rpcclient|net|wmic|crackmapexec)(?-u:\b)(?:\s+\S+)*?\s+-U\s*[^\s%]+%(?P<s>\S+)",
    ),
    shape(COMMAND, &["pass:"], r"(?-u:\b)-?pass(?:in|out)?\s+pass:(?P<s>\S+)"),
    shape(COMMAND, &["from-literal"], r#"--from-literal[= ]["']?[^\s=]+=(?P<s>[^\s"']+)"#),
    shape(
        COMMAND,
        &["aws_secret_access_key", "aws_session_token"],
        r"(?-u:\b)aws_(?:secret_access_key|session_token)\s+(?P<s>[A-Za-z0-9+/=]{16,})",
    ),
    shape(
        COMMAND,
        &["add_user", "change_password"],
        r"(?-u:\b)rabbitmqctl\s+(?:add_user|change_password)\s+\S+\s+(?P<s>\S+)",
    ),
    shape(COMMAND, &["htpasswd"], r"(?-u:\b)htpasswd\s+-[a-zA-Z]*b[a-zA-Z]*\s+(?:\S+\s+)?\S+\s+(?P<s>\S+)\s*$"),
    shape(
        COMMAND,
        &["-stdin"],
        r#"(?-u:\b)(?:echo|printf)\s+(?:-n\s+)?["']?(?P<s>[^\s"'$|][^\s"'|]*)["']?\s*\|[^|]*--?(?:password|token|pass)-stdin"#,
    ),
    shape(
        COMMAND,
        &["setx "],
        r#"(?i)(?-u:\b)setx\s+\w*(?:pass|passw(?:or)?d|secret|token|key)\s+["']?(?P<s>[^\s"']+)"#,
    ),
    shape(COMMAND, &["env "], r"^\s*ENV\s+\w*(?:PASS|PASSW(?:OR)?D|SECRET|TOKEN|API_?KEY)\s+(?P<s>[^\s=]\S*)\s*$"),
];

/// All shapes, ready for use.
struct CompiledShapes {
    /// Over the hints of all shapes.
    hints: AhoCorasick,
    /// Which shape each hint belongs to.
    owners: Vec<usize>,
    patterns: Vec<Regex>,
}

static COMPILED: LazyLock<Option<CompiledShapes>> = LazyLock::new(|| {
    let pairs = || SHAPES.iter().enumerate().flat_map(|(n, shape)| shape.hints.iter().map(move |hint| (n, *hint)));
    let hints = AhoCorasick::builder().ascii_case_insensitive(true).build(pairs().map(|(_, hint)| hint)).ok()?;
    let patterns = SHAPES.iter().map(|shape| Regex::new(shape.pattern).ok()).collect::<Option<Vec<_>>>()?;
    Some(CompiledShapes { hints, owners: pairs().map(|(n, _)| n).collect(), patterns })
});

/// Adds the spans of a line that have the shape of a secret. `None`: the shapes cannot be had, and nothing can be judged.
pub(super) fn find(line: &str, spans: &mut Vec<SecretSpan>, cost: &mut LookCost) -> Option<()> {
    let compiled = COMPILED.as_ref()?;
    cost.bytes(line.len());
    let mut tried = vec![false; SHAPES.len()];
    for hint in compiled.hints.find_overlapping_iter(line) {
        if let Some(n) = compiled.owners.get(hint.pattern().as_usize()) {
            tried[*n] = true;
        }
    }
    for (n, _) in tried.iter().enumerate().filter(|(_, tried)| **tried) {
        cost.bytes(line.len());
        for hit in compiled.patterns[n].captures_iter(line) {
            let (Some(whole), rule) = (hit.get(0), SHAPES[n].rule) else { continue };
            let secret = hit.name("s").unwrap_or(whole);
            let spoken = rule == ASSIGNED && super::values::is_spoken(secret.as_str());
            if !spoken && !super::values::is_placeholder(secret.as_str()) {
                spans.push(SecretSpan { rule, hit: whole.range(), secret: secret.range() });
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_compiles() {
        for shape in SHAPES {
            assert!(Regex::new(shape.pattern).is_ok(), "{}", shape.pattern);
        }
        assert!(COMPILED.is_some());
    }
}
