//! What is known about the fields of each kind: one table for strict checks, merging, apply and `explain`.
//!
//! The built-in kinds stand in `schema/builtin.schema`, one line per field:
//! `name[!]: type [by key,key | set | atomic] [-- words for people]`, where `!` marks a field that must be given.
//! A custom kind's types are read from its definition's own schema.

mod custom;

use std::collections::BTreeMap;

pub(crate) use self::custom::read_custom;

/// What may stand in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldShape {
    Text,
    Bytes,
    Time,
    Quantity,
    IntOrText,
    Int,
    Number,
    Bool,
    /// Anything at all; not looked into.
    Any,
    /// An object with the fields of the named type.
    Struct(String),
    Map(Box<FieldShape>),
    List(Box<FieldShape>),
}

impl FieldShape {
    /// The type named in it, however deep in lists and maps.
    pub(crate) fn named(&self) -> Option<&str> {
        match self {
            FieldShape::Struct(name) => Some(name),
            FieldShape::List(of) | FieldShape::Map(of) => of.named(),
            FieldShape::Text
            | FieldShape::Bytes
            | FieldShape::Time
            | FieldShape::Quantity
            | FieldShape::IntOrText
            | FieldShape::Int => None,
            FieldShape::Number | FieldShape::Bool | FieldShape::Any => None,
        }
    }
}

/// How two managers share what stands in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Field by field, entry by entry.
    Granular,
    /// Only as a whole.
    Atomic,
    /// A list without order or doubles.
    Set,
    /// A list of objects told apart by these fields.
    Keyed(Vec<String>),
}

/// One field of a type.
#[derive(Debug, Clone)]
pub(crate) struct SchemaField {
    pub(crate) shape: FieldShape,
    pub(crate) sharing: Sharing,
    pub(crate) required: bool,
    pub(crate) words: String,
}

/// A named object type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Type {
    pub(crate) fields: BTreeMap<String, SchemaField>,
    pub(crate) words: String,
    pub(crate) atomic: bool,
    /// Fields beyond the known ones are kept without complaint.
    pub(crate) open: bool,
}

/// All types, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Types(BTreeMap<String, Type>);

/// A place in a tree: what may stand there and how it is shared.
#[derive(Debug, Clone)]
pub(crate) struct SchemaNode {
    pub(crate) shape: FieldShape,
    pub(crate) sharing: Sharing,
}

impl SchemaNode {
    /// A place nothing is known about: objects merge by key, lists as a whole.
    pub(crate) const UNKNOWN: SchemaNode = SchemaNode { shape: FieldShape::Any, sharing: Sharing::Granular };

    pub(crate) fn of_type(name: &str) -> SchemaNode {
        SchemaNode { shape: FieldShape::Struct(name.to_owned()), sharing: Sharing::Granular }
    }
}

impl Types {
    /// The types of the built-in kinds.
    pub(crate) fn builtin() -> Types {
        Types::parse(include_str!("schema/builtin.schema"))
    }

    fn parse(text: &str) -> Types {
        let mut types = BTreeMap::new();
        let mut current: Option<(String, Type)> = None;
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (code, words) = line.split_once(" -- ").unwrap_or((line, ""));
            if let Some(head) = code.strip_prefix("type ") {
                types.extend(current.take());
                let (name, rest) = head.split_once(' ').unwrap_or((head, ""));
                let fresh = Type { words: words.to_owned(), atomic: rest == "atomic", ..Type::default() };
                current = Some((name.to_owned(), fresh));
            } else if let (Some((_, ty)), Some((name, rest))) = (current.as_mut(), code.trim().split_once(": ")) {
                let required = name.ends_with('!');
                ty.fields.insert(name.trim_end_matches('!').to_owned(), parse_field(rest, required, words));
            }
        }
        types.extend(current);
        Types(types)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Type> {
        self.0.get(name)
    }

    pub(crate) fn insert(&mut self, name: String, ty: Type) {
        self.0.insert(name, ty);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Type)> {
        self.0.iter()
    }

