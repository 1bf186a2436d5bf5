//! Lists of tools as finished bytes from the `ToolsCache`: a page for `tools/list`, the whole for the REST turn.

use crate::app::Gateway;
use bytes::Bytes;
use catalog::{CachedToolsPage, Catalog, ListAudience, ListKey};
use domain::{Code, Failure, LoadedToolsets};
use mcp::Era;

/// Tools on one page.
const PAGE: usize = 100;

/// The forms a list comes in; each has its own bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListForm {
    /// MCP, legacy revisions.
    Legacy,
    /// MCP, 2026-07-28.
    Modern,
    /// REST, tools as MCP lists them.
    RestMcp,
    /// REST, ready for an `OpenAI`-style request.
    OpenAi,
    /// REST, ready for an `Anthropic`-style request.
    Anthropic,
}

/// One page of the list of a loaded set, as the result object of its era.
pub fn page(
    gateway: &Gateway,
    catalog: &Catalog,
    loaded: &LoadedToolsets,
    view: ListAudience,
    era: Era,
    cursor: Option<&str>,
) -> Result<CachedToolsPage, Failure> {
    let set = catalog.set_key(loaded).to_be_bytes();
    let key = gateway.keys.cursor();
    let page = match cursor {
        None => 0,
        Some(text) => mcp::cursor::check(key, catalog.shared_digest(), &set, text).ok_or_else(|| {
            Failure::new(Code::BadCursor, "the cursor is not one of this list").next("list again without a cursor")
        })?,
    };
    let form = match era {
        Era::Legacy(_) => ListForm::Legacy,
        Era::Modern => ListForm::Modern,
    };
    let at = ListKey::new(catalog, loaded, view, form as u8, page);
    Ok(cached(gateway, catalog, at, || {
        let first = usize::try_from(page).unwrap_or(usize::MAX).saturating_mul(PAGE);
        let mut lines = catalog.listed(loaded, view).skip(first);
        let shown: Vec<_> = lines.by_ref().take(PAGE).collect();
        let more = lines.next().map(|_| mcp::cursor::make(key, catalog.shared_digest(), &set, page + 1));
        let tools: Vec<&[u8]> = shown.iter().map(|line| line.mcp.as_bytes()).collect();
        (mcp::list::page(era, &tools, more.as_deref()), shown.iter().map(|line| line.tokens).sum())
    }))
}

/// A list from the cache, made if it is not there.
fn cached(gateway: &Gateway, catalog: &Catalog, at: ListKey, make: impl FnOnce() -> (Bytes, u32)) -> CachedToolsPage {
    let mut result = "hit";
    let page = gateway.lists.page(at, || {
        result = "miss";
        make()
    });
    telemetry::metrics::CACHE_REQUESTS.add(["l1", result], 1);
    telemetry::note(|span| {
        span.set(telemetry::names::CACHE, if result == "hit" { "l1" } else { result });
        span.set(telemetry::names::CATALOG_DIGEST, catalog.digest());
    });
    page
}

/// A whole list for the REST turn.
pub fn whole(
    gateway: &Gateway,
    catalog: &Catalog,
    loaded: &LoadedToolsets,
    view: ListAudience,
    form: ListForm,
) -> CachedToolsPage {
    cached(gateway, catalog, ListKey::new(catalog, loaded, view, form as u8, 0), || {
        let mut tokens = 0;
        let mut text = String::from(r#"{"tools":["#);
        for (n, line) in catalog.listed(loaded, view).enumerate() {
            if n > 0 {
                text.push(',');
            }
            tokens += line.tokens;
            let (name, description, wire) = (line.name, serde_json::Value::from(line.description), line.wire);
            match form {
                ListForm::Legacy | ListForm::Modern | ListForm::RestMcp => text.push_str(line.mcp),
                ListForm::OpenAi => text.push_str(&format!(
                    r#"{{"type":"function","function":{{"name":"{name}","description":{description},"parameters":{wire}}}}}"#
                )),
                ListForm::Anthropic => text
                    .push_str(&format!(r#"{{"name":"{name}","description":{description},"input_schema":{wire}}}"#)),
            }
        }
        text.push_str("]}");
        (Bytes::from(text), tokens)
    })
}
