//! The codes that the toolset `memory` raises.

domain::tool_codes! {
    /// No document at that path.
    DOC_NOT_FOUND = "doc_not_found": NotFound,
    /// The path is taken; overwriting needs the current digest.
    DOC_EXISTS = "doc_exists": Conflict,
    /// The document changed meanwhile.
    MEMORY_CONFLICT = "memory_conflict": Conflict,
    /// The text seems to hold a secret.
    SECRET_FOUND = "secret_found": Unprocessable,
    /// The store named in a path does not exist.
    UNKNOWN_STORE = "unknown_store": NotFound,
    /// The text tries to give orders, or hides something.
    UNSAFE_TEXT = "unsafe_text": Unprocessable,
    /// The text is a log, not a note.
    LOG_DUMP = "log_dump": Unprocessable,
    /// The text to be replaced does not occur.
    EDIT_NOT_FOUND = "edit_not_found": Conflict,
    /// The text to be replaced occurs more than once.
    EDIT_AMBIGUOUS = "edit_ambiguous": Conflict,
    /// The difference does not fit the text.
    DIFF_MISMATCH = "diff_mismatch": Conflict,
    /// Only people write to that store.
    READ_ONLY_STORE = "read_only_store": Forbidden,
    /// The store does not take documents of that type.
    TYPE_NOT_ALLOWED = "type_not_allowed": Unprocessable,
    /// The text was removed for good.
    REDACTED = "redacted": Gone,
}
