//! Whose a session is: what somebody sees of it decides who may see what its agents do.

use super::world::*;
use crate::observe::facts::Snapshot;
use crate::observe::ids;
use crate::observe::roster::{DeclaredSession, Roster, Source};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A user whom every system has.
const DAEMON: u32 = 1;

/// What is declared, and can be withdrawn.
#[derive(Clone, Default)]
struct Registry(Arc<Mutex<Vec<DeclaredSession>>>);

impl Source for Registry {
    fn name(&self) -> String {
        "registry".to_owned()
    }

    fn read(&mut self) -> (Arc<Roster>, Option<String>) {
        (Arc::new(Roster { sessions: self.0.lock().unwrap().clone(), written_at_ms: None }), None)
    }
}

/// What somebody has declared.
fn of(owner: &str, id: &str, folder: Option<&Path>) -> DeclaredSession {
    let root_path = folder.map(Path::to_owned);
    DeclaredSession { owner: Some(owner.to_owned()), root_path, ..session(id, vec![]) }
}

fn folder(disk: &tempfile::TempDir) -> PathBuf {
    fs::canonicalize(disk.path()).unwrap()
}

/// The pids that this user sees, by session.
fn seen_by<'a>(owner: &str, snapshots: &'a [Snapshot]) -> Vec<(&'a str, Vec<u32>)> {
    let own = snapshots.iter().filter(|one| one.session.owner == owner && !one.agents.is_empty());
    own.map(|one| (one.session.id.as_str(), one.agents.iter().filter_map(|agent| agent.process_id).collect())).collect()
}

#[test]
fn agents_of_several_users_in_one_folder_are_a_session_for_each() {
    let disk = tempfile::tempdir().unwrap();
    let folder = folder(&disk);
    let plain = ids::session_id(&folder);
    let mut scene = Scene::new(vec![], |world, _| {
        world.start(10, 1, &["claude"], &folder);
        world.change(10, |program| program.uid = Some(DAEMON));
        world.start(20, 1, &["claude"], &folder);
    });
    let seen = scene.look();
    assert_eq!(seen_by("daemon", &seen), [(plain.as_str(), vec![10])]);
    let apart = ids::apart(&plain, "root");
    assert_eq!(seen_by("root", &seen), [(apart.as_str(), vec![20])]);
    scene.world().end(10);
    scene.world().start(30, 1, &["codex"], &folder);
    for _ in 0..2 {
        assert_eq!(seen_by("root", &scene.look()), [(apart.as_str(), vec![20, 30])], "it keeps its id");
    }
}

#[test]
fn what_somebody_declared_and_withdrew_takes_nobody_with_it() {
    let disk = tempfile::tempdir().unwrap();
    let folder = folder(&disk);
    let plain = ids::session_id(&folder);
    let registry = Registry::default();
    registry.0.lock().unwrap().push(of("mallory", &plain, None));
    let mut scene = Scene::new(vec![Box::new(registry.clone())], |_, _| {});
    scene.look();
    scene.world().start(10, 1, &["claude"], &folder);
    scene.world().change(10, |program| program.uid = Some(DAEMON));
    for withdrawn in [false, true, true] {
        if withdrawn {
            registry.0.lock().unwrap().clear();
        }
        let seen = scene.look();
        assert_eq!(seen_by("mallory", &seen), []);
        let own = seen_by("daemon", &seen);
        assert!(own.len() == 1 && own[0].1 == [10] && own[0].0.starts_with(&plain), "{own:?}");
    }
}

#[test]
fn the_user_of_this_program_takes_nobody_elses_agents_by_declaring_their_folder() {
    let disk = tempfile::tempdir().unwrap();
    let folder = folder(&disk);
    let plain = ids::session_id(&folder);
    let registry = Registry::default();
    registry.0.lock().unwrap().extend([of("root", "spy", Some(&folder)), of("root", &plain, None)]);
    let mut scene = Scene::new(vec![Box::new(registry)], |world, _| {
        world.start(10, 1, &["claude"], &folder);
        world.change(10, |program| program.uid = Some(DAEMON));
        world.start(20, 1, &["claude"], &folder);
    });
    let seen = scene.look();
    assert_eq!(seen_by("daemon", &seen), [(ids::apart(&plain, "daemon").as_str(), vec![10])]);
    assert_eq!(seen_by("root", &seen), [("spy", vec![20])]);
}
