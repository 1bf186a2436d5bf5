//! Every object of a place, page by page, up to a bound. Whoever must not overlook one fails where there are more.

use cluster::{Cluster, Detail, Place, Query};
use domain::{Code, Failure};
use serde_json::Value;

/// How many a page holds, and how many pages are read.
const PAGE: u32 = 500;
const MOST_PAGES: usize = 20;

/// All of them.
pub(super) async fn all(cluster: &Cluster<'_>, place: &Place, query: Query) -> Result<Vec<Value>, Failure> {
    let mut query = Query { limit: PAGE, ..query };
    let mut found = Vec::new();
    for _ in 0..MOST_PAGES {
        let page = cluster.list(place, &query, Detail::Clean).await?;
        found.extend(page.items);
        match page.cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(found),
        }
    }
    let message = format!("more than {} {} would have to be looked at", found.len(), place.kind().plural());
    Err(Failure::new(Code::ResultTooLarge, message).next("do it in smaller parts"))
}
