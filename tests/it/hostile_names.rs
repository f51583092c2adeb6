//! Text that comes from agents cannot disturb a terminal, a table or a client.

use crate::world::{HEADCOUNT, World, until};
use headcount::demo::stand_in::{Behaviour, StandIn};
use serde_json::json;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use unicode_width::UnicodeWidthStr as _;

/// Clears the screen, sets the title, turns the reading order, joins two emoji, breaks the line.
const HOSTILE: &str = "evil\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}gpj\u{9b}31m 👩\u{200d}🔧\nsecond\tline";

/// Whether a text holds anything that acts on a terminal, besides the ends of its lines.
fn acts(text: &str) -> bool {
    let bidi = |c| ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c);
    text.chars().any(|c| (c.is_control() && c != '\n') || bidi(c))
}

/// A process with a hostile command line in a hostile folder, which is found by itself.
fn hostile_process(world: &World) -> StandIn {
    let folder = world.path(HOSTILE);
    headcount_tests::repository(&folder);
    let adjust = |command: &mut std::process::Command| {
        command.arg0("claude").env("HOSTILE", HOSTILE).current_dir(&folder);
    };
    let it = StandIn::start_with(Path::new(HEADCOUNT), Behaviour::Idle, adjust).unwrap();
    until("it runs", || fs::read(format!("/proc/{}/cmdline", it.pid())).is_ok_and(|l| l.starts_with(b"claude\0")));
    it
}

#[test]
fn a_hostile_folder_is_shown_without_what_acts() {
    let world = World::new();
    let it = hostile_process(&world);
    for args in [&["status"][..], &["sessions"], &["status", "--json"], &["sessions", "--json"], &["doctor"]] {
        let ran = world.run(args);
        assert!(!acts(&ran.stdout), "{args:?}: {:?}", ran.stdout);
    }
    let reports = world.run(&["status", "--json"]).json();
    let all = reports["reports"].as_array().unwrap();
    let mine = all.iter().find(|r| r["agents"].as_array().unwrap().iter().any(|a| a["process_id"] == it.pid()));
    let mine = mine.unwrap_or_else(|| panic!("{reports:#}"));
    assert_eq!(mine["session_name"], "evilgpj 👩\u{200d}🔧 second line");
}

#[test]
fn hostile_rosters_are_refused_or_shown_without_what_acts() {
    let world = World::new();
    let quoted = json!(HOSTILE).to_string().replace('\u{9b}', "\\u009b");
    let in_name =
        world.write("name.toml", format!("[[session]]\nid = \"a\"\n[[session.agent]]\nname = {quoted}\npid = 1\n"));
    let in_text = world.write(
        "text.toml",
        format!(
            "[[session]]\nid = \"b\"\nname = {quoted}\n[[session.agent]]\nname = \"日本 👩\u{200d}🔧\u{202e}x\"\n\
             specialization = {quoted}\nmatch = \"no such process {}\"\n",
            std::process::id()
        ),
    );
    let rosters = ["--roster", in_name.to_str().unwrap(), "--roster", in_text.to_str().unwrap()];
    for args in [&["status", "b", "--json"][..], &["status", "b"], &["sessions"]] {
        let ran = world.run(&[args, &rosters].concat());
        assert!(!ran.stdout.is_empty() && !acts(&ran.stdout), "{args:?}: {:?} {}", ran.stdout, ran.stderr);
    }
    let report = world.run(&[&["status", "b", "--json"][..], &rosters].concat()).json();
    assert_eq!(report["agents"][0]["agent_name"], "日本 👩\u{200d}🔧x");
    let refused = report["sources"].as_array().unwrap().iter().find(|s| s["ok"] == false).unwrap();
    assert!(refused["error"].as_str().unwrap().contains("control character"), "{refused:#}");
}

#[test]
fn columns_stay_aligned_whatever_the_names_are() {
    let world = World::new();
    let names = ["plain", "日本語の名前", "👩\u{200d}🔧 mechanic", "e\u{301}tude"];
    let agents: String = names
        .iter()
        .map(|name| format!("[[session.agent]]\nname = \"{name}\"\npid = {}\n", crate::world::NO_PID))
        .collect();
    let roster = world.write("roster.toml", format!("[[session]]\nid = \"s\"\n{agents}"));
    let text = world.run(&["status", "s", "--roster", roster.to_str().unwrap()]).stdout;
    let columns: Vec<usize> = text
        .lines()
        .filter(|line| line.starts_with(" ●") || line.starts_with('●'))
        .map(|line| line[..line.find("FAILED").unwrap()].width())
        .collect();
    assert_eq!(columns.len(), names.len(), "{text}");
    assert!(columns.iter().all(|column| *column == columns[0]), "{columns:?}\n{text}");
}

#[test]
fn a_hostile_word_on_the_command_line_is_not_echoed_raw() {
    let world = World::new();
    for args in [&["status", HOSTILE][..], &["status", "evil\u{202e}gpj"]] {
        let ran = world.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(!ran.stderr.is_empty() && !acts(&ran.stderr), "{args:?}: {:?}", ran.stderr);
    }
}
