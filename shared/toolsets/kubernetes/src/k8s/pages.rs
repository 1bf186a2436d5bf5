//! Every object of a place, page by page, up to a bound. Whoever must not overlook one fails where there are more.
//! And where a list goes on that is shown page by page.

use super::project::ObjectRow;
use super::reply::{ClusterReplyFields, Omitted, ROOM, rows_that_fit};
use crate::client::{Cluster, KindScope, ListQuery, MaskDetail};
use domain::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many a page holds, and how many pages are read.
const PAGE: u32 = 500;
const MOST_PAGES: usize = 20;

/// Where a list goes on: the cluster's own token, and how many of that page were shown.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ObjectsPageToken {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) c: Option<String>,
    pub(crate) o: usize,
}

impl ObjectsPageToken {
    /// After so many rows were shown of this page and so many left behind; `next` is the page after it.
    pub(crate) fn after(self, shown: usize, left: usize, next: Option<String>) -> Option<ObjectsPageToken> {
        match (left, next) {
            (1.., _) => Some(ObjectsPageToken { c: self.c, o: self.o + shown }),
            (0, Some(next)) => Some(ObjectsPageToken { c: Some(next), o: 0 }),
            (0, None) => None,
        }
    }
}

/// One page of a list as rows, before it is cut.
#[derive(Debug, Default)]
pub(crate) struct UncutPage {
    pub(crate) rows: Vec<ObjectRow>,
    /// The cluster's token of the page after it.
    pub(crate) next: Option<String>,
    /// How many objects follow this page, if the cluster says so.
    pub(crate) remaining: Option<u64>,
    pub(crate) warnings: Vec<String>,
}

/// One page as it is shown.
pub(crate) struct CutPage {
    pub(crate) rows: Vec<ObjectRow>,
    /// How many more there are, if that is known.
    pub(crate) remaining: Option<u64>,
}

impl UncutPage {
    /// The rows behind those that were shown already, as far as they fit. What is left is noted in `common`, with the
    /// cursor that `seal` makes of where it begins.
    pub(crate) fn cut(
        self,
        token: ObjectsPageToken,
        common: &mut ClusterReplyFields,
        narrow: &str,
        seal: impl FnOnce(&ObjectsPageToken) -> Result<String, Failure>,
    ) -> Result<CutPage, Failure> {
        let (rows, left) = rows_that_fit(self.rows.into_iter().skip(token.o).collect(), ROOM);
        let mut cut = CutPage { rows, remaining: None };
        if let Some(next) = token.after(cut.rows.len(), left, self.next) {
            common.next_cursor = Some(seal(&next)?);
            let items = u64::try_from(left).unwrap_or_default() + self.remaining.unwrap_or_default();
            common.cut(Omitted { items, ..Omitted::default() }, narrow);
            cut.remaining = self.remaining.map(|_| items).or((left > 0).then_some(items));
        }
        common.warnings = self.warnings;
        Ok(cut)
    }
}

/// All of them.
pub(crate) async fn all(cluster: &Cluster<'_>, place: &KindScope, query: ListQuery) -> Result<Vec<Value>, Failure> {
    let mut query = ListQuery { limit: PAGE, ..query };
    let mut found = Vec::new();
    for _ in 0..MOST_PAGES {
        let page = cluster.list(place, &query, MaskDetail::Clean).await?;
        found.extend(page.items);
        match page.cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(found),
        }
    }
    let message = format!("more than {} {} would have to be looked at", found.len(), place.kind().plural());
    Err(Failure::new(Code::ResultTooLarge, message).next("do it in smaller parts"))
}
