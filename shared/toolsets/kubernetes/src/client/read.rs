//! Looking: one object, a page of them, a table, what happened to one. All of it masked.

use crate::client::cluster::Cluster;
use crate::client::fields::FieldTree;
use crate::client::grammar;
use crate::client::kinds::Kind;
use crate::client::mask::MaskDetail;
use crate::client::place::{KindScope, NamespaceSpan, ResourceRef};
use crate::client::request::ClusterRequest;
use crate::client::sealed::SealedValue;
use crate::codes;
use domain::{Code, Failure};
use http::Method;
use serde_json::{Value, json};

/// What of a kind is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// A label selector.
    pub labels: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
    /// How many at most, up to 500; 0 means 100.
    pub limit: u32,
    /// Where a former page ended.
    pub cursor: Option<String>,
    /// What of each object is read; the default is all of it.
    pub only: FieldTree,
}

/// One page of objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectPage {
    /// The objects, each with its kind.
    pub items: Vec<Value>,
    /// Where the next page begins, if there is one.
    pub cursor: Option<String>,
    /// How many more there are, if the cluster says so.
    pub remaining: Option<u64>,
    /// The version of the list.
    pub version: Option<String>,
    /// What could not be looked at.
    pub warnings: Vec<String>,
}

/// One page in the server's own columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The names of the columns that are always shown.
    pub columns: Vec<String>,
    /// One object each.
    pub rows: Vec<TableRow>,
    /// Where the next page begins, if there is one.
    pub cursor: Option<String>,
    /// How many more there are, if the cluster says so.
    pub remaining: Option<u64>,
    /// What could not be looked at.
    pub warnings: Vec<String>,
}

/// One object of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its cells, as many as there are columns.
    pub cells: Vec<Value>,
}

/// The default size of a page, and the largest.
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 500;
/// What separates the namespace and the server's own cursor in ours.
const SPLIT: char = '/';

