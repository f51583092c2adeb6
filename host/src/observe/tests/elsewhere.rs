//! Agents that an upstream server tells of, beside those that are here.

use super::world::{Scene, World, agent, names, roster, session};
use crate::config::Join;
use crate::names::{Identity, Instance};
use crate::observe::facts::{Origin, ProcessState, Snapshot};
use crate::observe::roster::{DeclaredAgent, DeclaredSession, Elsewhere, Locator, Roster, Source};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What an upstream tells now.
#[derive(Clone)]
struct Told {
    name: &'static str,
    join: Join,
    now: Arc<Mutex<(Roster, Option<String>)>>,
}

impl Told {
    fn by(name: &'static str, join: Join) -> Self {
        Self { name, join, now: Arc::default() }
    }

    fn source(&self) -> Box<dyn Source> {
        Box::new(self.clone())
    }

    fn says(&self, sessions: Vec<DeclaredSession>) {
        let elsewhere = Some(Elsewhere { upstream: self.name.into(), join: self.join });
        let told = |session| DeclaredSession { elsewhere: elsewhere.clone(), ..session };
        self.now.lock().unwrap().0.sessions = sessions.into_iter().map(told).collect();
    }

    fn fails(&self) {
        self.now.lock().unwrap().1 = Some("no answer".to_owned());
    }
}

impl Source for Told {
    fn name(&self) -> String {
        format!("upstream:{}", self.name)
    }

    fn read(&mut self) -> (Arc<Roster>, Option<String>) {
        let (roster, error) = self.now.lock().unwrap().clone();
        (Arc::new(roster), error)
    }

    fn confined_to(&self) -> Option<Arc<str>> {
        (self.join == Join::Own).then(|| self.name.into())
    }
}

fn remote(name: &str) -> DeclaredAgent {
    agent(name, Locator::Elsewhere)
}

fn same(name: &str, identity: Identity, via: &[&str]) -> DeclaredAgent {
    let mut agent = remote(name);
    agent.said.identity = Some(identity);
    agent.said.via = via.iter().map(|one| Instance::of(&[one.as_bytes()])).collect();
    agent
}

/// The agents of each session that is not of this machine, in the order of their names.
fn told_of(seen: &[Snapshot]) -> Vec<String> {
    let listed = |one: &Snapshot| {
        let mut names = names(std::slice::from_ref(one)).remove(0);
        names.sort_unstable();
        format!("{}: {}", one.session.id, names.join(" "))
    };
    seen.iter().filter(|one| one.session.id.contains('.')).map(listed).collect()
}

/// A claude works in `shop` below the world's folder.
fn a_shop(world: &mut World, disk: &Path) {
    let shop = disk.join("shop");
    std::fs::create_dir(&shop).unwrap();
    world.start(7, 1, &["claude"], &shop);
}

fn like(here: &Snapshot, agents: Vec<DeclaredAgent>) -> DeclaredSession {
    DeclaredSession {
        name: Some(here.session.name.clone()),
        root_path: Some(here.session.root_path.clone().into()),
        ..session(&here.session.id, agents)
    }
}

#[test]
fn what_is_elsewhere_takes_nothing_that_is_here() {
    let told = Told::by("box", Join::Own);
    let mut scene = Scene::new(vec![told.source()], a_shop);
    let before = scene.look().remove(0);
    told.says(vec![like(&before, vec![remote("squat")])]);
    let seen = scene.look();
    assert_eq!(seen.len(), 2, "{seen:#?}");
    let (here, there): (Vec<_>, Vec<_>) = seen.iter().partition(|one| one.session.id == before.session.id);
    assert_eq!(*here[0], Snapshot { now_ms: here[0].now_ms, ..before.clone() }, "nothing has changed here");
    let there = there[0];
    assert_eq!((there.session.name.as_str(), &there.session.owner), ("shop@box", &before.session.owner));
    let squat = &there.agents[0];
    assert_eq!((squat.origin, squat.process, squat.process_id), (Origin::Elsewhere, ProcessState::NotLocal, None));
    // Another one that begins to work in its folder is none of its agents.
    let shop = scene.disk.join("shop");
    scene.world().start(8, 1, &["claude"], &shop);
    assert_eq!(scene.look().iter().find(|one| one.session.name == "shop@box").unwrap().agents.len(), 1);
}

#[test]
fn agents_join_a_session_here_only_as_configured() {
    for (join, is_joined) in [(Join::Own, [false; 2]), (Join::ByRootPath, [true, false]), (Join::ByName, [false, true])]
    {
        let told = Told::by("box", join);
        let mut scene = Scene::new(vec![told.source()], a_shop);
        let here = scene.look().remove(0);
        let by_path = DeclaredSession { name: Some("other".into()), ..like(&here, vec![remote("p")]) };
        let by_name = DeclaredSession { root_path: None, ..like(&here, vec![remote("n")]) };
        told.says(vec![
            DeclaredSession { id: by_path.id.clone(), ..by_path },
            DeclaredSession { id: crate::names::SessionId::parse("n.box").unwrap(), ..by_name },
        ]);
        let seen = scene.look();
        let shop = seen.iter().find(|one| one.session.id == here.session.id).unwrap();
        let there: Vec<_> = shop.agents.iter().filter(|one| one.origin == Origin::Elsewhere).collect();
        let joined = ["p", "n"].map(|name| there.iter().any(|one| one.name == name));
        assert_eq!(joined, is_joined, "{join:?}");
        assert_eq!(seen.len(), 3 - there.len(), "{join:?}: who does not join is in a session of its own");
        assert_eq!(shop.session, here.session, "{join:?}");
    }
}

