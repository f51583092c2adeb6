//! Processes that hold several conversations: which rows there are, and what each of them says.

use super::world::*;
use crate::clock::Moment;
use crate::observe::facts::{Agent, Claim, Evidence, ProcessState, Source, Usage};
use crate::observe::records::{Conversation, Readers, Records, Subject, Testimony};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What the agent's records say, changed by the tests.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<Testimony>>);

impl Records for Told {
    fn kinds(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn reads(&self, kind: &str) -> bool {
        kind == "codex"
    }

    fn read(&mut self, subjects: &[&Subject], _now: Moment) -> Vec<Testimony> {
        vec![self.0.lock().unwrap().clone(); subjects.len()]
    }
}

impl Told {
    /// These conversations are open, begun so many seconds after the world.
    fn hold(&self, held: &[(&str, u64)]) {
        let conversation = |(id, second): &(&str, u64)| Conversation {
            id: id.to_string(),
            started_at_ms: Some(BEGIN_MS + second * 1000),
            evidence: vec![Evidence {
                source: Source::Transcript,
                claim: Claim::Working,
                word: format!("{id} works"),
                detail: None,
                at_ms: BEGIN_MS,
            }],
            usage: Some(Usage { output_tokens: Some(*second), ..Usage::default() }),
            ..Conversation::default()
        };
        self.0.lock().unwrap().conversations = held.iter().map(conversation).collect();
    }
}

/// A Codex with pid 10 in the project "shop", and its records.
fn scene(rosters: Vec<Box<dyn crate::observe::roster::Source>>) -> (Scene, Told) {
    let told = Told::default();
    let start = |world: &mut World, disk: &Path| {
        world.start(10, 1, &["codex", "app-server"], &disk.join("shop"));
    };
    let scene = Scene::with_readers(rosters, Readers::new(vec![Box::new(told.clone())]), start);
    (scene, told)
}

/// The names of the only session's agents, with what each says.
fn said(scene: &mut Scene) -> Vec<(String, String)> {
    let word = |agent: &Agent| agent.evidence.first().map(|said| said.word.clone()).unwrap_or_default();
    scene.look()[0].agents.iter().map(|agent| (agent.name.clone(), word(agent))).collect()
}

fn row(name: &str, word: &str) -> (String, String) {
    (name.to_owned(), word.to_owned())
}

#[test]
fn each_conversation_is_a_row_and_the_resources_are_counted_once() {
    let (mut scene, told) = scene(Vec::new());
    told.hold(&[("c-000003", 33), ("a-000001", 11), ("b-000002", 22)]);
    let seen = scene.look();
    let agents = &seen[0].agents;
    let rows: Vec<_> = agents.iter().map(|agent| (agent.id.as_str(), agent.name.as_str())).collect();
    assert_eq!(
        rows,
        [
            ("codex-10-03e8", "codex"),
            ("codex-10-03e8-b-000002", "codex/000002"),
            ("codex-10-03e8-c-000003", "codex/000003")
        ]
    );
    let tokens: Vec<_> = agents.iter().map(|agent| agent.usage.as_ref().unwrap().output_tokens).collect();
    assert_eq!(tokens, [Some(11), Some(22), Some(33)]);
    let created: Vec<_> = agents.iter().map(|agent| agent.created_at_ms.unwrap() - BEGIN_MS).collect();
    assert_eq!(created, [10_000, 22_000, 33_000]);
    assert_eq!((agents[0].metrics.processes, agents[0].process), (Some(10), ProcessState::Sleeping));
    for other in &agents[1..] {
        assert_eq!((other.process, other.process_id, other.metrics.processes), (ProcessState::NotLocal, None, None));
        assert_eq!(gap(other, "process"), Some("its processes are shared: see codex-10-03e8"));
        assert_eq!(other.kind, "codex");
    }
    assert!(agents.iter().all(|agent| agent.counters.unwrap().shared), "nobody's CPU is theirs alone");
    assert_eq!(scene.world().measured.len(), 1);
}

#[test]
fn a_single_conversation_is_the_process_s_own_row() {
    let (mut scene, told) = scene(Vec::new());
    assert_eq!(said(&mut scene), [row("codex", "")]);
    told.hold(&[("a", 1)]);
    let seen = scene.look();
    let agent = only(&seen);
    assert_eq!((agent.id.as_str(), agent.evidence[0].word.as_str()), ("codex-10-03e8", "a works"));
    assert_eq!((agent.unmeasured.len(), agent.counters.unwrap().shared), (0, false));
}

#[test]
fn rows_stay_whose_they_are_until_a_conversation_is_closed_or_the_process_ends() {
    let (mut scene, told) = scene(Vec::new());
    told.hold(&[("aaaaaa", 1), ("bbbbbb", 2)]);
    assert_eq!(said(&mut scene), [row("codex", "aaaaaa works"), row("codex/bbbbbb", "bbbbbb works")]);
    told.hold(&[("bbbbbb", 2)]);
    assert_eq!(said(&mut scene), [row("codex", ""), row("codex/bbbbbb", "bbbbbb works")]);
    let seen = scene.look();
    assert!(gap(&seen[0].agents[0], "evidence").unwrap().contains("rows of their own"));
    told.hold(&[]);
    assert_eq!(said(&mut scene), [row("codex", "")]);
    told.hold(&[("bbbbbb", 2), ("cccccc", 0)]);
    assert_eq!(said(&mut scene), [row("codex", "cccccc works"), row("codex/bbbbbb", "bbbbbb works")]);
    scene.world().end(10);
    assert!(scene.look().is_empty());
}

#[test]
fn a_conversation_of_a_stopped_process_stands_still_too() {
    let (mut scene, told) = scene(Vec::new());
    told.hold(&[("a", 1), ("b", 2)]);
    scene.world().processes.get_mut(&10).unwrap().state = ProcessState::Stopped;
    let seen = scene.look();
    assert!(seen[0].agents.iter().all(|agent| agent.process == ProcessState::Stopped));
}

#[test]
fn a_declared_agent_has_its_conversations_in_its_session() {
    let declared = roster("r", vec![session("team", vec![agent("lead", pid(10))])]);
    let (mut scene, told) = scene(vec![declared]);
    told.hold(&[("a-000001", 1), ("b-000002", 2)]);
    let seen = scene.look();
    assert_eq!(names(&seen), [["lead", "lead/000002"]]);
    let (lead, other) = (&seen[0].agents[0], &seen[0].agents[1]);
    assert_eq!(other.id, format!("{}-b-000002", lead.id));
    assert_eq!((other.specialization.as_deref(), other.kind.as_str()), (Some("lead work"), "codex"));
}
