//! The images of a pod template: which container has which, and which of them a call would change.

use super::grammar::Image;
use domain::Failure;
use domain::outcome::near;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The containers of a template that have images.
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// Container to image, before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Images {
    pub(crate) from: BTreeMap<String, String>,
    pub(crate) to: BTreeMap<String, String>,
}

impl Images {
    /// Name, image before and image after of what changes.
    pub(crate) fn changed(&self) -> Vec<(&str, &str, &str)> {
        let names = self.to.iter().filter_map(|(name, to)| {
            let from = self.from.get(name).map_or("none", String::as_str);
            (from != to).then_some((name.as_str(), from, to.as_str()))
        });
        names.collect()
    }
}

/// One container, by its list and its place in it.
struct Container<'a> {
    list: &'static str,
    index: usize,
    name: &'a str,
    image: &'a str,
}

/// One container that gets another image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ImageChange<'a> {
    pub(crate) list: &'static str,
    pub(crate) index: usize,
    pub(crate) name: &'a str,
    pub(crate) to: &'a str,
}

/// What a call means for a template.
#[derive(Debug)]
pub(crate) struct ImageSelection<'a> {
    pub(crate) images: Images,
    pub(crate) changes: Vec<ImageChange<'a>>,
}

fn containers(template: &Value) -> Vec<Container<'_>> {
    let of = |list: &'static str| {
        let all = template["spec"][list].as_array().into_iter().flatten().enumerate();
        all.filter_map(move |(index, one)| {
            let image = one["image"].as_str().unwrap_or_default();
            Some(Container { list, index, name: one["name"].as_str()?, image })
        })
    };
    CONTAINERS.into_iter().flat_map(of).collect()
}

/// Every container's image, by name.
pub(crate) fn named(template: &Value) -> BTreeMap<String, String> {
    containers(template).into_iter().map(|one| (one.name.to_owned(), one.image.to_owned())).collect()
}

/// What would change. A container by its name counts more than `*`.
pub(crate) fn chosen<'a>(
    template: &'a Value,
    wanted: &'a BTreeMap<String, Image>,
) -> Result<ImageSelection<'a>, Failure> {
    let all = containers(template);
    for name in wanted.keys().filter(|name| *name != "*") {
        if !all.iter().any(|one| one.name == name) {
            return Err(no_container(name, &all));
        }
    }
    let (mut images, mut changes) = (Images::default(), Vec::new());
    for Container { list, index, name, image } in all {
        let Some(to) = wanted.get(name).or_else(|| wanted.get("*")).map(Image::as_str) else { continue };
        images.from.insert(name.to_owned(), image.to_owned());
        images.to.insert(name.to_owned(), to.to_owned());
        if image != to {
            changes.push(ImageChange { list, index, name, to });
        }
    }
    Ok(ImageSelection { images, changes })
}

fn no_container(wanted: &str, all: &[Container<'_>]) -> Failure {
    let names: Vec<&str> = all.iter().map(|one| one.name).collect();
    let shown: String = wanted.chars().filter(|c| !c.is_control()).take(63).collect();
    Failure::new(crate::codes::CONTAINER_NOT_FOUND, format!("the workload has no container {shown}"))
        .next(format!("use the containers {}, or '*' for all", names.join(", ")))
        .did_you_mean(near(wanted, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template() -> Value {
        json!({ "spec": {
            "containers": [{ "name": "web", "image": "web:1" }, { "name": "proxy", "image": "proxy:1" }],
            "initContainers": [{ "name": "setup", "image": "setup:1" }] } })
    }

    fn wanted(images: &[(&str, &str)]) -> BTreeMap<String, Image> {
        let image = |text: &str| Image::try_from(text.to_owned()).unwrap();
        images.iter().map(|(name, text)| ((*name).to_owned(), image(text))).collect()
    }

    #[test]
    fn a_named_container_counts_more_than_all() {
        let (template, wanted) = (template(), wanted(&[("*", "all:2"), ("setup", "setup:3")]));
        let chosen = chosen(&template, &wanted).unwrap();
        let to = &chosen.images.to;
        assert_eq!((to["web"].as_str(), to["proxy"].as_str(), to["setup"].as_str()), ("all:2", "all:2", "setup:3"));
        let places: Vec<_> = chosen.changes.iter().map(|change| (change.list, change.index)).collect();
        assert_eq!(places, [("containers", 0), ("containers", 1), ("initContainers", 0)]);
    }

    #[test]
    fn the_same_image_is_no_change() {
        let (template, same) = (template(), wanted(&[("web", "web:1")]));
        let chosen = chosen(&template, &same).unwrap();
        assert!(chosen.changes.is_empty() && chosen.images.changed().is_empty());
    }

    #[test]
    fn a_container_that_is_not_there_is_told_with_its_neighbours() {
        let failure = chosen(&template(), &wanted(&[("wep", "web:2")])).unwrap_err();
        assert_eq!((failure.code, failure.did_you_mean), (crate::codes::CONTAINER_NOT_FOUND, vec!["web".to_owned()]));
    }
}
