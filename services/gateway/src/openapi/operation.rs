//! One operation of the API as the description has it: what it takes and what it answers.

use schemars::generate::SchemaSettings;
use schemars::transform::ReplaceBoolSchemas;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Writes a type's schema into the components and returns the reference to it.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What a request carries.
pub(super) enum RequestBody {
    /// JSON of this shape.
    Json(SchemaOf),
    /// A text of one of these media types.
    Text(&'static [&'static str]),
}

/// One way an operation can be answered, other than by an error.
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) media: &'static str,
    pub(super) schema: Option<SchemaOf>,
}

/// One operation.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// Its name in generated clients.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: Option<SchemaOf>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: Option<RequestBody>,
    pub(super) answers: Vec<Answered>,
    /// Statuses of errors besides those that every operation can have.
    pub(super) errors: Vec<u16>,
    /// Statuses that are answered without a body.
    pub(super) bare: Vec<u16>,
}

pub(super) fn operation(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Operation {
    let (headers, answers, errors, bare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Operation { method, path, id, summary, query: None, headers, body: None, answers, errors, bare }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Operation {
    pub(super) fn query<T: JsonSchema>(self) -> Operation {
        Operation { query: Some(schema_of::<T>), ..self }
    }

    pub(super) fn header(mut self, name: &'static str, what: &'static str) -> Operation {
        self.headers.push((name, what));
        self
    }

    pub(super) fn body<T: JsonSchema>(self) -> Operation {
        Operation { body: Some(RequestBody::Json(schema_of::<T>)), ..self }
    }

    pub(super) fn text(self, media: &'static [&'static str]) -> Operation {
        Operation { body: Some(RequestBody::Text(media)), ..self }
    }

    pub(super) fn answers<T: JsonSchema>(self, status: u16) -> Operation {
        self.answered(status, "application/json", Some(schema_of::<T>))
    }

    pub(super) fn answers_as<T: JsonSchema>(self, status: u16, media: &'static str) -> Operation {
        self.answered(status, media, Some(schema_of::<T>))
    }

    /// A text, of which nothing is said but its media type: a reader may take it apart, as it does with YAML.
    pub(super) fn answers_text(self, status: u16, media: &'static str) -> Operation {
        self.answered(status, media, None)
    }

    pub(super) fn nothing(self, status: u16) -> Operation {
        self.answered(status, "", None)
    }

    fn answered(mut self, status: u16, media: &'static str, schema: Option<SchemaOf>) -> Operation {
        self.answers.push(Answered { status, media, schema });
        self
    }

    pub(super) fn errors(mut self, statuses: &[u16]) -> Operation {
        self.errors.extend(statuses);
        self
    }

    pub(super) fn bare(mut self, statuses: &[u16]) -> Operation {
        self.bare.extend(statuses);
        self
    }
}

/// A generator for what the service reads, or for what it writes: an optional field may be absent in the first, and is
/// there as `null` in the second.
pub(super) fn generator(writes: bool) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    // `true` for "anything" is right, and makers of clients do not know it.
    let mut no_bare_true = ReplaceBoolSchemas::default();
    no_bare_true.skip_additional_properties = true;
    let settings = settings.with_transform(no_bare_true);
    if writes { settings.for_serialize() } else { settings.for_deserialize() }.into_generator()
}
