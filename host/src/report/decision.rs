//! A decision: what the policies made of which facts, with all that it takes to judge again and see the same.

use super::verdict::{VerdictView, verdict};
use super::{clean, time};
use crate::config::{Mode, OnError};
use crate::judge::{Evaluation, Judgement, Outcome, digest};
use crate::observe::facts::Snapshot;
use serde::Serialize;

/// The name and version of the format.
pub const DECISION_SCHEMA: &str = "headcount.decision/1";

/// One decision, as the decision log has it.
#[derive(Debug, Serialize)]
pub struct Decision<'a> {
    /// `headcount.decision/1`.
    pub schema: &'static str,
    /// When the facts were gathered, RFC 3339 in UTC.
    pub time: String,
    /// The session.
    pub session_id: &'a str,
    /// SHA-256 of `facts` as they stand here.
    pub snapshot_digest: String,
    /// Who judged, in the chain's order.
    pub policies: Vec<Judged<'a>>,
    /// Why nobody can say how the session is.
    pub withheld: Option<String>,
    /// The verdict that counts; null where no policy came to one.
    pub verdict: Option<VerdictView>,
    /// What the policies got: a snapshot that `headcount policy run` judges again.
    pub facts: &'a Snapshot,
}

/// One policy's part in a decision.
#[derive(Debug, Serialize)]
pub struct Judged<'a> {
    /// Its name.
    pub name: String,
    /// SHA-256 of its file.
    pub digest: &'a str,
    /// Its settings, a JSON object; empty = none.
    pub settings: &'a str,
    /// SHA-256 of its settings.
    pub settings_digest: String,
    /// Whether its verdict counts.
    pub mode: Mode,
    /// What its failure means.
    pub on_error: OnError,
    /// How it ended.
    pub outcome: &'static str,
    /// What went wrong, in a sentence.
    pub detail: Option<String>,
    /// Microseconds it took.
    pub micros: u128,
    /// What it would say, where its verdict does not count.
    pub shadow: Option<VerdictView>,
}

impl<'a> Decision<'a> {
    /// The decision that a judgement was.
    ///
    /// # Errors
    /// None that is known: facts can be written as JSON.
    pub fn new(facts: &'a Snapshot, judgement: &'a Judgement) -> serde_json::Result<Self> {
        Ok(Self {
            schema: DECISION_SCHEMA,
            time: time(facts.now_ms),
            session_id: &facts.session.id,
            snapshot_digest: digest(&serde_json::to_vec(facts)?),
            policies: judgement.policies.iter().map(|policy| judged(facts, policy)).collect(),
            withheld: judgement.withheld.as_deref().map(clean),
            verdict: judgement.verdict.as_ref().map(|judged| verdict(facts, judged)),
            facts,
        })
    }
}

fn judged<'a>(facts: &Snapshot, policy: &'a Evaluation) -> Judged<'a> {
    Judged {
        name: clean(&policy.name),
        digest: &policy.digest,
        settings: &policy.settings,
        settings_digest: digest(policy.settings.as_bytes()),
        mode: policy.mode,
        on_error: policy.on_error,
        outcome: policy.outcome.name(),
        detail: (policy.outcome != Outcome::Verdict).then(|| clean(&policy.outcome.to_string())),
        micros: policy.took.as_micros(),
        shadow: policy.shadow.as_ref().map(|judged| verdict(facts, judged)),
    }
}
