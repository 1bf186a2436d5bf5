//! A page of `tools/list`: ready-made tools, joined.
//!
//! The same bytes go to everyone who asks the same page of the same set in the same era, so nothing about the
//! request may stand in them.

use crate::encode::{opened, with_meta};
use crate::era::Era;
use crate::json::push_list;
use bytes::Bytes;

/// Kept small: some clients do not ask again within it.
const TTL_MS: &str = "30000";

/// The result object of one page; `tools` are serialised already.
pub fn page(era: Era, tools: &[&[u8]], next_cursor: Option<&str>) -> Bytes {
    let bytes: usize = tools.iter().map(|tool| tool.len() + 1).sum();
    let object = opened(era, bytes + 320)
        .put("tools", |out| push_list(out, tools, |out, tool| out.extend_from_slice(tool)))
        .maybe(next_cursor, |object, cursor| object.text("nextCursor", cursor));
    let object = match era {
        Era::Legacy(_) => object,
        // Private, because what a caller sees depends on the token.
        Era::Modern => object.raw("ttlMs", TTL_MS).text("cacheScope", "private"),
    };
    with_meta(object, era, |meta| meta).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::era::LegacyRevision;

    const LEGACY: Era = Era::Legacy(LegacyRevision::V2025_06_18);

    #[test]
    fn a_legacy_page_holds_tools_and_nothing_of_the_modern_era() {
        assert_eq!(page(LEGACY, &[], None), r#"{"tools":[]}"#);
        let tools: [&[u8]; 2] = [br#"{"name":"a"}"#, br#"{"name":"b"}"#];
        assert_eq!(page(LEGACY, &tools, Some("next")), r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"next"}"#);
    }

    #[test]
    fn a_modern_page_says_how_long_and_for_whom_it_may_be_kept() {
        let page = page(Era::Modern, &[br#"{"name":"a"}"#], None);
        let text = str::from_utf8(&page).unwrap().replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(text, @r#"{"resultType":"complete","tools":[{"name":"a"}],"ttlMs":30000,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"quartermaster","version":"VERSION"}}}"#);
    }
}
