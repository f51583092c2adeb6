//! Agents that are declared.

use super::world::*;
use crate::observe::facts::ProcessState;
use crate::observe::processes::Machine;
use crate::observe::roster::{FileSource, Locator};
use crate::observe::tests::world;
use regex::Regex;
use std::fs;
use std::path::Path;

#[test]
fn a_declared_agent_that_is_found_too_is_one_row() {
    let shop = session("shop", vec![agent("backend", pid(10)), agent("database", pid(20))]);
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop])], |world, disk| {
        world.start(10, 1, &["claude"], disk);
        world.start(20, 1, &["postgres"], disk);
    });
    let seen = scene.look();
    assert_eq!(names(&seen), [["backend", "database"]]);
    let backend = &seen[0].agents[0];
    assert_eq!((backend.kind.as_str(), backend.process_id), ("claude", Some(10)));
    assert_eq!(backend.specialization.as_deref(), Some("backend work"));
    assert!(backend.id.starts_with("backend-"), "{}", backend.id);
    assert_eq!(seen[0].agents[1].kind, "process");
    assert_eq!(seen[0].session.id, "shop");
    assert_eq!(seen[0].session.created_at_ms, Some(world::BEGIN_MS + 10_000));
    scene.world().end(10);
    let ended = scene.look_after(1000);
    assert_eq!(names(&ended), [["backend", "database"]]);
    assert_eq!((ended[0].agents[0].kind.as_str(), ended[0].agents[0].process), ("claude", ProcessState::Gone));
    assert_eq!(ended[0].agents[0].created_at_ms, backend.created_at_ms);
}

#[test]
fn a_declared_pid_means_the_process_that_had_it_first() {
    let shop = session("shop", vec![agent("backend", pid(10)), agent("never", pid(11))]);
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop])], |world, disk| {
        world.start(10, 1, &["server"], disk);
    });
    let seen = scene.look();
    assert_eq!(gap(&seen[0].agents[1], "process"), Some("there is no process 11"));
    assert_eq!((seen[0].agents[1].process, seen[0].agents[1].process_id), (ProcessState::Gone, None));
    let disk = scene.disk.clone();
    for pid in [10, 11] {
        scene.world().start(pid, 1, &["claude"], &disk);
        scene.world().processes.get_mut(&pid).unwrap().id.start = 7;
    }
    let seen = scene.look();
    let shop = seen.iter().find(|snapshot| snapshot.session.id == "shop").unwrap();
    assert!(shop.agents.iter().all(|agent| agent.process == ProcessState::Gone));
    assert_eq!(seen.len(), 2, "the new ones are agents of their own");
    assert_eq!(seen.iter().map(|snapshot| snapshot.agents.len()).sum::<usize>(), 4);
}

#[test]
fn whose_a_session_is_that_somebody_else_declares_only_their_agents_join() {
    let disk = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(disk.path()).unwrap();
    let of = |id: &str, owner: &str| {
        let mut declared = session(id, vec![]);
        declared.owner = Some(owner.to_owned());
        declared.root_path = Some(folder.clone());
        declared
    };
    let mut alone = Scene::new(vec![], |world, _| {
        world.start(10, 1, &["claude"], &folder);
    });
    let found = alone.look().remove(0).session.id;
    // By its folder, and by what the session would be called.
    let (by_folder, by_id) = (of("trap", "mallory"), of(&found, "mallory"));
    let mut scene = Scene::new(vec![roster("roster:x", vec![by_folder, by_id])], |world, _| {
        world.start(10, 1, &["claude"], &folder);
    });
    let seen = scene.look();
    let with_agents: Vec<_> = seen.iter().filter(|snapshot| !snapshot.agents.is_empty()).collect();
    assert_eq!(with_agents.len(), 1);
    let own = &with_agents[0].session;
    assert!(own.owner == "root" && own.id != found && own.id.starts_with(&found), "{own:?}");
    assert!(
        seen.iter().all(|snapshot| snapshot.session.owner == "root" || snapshot.session.name == snapshot.session.id)
    );
    assert_eq!(scene.look_after(1000).iter().filter(|one| one.session.id == own.id).count(), 1, "it keeps its id");
    // Nor does whoever claims a folder take it from a session of its own agents' user.
    let mut scene =
        Scene::new(vec![roster("roster:x", vec![of("trap", "mallory"), of("shop", "root")])], |world, _| {
            world.start(10, 1, &["claude"], &folder);
        });
    let seen = scene.look();
    assert_eq!(seen.iter().find(|one| !one.agents.is_empty()).unwrap().session.id, "shop");
}

