//! How a chart is named: `repo/name`, or `oci://host[:port]/path`. Nothing else is one: no path, no archive, no scheme.

use std::fmt;

/// The longest name of a chart.
const MOST_NAME: usize = 128;
/// The longest reference.
const MOST_BYTES: usize = 512;

/// A chart as a caller names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChartRef {
    /// A chart of a repository the tenant has.
    Named {
        /// The repository.
        repository: String,
        /// The chart.
        name: String,
    },
    /// A chart in a registry the tenant has.
    Oci {
        /// Host, and port if one is named.
        authority: String,
        /// The path; its last part is the chart's name.
        path: String,
    },
}

impl ChartRef {
    /// Reads one; `None` for anything that is not exactly one of the two forms.
    pub fn parse(text: &str) -> Option<ChartRef> {
        if text.len() > MOST_BYTES {
            return None;
        }
        if let Some(rest) = text.strip_prefix("oci://") {
            let (authority, path) = rest.split_once('/')?;
            let fits = is_authority(authority) && path.split('/').all(is_path_part);
            return fits.then(|| ChartRef::Oci { authority: authority.to_owned(), path: path.to_owned() });
        }
        let (repository, name) = text.split_once('/')?;
        let fits = is_repository(repository) && is_chart_name(name);
        fits.then(|| ChartRef::Named { repository: repository.to_owned(), name: name.to_owned() })
    }

    /// The name that the chart must have.
    pub fn name(&self) -> &str {
        match self {
            ChartRef::Named { name, .. } => name,
            ChartRef::Oci { path, .. } => path.rsplit('/').next().unwrap_or(path),
        }
    }
}

impl fmt::Display for ChartRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChartRef::Named { repository, name } => write!(f, "{repository}/{name}"),
            ChartRef::Oci { authority, path } => write!(f, "oci://{authority}/{path}"),
        }
    }
}

/// The name of a repository: a DNS label.
pub fn is_repository(text: &str) -> bool {
    target::grammar::is_label(text)
}

/// The name of a chart: it becomes part of paths and arguments, so it can be neither a path nor a flag.
pub(in crate::client) fn is_chart_name(text: &str) -> bool {
    (1..=MOST_NAME).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && text.as_bytes()[0].is_ascii_alphanumeric()
        && !text.contains("..")
}

/// Host and port. Which hosts may be reached is decided elsewhere; this only keeps the form.
pub(in crate::client) fn is_authority(text: &str) -> bool {
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let label = |l: &str| !l.is_empty() && !l.starts_with('-') && !l.ends_with('-');
    (1..=253).contains(&host.len())
        && host.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
        && host.split('.').all(label)
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|n| n > 0 && n.to_string() == port))
}

/// One part of a path in a registry.
pub(in crate::client) fn is_path_part(text: &str) -> bool {
    let letter = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=MOST_NAME).contains(&text.len())
        && text.bytes().all(|b| letter(&b) || matches!(b, b'-' | b'_' | b'.'))
        && text.as_bytes().first().is_some_and(letter)
        && text.as_bytes().last().is_some_and(letter)
        && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_written_back() {
        for (text, name) in [
            ("stable/web", "web"),
            ("my-repo/My_Chart.v2", "My_Chart.v2"),
            ("oci://registry.example/charts/web", "web"),
            ("oci://registry.example:5000/web", "web"),
            ("oci://127.0.0.1:5000/a/b_c/d.e-f", "d.e-f"),
        ] {
            let chart = ChartRef::parse(text).expect(text);
            assert_eq!((chart.name(), chart.to_string().as_str()), (name, text));
        }
    }

    #[test]
    fn ghsa_wmg3_no_reference_is_a_flag_a_path_or_an_address() {
        let long = format!("stable/{}", "a".repeat(129));
        for bad in [
            "",
            "web",
            "/",
            "stable/",
            "/web",
            "./web",
            "../web",
            "stable/../web",
            "stable/..",
            "a/b/c",
            "/etc/passwd",
            "-f/x",
            "--post-renderer=/bin/sh",
            "stable/-web",
            "stable/--version",
            "Stable/web",
            "stable/web:1",
            "stable/web@x",
            "file:///etc/passwd",
            "http://x/y",
            "https://charts.example/web-1.0.0.tgz",
            "foo://x/y",
            "oci:/x/y",
            "oci://",
            "oci://host",
            "oci://host/",
            "oci:///web",
            "oci://host//web",
            "oci://host/../web",
            "oci://host/web:1.0.0",
            "oci://host/web@sha256:00",
            "oci://user@host/web",
            "oci://host:0/web",
            "oci://host:080/web",
            "oci://host:99999/web",
            "oci://Host/web",
            "oci://host/Web",
            "oci://-host/web",
            "oci://host./web",
            "oci://[::1]/web",
            "oci://host/web?x=1",
            "oci://host/web#x",
            "stable/web\n",
            "stable/we b",
            "stable/web\0",
            "stable/$(id)",
            "stable/`id`",
            "stable/;id",
            "stable/we%2fb",
            "stable\\web",
            "stable/wéb",
            &long,
        ] {
            assert_eq!(ChartRef::parse(bad), None, "{bad:?}");
        }
    }
}