    /// Whether an object at this place is owned as a whole.
    pub(crate) fn is_atomic(&self, place: &SchemaNode) -> bool {
        if let FieldShape::Struct(name) = &place.shape
            && self.find(name).is_some_and(|ty| ty.atomic)
        {
            return true;
        }
        place.sharing == Sharing::Atomic
    }

    /// The place of a key below an object; nothing if the type has no such field.
    pub(crate) fn below(&self, place: &SchemaNode, key: &str) -> Option<SchemaNode> {
        match &place.shape {
            FieldShape::Struct(name) => {
                let Some(ty) = self.find(name) else { return Some(SchemaNode::UNKNOWN) };
                let known = ty
                    .fields
                    .get(key)
                    .map(|field| SchemaNode { shape: field.shape.clone(), sharing: field.sharing.clone() });
                known.or_else(|| ty.open.then_some(SchemaNode::UNKNOWN))
            }
            FieldShape::Map(of) => Some(SchemaNode { shape: (**of).clone(), sharing: Sharing::Granular }),
            FieldShape::Any => Some(SchemaNode::UNKNOWN),
            FieldShape::Text
            | FieldShape::Bytes
            | FieldShape::Time
            | FieldShape::Quantity
            | FieldShape::IntOrText
            | FieldShape::Int => None,
            FieldShape::Number | FieldShape::Bool | FieldShape::List(_) => None,
        }
    }

    /// The place of the items of a list.
    pub(crate) fn items(&self, place: &SchemaNode) -> SchemaNode {
        let FieldShape::List(of) = &place.shape else { return SchemaNode::UNKNOWN };
        SchemaNode { shape: (**of).clone(), sharing: Sharing::Granular }
    }
}

fn parse_field(code: &str, required: bool, words: &str) -> SchemaField {
    let (shape, how) = code.split_once(' ').unwrap_or((code, ""));
    let shape = parse_shape(shape);
    let sharing = match how.trim() {
        "atomic" => Sharing::Atomic,
        "set" => Sharing::Set,
        how => match how.strip_prefix("by ") {
            Some(keys) => Sharing::Keyed(keys.split(',').map(str::to_owned).collect()),
            None if matches!(shape, FieldShape::List(_)) => Sharing::Atomic,
            None => Sharing::Granular,
        },
    };
    SchemaField { shape, sharing, required, words: words.to_owned() }
}

fn parse_shape(code: &str) -> FieldShape {
    if let Some(inner) = code.strip_prefix('[').and_then(|code| code.strip_suffix(']')) {
        return FieldShape::List(Box::new(parse_shape(inner)));
    }
    if let Some(inner) = code.strip_prefix('{').and_then(|code| code.strip_suffix('}')) {
        return FieldShape::Map(Box::new(parse_shape(inner)));
    }
    match code {
        "string" => FieldShape::Text,
        "bytes" => FieldShape::Bytes,
        "time" => FieldShape::Time,
        "quantity" => FieldShape::Quantity,
        "intstr" => FieldShape::IntOrText,
        "int" => FieldShape::Int,
        "number" => FieldShape::Number,
        "bool" => FieldShape::Bool,
        "any" => FieldShape::Any,
        name => FieldShape::Struct(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_type_of_the_table_exists() {
        let types = Types::builtin();
        for (owner, ty) in types.iter() {
            for (field, it) in &ty.fields {
                if let Some(name) = it.shape.named() {
                    assert!(types.find(name).is_some(), "{owner}.{field} names {name}, which is missing");
                }
            }
        }
    }

    #[test]
    fn containers_are_told_apart_by_name_and_arguments_are_one_value() {
        let types = Types::builtin();
        let pod = SchemaNode::of_type("core.v1.PodSpec");
        let containers = types.below(&pod, "containers").unwrap();
        let args = types.below(&types.items(&containers), "args").unwrap();
        assert_eq!(containers.sharing, Sharing::Keyed(vec!["name".to_owned()]));
        assert_eq!(args.sharing, Sharing::Atomic);
        assert!(types.below(&pod, "continers").is_none());
    }
}
