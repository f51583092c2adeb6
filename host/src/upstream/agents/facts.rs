//! What was told becomes what is declared, with the age that it has now.

use super::listing::{Listing, Statement, ToldAgent, ToldSession};
use super::{FirstHeard, Taker};
use crate::clock::Moment;
use crate::names::{AgentName, SessionId};
use crate::observe::facts::{ACTIVITY, Claim, Evidence, Gap, Source};
use crate::observe::roster::{DeclaredAgent, DeclaredSession, Elsewhere, Locator, Roster, Said};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

/// The word for one that is degraded where it is, whatever it does. The judge knows it.
const DEGRADED: &str = "degraded";

/// When activities were first heard, by the place of the agent.
type Heard = HashMap<(SessionId, AgentName), FirstHeard>;

/// What a listing that was heard at `heard` declares now.
pub fn roster(taker: &Taker, listing: &Listing, heard: Moment, now: Moment) -> Roster {
    let silence = taker.silence(heard, now);
    let mut before = taker.heard.lock().unwrap_or_else(PoisonError::into_inner);
    let mut first = Heard::new();
    let sessions = listing.sessions.iter();
    let sessions = sessions.map(|told| {
        let agent = |(name, agent): &(AgentName, ToldAgent)| {
            let place = (told.id.clone(), name.clone());
            let said = agent.activity.as_ref().map(|said| (said, since(said, place, heard, &before, &mut first)));
            let activity = match (said, &silence) {
                (_, Some(silence)) => Err(Gap::new(ACTIVITY, silence.as_str())),
                (Ok(said), None) => Ok(said),
                (Err(why), None) => Err(Gap::by_design(ACTIVITY, why.as_str())),
            };
            declared_agent(name, agent, activity, heard)
        };
        let agents = told.agents.iter().map(agent).collect();
        declared_session(taker, told, agents, heard)
    });
    let sessions = sessions.collect();
    *before = first;
    Roster { sessions }
}

fn declared_session(taker: &Taker, told: &ToldSession, agents: Vec<DeclaredAgent>, heard: Moment) -> DeclaredSession {
    DeclaredSession {
        name: told.name.clone(),
        root_path: told.root_path.as_ref().map(Into::into),
        declared_at_ms: told.created_at_ms.filter(|ms| *ms <= heard.unix_ms),
        agents,
        elsewhere: Some(Elsewhere { upstream: Arc::clone(&taker.upstream), join: taker.from.sessions }),
        ..DeclaredSession::new(told.id.clone())
    }
}

/// Since when it is so: as the server says, or since it was first heard.
fn since(said: &Statement, place: (SessionId, AgentName), heard: Moment, before: &Heard, first: &mut Heard) -> u64 {
    if let Some(since_ms) = said.since_ms {
        return since_ms;
    }
    let now = FirstHeard { word: said.word.clone(), at_ms: heard.unix_ms };
    let known = before.get(&place).filter(|known| known.word == said.word).cloned().unwrap_or(now);
    let at_ms = known.at_ms;
    first.insert(place, known);
    at_ms
}

fn declared_agent(
    name: &AgentName,
    told: &ToldAgent,
    activity: Result<(&Statement, u64), Gap>,
    heard: Moment,
) -> DeclaredAgent {
    let mut said = Said {
        called: Some(told.name.clone()),
        identity: told.identity,
        via: told.via.clone(),
        kind: told.kind.clone(),
        // Who was told of had started by then.
        created_at_ms: told.created_at_ms.filter(|ms| *ms <= heard.unix_ms),
        usage: told.usage.clone(),
        unmeasured: vec![Gap::by_design("process", told.process.clone())],
        ..Said::default()
    };
    match activity {
        Ok((statement, at_ms)) => {
            said.evidence = evidence(statement, at_ms, told.degraded.as_deref());
            if statement.since_ms.is_none() {
                said.unmeasured.push(Gap::by_design("since", "its server does not say since when"));
            }
        }
        Err(gap) => said.unmeasured.push(gap),
    }
    DeclaredAgent {
        name: name.clone(),
        specialization: told.specialization.clone(),
        process: Locator::Elsewhere,
        declared_at_ms: None,
        run: None,
        said,
    }
}

/// What the agent does comes first: of statements that are equally new the first counts.
fn evidence(said: &Statement, at_ms: u64, degraded: Option<&str>) -> Vec<Evidence> {
    let told =
        |claim, word: &str, detail| Evidence { source: Source::Upstream, claim, word: word.to_owned(), detail, at_ms };
    let mut evidence = vec![told(said.claim, &said.word, said.detail.clone())];
    if said.claim != Claim::Unknown {
        evidence.extend(degraded.map(|why| told(said.claim, DEGRADED, Some(why.to_owned()))));
    }
    evidence
}
