//! `headcount status` and `headcount sessions`: what is shown, and how.

use crate::world::{NO_PID, World, agent, ended, stand_in};
use headcount::demo::stand_in::Behaviour;
use headcount::report::Report;
use headcount_tests::schema::faults;
use serde_json::Value;
use std::process::Child;

#[test]
fn a_report_is_what_its_schema_says() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("shop", &[("reviewer", idle.pid()), ("gone", NO_PID)]);
    let (code, report) = world.status("shop", &roster);
    let schema = schemars::schema_for!(Report).to_value();
    assert_eq!(faults(&schema, &report), Vec::<String>::new(), "{report:#}");
    assert_eq!(code, Some(1), "one of two agents is gone");
    assert_eq!(report["schema"], "headcount.report/1");
    assert_eq!((&report["session_id"], &report["agent_count"]), (&"shop".into(), &2.into()));
}

#[test]
fn a_healthy_session_is_shown_in_full() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("shop", &[("reviewer", idle.pid())]);
    let (code, report) = world.status("shop", &roster);
    assert_eq!(code, Some(0), "{report:#}");
    assert_eq!(report["session_health"], "HEALTHY");
    assert_eq!(report["session_score"], 100);
    assert_eq!(report["truncated"], false);
    let agent = agent(&report, "reviewer");
    assert_eq!(agent["process_id"], idle.pid());
    assert_eq!(agent["status"], "ACTIVE");
    let metrics = &agent["metrics"];
    assert_eq!((&metrics["process_count"], &metrics["thread_count"]), (&1.into(), &1.into()), "{metrics:#}");
    assert!(metrics["cpu_percent"].is_number() && metrics["memory_mb"].as_f64().unwrap() > 0.0, "{metrics:#}");
    assert_eq!(report["policies"][0]["outcome"], "verdict");
}

#[test]
fn without_a_session_all_sessions_are_shown() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("shop", &[("reviewer", idle.pid())]);
    let reports = world.run(&["status", "--json", "--roster", roster.to_str().unwrap()]).json();
    assert_eq!(reports["schema"], "headcount.reports/1");
    let ids: Vec<_> = reports["reports"].as_array().unwrap().iter().map(|r| &r["session_id"]).collect();
    assert!(ids.contains(&&"shop".into()), "{ids:?}");
    let sessions = world.run(&["sessions", "--json", "--roster", roster.to_str().unwrap()]).json();
    assert_eq!(sessions["schema"], "headcount.sessions/1");
    let row = sessions["sessions"].as_array().unwrap().iter().find(|s| s["session_id"] == "shop").unwrap();
    assert_eq!((&row["agent_count"], &row["session_health"]), (&1.into(), &"HEALTHY".into()));
}

