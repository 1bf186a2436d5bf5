//! The checked sections of one tenant, each a value of its toolset's own type.

use std::any::{Any, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A checked section, whatever its type.
pub(super) trait SectionValue: Any + fmt::Debug + Send + Sync {
    /// Whether the other one has the same type and says the same.
    fn equals(&self, other: &dyn SectionValue) -> bool;
}

impl<T: Any + fmt::Debug + Eq + Send + Sync> SectionValue for T {
    fn equals(&self, other: &dyn SectionValue) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<T>() == Some(self)
    }
}

/// The checked sections of one tenant, by their keys.
#[derive(Clone, Default)]
pub struct SectionValues(BTreeMap<&'static str, Arc<dyn SectionValue>>);

/// A section was read as one type and is asked for as another. Whoever asks is wrong, not the tenant's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the section `{key}` is no {wanted}")]
pub struct SectionTypeError {
    /// The section's key.
    pub key: String,
    /// The type that was asked for.
    pub wanted: &'static str,
}

impl SectionValues {
    /// What a section says; `None` if the file does not have it.
    pub fn get<T: Any>(&self, key: &str) -> Result<Option<&T>, SectionTypeError> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let value: &dyn Any = &**value;
        let wrong = || SectionTypeError { key: key.to_owned(), wanted: type_name::<T>() };
        value.downcast_ref::<T>().map(Some).ok_or_else(wrong)
    }

    /// Whether the file has the section.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Whether both say the same in a section, or nothing.
    pub(crate) fn same(&self, other: &SectionValues, key: &str) -> bool {
        match (self.0.get(key), other.0.get(key)) {
            (Some(one), Some(other)) => (**one).equals(&**other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    pub(super) fn insert(&mut self, key: &'static str, value: Arc<dyn SectionValue>) {
        self.0.insert(key, value);
    }
}

impl PartialEq for SectionValues {
    fn eq(&self, other: &SectionValues) -> bool {
        let alike = |(key, value): (&&str, &Arc<dyn SectionValue>)| {
            other.0.get(key).is_some_and(|theirs| (**value).equals(&**theirs))
        };
        self.0.len() == other.0.len() && self.0.iter().all(alike)
    }
}

impl Eq for SectionValues {}

impl fmt::Debug for SectionValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one<T: Any + fmt::Debug + Eq + Send + Sync>(value: T) -> SectionValues {
        let mut values = SectionValues::default();
        values.insert("key", Arc::new(value));
        values
    }

    #[test]
    fn a_value_is_read_back_as_what_it_is_and_as_nothing_else() {
        let values = one(vec![1_u8]);
        assert_eq!(values.get::<Vec<u8>>("key"), Ok(Some(&vec![1])));
        assert_eq!(values.get::<Vec<u8>>("other"), Ok(None));
        let error = values.get::<String>("key").unwrap_err();
        assert_eq!(error.to_string(), "the section `key` is no alloc::string::String");
    }

    #[test]
    fn values_are_equal_if_type_and_content_are() {
        assert_eq!(one(7_u8), one(7_u8));
        assert_ne!(one(7_u8), one(8_u8));
        assert_ne!(one(7_u8), one(7_u16));
        assert_ne!(one(7_u8), SectionValues::default());
        assert_eq!(format!("{:?}", one(7_u8)), r#"{"key": 7}"#);
    }
}
