//! The rules of documents: what may be kept where, how it is changed, found and promoted.
//!
//! Reading order: [`path`] (where a document is), `kind` (what it is), `stores` (what a tenant allows where), `author`
//! (who reads and writes), `text`, `patch` and `diff` (how texts change), [`scan`] (what must not be remembered), then
//! [`Documents`] with its verbs: `reading`, `search` over `indexes`, `past`; and `plan` with `write`, `forget`, `promote`
//! and `sketch`, which draws a plan for whoever decides.
//!
//! Not here: how documents are stored (see `store`), how they are ranked (see `recall`), who must be asked before a
//! write (see `policy`), and what a model is shown (see the memory tools). Everything read back is data.

mod author;
mod diff;
mod forget;
mod indexes;
mod kind;
mod notebook;
mod past;
mod patch;
pub mod path;
mod plan;
mod promote;
mod reading;
mod refusal;
pub mod scan;
mod search;
mod sketch;
mod stores;
mod text;
mod write;

pub use author::{DocumentAuthor, DocumentReader};
pub use forget::{ForgetDepth, ForgetRequest, Forgotten};
pub use kind::{DocumentKind, trust};
pub use notebook::Documents;
pub use past::{DocumentHistory, PROMOTION_TOOL, Promotion};
pub use patch::{Edit, PatchChange};
pub use path::{DocPath, DocumentScope, NotAPath, Prefix};
pub use plan::{DocumentWriteResult, op};
pub use promote::PromotionRequest;
pub use reading::{DocumentPage, StoreFacts};
pub use search::{DocumentHit, DocumentQuery, SearchResults};
pub use stores::{BadStore, Quota, StoreRules, Stores, WriteAccess};
pub use text::normalise;
pub use write::{DocumentPatch, Write};