#[test]
fn an_agent_in_the_folder_of_a_declared_session_joins_it() {
    let disk = tempfile::tempdir().unwrap();
    let mut shop = session("shop", vec![]);
    shop.root_path = Some(disk.path().to_owned());
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop, session("empty", vec![])])], |world, _| {
        world.start(10, 1, &["claude"], disk.path());
    });
    let seen = scene.look();
    assert_eq!(seen.iter().map(|snapshot| snapshot.session.id.as_str()).collect::<Vec<_>>(), ["empty", "shop"]);
    assert_eq!(names(&seen), [vec![], vec!["claude"]]);
}

#[test]
fn a_found_session_that_is_declared_by_its_id_keeps_its_folder_and_name() {
    let disk = tempfile::tempdir().unwrap();
    let start = |world: &mut World, _: &Path| {
        world.start(10, 1, &["claude"], disk.path());
    };
    let found = Scene::new(vec![], start).look().remove(0).session;
    let declared = session(&found.id, vec![agent("alice", pid(10))]);
    let seen = Scene::new(vec![roster("roster:x", vec![declared])], start).look();
    assert_eq!(names(&seen), [["alice"]]);
    assert_eq!((&seen[0].session.root_path, &seen[0].session.name), (&found.root_path, &found.name));
}

#[test]
fn two_sessions_that_claim_one_folder_get_nobody_by_it() {
    let disk = tempfile::tempdir().unwrap();
    let claim =
        |id| crate::observe::roster::DeclaredSession { root_path: Some(disk.path().to_owned()), ..session(id, vec![]) };
    let mut scene = Scene::new(vec![roster("roster:x", vec![claim("a"), claim("b")])], |world, _| {
        world.start(10, 1, &["claude"], disk.path());
    });
    assert_eq!(scene.look().len(), 3);
}

#[test]
fn a_wrapper_and_the_agent_that_it_runs_are_one_row() {
    let shop = session("shop", vec![agent("backend", pid(10))]);
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop])], |world, disk| {
        world.start(10, 1, &["headcount", "run", "--name", "backend", "--", "claude", "-p", "x"], disk);
        world.start(11, 10, &["claude", "-p", "x"], disk);
    });
    let seen = scene.look();
    assert_eq!(only(&seen).kind, "claude");
    assert_eq!(only(&seen).process_id, Some(10));
    scene.world().end(11);
    assert_eq!(only(&scene.look_after(1)).kind, "claude");
}

#[test]
fn an_agent_that_outlives_its_wrapper_is_still_seen() {
    let shop = session("shop", vec![agent("backend", pid(10)), agent("frontend", pid(21))]);
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop])], |world, disk| {
        world.start(10, 1, &["timeout", "600", "claude", "-p", "x"], disk);
        world.start(11, 10, &["claude", "-p", "x"], disk);
        world.start(20, 1, &["claude", "-p", "y"], disk);
        world.start(21, 20, &["claude", "-p", "y"], disk);
    });
    assert_eq!(names(&scene.look()), [["backend", "frontend"]]);
    scene.world().end(10);
    scene.world().end(20);
    for pid in [11, 21] {
        scene.world().processes.get_mut(&pid).unwrap().parent = 1;
    }
    let seen = scene.look();
    let shop = seen.iter().find(|snapshot| snapshot.session.id == "shop").unwrap();
    let state = |name: &str| shop.agents.iter().find(|agent| agent.name == name).map(|agent| agent.process);
    assert_eq!(state("backend"), Some(ProcessState::Gone));
    assert_eq!(state("frontend"), Some(ProcessState::Sleeping));
    let others = seen.iter().find(|snapshot| snapshot.session.id != "shop").unwrap();
    assert!(others.agents.iter().any(|agent| agent.process_id == Some(11) && agent.process == ProcessState::Sleeping));
}

