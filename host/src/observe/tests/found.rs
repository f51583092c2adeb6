//! Agents that are found by themselves.

use super::world::*;
use crate::observe::facts::{ProcessState, Terminal};
use crate::observe::processes::Details;
use std::borrow::Cow;
use std::fs;
use std::path::Path;

fn project(disk: &Path, name: &str) -> std::path::PathBuf {
    headcount_tests::repository(&disk.join(name));
    disk.join(name)
}

#[test]
fn agents_of_one_project_are_one_session() {
    let mut scene = Scene::new(vec![], |world, disk| {
        let shop = project(disk, "shop");
        fs::create_dir_all(shop.join("api")).unwrap();
        world.start(30, 1, &["codex"], &shop);
        world.start(20, 1, &["claude", "-c"], &shop.join("api"));
        world.start(10, 1, &["claude"], &shop);
        world.start(40, 1, &["claude"], &project(disk, "blog"));
        world.start(50, 1, &["bash"], &shop);
    });
    let seen = scene.look();
    assert_eq!(names(&seen), [vec!["claude"], vec!["claude", "claude-2", "codex"]]);
    let shop = &seen[1];
    assert!(shop.session.id.starts_with("shop-"), "{}", shop.session.id);
    assert_eq!((shop.session.name.as_str(), shop.session.owner.as_str(), shop.cores), ("shop", "root", 4));
    assert_eq!(Path::new(&shop.session.root_path), scene.disk.join("shop"));
    assert_eq!(shop.session.created_at_ms, Some(BEGIN_MS + 10_000));
    assert_eq!(shop.now_ms, BEGIN_MS);
    let first = &shop.agents[0];
    assert_eq!((first.id.as_str(), first.kind.as_str(), first.process_id), ("claude-10-03e8", "claude", Some(10)));
    assert_eq!((first.process, first.metrics.processes), (ProcessState::Sleeping, Some(10)));
    assert_eq!(first.counters.unwrap().cpu_time.as_secs(), 10);
    assert!(first.unmeasured.is_empty() && first.evidence.is_empty() && first.trend.is_none());
    assert_eq!(scene.look(), seen);
}

#[test]
fn worktrees_are_one_project() {
    let mut scene = Scene::new(vec![], |world, disk| {
        let shop = project(disk, "shop");
        fs::create_dir_all(shop.join(".git/worktrees/fix")).unwrap();
        let fix = disk.join("shop-fix");
        fs::create_dir_all(&fix).unwrap();
        fs::write(fix.join(".git"), "gitdir: ../shop/.git/worktrees/fix\n").unwrap();
        world.start(10, 1, &["claude"], &shop);
        world.start(20, 1, &["claude"], &fix);
    });
    assert_eq!(names(&scene.look()), [["claude", "claude-2"]]);
}

#[test]
fn an_agent_in_a_folder_that_may_not_be_seen_is_listed_and_says_why() {
    let mut scene = Scene::new(vec![], |world, disk| {
        world.start(10, 1, &["claude"], disk);
        world.start(20, 1, &["codex"], disk);
        world.change(10, |program| program.cwd = Err("permission denied".to_owned()));
        world.change(20, |program| program.cwd = Err("permission denied".to_owned()));
    });
    let seen = scene.look();
    assert_eq!((seen[0].session.id.as_str(), seen[0].session.root_path.as_str()), ("unplaced-root", ""));
    assert_eq!(names(&seen), [["claude", "codex"]]);
    assert!(gap(&seen[0].agents[0], "session").unwrap().contains("permission denied"));
}

#[test]
fn an_ended_agent_stays_a_while_and_its_session_with_it() {
    let mut scene = Scene::with_memory(|world, disk| {
        world.start(10, 1, &["claude"], disk);
        world.start(20, 1, &["claude"], disk);
    });
    let before = scene.look();
    scene.world().end(10);
    let after = scene.look_after(1);
    assert_eq!(names(&after), [["claude", "claude-2"]]);
    assert_eq!(after[0].agents[0].process, ProcessState::Gone);
    assert_eq!(names(&scene.look_after(59)), [["claude", "claude-2"]]);
    let later = scene.look_after(1);
    assert_eq!(names(&later), [["claude-2"]]);
    assert_eq!(later[0].session, before[0].session);
    scene.world().end(20);
    assert_eq!(names(&scene.look()), [["claude-2"]]);
    assert!(scene.look_after(61).is_empty());
}