#[test]
fn nobody_joins_the_session_of_another_user() {
    let told = Told::by("box", Join::ByName);
    let theirs = DeclaredSession { name: Some("Team".into()), owner: Some("eve".into()), ..session("team", vec![]) };
    let mut scene = Scene::new(vec![roster("r", vec![theirs]), told.source()], |_, _| {});
    told.says(vec![DeclaredSession { name: Some("Team".into()), ..session("team.box", vec![remote("a")]) }]);
    let seen = scene.look();
    let found: Vec<_> = seen.iter().map(|one| (one.session.id.as_str(), one.agents.len())).collect();
    assert_eq!(found, [("team", 0), ("team.box", 1)]);
}

#[test]
fn an_agent_of_whom_several_tell_is_listed_once() {
    let (near, far) = (Told::by("near", Join::Own), Told::by("far", Join::Own));
    let mut scene = Scene::new(vec![far.source(), near.source()], a_shop);
    let here = scene.look()[0].agents[0].identity.unwrap();
    let other = Identity::of(&[b"other"]);
    let third = Identity::of(&[b"third"]);
    far.says(vec![
        session(
            "f.far",
            vec![
                same("other by far", other, &["near", "far"]),
                same("claude", here, &["near", "far"]),
                same("third", third, &["far"]),
            ],
        ),
        session("only-ours.far", vec![same("claude", here, &["far"])]),
        session("empty.far", vec![]),
    ]);
    near.says(vec![session(
        "n.near",
        vec![same("other", other, &["near"]), same("third too", third, &["near"]), remote("fourth")],
    )]);
    let seen = scene.look();
    let found = told_of(&seen);
    let expected = ["empty.far: ", "f.far: third", "n.near: fourth other third too"];
    assert_eq!(found, expected, "who is here is not listed from elsewhere, nor a session of them alone");
    assert_eq!(seen.iter().filter(|one| one.agents.iter().any(|agent| agent.process_id.is_some())).count(), 1);
}

#[test]
fn nobody_hides_what_another_tells() {
    let (liar, honest, far) = (Told::by("liar", Join::Own), Told::by("honest", Join::Own), Told::by("far", Join::Own));
    let mut scene = Scene::new(vec![liar.source(), honest.source(), far.source()], |_, _| {});
    let [own, passed_on] = [Identity::of(&[b"own"]), Identity::of(&[b"passed on"])];
    honest.says(vec![session("h.honest", vec![same("failed", own, &["honest"])])]);
    far.says(vec![session("f.far", vec![same("from x", passed_on, &["x", "far"])])]);
    for via in [&[][..], &["liar"], &["honest"], &["honest", "liar"], &["far"], &["x", "far", "liar"]] {
        liar.says(vec![session("l.liar", vec![same("well", own, via), same("well too", passed_on, via)])]);
        let found = told_of(&scene.look());
        let others: Vec<_> = found.iter().filter(|one| !one.starts_with("l.liar")).collect();
        assert_eq!(others, ["f.far: from x", "h.honest: failed"], "{via:?}");
    }
}

#[test]
fn who_has_ended_here_does_not_come_back_from_elsewhere() {
    let told = Told::by("box", Join::Own);
    let mut scene = Scene::new(vec![told.source()], a_shop);
    let here = scene.look()[0].agents[0].identity.unwrap();
    told.says(vec![session("s.box", vec![same("claude", here, &["box"])])]);
    scene.world().end(7);
    for _ in 0..3 {
        assert_eq!(told_of(&scene.look_after(30)), Vec::<String>::new());
    }
    assert_eq!(told_of(&scene.look_after(60)), ["s.box: claude"], "it is not remembered for ever");
}

#[test]
fn a_failing_upstream_concerns_only_sessions_that_it_may_have_agents_in() {
    for (join, everywhere) in [(Join::Own, false), (Join::ByName, true)] {
        let told = Told::by("box", join);
        let mut scene = Scene::new(vec![told.source()], a_shop);
        told.says(vec![session("a.box", vec![remote("a")])]);
        told.fails();
        let seen = scene.look();
        let concerned = |one: &&Snapshot| one.sources.iter().any(|source| source.name == "upstream:box");
        let (own, here): (Vec<_>, Vec<_>) = seen.iter().partition(|one| one.session.id == "a.box");
        assert!(concerned(&own[0]) && concerned(&here[0]) == everywhere, "{join:?}: {seen:#?}");
        assert_eq!(scene.complaint("upstream:box"), Some("no answer"), "it is said once and for all besides");
    }
}
