//! The pod template that an action makes run, beside the one that serves.

use super::super::incoming::{analyses, judge, readable};
use super::super::tree::{self, RolloutRevision};
use super::super::view::RolloutView;
use super::plan::ArgoRolloutPlan;
use super::template::TemplateHolder;
use super::{ArgoRolloutAction, Args};
use crate::client::{BroughtTexts, Cluster};
use crate::k8s::diff_text::whole;
use crate::k8s::get::visible;
use crate::k8s::one::LoadedObject;
use crate::k8s::preview::ObjectChange;
use catalog::PreviewBuilder;
use domain::Failure;
use serde_json::{Value, json};

impl ArgoRolloutAction {
    /// Whether pods come in by it. What stops a version brings none that do not run already.
    const fn starts_pods(self) -> bool {
        match self {
            ArgoRolloutAction::Pause | ArgoRolloutAction::Abort => false,
            ArgoRolloutAction::Resume
            | ArgoRolloutAction::Promote
            | ArgoRolloutAction::PromoteFull
            | ArgoRolloutAction::Retry
            | ArgoRolloutAction::Restart
            | ArgoRolloutAction::Undo
            | ArgoRolloutAction::SetImage => true,
        }
    }

    /// Whether steps, and so analyses, are run after it.
    const fn starts_analyses(self) -> bool {
        match self {
            ArgoRolloutAction::Pause
            | ArgoRolloutAction::Abort
            | ArgoRolloutAction::PromoteFull
            | ArgoRolloutAction::Restart => false,
            ArgoRolloutAction::Resume
            | ArgoRolloutAction::Promote
            | ArgoRolloutAction::Retry
            | ArgoRolloutAction::Undo
            | ArgoRolloutAction::SetImage => true,
        }
    }
}

/// Judges and shows what would run, and gives what was judged. Where nothing is sent, nothing comes in.
pub(super) async fn tell(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
    (args, plan): (&Args, &ArgoRolloutPlan),
    known: &[RolloutRevision],
) -> Result<Value, Failure> {
    if plan.sends.is_empty() || !args.action.starts_pods() {
        return Ok(Value::Null);
    }
    let coming = match &plan.templates {
        Some((_, then)) => Some(then.clone()),
        None => wanted(cluster, seen).await?,
    };
    let serving = serving(&seen.live, known);
    template(preview, cluster, seen, (serving, coming.as_ref()))?;
    // What an undo writes is shown against what it replaces.
    if args.action != ArgoRolloutAction::Undo {
        difference(preview, cluster, (serving, coming.as_ref()));
    }
    let strategy = RolloutView::of(&seen.live).strategy_text();
    let analyses = match args.action.starts_analyses() {
        true => analyses(preview, cluster, seen.target.namespace(), strategy).await?,
        false => Value::Null,
    };
    Ok(json!({ "template": coming, "analyses": analyses }))
}

/// The same for a Rollout that goes on by itself once something else is done.
pub(in super::super) async fn goes_on(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
) -> Result<Value, Failure> {
    let known = visible(tree::revisions(cluster, &seen.target, &seen.live).await)?.unwrap_or_default();
    let coming = wanted(cluster, seen).await?;
    let serving = serving(&seen.live, &known);
    template(preview, cluster, seen, (serving, coming.as_ref()))?;
    difference(preview, cluster, (serving, coming.as_ref()));
    Ok(json!({ "template": coming }))
}

/// The template that serves, where its revision can be seen.
fn serving<'a>(live: &Value, known: &'a [RolloutRevision]) -> Option<&'a Value> {
    let hash = RolloutView::of(live).stable_hash();
    known.iter().find(|kept| !hash.is_empty() && kept.hash == hash).map(|kept| &kept.template)
}

fn template(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
    (serving, coming): (Option<&Value>, Option<&Value>),
) -> Result<(), Failure> {
    match coming {
        Some(coming) => {
            let (before, after) = (with_template(&seen.live, serving), with_template(&seen.live, Some(coming)));
            judge(preview, cluster, &seen.target.to_string(), (&before, &after))?;
        }
        None => {
            let reference = RolloutView::of(&seen.live).workload_ref().unwrap_or(&Value::Null);
            let text = |key: &str| redact::message(reference[key].as_str().unwrap_or("unknown"));
            preview.warn(format!(
                "The pod template is taken from {} {}, which cannot be read: this service does not see what would run.",
                text("kind"),
                text("name")
            ));
        }
    }
    Ok(())
}

/// The template that is wanted of the Rollout, if it can be read.
async fn wanted(cluster: &Cluster<'_>, seen: &LoadedObject) -> Result<Option<Value>, Failure> {
    Ok(readable(TemplateHolder::of(cluster, seen).await)?.map(|holder| holder.template))
}

/// The Rollout as if this were its template, so that the template is all that two of them differ in.
fn with_template(live: &Value, template: Option<&Value>) -> Value {
    let mut object = live.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object["spec"]["template"] = template.cloned().unwrap_or_default();
    object
}

fn difference(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    (serving, coming): (Option<&Value>, Option<&Value>),
) {
    let Some(coming) = coming else { return };
    let framed = |template: &Value| json!({ "spec": { "template": template } });
    let brought = BroughtTexts::default();
    let shown = ObjectChange { cluster, brought: &brought };
    let pair = shown.pair(preview, "the template", serving.map(framed).as_ref(), &framed(coming));
    if let Some(text) = whole(pair.now.as_ref(), pair.then.as_ref()) {
        preview.block("what comes in, against what serves", text);
    }
}