#[test]
fn an_agent_leaves_the_list_when_it_ends_unless_it_is_to_be_kept() {
    let mut scene = Scene::new(vec![], |world, disk| {
        world.start(10, 1, &["claude"], disk);
        world.start(20, 1, &["claude"], disk);
        world.start(30, 1, &["claude"], disk);
    });
    scene.look();
    scene.world().end(10);
    scene.world().processes.get_mut(&20).unwrap().state = ProcessState::Zombie;
    assert_eq!(names(&scene.look()), [["claude-3"]]);
    scene.world().end(30);
    assert!(scene.look().is_empty());
}

#[test]
fn a_zombie_has_ended_and_does_not_come_back() {
    let mut scene = Scene::with_memory(|world, disk| {
        world.start(10, 1, &["claude"], disk);
    });
    scene.look();
    scene.world().processes.get_mut(&10).unwrap().state = ProcessState::Zombie;
    assert_eq!(only(&scene.look()).process, ProcessState::Zombie);
    assert!(scene.look_after(61).is_empty());
    assert!(scene.look_after(1).is_empty());
}

#[test]
fn the_next_process_with_its_pid_is_another_agent_or_none() {
    let mut scene = Scene::with_memory(|world, disk| {
        world.start(10, 1, &["claude"], disk);
    });
    let first = only(&scene.look()).id.clone();
    let disk = scene.disk.clone();
    scene.world().start(10, 1, &["codex"], &disk);
    scene.world().processes.get_mut(&10).unwrap().id.start = 5;
    let seen = scene.look_after(1);
    assert_eq!(names(&seen), [["claude", "codex"]]);
    assert_eq!((seen[0].agents[0].id.as_str(), seen[0].agents[0].process), (first.as_str(), ProcessState::Gone));
    assert_eq!(seen[0].agents[1].process, ProcessState::Sleeping);
}

#[test]
fn a_shell_that_becomes_an_agent_is_one_and_one_that_ceases_to_be_is_none() {
    let mut scene = Scene::new(vec![], |world, disk| {
        world.start(10, 1, &["bash"], disk);
    });
    assert!(scene.look().is_empty());
    scene.world().change(10, |program| program.argv = Ok(vec!["claude".to_owned()]));
    assert_eq!(names(&scene.look()), [["claude"]]);
    scene.world().change(10, |program| program.argv = Ok(vec!["codex".to_owned()]));
    assert_eq!(only(&scene.look()).kind, "codex");
    scene.world().change(10, |program| program.argv = Ok(vec!["bash".to_owned()]));
    assert!(scene.look().is_empty());
}

#[test]
fn a_pane_that_lives_on_with_a_bare_shell_keeps_no_agent_alive() {
    let pane = |world: &mut World, disk: &Path| {
        world.start(10, 1, &["-bash"], disk);
        world.change(10, |program| program.env = Ok(vec![("TMUX_PANE".to_owned(), "%3".to_owned())]));
        world.start(20, 10, &["claude"], disk);
    };
    let mut scene = Scene::with_memory(pane);
    assert_eq!(only(&scene.look()).process_id, Some(20));
    scene.world().end(20);
    assert_eq!(only(&scene.look_after(1)).process, ProcessState::Gone, "though its shell is there");
    let mut scene = Scene::new(vec![], pane);
    assert_eq!(names(&scene.look()), [["claude"]]);
    scene.world().end(20);
    assert!(scene.look_after(1).is_empty());
}