impl Cluster<'_> {
    /// One object.
    pub async fn get(&self, target: &ResourceRef, detail: MaskDetail) -> Result<Value, Failure> {
        self.read_masked(&ClusterRequest::object(Method::GET, "get", target), detail).await
    }

    /// One object, or nothing if it is not there.
    pub async fn find(&self, target: &ResourceRef, detail: MaskDetail) -> Result<Option<Value>, Failure> {
        match self.get(target, detail).await {
            Ok(object) => Ok(Some(object)),
            Err(failure) if failure.code == Code::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// One object as the cluster holds it, for writing it or a part of it back.
    pub async fn sealed(&self, target: &ResourceRef) -> Result<SealedValue, Failure> {
        let value = self.read_json(&ClusterRequest::object(Method::GET, "get", target)).await?;
        Ok(SealedValue::of(value, self.masker().is_secret_kind(target.kind.kind())))
    }

    /// One page of a kind.
    pub async fn list(&self, place: &KindScope, query: &ListQuery, detail: MaskDetail) -> Result<ObjectPage, Failure> {
        self.pages((crate::client::request::JSON, &query.only), place, query, |mut list: Value| {
            self.masker().object(&mut list, detail);
            let (kind, version) = (place.kind.kind(), place.kind.api_version());
            let named = |item: Value| {
                let Value::Object(mut item) = item else { return None };
                item.insert("kind".into(), json!(kind));
                item.insert("apiVersion".into(), json!(version));
                Some(Value::Object(item))
            };
            let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) else { return Vec::new() };
            items.into_iter().filter_map(named).collect()
        })
        .await
    }

    /// One page of a kind in the server's own columns.
    pub async fn table(&self, place: &KindScope, query: &ListQuery) -> Result<Table, Failure> {
        let mut columns = Vec::new();
        let form = ("application/json;as=Table;v=v1;g=meta.k8s.io", &FieldTree::default());
        let page = self
            .pages(form, place, query, |mut list: Value| {
                self.masker().object(&mut list, MaskDetail::Clean);
                let shown: Vec<usize> = indices_of_shown(&list["columnDefinitions"]);
                let name = |n: &usize| list["columnDefinitions"][*n]["name"].as_str().unwrap_or_default().to_owned();
                columns = shown.iter().map(name).collect();
                let rows = list["rows"].as_array().cloned().unwrap_or_default();
                let row = |row: Value| {
                    let cells: Vec<Value> = shown.iter().map(|n| row["cells"][*n].clone()).collect();
                    json!({ "metadata": row["object"]["metadata"], "cells": cells })
                };
                rows.into_iter().map(row).collect()
            })
            .await?;
        let row = |item: Value| TableRow {
            name: item["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            namespace: item["metadata"]["namespace"].as_str().map(str::to_owned),
            cells: item["cells"].as_array().cloned().unwrap_or_default(),
        };
        let ObjectPage { items, cursor, remaining, warnings, .. } = page;
        Ok(Table { columns, rows: items.into_iter().map(row).collect(), cursor, remaining, warnings })
    }

    /// What happened to one object, as the cluster noted it down.
    pub async fn events_of(&self, target: &ResourceRef, uid: &str) -> Result<ObjectPage, Failure> {
        if uid.is_empty() || !uid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(Failure::new(Code::Internal, "the object has no uid"));
        }
        let kind = self.kind("v1/Event").await?;
        // What has no namespace is noted down in `default`.
        let span = NamespaceSpan::One(target.namespace.clone().unwrap_or_else(|| "default".to_owned()));
        let query = ListQuery { fields: Some(format!("involvedObject.uid={uid}")), ..ListQuery::default() };
        self.list(&KindScope { kind, span }, &query, MaskDetail::Clean).await
    }

    /// Whether the one namespace of a place is known not to exist. A credential that may not look does not know.
    pub async fn lacks_namespace(&self, place: &KindScope) -> bool {
        let NamespaceSpan::One(namespace) = &place.span else { return false };
        let Ok(kind) = self.kind("v1/Namespace").await else { return false };
        // The place was judged, so its namespace was: it needs no look at the tenant's list again.
        let target = ResourceRef { kind, namespace: None, name: namespace.clone() };
        matches!(self.find(&target, MaskDetail::Clean).await, Ok(None))
    }

    /// The namespaces the cluster has and the tenant may use; none if the credential may not list them.
    pub async fn visible_namespaces(&self) -> Vec<String> {
        let names = self.namespace_names().await.unwrap_or_default();
        names.into_iter().filter(|name| self.config().allows(name)).collect()
    }

    /// The names of all namespaces; for the tenant's own list to choose from.
    pub(in crate::client) async fn namespace_names(&self) -> Result<Vec<String>, Failure> {
        let kind = self.kind("v1/Namespace").await?;
        let place = KindScope { kind, span: NamespaceSpan::Cluster };
        let mut query = ListQuery { limit: PAGE_MAX, ..ListQuery::default() };
        let mut names = Vec::new();
        loop {
            let page = self.list(&place, &query, MaskDetail::Clean).await?;
            names.extend(page.items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)));
            match page.cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => return Ok(names),
            }
        }
    }

    /// One page of a kind in a form, of which these fields are read; `items` takes the objects out of an answer.
    async fn pages(
        &self,
        (accept, fields): (&'static str, &FieldTree),
        place: &KindScope,
        query: &ListQuery,
        mut items: impl FnMut(Value) -> Vec<Value>,
    ) -> Result<ObjectPage, Failure> {
        if let Some(labels) = &query.labels {
            grammar::label_selector(labels)?;
        }
        if let Some(fields) = &query.fields {
            grammar::field_selector(fields)?;
        }
        let limit = if query.limit == 0 { PAGE } else { query.limit.min(PAGE_MAX) };
        let ask = |namespace: Option<&str>, limit: u32, cursor: Option<&str>| {
            ClusterRequest::collection(Method::GET, "list", &place.kind, namespace)
                .accept(accept)
                .query("limit", limit.to_string())
                .maybe("labelSelector", query.labels.as_ref())
                .maybe("fieldSelector", query.fields.as_ref())
                .maybe("continue", cursor)
        };
        let cursor = query.cursor.as_deref();
        let namespaces = match &place.span {
            NamespaceSpan::Each(namespaces) => namespaces,
            NamespaceSpan::One(namespace) => {
                return Ok(page_of(self.read_fields(&ask(Some(namespace), limit, cursor), fields).await?, items));
            }
            NamespaceSpan::Cluster | NamespaceSpan::All => {
                return Ok(page_of(self.read_fields(&ask(None, limit, cursor), fields).await?, items));
            }
            NamespaceSpan::Named(names) => {
                let mut page = page_of(self.read_fields(&ask(None, limit, cursor), fields).await?, items);
                let known = |item: &Value| names.iter().any(|name| item["metadata"]["name"] == name.as_str());
                page.items.retain(known);
                page.remaining = None;
                return Ok(page);
            }
        };
        let (mut at, mut inner) = resume(namespaces, cursor)?;
        let mut all = ObjectPage::default();
        while let Some(namespace) = namespaces.get(at) {
            let room = limit.saturating_sub(u32::try_from(all.items.len()).unwrap_or(u32::MAX));
            if room == 0 {
                all.cursor = Some(format!("{namespace}{SPLIT}"));
                break;
            }
            match self.read_fields(&ask(Some(namespace), room, inner.as_deref()), fields).await {
                Ok(list) => {
                    let page = page_of(list, &mut items);
                    all.items.extend(page.items);
                    inner = page.cursor;
                }
                // One namespace that says no does not hide the others, but it is told.
                Err(failure) if failure.code == target::codes::FORBIDDEN => {
                    all.warnings.push(format!("not allowed in namespace {namespace}"));
                    inner = None;
                }
                Err(failure) => return Err(failure),
            }
            match &inner {
                Some(inner) => {
                    all.cursor = Some(format!("{namespace}{SPLIT}{inner}"));
                    break;
                }
                None => at += 1,
            }
        }
        Ok(all)
    }
}