#[test]
fn one_that_is_withdrawn_is_what_it_was_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.toml");
    fs::write(&file, "[[session]]\nid = \"shop\"\n[[session.agent]]\nname = \"backend\"\npid = 10\n").unwrap();
    let mut scene = Scene::new(vec![Box::new(FileSource::new(file.clone()))], |world, disk| {
        world.start(10, 1, &["claude"], disk);
        // The file is written by the real clock.
        world.processes.get_mut(&10).unwrap().started_at_ms = 1000;
    });
    assert_eq!(only(&scene.look()).name, "backend");
    fs::remove_file(&file).unwrap();
    scene.world().fails = true;
    assert_eq!(only(&scene.look()).name, "claude");
}

#[test]
fn a_part_of_an_agent_stands_for_the_whole() {
    let shop = session("shop", vec![agent("backend", pid(11))]);
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop])], |world, disk| {
        world.start(10, 1, &["claude", "-p", "x"], disk);
        world.start(11, 10, &["claude", "-p", "x"], disk);
    });
    assert_eq!(only(&scene.look()).process_id, Some(10));
    scene.world().end(10);
    scene.world().end(11);
    assert_eq!(only(&scene.look_after(100)).process_id, Some(10));
}

#[test]
fn who_is_declared_twice_is_said() {
    let first = session("shop", vec![agent("backend", pid(10))]);
    let second = session("shop", vec![agent("backend", pid(20)), agent("other", pid(10))]);
    let rosters = vec![roster("roster:a", vec![first]), roster("roster:b", vec![second])];
    let mut scene = Scene::new(rosters, |world, disk| {
        world.start(10, 1, &["claude"], disk);
    });
    assert_eq!(names(&scene.look()), [["backend", "other"]]);
    assert_eq!(scene.complaint("roster:a"), None);
    let complaint = scene.complaint("roster:b").unwrap();
    assert!(
        complaint.contains("backend is declared before") && complaint.contains("other is process 10"),
        "{complaint}"
    );
}

#[test]
fn one_process_for_two_names_is_counted_once_and_both_are_listed() {
    let shop = session("shop", vec![agent("backend", pid(10)), agent("again", pid(10))]);
    let blog = session("blog", vec![agent("writer", pid(10))]);
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop, blog])], |world, disk| {
        world.start(10, 1, &["claude"], disk);
    });
    let seen = scene.look();
    assert_eq!(names(&seen), [vec!["writer"], vec!["backend", "again"]]);
    for other in [&seen[0].agents[0], &seen[1].agents[1]] {
        assert_eq!((other.process, other.process_id), (ProcessState::NotLocal, None));
        assert_eq!(gap(other, "process"), Some("is process 10, which is declared as backend in session shop"));
    }
    assert_eq!(seen[1].agents[0].process, ProcessState::Sleeping);
    assert_eq!(scene.world().measured.len(), 1);
}

