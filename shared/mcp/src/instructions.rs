//! The `instructions` a host may show its model: what is issued, and how to draw more. Paid for on every turn, so at
//! most 60 words.

/// More names than this cost more than they tell; `search_tools` finds the rest.
const NAMED: usize = 12;

/// Writes them from the toolsets that are issued at once and those that can be loaded.
pub fn write(issued: &[&str], loadable: &[&str], modern: bool) -> String {
    let mut text = match issued {
        [] => "No toolset is issued yet.".to_owned(),
        names => format!("Read tools for {} are issued.", joined(names)),
    };
    if loadable.is_empty() {
        return text;
    }
    text.push_str(&format!(" Draw more with load_toolset: {}.", listed(loadable)));
    if modern {
        // This era's list never grows, so the model has to know how to reach what it has drawn.
        text.push_str(" Call what it returns through call_tool, or by name with _meta quartermaster/session.");
    }
    text
}

/// At most [`NAMED`] names, with commas.
fn listed(names: &[&str]) -> String {
    match names.split_at_checked(NAMED) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more (see search_tools)", first.join(", "), rest.len())
        }
        Some(_) | None => names.join(", "),
    }
}

/// The same, as part of a sentence.
fn joined(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() && names.len() <= NAMED => {
            format!("{} and {last}", first.join(", "))
        }
        _ => listed(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_say_what_is_issued_and_what_can_be_drawn() {
        assert_eq!(
            write(&["k8s", "memory"], &["helm", "argo", "jenkins", "runbooks"], false),
            "Read tools for k8s and memory are issued. Draw more with load_toolset: helm, argo, jenkins, runbooks."
        );
        assert_eq!(
            write(&["memory"], &["helm"], true),
            "Read tools for memory are issued. Draw more with load_toolset: helm. \
             Call what it returns through call_tool, or by name with _meta quartermaster/session."
        );
        assert_eq!(write(&["a", "b", "c"], &[], true), "Read tools for a, b and c are issued.");
        assert_eq!(write(&[], &["helm"], false), "No toolset is issued yet. Draw more with load_toolset: helm.");
        assert_eq!(write(&[], &[], false), "No toolset is issued yet.");
    }

    #[test]
    fn they_stay_short_however_many_toolsets_there_are() {
        let names: Vec<String> = (0..200).map(|n| format!("set{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();

        let text = write(&names, &names, true);

        assert!(text.split_whitespace().count() <= 60, "{text}");
        assert!(text.contains("set11 and 188 more (see search_tools)"), "{text}");
    }
}
