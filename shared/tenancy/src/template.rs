//! Text with places that parameters fill: `{{ params.NAME }}`.
//!
//! A filled text is never looked at again for further places, so a value cannot bring one along.

use std::fmt;
use std::ops::RangeInclusive;

/// How long the name of a parameter may be.
const NAME_BYTES: RangeInclusive<usize> = 1..=64;

/// Text with places for parameters.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ParameterTemplate {
    parts: Vec<TemplatePart>,
}

/// A piece of a template.
#[derive(Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Param(String),
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotATemplate {
    /// Two braces without their counterpart.
    #[error("`{{{{` and `}}}}` come in pairs")]
    Unpaired,
    /// Something else stands between them.
    #[error("`{{{{ {0} }}}}` is no reference: only `{{{{ params.NAME }}}}` is understood")]
    NoReference(String),
}

impl ParameterTemplate {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<ParameterTemplate, NotATemplate> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            if before.contains("}}") {
                return Err(NotATemplate::Unpaired);
            }
            let (inner, after) = after.split_once("}}").ok_or(NotATemplate::Unpaired)?;
            let name = inner.trim().strip_prefix("params.").filter(|name| is_name(name));
            let name = name.ok_or_else(|| NotATemplate::NoReference(inner.trim().chars().take(64).collect()))?;
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.to_owned()));
            }
            parts.push(TemplatePart::Param(name.to_owned()));
            rest = after;
        }
        if rest.contains("}}") {
            return Err(NotATemplate::Unpaired);
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.to_owned()));
        }
        Ok(ParameterTemplate { parts })
    }

    /// The parameters it refers to, in order, as often as they stand there.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Param(name) => Some(name.as_str()),
            TemplatePart::Text(_) => None,
        })
    }

    /// The parameter, if the text is nothing but one reference.
    pub fn only(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [TemplatePart::Param(name)] => Some(name),
            _ => None,
        }
    }

    /// The text before the first reference.
    pub fn head(&self) -> &str {
        match self.parts.first() {
            Some(TemplatePart::Text(text)) => text,
            Some(TemplatePart::Param(_)) | None => "",
        }
    }

    /// The text with every place filled.
    pub fn fill<E>(&self, mut value: impl FnMut(&str) -> Result<String, E>) -> Result<String, E> {
        self.parts.iter().try_fold(String::new(), |mut text, part| {
            match part {
                TemplatePart::Text(fixed) => text.push_str(fixed),
                TemplatePart::Param(name) => text.push_str(&value(name)?),
            }
            Ok(text)
        })
    }
}

impl fmt::Display for ParameterTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            TemplatePart::Text(text) => f.write_str(text),
            TemplatePart::Param(name) => write!(f, "{{{{ params.{name} }}}}"),
        })
    }
}

impl fmt::Debug for ParameterTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// Whether a parameter may be called so: letters, digits, `_` and `-`, beginning with a letter.
pub(crate) fn is_name(text: &str) -> bool {
    NAME_BYTES.contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn references_are_found_and_filled() {
        let template = ParameterTemplate::parse("a/{{ params.x }}-{{params.y}}/{{ params.x }}").unwrap();
        assert_eq!(template.names().collect::<Vec<_>>(), ["x", "y", "x"]);
        assert_eq!((template.head(), template.only()), ("a/", None));
        let filled = template.fill(|name| Ok::<_, ()>(format!("<{name}>")));
        assert_eq!(filled.unwrap(), "a/<x>-<y>/<x>");
        assert_eq!(template.to_string(), "a/{{ params.x }}-{{ params.y }}/{{ params.x }}");
        assert_eq!(ParameterTemplate::parse("{{ params.x }}").unwrap().only(), Some("x"));
    }

    #[test]
    fn a_filled_value_is_not_looked_at_again() {
        let template = ParameterTemplate::parse("{{ params.x }}").unwrap();
        assert_eq!(template.fill(|_| Ok::<_, ()>("{{ params.y }}".into())).unwrap(), "{{ params.y }}");
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for odd in ["{{", "}}", "{{ params.x", "params.x }}", "a }} b {{ params.x }}", "{{ params.x }} }}"] {
            assert_eq!(ParameterTemplate::parse(odd), Err(NotATemplate::Unpaired), "{odd}");
        }
        for odd in ["{{ x }}", "{{ env.X }}", "{{ params. }}", "{{ params.a.b }}", "{{}}", "{{ params.0 }}", "{{ {{ }}"]
        {
            assert!(matches!(ParameterTemplate::parse(odd), Err(NotATemplate::NoReference(_))), "{odd}");
        }
        assert!(ParameterTemplate::parse("{ one brace }").is_ok());
    }

    proptest! {
        #[test]
        fn text_without_pairs_of_braces_is_itself(text in "[^{}]{0,80}") {
            let template = ParameterTemplate::parse(&text).unwrap();
            prop_assert_eq!(template.fill(|_| Err::<String, _>("nothing to fill")), Ok(text));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,60}|([{} a-z.]){0,60}") {
            if let Ok(template) = ParameterTemplate::parse(&text) {
                prop_assert!(ParameterTemplate::parse(&template.to_string()) == Ok(template));
            }
        }
    }
}
