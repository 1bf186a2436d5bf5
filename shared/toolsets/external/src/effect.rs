//! What a server's tool is taken to do. The server's word makes it worse at once, and better only if somebody vouches.

use crate::config::TrustedEffects;
use crate::definition::Hints;
use domain::Effect;

/// What a tool is taken to do, and on whose word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JudgedEffect {
    pub(crate) effect: Effect,
    /// Whether it may be repeated after a crash.
    pub(crate) idempotent: bool,
    pub(crate) why: &'static str,
}

/// Judges one tool. `own` says that the tenant named the server, so that nobody vouches for it.
pub(crate) fn judge(name: &str, hints: Hints, vouch: &TrustedEffects, own: bool) -> JudgedEffect {
    let trusted = vouch.annotations && !own;
    let idempotent = trusted && hints.idempotent == Some(true);
    let because = |effect, why| JudgedEffect { effect, idempotent, why };
    match (vouch.effect(name), hints.destructive) {
        (Some(effect), _) if !own => because(effect, "named by the operator"),
        // Only said of what is not read-only; and only a read-only claim that is trusted takes it back.
        (_, Some(true)) if !(trusted && hints.read_only == Some(true)) => {
            because(Effect::Disrupt, "the server says that it is destructive")
        }
        _ if trusted && hints.read_only == Some(true) => {
            because(Effect::Read, "the server says that it only reads, and the operator takes its word")
        }
        _ if trusted => because(Effect::Change, "the server does not say that it only reads"),
        _ => because(Effect::Change, "not vouched for by the operator"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::Pattern;

    fn hints(read_only: Option<bool>, destructive: Option<bool>) -> Hints {
        Hints { read_only, destructive, idempotent: Some(true) }
    }

    fn vouch(annotations: bool, effects: &[(&str, Effect)]) -> TrustedEffects {
        let effects = effects.iter().map(|(text, effect)| (Pattern::parse(text).unwrap(), *effect)).collect();
        TrustedEffects { annotations, effects }
    }

    #[test]
    fn a_claim_lowers_an_effect_only_where_the_operator_takes_it() {
        let (yes, no) = (Some(true), Some(false));
        let (none, trusts) = (vouch(false, &[]), vouch(true, &[]));
        let names = vouch(false, &[("search*", Effect::Read), ("drop", Effect::Disrupt)]);
        for (name, claims, vouch, own, wanted) in [
            ("search", hints(yes, no), &none, false, Effect::Change),
            ("search", hints(None, None), &none, false, Effect::Change),
            ("search", hints(yes, yes), &none, false, Effect::Disrupt),
            ("search", hints(None, yes), &none, false, Effect::Disrupt),
            ("search", hints(yes, None), &trusts, false, Effect::Read),
            ("search", hints(yes, yes), &trusts, false, Effect::Read),
            ("search", hints(no, None), &trusts, false, Effect::Change),
            ("search", hints(None, None), &trusts, false, Effect::Change),
            ("search", hints(None, yes), &trusts, false, Effect::Disrupt),
            ("search_all", hints(no, None), &names, false, Effect::Read),
            ("drop", hints(yes, None), &names, false, Effect::Disrupt),
            ("other", hints(yes, None), &names, false, Effect::Change),
            ("search", hints(yes, None), &trusts, true, Effect::Change),
            ("search", hints(yes, None), &names, true, Effect::Change),
        ] {
            let judged = judge(name, claims, vouch, own);
            assert_eq!(judged.effect, wanted, "{name} {claims:?} {vouch:?} {own}: {}", judged.why);
            assert_eq!(judged.idempotent, vouch.annotations && !own, "a promise nobody vouches for is none");
        }
    }
}
