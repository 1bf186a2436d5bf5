//! Which text of a tenant stands in the folder: the one that is wanted, unless the gateway found it faulty. Pure.

use super::report::ReportedTenant;
use crate::resources::{AcceptedText, ConfigMistake};
use crate::tenant::replicas::ReplicaVerdict;
use crate::tenant::text::{TenantFileText, text_digest};

/// The longest message that is reported.
const LONGEST_MESSAGE: usize = 400;
/// How many mistakes of a tenant are reported.
const MOST_ERRORS: usize = 10;

/// One tenant in the folder.
#[derive(Debug)]
pub struct TenantOffer {
    wanted: TenantFileText,
    /// What is wrong with the text that is wanted, as the gateway says.
    rejected: Option<Vec<ConfigMistake>>,
    /// Whether the gateway has judged it.
    is_judged: bool,
    /// The last text that was good.
    good: Option<String>,
    in_force: Option<String>,
}

impl TenantOffer {
    /// A tenant that appeared; `accepted` is what replicas took last.
    pub fn new(wanted: TenantFileText, accepted: Option<&AcceptedText>) -> TenantOffer {
        // Whoever wrote the digest wrote the text: one that does not match is no text of ours.
        let good = accepted.filter(|good| text_digest(&good.text) == good.digest).map(|good| good.text.clone());
        TenantOffer { wanted, rejected: None, is_judged: false, good, in_force: None }
    }

    /// The resources say something else, or the same.
    pub fn want(&mut self, wanted: TenantFileText) {
        if self.wanted.digest != wanted.digest {
            (self.rejected, self.is_judged) = (None, false);
        }
        self.wanted = wanted;
    }

    /// What stands in the file.
    pub fn text(&self) -> &str {
        match (&self.rejected, &self.good) {
            (Some(_), Some(good)) => good,
            (_, _) => &self.wanted.text,
        }
    }

    /// Takes in what the gateway says.
    pub fn judge(&mut self, report: &ReportedTenant) {
        self.in_force.clone_from(&report.in_force);
        if report.judged != self.wanted.digest {
            return;
        }
        self.is_judged = true;
        if report.problems.is_empty() {
            self.good = Some(self.wanted.text.clone());
            self.rejected = None;
        } else {
            let error = |problem: &super::report::ReportedProblem| ConfigMistake {
                path: self.wanted.path_at(problem.line).to_owned(),
                line: problem.line,
                column: problem.column,
                code: problem.code.clone(),
                message: problem.message.chars().take(LONGEST_MESSAGE).collect(),
            };
            self.rejected = Some(report.problems.iter().take(MOST_ERRORS).map(error).collect());
        }
    }

    /// Another process of the gateway may judge otherwise, once it serves what is good.
    pub fn ask_again(&mut self) {
        (self.rejected, self.is_judged) = (None, false);
    }

    /// What is reported of it.
    pub fn verdict(&self) -> ReplicaVerdict {
        ReplicaVerdict {
            judged: self.is_judged.then(|| self.wanted.digest.clone()),
            in_force: self.in_force.clone(),
            errors: self.rejected.clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::ReportedProblem;
    use super::*;
    use crate::tenant::text::render;
    use serde_json::json;

    fn text(mode: &str) -> TenantFileText {
        render("shop", &serde_json::from_value(json!({ "config": { "mode": mode } })).unwrap(), &[]).unwrap()
    }

    fn report(text: &TenantFileText, in_force: Option<&TenantFileText>, line: Option<u32>) -> ReportedTenant {
        let problem = |line| ReportedProblem { line, column: 9, code: "mode".to_owned(), message: "no".to_owned() };
        ReportedTenant {
            judged: text.digest.clone(),
            in_force: in_force.map(|text| text.digest.clone()),
            problems: line.map(problem).into_iter().collect(),
        }
    }

    #[test]
    fn a_faulty_text_is_replaced_by_the_last_good_one_and_its_mistakes_stay_known() {
        let (good, bad) = (text("write"), text("fly"));
        let mut offer = TenantOffer::new(good.clone(), None);
        assert_eq!(offer.text(), good.text);
        assert_eq!(offer.verdict(), ReplicaVerdict::default());
        offer.judge(&report(&good, Some(&good), None));
        offer.want(bad.clone());
        assert_eq!(offer.text(), bad.text);
        offer.judge(&report(&bad, Some(&good), Some(2)));
        assert_eq!(offer.text(), good.text);
        // The gateway reads the good one again, and has nothing against it.
        offer.judge(&report(&good, Some(&good), None));
        let verdict = offer.verdict();
        assert_eq!((verdict.judged, verdict.in_force), (Some(bad.digest.clone()), Some(good.digest.clone())));
        assert_eq!((verdict.errors[0].path.as_str(), verdict.errors[0].line), ("mode", 2));
        // The same again is not offered again; something else is, and so is the same to another process.
        offer.want(bad.clone());
        assert_eq!(offer.text(), good.text);
        offer.ask_again();
        assert_eq!(offer.text(), bad.text);
        offer.want(good.clone());
        offer.judge(&report(&good, Some(&good), None));
        assert!(offer.verdict().errors.is_empty());
    }

    #[test]
    fn a_replica_that_starts_falls_back_to_what_others_took() {
        let (good, bad) = (text("write"), text("fly"));
        let accepted = AcceptedText { digest: good.digest.clone(), text: good.text.clone() };
        let mut offer = TenantOffer::new(bad.clone(), Some(&accepted));
        offer.judge(&report(&bad, None, Some(2)));
        assert_eq!(offer.text(), good.text);
        let forged = AcceptedText { digest: good.digest, text: "tenant: shop\nmode: write\n".to_owned() };
        let mut offer = TenantOffer::new(bad.clone(), Some(&forged));
        offer.judge(&report(&bad, None, Some(2)));
        assert_eq!(offer.text(), bad.text);
    }
}