#[test]
fn a_name_is_kept_while_the_agent_lives() {
    let mut scene = Scene::with_memory(|world, disk| {
        world.start(10, 1, &["claude"], disk);
        world.start(20, 1, &["claude"], disk);
    });
    scene.look();
    scene.world().end(10);
    scene.look_after(1);
    scene.look_after(61);
    let disk = scene.disk.clone();
    scene.world().start(30, 1, &["claude"], &disk);
    assert_eq!(names(&scene.look()), [["claude-2", "claude"]]);
}

#[test]
fn a_nested_agent_is_measured_by_itself() {
    let mut scene = Scene::new(vec![], |world, disk| {
        world.start(10, 1, &["claude"], disk);
        world.start(11, 10, &["bash", "-c", "codex exec x"], disk);
        world.start(12, 11, &["codex", "exec", "x"], disk);
    });
    scene.look();
    let measured: Vec<u32> = scene.world().measured.iter().map(|id| id.pid).collect();
    assert_eq!(measured, [10, 12]);
}

#[test]
fn the_innermost_terminal_is_named() {
    let variables = |list: &[(&str, &str)]| Ok(list.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect());
    let mut scene = Scene::new(vec![], |world, disk| {
        for pid in [10, 20, 30, 40] {
            world.start(pid, 1, &["claude"], disk);
        }
        world.change(10, |p| p.env = variables(&[("ITERM_SESSION_ID", "w0t1p2:AB-1"), ("TMUX_PANE", "%3")]));
        world.change(20, |p| p.env = variables(&[("ITERM_SESSION_ID", "w0t1p2:AB-1"), ("TMUX_PANE", "")]));
        world.change(30, |p| p.env = Err("permission denied".to_owned()));
        world.processes.get_mut(&30).unwrap().tty_nr = 136 << 8 | 4;
    });
    let seen = scene.look();
    let terminals: Vec<_> = seen[0].agents.iter().map(|agent| agent.terminal.clone()).collect();
    let named = |app, id: &str| Some(Terminal { app: Cow::Borrowed(app), id: id.to_owned() });
    assert_eq!(terminals, [named("tmux", "%3"), named("iterm2", "w0t1p2:AB-1"), named("tty", "/dev/pts/4"), None]);
}

#[test]
fn while_processes_cannot_be_listed_the_last_facts_stay() {
    let mut scene = Scene::new(vec![], |world, disk| {
        world.start(10, 1, &["claude"], disk);
    });
    let good = scene.look();
    scene.world().fails = true;
    let bad = scene.look_after(5);
    assert!(scene.complaint("processes").unwrap().contains("permission denied"));
    assert_eq!((bad[0].now_ms, &bad[0].agents), (good[0].now_ms, &good[0].agents));
    assert!(bad[0].sources[0].error.is_some());
    scene.world().fails = false;
    assert_eq!(scene.look_after(5)[0].now_ms, BEGIN_MS + 10_000);
    assert_eq!(scene.complaint("processes"), None);
}

#[test]
fn that_somebody_has_not_been_read_yet_is_said() {
    let mut scene = Scene::new(vec![], |world, disk| {
        world.start(10, 1, &["claude"], disk);
        world.start(11, 1, &["claude"], disk);
    });
    let read = scene.world().processes[&11].details.clone();
    scene.world().processes.get_mut(&11).unwrap().details = Details::Pending;
    assert_eq!(scene.look()[0].agents.len(), 1);
    assert!(scene.complaint("processes").unwrap().contains("1 of them"));
    scene.world().processes.get_mut(&11).unwrap().details = read;
    assert_eq!(scene.look_after(1)[0].agents.len(), 2);
    assert_eq!(scene.complaint("processes"), None);
}

#[test]
fn a_hostile_folder_name_makes_a_plain_id() {
    let hostile = "a\u{1b}]0;x\u{7}\u{202e}b c";
    let mut scene = Scene::new(vec![], |world, disk| {
        fs::create_dir_all(disk.join(hostile)).unwrap();
        world.start(10, 1, &["claude"], &disk.join(hostile));
    });
    let seen = scene.look();
    assert!(crate::names::SessionId::parse(&seen[0].session.id).is_ok(), "{}", seen[0].session.id);
    assert_eq!(seen[0].session.name, hostile);
}
