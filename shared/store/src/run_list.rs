//! Lists of runs, which cost what they show: beside each run stands a brief record with what a list needs of it.
//!
//! A brief is written in the same commit as its run and stays until the run has left the lists: by it whoever tidies up
//! learns whose run it was.

use crate::commit::{Commit, Committed, IndexUpdate, RecordVersion, Score};
use crate::ops::{Op, millis};
use crate::runs::{FULL, KEEP, RunStore, newest_first};
use crate::{IndexName, RecordKey, SideWrite, StoreError, StoredRecord};
use domain::run::{Run, RunState};
use domain::{Effect, Moment, Principal, RunId, SessionId, ToolName};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a list shows of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunBrief {
    /// Which run.
    pub id: RunId,
    /// Where it stands.
    pub state: RunState,
    /// The tool it asks for.
    pub tool: ToolName,
    /// To what effect.
    pub effect: Effect,
    /// What it would do, in one line, for those who decide.
    pub summary: String,
    /// What was asked for, in one line, for whoever asked.
    pub requested: String,
    /// Who asked.
    pub requester: Principal,
    /// In which session.
    pub session: Option<SessionId>,
    /// When it was asked for.
    pub asked_at: Moment,
    /// Until when it can be decided.
    pub expires_at: Moment,
    /// What it is done to, by the names in its arguments.
    pub object: Option<String>,
    /// Whether the session had read text from outside.
    pub tainted: bool,
    /// How many people must say yes.
    pub deciders: u32,
    /// How many have said so.
    pub yeses: u32,
    /// Who decided last, if somebody did.
    pub decided_by: Option<String>,
    /// When it last changed.
    pub changed_at: Moment,
}

impl RunBrief {
    /// What a list shows of this run.
    pub fn of(run: &Run) -> RunBrief {
        RunBrief {
            id: run.id,
            state: run.state,
            tool: run.asked.tool.clone(),
            effect: run.asked.effect,
            summary: run.asked.preview.summary.clone(),
            requested: run.asked.requested(),
            requester: run.asked.requester.clone(),
            session: run.asked.session,
            asked_at: run.asked.asked_at,
            expires_at: run.asked.expires_at,
            object: run.asked.object(),
            tainted: run.asked.tainted,
            deciders: run.asked.deciders,
            yeses: u32::try_from(run.yeses()).unwrap_or(u32::MAX),
            decided_by: run.decision().map(|answer| answer.by.subject.clone()),
            changed_at: run.changed_at,
        }
    }
}

/// The shape in which a brief is stored; the number tells later releases how to read it.
#[derive(Serialize, Deserialize)]
struct StoredBrief {
    v: u8,
    state: RunState,
    tool: ToolName,
    effect: Effect,
    summary: String,
    requested: String,
    requester: Principal,
    session: Option<SessionId>,
    asked_at: Moment,
    expires_at: Moment,
    /// Until when the run itself is kept.
    kept_until: Moment,
    /// What follows was not written by earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tainted: bool,
    #[serde(default = "one")]
    deciders: u32,
    #[serde(default)]
    yeses: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    #[serde(default)]
    changed_at: Option<Moment>,
}

fn one() -> u32 {
    1
}

const UNREADABLE: StoreError = StoreError::Corrupt { what: "the brief record of a run" };

/// The brief that is written with a run that is kept for this long.
pub(crate) fn beside(run: &Run, kept: Duration) -> Result<SideWrite, StoreError> {
    let brief = RunBrief::of(run);
    let shape = StoredBrief {
        v: 1,
        state: brief.state,
        tool: brief.tool,
        effect: brief.effect,
        summary: brief.summary,
        requested: brief.requested,
        requester: brief.requester,
        session: brief.session,
        asked_at: brief.asked_at,
        expires_at: brief.expires_at,
        kept_until: run.changed_at.plus(kept),
        object: brief.object,
        tainted: brief.tainted,
        deciders: brief.deciders,
        yeses: brief.yeses,
        decided_by: brief.decided_by,
        changed_at: Some(brief.changed_at),
    };
    let body = serde_json::to_vec(&shape).map_err(|_| UNREADABLE)?;
    Ok(SideWrite::Write(RecordKey::run_brief(run.id), body, None))
}

/// The lists a run is in as long as it is kept.
pub(crate) fn listed(run: &Run) -> [IndexUpdate; 2] {
    let rank = Score::At(newest_first(run.asked.asked_at));
    [IndexName::runs(), IndexName::runs_of(&run.asked.requester)].map(|index| IndexUpdate {
        index,
        member: run.id.to_string(),
        rank,
    })
}

/// Where the bytes of a run are counted: its requester's, and the tenant's.
pub(crate) fn sizes(run: &Run) -> [IndexName; 2] {
    [IndexName::run_sizes_of(&run.asked.requester), IndexName::run_sizes()]
}

fn read(id: RunId, record: &StoredRecord) -> Result<(RunBrief, Moment), StoreError> {
    let stored: StoredBrief = serde_json::from_slice(&record.body).map_err(|_| UNREADABLE)?;
    let brief = RunBrief {
        id,
        state: stored.state,
        tool: stored.tool,
        effect: stored.effect,
        summary: stored.summary,
        requested: stored.requested,
        requester: stored.requester,
        session: stored.session,
        asked_at: stored.asked_at,
        expires_at: stored.expires_at,
        object: stored.object,
        tainted: stored.tainted,
        deciders: stored.deciders,
        yeses: stored.yeses,
        decided_by: stored.decided_by,
        changed_at: stored.changed_at.unwrap_or(stored.asked_at),
    };
    Ok((brief, stored.kept_until))
}

