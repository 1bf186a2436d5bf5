//! Lists: selected, paged and consistent over the pages.

use std::ops::Bound;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::json;
use crate::kinds::ApiKind;
use crate::objects::ObjectKey;
use crate::query::UrlQuery;
use crate::selector::{FieldSelector, Labels};
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

/// What a list or watch is narrowed to.
#[derive(Debug, Clone)]
pub(crate) struct ListFilter {
    pub(crate) namespace: String,
    pub(crate) labels: Labels,
    pub(crate) fields: FieldSelector,
}

impl ListFilter {
    pub(crate) fn of(query: &UrlQuery, kind: &ApiKind, namespace: &str) -> Result<ListFilter, ApiStatus> {
        let labels = Labels::parse(query.get("labelSelector").unwrap_or_default())?;
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default(), &kind.resource())?;
        Ok(ListFilter { namespace: namespace.to_owned(), labels, fields })
    }

    pub(crate) fn lets(&self, object: &Value) -> bool {
        (self.namespace.is_empty() || json::namespace(object) == self.namespace)
            && self.labels.matches(object)
            && self.fields.matches(object)
    }

    fn is_plain(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct ListPage {
    pub(crate) items: Vec<Arc<Value>>,
    pub(crate) metadata: Value,
}

/// Where the next page begins, and which version all pages show.
struct Continue {
    version: u64,
    after: ObjectKey,
}

impl Continue {
    fn encode(&self) -> String {
        let (namespace, name) = &self.after;
        let token = json!({ "v": "meta.k8s.io/v1", "rv": self.version, "start": format!("{namespace}/{name}") });
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn decode(token: &str) -> Result<Continue, ApiStatus> {
        let refused = || ApiStatus::bad_request("continue key is not valid: invalid continue token");
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| refused())?;
        let token: Value = serde_json::from_slice(&bytes).map_err(|_| refused())?;
        let start = json::text(&token, "/start").and_then(|start| start.split_once('/')).ok_or_else(refused)?;
        let version = token["rv"].as_u64().ok_or_else(refused)?;
        Ok(Continue { version, after: (start.0.to_owned(), start.1.to_owned()) })
    }
}

impl ClusterWorld {
    /// GET of a collection.
    pub(crate) fn list(&self, kind: &ApiKind, filter: &ListFilter, query: &UrlQuery) -> Result<ListPage, ApiStatus> {
        let limit = query.number("limit").and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
        let token = query.get("continue").filter(|token| !token.is_empty()).map(Continue::decode).transpose()?;
        let version = token.as_ref().map_or(self.objects.version(), |token| token.version);
        let resource = kind.resource();
        let past: Vec<Arc<Value>>;
        let (mut items, mut more) = (Vec::new(), 0_usize);
        let mut take = |object: &Arc<Value>| {
            if !filter.lets(object) {
                return;
            }
            match limit {
                Some(limit) if items.len() >= limit => more += 1,
                _ => items.push(object.clone()),
            }
        };
        match &token {
            None => self.objects.within(&resource, &filter.namespace).for_each(&mut take),
            Some(token) => {
                let then = self.objects.at(&resource, token.version).ok_or_else(|| {
                    ApiStatus::expired(
                        "The provided continue parameter is too old to display a consistent list result. You can start a \
                         new list without the continue parameter.",
                    )
                })?;
                let later = then.range((Bound::Excluded(token.after.clone()), Bound::Unbounded));
                past = later.map(|(_, object)| object.clone()).collect();
                past.iter().for_each(&mut take);
            }
        }
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if more > 0
            && let Some(last) = items.last()
        {
            let after = (json::namespace(last).to_owned(), json::name(last).to_owned());
            metadata["continue"] = json!(Continue { version, after }.encode());
            // With a selector the real server does not know how many are left either.
            if filter.is_plain() {
                metadata["remainingItemCount"] = json!(more);
            }
        }
        Ok(ListPage { items, metadata })
    }
}
