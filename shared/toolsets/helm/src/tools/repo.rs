//! `helm_repo`: adds or removes a chart repository or registry of the tenant.
//!
//! A record in the store, read for each call, so nothing drifts between replicas. Adding asks the repository once, and
//! nobody has to sign for one that does not answer. It is asked without a credential: which secret goes where is said in
//! the tenant's configuration and by no call.

use super::{HelmDeps, TOOLSET};
use crate::client::charts::{ChartRepository, Repositories, TenantRepository};
use catalog::{PreviewBuilder, ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::outcome::near;
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::checked_text;
use target::grammar::Label;
use target::reply::ReplyFields;

pub(super) struct Repo {
    pub(super) kit: HelmDeps,
}

checked_text!(
    /// An address of a repository; which ones may be used is judged against the operator's list.
    RepoUrl, is_url, "url is https://host/path or oci://host/path, at most 512 bytes",
    { "type": "string", "minLength": 8, "maxLength": 512, "pattern": "^(https?|oci)://[!-~]+$" }
);

fn is_url(text: &str) -> bool {
    text.len() <= 512
        && ["https://", "http://", "oci://"].iter().any(|scheme| text.starts_with(scheme))
        && text.bytes().all(|b| b.is_ascii_graphic())
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    action: RepoAction,
    name: Label,
    url: Option<RepoUrl>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RepoAction {
    Add,
    Remove,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RepoOutput {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// How many charts it has; a registry does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    charts: Option<usize>,
    #[serde(flatten)]
    common: ReplyFields<()>,
}

impl Args {
    /// What the call is about, if it does not contradict itself.
    fn wish(&self) -> Result<RepoRequest, Failure> {
        let told = |message: &str, next: &str| Err(Failure::new(Code::InvalidArgument, message).next(next));
        match (self.action, &self.url) {
            (RepoAction::Add, Some(url)) => {
                let (name, url) = (self.name.to_string(), url.to_string());
                Ok(RepoRequest::Add(ChartRepository { name, url, credential: None }))
            }
            (RepoAction::Add, None) => told("adding a repository needs its url", "give url"),
            (RepoAction::Remove, None) => Ok(RepoRequest::Remove),
            (RepoAction::Remove, Some(_)) => told("removing goes by name alone", "leave url out"),
        }
    }
}

enum RepoRequest {
    Add(ChartRepository),
    Remove,
}

impl Tool for Repo {
    const SPEC: ToolSpec = ToolSpec::new("helm_repo", TOOLSET, Effect::Change)
        .says(
            "Add or remove a chart repository",
            "Add or remove a chart repository or OCI registry that needs no credential.",
        )
        .hint(
            "For agents that may widen where charts come from; where the tenant's configuration names all \
             repositories, it can be left out. Repositories with a credential are configured by the tenant.",
        )
        .idempotent();
    type Args = Args;
    type Output = RepoOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Change
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let repositories = self.kit.charts.of(permit);
        match args.wish()? {
            RepoRequest::Add(repository) => added(&repositories, &repository).await.map(Some),
            RepoRequest::Remove => removed(&repositories, args.name.as_str()).await.map(Some),
        }
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let (Ok(all), Ok(wish)) = (self.kit.charts.of(permit).list().await, args.wish()) else {
            return ProbeResult::Unknown;
        };
        let there = find(&all, args.name.as_str());
        let done = match &wish {
            RepoRequest::Add(repository) => there == Some(repository),
            RepoRequest::Remove => there.is_none(),
        };
        if done { ProbeResult::Done(None) } else { ProbeResult::NotDone }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<RepoOutput, Failure> {
        let repositories = self.kit.charts.of(permit);
        let name = args.name.to_string();
        match args.wish()? {
            RepoRequest::Add(repository) => {
                let checked = repositories.add(&repository).await?;
                Ok(RepoOutput {
                    name,
                    url: Some(repository.url),
                    charts: checked.charts,
                    common: ReplyFields::default(),
                })
            }
            RepoRequest::Remove => {
                repositories.remove(&name).await?;
                Ok(RepoOutput { name, url: None, charts: None, common: ReplyFields::default() })
            }
        }
    }
}

async fn added(repositories: &Repositories<'_>, repository: &ChartRepository) -> Result<ToolPreview, Failure> {
    let checked = repositories.rehearse(repository).await?;
    let ChartRepository { name, url, .. } = repository;
    let mut preview = PreviewBuilder::new(format!("add repository {name}"));
    preview.line(format!("address: {url}"));
    preview.line(format!("host: {}", checked.host));
    preview.line("opened without a credential".to_owned());
    if let Some(charts) = checked.charts {
        preview.line(format!("charts: {charts}"));
    }
    if checked.there {
        preview.warn("It is there already; nothing would change.");
    }
    if !checked.clashes.is_empty() {
        preview.warn(format!("Other repositories have charts of the same name: {}", checked.clashes.join(", ")));
    }
    let summary = format!("add chart repository {name} at {}", checked.host);
    let fingerprint = if checked.there { "there" } else { "absent" }.to_owned();
    let text = preview.lines().join("\n");
    Ok(preview.build(summary, text, fingerprint))
}

async fn removed(repositories: &Repositories<'_>, name: &str) -> Result<ToolPreview, Failure> {
    repositories.removable(name)?;
    let all = repositories.list().await?;
    let Some(ChartRepository { url, .. }) = find(&all, name) else {
        let names = all.iter().map(|listed| listed.repository.name.as_str());
        return Err(Failure::new(Code::NotFound, "the tenant has no repository of that name")
            .next("list the repositories with helm_search")
            .did_you_mean(near(name, names)));
    };
    let text = format!("remove repository {name}\naddress: {url}\nreleases that were installed from it stay");
    let summary = format!("remove chart repository {name}");
    Ok(ToolPreview {
        summary,
        text,
        warnings: Vec::new(),
        arguments: None,
        hidden: Vec::new(),
        fingerprint: url.clone(),
    })
}

fn find<'a>(all: &'a [TenantRepository], name: &str) -> Option<&'a ChartRepository> {
    all.iter().map(|listed| &listed.repository).find(|repository| repository.name == name)
}
