//! Whose a session is: agents of several users, and what one of them declares of another's.

use super::world::*;
use crate::observe::facts::Snapshot;
use crate::observe::roster::{DeclaredSession, Roster, Source};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Users without a name are called by their number.
const ADA: &str = "3999999901";
const MALLORY: &str = "3999999902";

/// A roster that changes, as the registry does.
#[derive(Clone, Default)]
struct Registry(Arc<Mutex<Vec<DeclaredSession>>>);

impl Source for Registry {
    fn name(&self) -> String {
        "registry".to_owned()
    }

    fn read(&mut self) -> (Arc<Roster>, Option<String>) {
        let sessions = self.0.lock().unwrap().clone();
        (Arc::new(Roster { sessions }), None)
    }
}

fn of(owner: &str, declared: DeclaredSession) -> DeclaredSession {
    DeclaredSession { owner: Some(owner.to_owned()), ..declared }
}

fn start(world: &mut World, pid: u32, owner: &str, folder: &Path) {
    world.start(pid, 1, &["claude"], folder);
    world.change(pid, |program| program.uid = Some(owner.parse().unwrap()));
}

/// The pids of the agents that are shown to this user, each with its session.
fn shown(seen: &[Snapshot], owner: &str) -> Vec<(String, u32)> {
    let own = seen.iter().filter(|one| one.session.owner == owner);
    own.flat_map(|one| one.agents.iter().filter_map(|agent| Some((one.session.id.clone(), agent.process_id?))))
        .collect()
}

fn pids(seen: &[Snapshot], owner: &str) -> Vec<u32> {
    shown(seen, owner).into_iter().map(|(_, pid)| pid).collect()
}

/// Ada's agent in a folder, what its session is called, and a registry that says nothing yet.
fn adas() -> (Scene, Registry, String, PathBuf) {
    let registry = Registry::default();
    let mut scene = Scene::new(vec![Box::new(registry.clone())], |world, disk| start(world, 10, ADA, disk));
    let id = shown(&scene.look(), ADA).remove(0).0;
    let folder = scene.disk.clone();
    (scene, registry, id, folder)
}

#[test]
fn who_had_a_sessions_id_before_does_not_keep_what_is_found_later() {
    let (mut first, _, id, folder) = adas();
    drop(first.look());
    let registry = Registry::default();
    let squat = agent("squat", crate::observe::roster::Locator::Elsewhere);
    *registry.0.lock().unwrap() = vec![of(MALLORY, session(&id, vec![squat]))];
    let mut scene = Scene::new(vec![Box::new(registry.clone())], |world, _| start(world, 10, ADA, &folder));
    let seen = scene.look();
    assert_eq!((pids(&seen, ADA), pids(&seen, MALLORY)), (vec![10], vec![]));
    registry.0.lock().unwrap().clear();
    for seconds in [1, 2] {
        let seen = scene.look_after(seconds);
        assert_eq!((shown(&seen, ADA), pids(&seen, MALLORY)), (vec![(id.clone(), 10)], vec![]));
        assert!(seen.iter().all(|one| one.session.owner == ADA), "{seen:#?}");
    }
}

#[test]
fn the_user_of_the_server_takes_nobodys_agents_by_registering_their_folder() {
    let (mut scene, registry, id, folder) = adas();
    let me = crate::observe::sessions::Owners::default().me();
    let spy = DeclaredSession { root_path: Some(folder), ..session("spy", vec![]) };
    *registry.0.lock().unwrap() = vec![of(&me, spy.clone())];
    let seen = scene.look_after(1);
    assert_eq!((shown(&seen, ADA), pids(&seen, &me)), (vec![(id, 10)], vec![]));
    // The operator's own roster is no registration.
    *registry.0.lock().unwrap() = vec![spy];
    let seen = scene.look_after(1);
    assert_eq!((pids(&seen, ADA), shown(&seen, &me)), (vec![], vec![("spy".to_owned(), 10)]));
}

