//! The objects of a kind, page by page.

use super::super::pages::{ObjectsPageToken, UncutPage};
use super::super::project::{self, ObjectRow, config::last_seen};
use super::super::reply::MOST_ROWS;
use super::super::selector::{FieldSelector, LabelSelector};
use super::{Args, GetView, K8sGet, K8sGetOutput};
use crate::client::{Cluster, KindScope, ListQuery};
use domain::Failure;
use policy::Permit;
use serde_json::{Value, json};

/// Whole objects are large: few of them fit into an answer, so few are asked for at once.
const FULL_PAGE: u32 = 20;
const SUMMARY_PAGE: u32 = 100;
/// How many events are looked through for the newest ones, and in which steps.
const MOST_EVENTS: usize = 2_500;
const EVENT_PAGE: u32 = 500;
const NARROW: &str = "narrow with namespace, selector or field_selector, or go on with next_cursor";

impl K8sGet {
    /// Where the page of a call begins.
    pub(super) fn page_token(&self, permit: &Permit, args: &Args) -> Result<ObjectsPageToken, Failure> {
        Ok(self.kit.cursors.resume(permit, args, args.cursor.as_ref())?.unwrap_or_default())
    }

    /// One page from the cluster.
    pub(super) async fn page(
        &self,
        cluster: &Cluster<'_>,
        place: &KindScope,
        args: &Args,
        token: Option<String>,
    ) -> Result<UncutPage, Failure> {
        let (group, kind) = (place.kind().group(), place.kind().kind());
        if kind == "Event" && matches!(group, "" | "events.k8s.io") {
            return self.events(cluster, place, args).await;
        }
        let whole = args.view() == GetView::Full;
        let limit = if whole { FULL_PAGE } else { SUMMARY_PAGE };
        let query = ListQuery { limit, cursor: token, ..query(args, place) };
        if !whole && args.path.is_none() && !project::knows(group, kind) {
            let table = cluster.table(place, &query).await?;
            let rows = table_rows(table.columns, table.rows, args.everywhere());
            return Ok(UncutPage { rows, next: table.cursor, remaining: table.remaining, warnings: table.warnings });
        }
        let page = cluster.list(place, &query, args.detail()).await?;
        let rows = page.items.into_iter().map(|object| self.shown(place, args, object)).collect();
        Ok(UncutPage { rows, next: page.cursor, remaining: page.remaining, warnings: page.warnings })
    }

    /// The answer with as many rows of a page as fit into it, and a cursor for the rest.
    pub(super) fn fitted(
        &self,
        permit: &Permit,
        mut answer: K8sGetOutput,
        args: &Args,
        token: ObjectsPageToken,
        page: UncutPage,
    ) -> Result<K8sGetOutput, Failure> {
        let page = page.cut(token, &mut answer.common, NARROW, |next| self.kit.cursors.seal(permit, args, next))?;
        (answer.count, answer.remaining, answer.items) = (Some(page.rows.len()), page.remaining, Some(page.rows));
        Ok(answer)
    }

    fn shown(&self, place: &KindScope, args: &Args, mut object: Value) -> ObjectRow {
        args.clean(&mut object);
        if let Some(path) = &args.path {
            let mut row = project::head(&object, args.everywhere());
            row.insert("value".to_owned(), path.find(&object).cloned().unwrap_or_default());
            return row;
        }
        match (args.view(), object) {
            (GetView::Full, Value::Object(fields)) => fields,
            (_, object) => {
                let (group, kind) = (place.kind().group(), place.kind().kind());
                project::row(group, kind, &object, args.everywhere(), self.kit.cursors.now())
            }
        }
    }

    /// Events, the newest first. The cluster gives them in the order of their names, so all are looked at, up to a bound.
    async fn events(&self, cluster: &Cluster<'_>, place: &KindScope, args: &Args) -> Result<UncutPage, Failure> {
        let mut query = ListQuery { limit: EVENT_PAGE, ..query(args, place) };
        let (mut all, mut warnings): (Vec<(String, ObjectRow)>, Vec<String>) = (Vec::new(), Vec::new());
        loop {
            let page = cluster.list(place, &query, args.detail()).await?;
            for event in page.items {
                let at = last_seen(&event).unwrap_or_default().to_owned();
                all.push((at, self.shown(place, args, event)));
            }
            warnings.extend(page.warnings);
            query.cursor = page.cursor;
            if query.cursor.is_none() {
                break;
            }
            if all.len() >= MOST_EVENTS {
                warnings.push(format!("there are more events; the newest of the first {} are shown", all.len()));
                break;
            }
        }
        // RFC 3339 in UTC sorts as text.
        all.sort_by(|(a, _), (b, _)| b.cmp(a));
        Ok(UncutPage { rows: all.into_iter().map(|(_, row)| row).collect(), next: None, remaining: None, warnings })
    }
}

/// What is asked for. Rows need a few fields of each object; what `path` names is masked by what stands around it, so it
/// is read from the whole.
fn query(args: &Args, place: &KindScope) -> ListQuery {
    let rows = args.view() != GetView::Full && args.path.is_none();
    let fields = rows.then(|| project::fields(place.kind().group(), place.kind().kind())).flatten();
    ListQuery {
        labels: args.selector.as_ref().map(|s| LabelSelector::as_str(s).to_owned()),
        fields: args.field_selector.as_ref().map(|s| FieldSelector::as_str(s).to_owned()),
        only: fields.unwrap_or_default(),
        ..ListQuery::default()
    }
}

/// The server's columns as rows: a column's name in small letters is the key.
pub(super) fn table_rows(columns: Vec<String>, rows: Vec<crate::client::TableRow>, everywhere: bool) -> Vec<ObjectRow> {
    let key = |name: &String| name.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let keys: Vec<String> = columns.iter().map(key).collect();
    rows.into_iter()
        .take(MOST_ROWS)
        .map(|found| {
            let mut row = ObjectRow::new();
            for (key, cell) in keys.iter().zip(found.cells) {
                row.insert(key.clone(), cell);
            }
            row.insert("name".to_owned(), json!(found.name));
            if let (true, Some(namespace)) = (everywhere, found.namespace) {
                row.insert("namespace".to_owned(), json!(namespace));
            }
            row
        })
        .collect()
}