#[test]
fn a_registered_process_is_known_by_its_whole_identity() {
    let exactly = |boot: &str, namespace: &str| Locator::Exactly {
        machine: Machine { boot_id: boot.to_owned(), pid_namespace: namespace.to_owned() },
        id: crate::observe::processes::ProcessId { pid: 10, start: 1000 },
    };
    let agents = vec![
        agent("here", exactly("boot", "pid:[1]")),
        agent("before", exactly("earlier", "pid:[1]")),
        agent("inside", exactly("boot", "pid:[2]")),
        agent("remote", Locator::Elsewhere),
    ];
    let mut scene = Scene::new(vec![roster("registry", vec![session("shop", agents)])], |world, disk| {
        world.start(10, 1, &["claude"], disk);
    });
    let seen = scene.look();
    let state = |name: &str| seen[0].agents.iter().find(|agent| agent.name == name).unwrap().process;
    assert_eq!(state("here"), ProcessState::Sleeping);
    assert_eq!(state("before"), ProcessState::Gone);
    assert_eq!(state("inside"), ProcessState::Unreadable);
    assert_eq!(state("remote"), ProcessState::NotLocal);
    let remote = seen[0].agents.iter().find(|agent| agent.name == "remote").unwrap();
    assert_eq!(gap(remote, "process"), Some("it has no process on this machine"));
}

#[test]
fn a_process_that_may_not_be_seen_is_not_called_gone() {
    let shop = session("shop", vec![agent("backend", pid(10))]);
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop])], |world, _| {
        world.hidden.insert(10);
    });
    assert_eq!(only(&scene.look()).process, ProcessState::Unreadable);
}

#[test]
fn nobody_is_called_gone_before_processes_could_be_listed() {
    let shop = session("shop", vec![agent("backend", pid(10))]);
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop])], |world, disk| {
        world.start(10, 1, &["claude"], disk);
        world.fails = true;
    });
    assert_eq!(only(&scene.look()).process, ProcessState::Unreadable);
    scene.world().fails = false;
    assert_eq!(only(&scene.look()).process, ProcessState::Sleeping);
}

#[test]
fn a_pattern_finds_the_oldest_and_another_when_that_has_ended() {
    let worker = Locator::Match(Regex::new("^python .*worker[.]py").unwrap());
    let mut scene =
        Scene::new(vec![roster("roster:x", vec![session("shop", vec![agent("w", worker)])])], |world, disk| {
            world.start(10, 1, &["vim", "python worker.py"], disk);
        });
    let seen = scene.look();
    assert_eq!(gap(only(&seen), "process"), Some("no process matches"));
    assert_eq!(only(&seen).process, ProcessState::NotLocal, "never seen, so never ended");
    let disk = scene.disk.clone();
    scene.world().start(21, 1, &["python", "-u", "worker.py"], &disk);
    scene.world().start(20, 1, &["python", "worker.py"], &disk);
    let seen = scene.look();
    assert_eq!(only(&seen).process_id, Some(20));
    assert_eq!(gap(only(&seen), "process"), Some("2 processes match; this is the oldest"));
    scene.world().end(20);
    let seen = scene.look();
    assert_eq!((only(&seen).process_id, gap(only(&seen), "process")), (Some(21), None));
    scene.world().end(21);
    assert_eq!(only(&scene.look()).process, ProcessState::Gone);
    scene.world().start(30, 1, &["python", "worker.py"], &disk);
    assert_eq!(only(&scene.look()).process_id, Some(30));
}

#[test]
fn a_pid_file_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backend.pid");
    let shop = session("shop", vec![agent("backend", Locator::PidFile(file.clone()))]);
    let mut scene = Scene::new(vec![roster("roster:x", vec![shop])], |world, disk| {
        for pid in [10, 20, 30] {
            world.start(pid, 1, &["server"], disk);
            // The file is written by the real clock.
            world.processes.get_mut(&pid).unwrap().started_at_ms = 1000;
        }
        world.processes.get_mut(&30).unwrap().started_at_ms = u64::MAX / 2;
    });
    let reason = |scene: &mut Scene| gap(only(&scene.look()), "process").map(str::to_owned);
    assert!(reason(&mut scene).unwrap().contains("backend.pid"));
    fs::write(&file, " 10\n").unwrap();
    assert_eq!(only(&scene.look()).process_id, Some(10));
    fs::write(&file, "20 \n\n").unwrap();
    assert_eq!(only(&scene.look()).process_id, Some(20));
    fs::remove_file(&file).unwrap();
    assert_eq!(only(&scene.look()).process_id, Some(20));
    scene.world().end(20);
    assert_eq!(only(&scene.look()).process, ProcessState::Gone);
    for (content, why) in [
        ("no pid", "holds no pid"),
        (&"1".repeat(5000), "larger than 4 KiB"),
        ("-5", "holds no pid"),
        ("30\n", "started after"),
    ] {
        fs::write(&file, content).unwrap();
        assert!(reason(&mut scene).is_some_and(|said| said.contains(why)), "{content}");
        assert_eq!(only(&scene.look()).process, ProcessState::Gone, "{content}");
    }
}