#[test]
fn a_registration_says_nothing_of_a_session_of_the_operators_roster() {
    let (mut scene, registry, id, folder) = adas();
    let me = crate::observe::sessions::Owners::default().me();
    let spy = DeclaredSession { root_path: Some(folder), name: Some("Spy".into()), ..session("shop", vec![]) };
    *registry.0.lock().unwrap() = vec![session("shop", vec![]), of(&me, spy)];
    let seen = scene.look_after(1);
    assert_eq!((shown(&seen, ADA), pids(&seen, &me)), (vec![(id, 10)], vec![]));
    assert!(seen.iter().all(|one| one.session.name != "Spy"), "{seen:#?}");
}

#[test]
fn a_declared_process_of_another_user_stays_where_its_user_sees_it() {
    let (mut scene, registry, id, _) = adas();
    *registry.0.lock().unwrap() = vec![of(MALLORY, session("trap", vec![agent("it", pid(10))]))];
    for seconds in [1, 2] {
        let seen = scene.look_after(seconds);
        assert_eq!((shown(&seen, ADA), pids(&seen, MALLORY)), (vec![(id.clone(), 10)], vec![]));
        let trap = seen.iter().find(|one| one.session.id == "trap").unwrap();
        assert_eq!(gap(&trap.agents[0], "process"), Some("is a process of another user"));
    }
    // Nor does it matter that its user has declared it, too.
    let own = of(ADA, session("shop", vec![agent("own", pid(10))]));
    registry.0.lock().unwrap().insert(0, own);
    let seen = scene.look_after(1);
    assert_eq!((shown(&seen, ADA), pids(&seen, MALLORY)), (vec![("shop".to_owned(), 10)], vec![]));
}

/// As `sudo -u` does it.
#[test]
fn an_agent_that_somebody_runs_as_another_user_is_that_users_row() {
    let registry = Registry::default();
    let mut scene = Scene::new(vec![Box::new(registry.clone())], |world, disk| {
        world.start(10, 1, &["sudo", "-u", "mallory", "claude", "-p", "x"], disk);
        world.change(10, |program| program.uid = Some(ADA.parse().unwrap()));
        world.start(11, 10, &["claude", "-p", "x"], disk);
        world.change(11, |program| program.uid = Some(MALLORY.parse().unwrap()));
    });
    let wrapper = session("shop", vec![agent("it", pid(10))]);
    *registry.0.lock().unwrap() = vec![of(ADA, wrapper.clone())];
    let seen = scene.look();
    assert_eq!((pids(&seen, ADA), pids(&seen, MALLORY)), (vec![10], vec![11]), "{seen:#?}");
    let kind = |owner: &str| seen.iter().find(|one| one.session.owner == owner).unwrap().agents[0].kind.clone();
    assert_eq!([kind(ADA), kind(MALLORY)], [crate::observe::census::NO_KIND, "claude"]);
    // Whose process it is is not known: then it is what it seems to be.
    scene.world().change(11, |program| program.uid = None);
    let seen = scene.look_after(1);
    assert_eq!((shown(&seen, ADA), pids(&seen, MALLORY)), (vec![("shop".to_owned(), 10)], vec![]));
    scene.world().change(11, |program| program.uid = Some(MALLORY.parse().unwrap()));
    // The operator's own roster takes up whose it likes.
    *registry.0.lock().unwrap() = vec![wrapper];
    let seen = scene.look_after(1);
    assert_eq!(seen.iter().flat_map(|one| &one.agents).map(|agent| agent.process_id).collect::<Vec<_>>(), [Some(10)]);
}

#[test]
fn agents_of_several_users_in_one_folder_are_sessions_of_their_own() {
    let (mut scene, _, id, folder) = adas();
    start(scene.world(), 5, MALLORY, &folder);
    start(scene.world(), 11, ADA, &folder);
    let seen = scene.look_after(1);
    let theirs = shown(&seen, MALLORY);
    assert_eq!(shown(&seen, ADA), [(id.clone(), 10), (id.clone(), 11)], "an older one changes nothing");
    assert_eq!(theirs.iter().map(|(_, pid)| *pid).collect::<Vec<_>>(), [5]);
    assert_ne!(theirs[0].0, id);
    scene.world().end(10);
    let seen = scene.look_after(1);
    assert_eq!((shown(&seen, ADA), shown(&seen, MALLORY)), (vec![(id, 11)], theirs), "ids stay");
}
