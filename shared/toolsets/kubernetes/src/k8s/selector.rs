//! Label and field selectors as arguments of a call.

use crate::selector::{is_field_selector, is_label_selector};
use target::checked_text;

checked_text!(
    /// A label selector such as `app=web,tier in (a, b),!canary`.
    LabelSelector, is_label_selector, "a label selector is key=value, key!=value, key in (a,b), key notin (a,b), key>1, key<1, key or !key, joined by commas",
    { "type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[ -~]+$" }
);

checked_text!(
    /// A field selector such as `status.phase!=Running,spec.nodeName=n1`.
    FieldSelector, is_field_selector, "a field selector is path=value or path!=value, joined by commas",
    { "type": "string", "minLength": 1, "maxLength": 512, "pattern": "^[ -~]+$" }
);
