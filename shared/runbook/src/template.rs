//! Texts with places for values: `{{ args.NAME }}` and `{{ params.NAME }}`.
//!
//! A value is put in as it is. What it becomes a part of is one element of an argument vector or one value of a variable,
//! so nothing in it can end that element or begin another one.

use std::collections::BTreeMap;

/// One part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Argument(String),
    Param(String),
}

/// A text with places for values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// `{{` without `}}`.
    #[error("`{{{{` is not closed")]
    Open,
    /// What stands between the braces is neither.
    #[error("`{{{{ {0} }}}}` is neither args.NAME nor params.NAME")]
    Unknown(String),
}

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let (inside, behind) = after.split_once("}}").ok_or(TemplateError::Open)?;
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.to_owned()));
            }
            parts.push(match inside.trim().split_once('.') {
                Some(("args", name)) if is_name(name) => TemplatePart::Argument(name.to_owned()),
                Some(("params", name)) if is_name(name) => TemplatePart::Param(name.to_owned()),
                _ => return Err(TemplateError::Unknown(inside.trim().chars().take(60).collect())),
            });
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.to_owned()));
        }
        Ok(Template(parts))
    }

    /// The arguments it has places for.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Argument(name) => Some(name.as_str()),
            TemplatePart::Text(_) | TemplatePart::Param(_) => None,
        })
    }

    /// The parameters it has places for.
    pub fn params(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Param(name) => Some(name.as_str()),
            TemplatePart::Text(_) | TemplatePart::Argument(_) => None,
        })
    }

    /// Fills the values in. `Err` names one that is missing.
    pub fn render(
        &self,
        arguments: &BTreeMap<String, String>,
        params: &BTreeMap<String, String>,
    ) -> Result<String, String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Argument(name) => {
                    out.push_str(arguments.get(name).ok_or_else(|| format!("args.{name}"))?)
                }
                TemplatePart::Param(name) => out.push_str(params.get(name).ok_or_else(|| format!("params.{name}"))?),
            }
        }
        Ok(out)
    }

    /// Whether this is what it gives with these arguments and some values of its parameters.
    pub fn fits(&self, text: &str, arguments: &BTreeMap<String, String>) -> bool {
        let fixed = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => Some(text.clone()),
            TemplatePart::Argument(name) => arguments.get(name).cloned(),
            TemplatePart::Param(_) => None,
        };
        if self.arguments().any(|name| !arguments.contains_key(name)) {
            return false;
        }
        let is_open = |part: &TemplatePart| matches!(part, TemplatePart::Param(_));
        let before: String = self.0.iter().take_while(|part| !is_open(part)).filter_map(fixed).collect();
        if !self.0.iter().any(is_open) {
            return text == before;
        }
        let mut after: Vec<String> = self.0.iter().rev().take_while(|part| !is_open(part)).filter_map(fixed).collect();
        after.reverse();
        let after = after.concat();
        text.len() >= before.len() + after.len() && text.starts_with(&before) && text.ends_with(&after)
    }
}

/// Whether a text can name an argument or a parameter.
pub(crate) fn is_name(text: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(letter) && text.as_bytes()[0].is_ascii_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_put_in_as_they_are() {
        let template = Template::parse("--key={{ args.key }}:{{params.token}}").unwrap();
        let text = template.render(&values(&[("key", "{{ args.x }}")]), &values(&[("token", "$(id)")]));
        assert_eq!(text.as_deref(), Ok("--key={{ args.x }}:$(id)"), "a value is no template");
        assert_eq!(template.render(&values(&[]), &values(&[])), Err("args.key".to_owned()));
        assert_eq!(Template::parse("plain").unwrap().render(&values(&[]), &values(&[])).as_deref(), Ok("plain"));
    }

    #[test]
    fn what_is_no_placeholder_is_refused() {
        assert_eq!(Template::parse("{{ args.a"), Err(TemplateError::Open));
        for bad in ["{{ a }}", "{{ env.A }}", "{{ args. }}", "{{ args.a b }}", "{{}}", "{{ args.a.b }}", "{{ {{ }}"] {
            assert!(matches!(Template::parse(bad), Err(TemplateError::Unknown(_))), "{bad}");
        }
    }

    #[test]
    fn a_text_fits_if_only_parameters_differ() {
        let template = Template::parse("a{{ args.k }}-{{ params.p }}-z").unwrap();
        let arguments = values(&[("k", "1")]);
        assert!(template.fits("a1-anything-z", &arguments) && template.fits("a1--z", &arguments));
        assert!(!template.fits("a2-x-z", &arguments) && !template.fits("a1-x", &arguments));
        assert!(!template.fits("a1-z", &arguments), "the parts do not overlap");
        assert!(!template.fits("a1-x-z", &values(&[])), "an argument is missing");
        assert!(!Template::parse("fixed").unwrap().fits("fixed2", &arguments));
    }

    proptest! {
        #[test]
        fn what_a_template_gives_fits_it(text in "[a-z]{0,5}", key in "\\PC{0,12}", token in "\\PC{0,12}") {
            let template = Template::parse(&format!("{text}{{{{ args.k }}}}{text}{{{{ params.p }}}}{text}")).unwrap();
            let arguments = values(&[("k", &key)]);
            let given = template.render(&arguments, &values(&[("p", &token)])).unwrap();
            prop_assert!(template.fits(&given, &arguments));
        }

        #[test]
        fn any_text_is_a_template_or_not_and_never_a_panic(text in "\\PC{0,40}") {
            let _is_one = Template::parse(&text).is_ok();
        }
    }
}