#[test]
fn an_unknown_session_is_an_error_that_names_those_there_are() {
    let world = World::new();
    let roster = world.roster("shop", &[("gone", NO_PID)]);
    let ran = world.run(&["status", "shpo", "--json", "--roster", roster.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("no session `shpo`") && ran.stderr.contains("shop"), "{}", ran.stderr);
}

#[test]
fn a_name_that_two_sessions_have_is_not_guessed_at() {
    let world = World::new();
    let session = |id| format!("[[session]]\nid = \"{id}\"\nname = \"Shop rewrite\"\n");
    let roster = world.write("roster.toml", session("shop-1") + &session("shop-2"));
    let roster = roster.to_str().unwrap();
    let ran = world.run(&["status", "Shop rewrite", "--roster", roster]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("shop-1, shop-2"), "{}", ran.stderr);
    let report = world.run(&["status", "shop-2", "--json", "--roster", roster]).json();
    assert_eq!(report["session_health"], "EMPTY");
}

#[test]
fn a_session_can_be_asked_for_by_its_name() {
    let world = World::new();
    let roster = world.write("roster.toml", "[[session]]\nid = \"s1\"\nname = \"Shop rewrite\"\n");
    let ran = world.run(&["status", "Shop rewrite", "--json", "--roster", roster.to_str().unwrap()]);
    assert_eq!((ran.code, &ran.json()["session_id"]), (Some(0), &"s1".into()));
}

#[test]
fn wrong_usage_has_an_exit_code_of_its_own() {
    let world = World::new();
    for args in [
        &["status", "--jsno"][..],
        &["stauts"],
        &[],
        &["status", "--only", "sleepy"],
        &["status", "--limit", "many"],
        &["status", "--limit", "0"],
        &["status", "--limit", "5001"],
    ] {
        let ran = world.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(64), ""), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn part_of_a_session_can_be_listed_and_the_totals_are_of_all() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("shop", &[("reviewer", idle.pid()), ("gone", NO_PID)]);
    let ask = |more: &[&str]| {
        let args = ["status", "shop", "--json", "--roster", roster.to_str().unwrap()];
        world.run(&[&args, more].concat()).json()
    };
    for (word, name) in [("failed", "gone"), ("DEAD", "gone"), ("active", "reviewer")] {
        let report = ask(&["--only", word]);
        let names: Vec<_> = report["agents"].as_array().unwrap().iter().map(|a| &a["agent_name"]).collect();
        assert_eq!(names, [name], "{word}");
        assert_eq!((&report["agent_count"], &report["truncated"]), (&2.into(), &false.into()));
        assert_eq!(report["session_metrics"]["failed_agents"], 1);
    }
    let report = ask(&["--limit", "1"]);
    assert_eq!(report["agents"].as_array().unwrap().len(), 1);
    assert_eq!((&report["truncated"], report["next_cursor"].is_string()), (&true.into(), true));
    assert_eq!((&report["agent_count"], &report["session_metrics"]["failed_agents"]), (&2.into(), &1.into()));
}

#[test]
fn colours_are_for_terminals_and_for_those_who_insist() {
    let world = World::new();
    let roster = world.roster("shop", &[("gone", NO_PID)]);
    let show = |variables: &[(&str, &str)]| {
        let mut command = world.command(&["status", "shop", "--roster", roster.to_str().unwrap()]);
        command.envs(variables.iter().copied());
        crate::world::finish(command).stdout
    };
    for plain in [show(&[]), show(&[("NO_COLOR", "1")]), show(&[("TERM", "xterm-256color")])] {
        assert!(plain.contains("gone") && !plain.contains('\u{1b}'), "{plain:?}");
    }
    assert!(show(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
}

#[test]
fn it_says_how_long_each_part_took_where_that_is_asked() {
    let world = World::new();
    let roster = world.roster("shop", &[("gone", NO_PID)]);
    let text = world.run(&["status", "shop", "--timings", "--roster", roster.to_str().unwrap()]).stdout;
    assert!(text.contains("judging shop") && text.contains("µs"), "{text}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("shop", &[("reviewer", idle.pid())]);
    for args in [&["status", "shop", "--roster", roster.to_str().unwrap()][..], &["completions", "bash"]] {
        let mut child: Child = world.command(args).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = child.stderr.take().unwrap();
        assert_eq!(ended(&mut child, crate::world::PATIENCE), Some(0), "{args:?}");
        assert_eq!(std::io::read_to_string(&mut stderr).unwrap(), "", "{args:?}");
    }
}

#[test]
fn a_wrong_roster_is_told_in_place_and_hides_nobody_else() {
    let world = World::new();
    let idle = stand_in(Behaviour::Idle);
    let good = world.roster("shop", &[("reviewer", idle.pid())]);
    let bad = world.write("bad.toml", "[[session]]\nid = \"x\"\n\n[[session.agent]]\nnmae = \"a\"\npid = 1\n");
    let missing = world.path("missing.toml");
    let [good, bad, missing] = [&good, &bad, &missing].map(|path| path.to_str().unwrap());
    let args = ["status", "shop", "--roster", bad, "--roster", good, "--roster", missing];
    let report = world.run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!((&report["partial"], &report["session_health"]), (&true.into(), &"HEALTHY".into()));
    let source = |file: &str| -> &Value {
        let sources = report["sources"].as_array().unwrap();
        sources.iter().find(|s| s["name"] == format!("roster:{file}")).unwrap_or_else(|| panic!("{sources:#?}"))
    };
    let error = source(bad)["error"].as_str().unwrap();
    for part in [bad, ":5", "nmae", "did you mean `name`?"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert_eq!(
        (&source(good)["ok"], &source(bad)["ok"], &source(missing)["ok"]),
        (&true.into(), &false.into(), &false.into())
    );
    let text = world.run(&args).stdout;
    assert!(text.contains("not read: roster:") && text.contains("nmae") && text.contains("reviewer"), "{text}");
}