#[test]
fn a_pid_file_that_says_nothing_ends_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backend.pid");
    type Make = fn(&Path);
    let unlike: &[(&str, Make)] = &[
        ("holds no pid", |file| fs::write(file, "").unwrap()),
        ("holds no pid", |file| fs::write(file, "soon").unwrap()),
        ("is not a regular file", |file| fs::create_dir(file).unwrap()),
        ("no such file", |_| ()),
        #[cfg(unix)]
        ("is not a regular file", crate::files::make_pipe),
        #[cfg(unix)]
        ("is not a regular file", |file| std::os::unix::fs::symlink("/dev/zero", file).unwrap()),
    ];
    let clear = || {
        let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
    };
    for (why, make) in unlike {
        let shop = session("shop", vec![agent("backend", Locator::PidFile(file.clone()))]);
        let mut scene = Scene::new(vec![roster("roster:x", vec![shop])], |world, disk| {
            world.start(10, 1, &["server"], disk);
            // The file is written by the real clock.
            world.processes.get_mut(&10).unwrap().started_at_ms = 1000;
        });
        clear();
        make(&file);
        let seen = scene.look();
        assert_eq!(only(&seen).process, ProcessState::NotLocal, "{why}");
        assert!(gap(only(&seen), "process").unwrap().contains(why), "{seen:#?}");
        clear();
        fs::write(&file, "10").unwrap();
        assert_eq!((only(&scene.look()).process_id, gap(only(&scene.look()), "process")), (Some(10), None));
        clear();
        make(&file);
        let seen = scene.look();
        assert_eq!(only(&seen).process, ProcessState::Sleeping, "{why}");
        assert!(gap(only(&seen), "process").unwrap().contains(why), "{seen:#?}");
        scene.world().end(10);
        assert_eq!(only(&scene.look()).process, ProcessState::Gone, "{why}");
    }
}

#[test]
fn a_broken_roster_harms_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.toml");
    let bad = folder.path().join("bad.toml");
    let declared =
        |pid: u32| format!("[[session]]\nid = \"shop\"\n[[session.agent]]\nname = \"a{pid}\"\npid = {pid}\n");
    fs::write(&good, declared(10)).unwrap();
    fs::write(&bad, declared(20)).unwrap();
    let source =
        |file: &std::path::PathBuf| Box::new(FileSource::new(file.clone())) as Box<dyn crate::observe::roster::Source>;
    let mut scene = Scene::new(vec![source(&bad), source(&good)], |_, _| {});
    assert_eq!(scene.look()[0].agents.len(), 2);
    fs::write(&bad, declared(20).replace("pid =", "pdi =")).unwrap();
    let seen = scene.look();
    assert_eq!(seen[0].agents.len(), 2, "what it said before still holds");
    let complaint = scene.complaint(&format!("roster:{}", bad.display())).unwrap();
    assert!(complaint.contains("bad.toml:5") && complaint.contains("pdi") && complaint.contains("pid"), "{complaint}");
    assert_eq!(scene.complaint(&format!("roster:{}", good.display())), None);
    assert!(seen[0].sources.iter().any(|source| source.error.is_some()));
    fs::remove_file(&bad).unwrap();
    assert_eq!(scene.look()[0].agents.len(), 1);
}