/// An answer to a list as a page.
fn page_of(list: Value, items: impl FnOnce(Value) -> Vec<Value>) -> ObjectPage {
    let meta = &list["metadata"];
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    ObjectPage {
        cursor: text(&meta["continue"]),
        remaining: meta["remainingItemCount"].as_u64(),
        version: text(&meta["resourceVersion"]),
        items: items(list),
        warnings: Vec::new(),
    }
}

/// Where a list over several namespaces goes on. The namespace comes from the cursor, so it is looked for in the list.
fn resume(namespaces: &[String], cursor: Option<&str>) -> Result<(usize, Option<String>), Failure> {
    let Some(cursor) = cursor else { return Ok((0, None)) };
    let gone = || {
        Failure::new(target::codes::CURSOR_MISMATCH, "the cursor is for another list").next("call again without cursor")
    };
    let (namespace, inner) = cursor.split_once(SPLIT).ok_or_else(gone)?;
    let at = namespaces.iter().position(|known| known == namespace).ok_or_else(gone)?;
    Ok((at, (!inner.is_empty()).then(|| inner.to_owned())))
}

/// The columns that are shown without being asked for.
fn indices_of_shown(columns: &Value) -> Vec<usize> {
    let columns = columns.as_array().map(Vec::as_slice).unwrap_or_default();
    columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column["priority"].as_i64().unwrap_or(0) == 0)
        .map(|(n, _)| n)
        .collect()
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsSubject {
    /// Pods and their containers.
    Pods,
    /// Nodes.
    Nodes,
}

impl Cluster<'_> {
    /// The kind that holds measurements, to be placed and listed like any other.
    pub async fn metrics(&self, of: MetricsSubject) -> Result<Kind, Failure> {
        let name = match of {
            MetricsSubject::Pods => "pods.metrics.k8s.io",
            MetricsSubject::Nodes => "nodes.metrics.k8s.io",
        };
        self.kind(name).await.map_err(|failure| {
            if failure.code != codes::UNKNOWN_KIND {
                return failure;
            }
            Failure::new(codes::METRICS_UNAVAILABLE, "the cluster has no metrics server")
                .next("look at requests and limits with k8s_get instead")
        })
    }
}