impl RunStore {
    /// The names of runs, newest first, beginning with those asked at `from`: of one requester, or all.
    pub async fn ids(
        &self,
        of: Option<&Principal>,
        from: Option<Moment>,
        limit: usize,
    ) -> Result<Vec<RunId>, StoreError> {
        let index = of.map_or_else(IndexName::runs, IndexName::runs_of);
        let members = self.0.range(&index, from.map_or(0, newest_first), FULL, limit).await?;
        Ok(members.iter().filter_map(|(id, _)| RunId::parse(id).ok()).collect())
    }

    /// What lists show of those of these runs that are there.
    pub async fn briefs(&self, ids: &[RunId]) -> Result<Vec<RunBrief>, StoreError> {
        let get = |id: &RunId| Op::Get { key: self.0.space.record(&RecordKey::run_brief(*id)) };
        let ops: Vec<Op> = ids.iter().map(get).chain([Op::Now]).collect();
        let mut answers = self.0.run(&ops).await?;
        let mut records = Vec::with_capacity(ids.len());
        for id in ids {
            records.push((*id, self.authentic_brief(*id, answers.record()?)?));
        }
        let now = answers.now()?;
        // An earlier release wrote no briefs, and one that this service did not seal is not shown.
        let without: Vec<RunId> = records.iter().filter(|(_, record)| record.is_none()).map(|(id, _)| *id).collect();
        let mut whole: Vec<RunBrief> = self.read(without).await?.iter().map(RunBrief::of).collect();
        let mut briefs = Vec::with_capacity(ids.len());
        for (id, record) in records {
            match record {
                Some(record) => {
                    let (brief, kept_until) = read(id, &record)?;
                    briefs.extend((!kept_until.since(now).is_zero()).then_some(brief));
                }
                None => briefs.extend(whole.iter().position(|brief| brief.id == id).map(|at| whole.swap_remove(at))),
            }
        }
        Ok(briefs)
    }

    /// Takes runs whose records were forgotten out of the lists and the sums. Looks at `limit` runs, the oldest first; tells
    /// how many it took out.
    pub async fn tidy(&self, limit: usize) -> Result<usize, StoreError> {
        let now = self.0.store().now().await?;
        let before = Moment::from_millis(now.millis().saturating_sub(millis(KEEP)));
        let index = self.0.space.index(&IndexName::runs());
        let oldest = Op::RangeBack { index: index.clone(), from: newest_first(before), limit };
        let members = self.0.run(&[oldest]).await?.members()?;
        let ids: Vec<RunId> = members.iter().filter_map(|(id, _)| RunId::parse(id).ok()).collect();
        if ids.is_empty() {
            return Ok(0);
        }
        let get = |key: RecordKey| Op::Get { key: self.0.space.record(&key) };
        let mut answers = self.0.run(&ids.iter().map(|id| get(RecordKey::run_brief(*id))).collect::<Vec<Op>>()).await?;
        let mut overdue = Vec::new();
        for id in ids {
            let brief = self.authentic_brief(id, answers.record()?)?;
            // Whole records are large; only those are asked for that should not be there any more.
            match brief
                .map(|record| read(id, &record).map(|(brief, until)| (brief, record.version, until)))
                .transpose()?
            {
                Some((_, _, until)) if !until.since(now).is_zero() => {}
                found => overdue.push((id, found)),
            }
        }
        if overdue.is_empty() {
            return Ok(0);
        }
        let mut answers =
            self.0.run(&overdue.iter().map(|(id, _)| get(RecordKey::run(*id))).collect::<Vec<Op>>()).await?;
        let (mut taken, mut bare) = (0, Vec::new());
        for (id, found) in overdue {
            match (answers.record()?, found) {
                (Some(_), _) => {}
                (None, Some((brief, version, _))) => taken += usize::from(self.forget(&brief, version).await?),
                (None, None) => bare.push(id),
            }
        }
        if !bare.is_empty() {
            taken += bare.len();
            let keys = bare.iter().map(|id| self.0.space.record(&RecordKey::run_brief(*id))).collect();
            let members = bare.iter().map(RunId::to_string).collect();
            self.0.run(&[Op::TakeOut { index, members }, Op::Forget { keys }]).await?;
        }
        Ok(taken)
    }

    /// A brief that this service has sealed; any other is none, since the run itself says the same.
    fn authentic_brief(&self, id: RunId, record: Option<StoredRecord>) -> Result<Option<StoredRecord>, StoreError> {
        match self.0.reading(&RecordKey::run_brief(id)).open(record) {
            Err(StoreError::NotAuthentic { .. }) => Ok(None),
            opened => opened,
        }
    }

    /// Takes a run that is gone out of every list, with its brief. Whoever else tidies up finds no brief to delete.
    async fn forget(&self, brief: &RunBrief, version: RecordVersion) -> Result<bool, StoreError> {
        let (id, owner) = (brief.id, &brief.requester);
        let (lists, sizes) =
            ([IndexName::runs(), IndexName::runs_of(owner)], [IndexName::run_sizes(), IndexName::run_sizes_of(owner)]);
        let out = |index: IndexName| IndexUpdate { index, member: id.to_string(), rank: Score::Out };
        let commit = Commit {
            index: lists.into_iter().chain(sizes).map(out).collect(),
            ..Commit::delete(RecordKey::run_brief(id), version)
        };
        Ok(matches!(self.0.commit(commit).await?, Committed::Done(RecordVersion::NONE, _)))
    }
}
