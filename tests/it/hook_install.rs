//! `headcount hook install` and `uninstall`: what changes in an agent's settings, and what does not.

use crate::world::{HEADCOUNT, World};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A file's bytes and mode.
fn file(path: &Path) -> (Vec<u8>, u32) {
    use std::os::unix::fs::PermissionsExt as _;
    (fs::read(path).unwrap(), fs::metadata(path).unwrap().permissions().mode() & 0o777)
}

#[test]
fn hooks_are_installed_once_and_uninstalled_without_a_trace() {
    let world = World::new();
    let text = "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [ { \"hooks\": [ {\"type\":\"command\",\"command\":\"say done\"} ] } ]\n    },\n    \"x\": 1.50\n}";
    for (kind, name, text) in [
        ("claude", ".claude/settings.json", text),
        ("codex", ".codex/hooks.json", "{}"),
        ("gemini", ".gemini/settings.json", "{\"theme\":\"é\"}\n"),
        (
            "cursor",
            ".cursor/hooks.json",
            "{\n\t\"version\": 1,\n\t\"hooks\": {\n\t\t\"stop\": [{ \"command\": \"./x\" }]\n\t}\n}\n",
        ),
    ] {
        let path = world.write(name, text);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        let before = file(&path);
        let shown = world.run(&["hook", "install", kind, "--dry-run"]);
        assert_eq!((shown.code, file(&path) == before), (Some(0), true), "{}", shown.stderr);
        let done = world.run(&["hook", "install", kind]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert!(
            done.stdout.contains(&format!("{HEADCOUNT} hook {kind}")) && done.stdout.contains("@@"),
            "{}",
            done.stdout
        );
        assert!(done.stdout.contains("+") && shown.stdout.starts_with("--- "), "{}", shown.stdout);
        let (with, mode) = file(&path);
        let settings: Value = serde_json::from_slice(&with).unwrap();
        assert_eq!((mode, settings["hooks"].as_object().unwrap().len() >= 6), (0o640, true));
        let again = world.run(&["hook", "install", kind]);
        assert!(again.stdout.contains("is installed already") && file(&path).0 == with, "{}", again.stdout);
        assert_eq!(world.run(&["hook", "uninstall", kind]).code, Some(0));
        assert_eq!(file(&path), before, "{kind}");
        assert!(world.run(&["hook", "uninstall", kind]).stdout.contains("is not installed"));
    }
}

#[test]
fn what_install_made_is_gone_after_uninstall() {
    let world = World::new();
    for (kind, name) in [
        ("claude", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
        ("cursor", ".cursor/hooks.json"),
        ("opencode", ".config/opencode/plugins/headcount.js"),
    ] {
        for project in [&[][..], &["--project"]] {
            let name = match (kind, project) {
                ("claude", ["--project"]) => ".claude/settings.local.json",
                ("opencode", ["--project"]) => ".opencode/plugins/headcount.js",
                _ => name,
            };
            let ran = |what: &str| world.run(&[&["hook", what, kind], project].concat());
            let done = ran("install");
            assert_eq!(done.code, Some(0), "{}", done.stderr);
            let text = fs::read_to_string(world.path(name)).unwrap();
            assert!(
                text.contains(HEADCOUNT) && text.ends_with('\n') && !text.trim_end_matches(' ').ends_with("\n\n"),
                "{text}"
            );
            assert!(text.lines().all(|line| !line.trim().is_empty() || kind == "opencode"), "{text:?}");
            assert!(ran("install").stdout.contains("is installed already"));
            assert_eq!(ran("uninstall").code, Some(0));
            let top = Path::new(name).components().next().unwrap();
            assert!(!world.path("").join(top).exists(), "{name} and the folders that were made for it");
        }
    }
}

#[test]
fn folders_that_were_there_or_that_somebody_uses_stay() {
    let world = World::new();
    fs::create_dir_all(world.path(".config/opencode")).unwrap();
    for kind in ["opencode", "claude"] {
        assert_eq!(world.run(&["hook", "install", kind]).code, Some(0));
        // Once more, by another name of the program, changes nothing of that.
        assert_eq!(world.run(&["hook", "install", kind]).code, Some(0));
    }
    world.write(".claude/mine", "");
    for kind in ["opencode", "claude"] {
        assert_eq!(world.run(&["hook", "uninstall", kind]).code, Some(0));
    }
    let there = |name: &str| world.path(name).exists();
    assert!(there(".config/opencode") && !there(".config/opencode/plugins"));
    assert!(there(".claude/mine") && !there(".claude/settings.json"));
}

#[test]
fn what_is_added_to_settings_of_one_line_is_shown_whole() {
    let world = World::new();
    let filling = "x".repeat(1000);
    world.write(".claude/settings.json", json!({"env": {"A": filling}}).to_string());
    let shown = world.run(&["hook", "install", "claude", "--dry-run"]).stdout;
    let all = "adds headcount to 10 events: SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, \
               PostToolUseFailure, Notification, Stop, StopFailure, SessionEnd\n";
    assert!(shown.contains(all), "{shown}");
    world.write(
        ".claude/settings.json",
        json!({"hooks": {"Stop": [{"hooks": [{"command": format!("{HEADCOUNT} hook claude")}]}]}}).to_string(),
    );
    let shown = world.run(&["hook", "install", "claude", "--dry-run"]).stdout;
    assert!(shown.contains("adds headcount to 9 events: ") && !shown.contains("Stop, StopFailure"), "{shown}");
}

#[test]
fn a_file_keeps_its_owner_and_one_that_may_not_be_written_stays_as_it_is() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
    let world = World::new();
    let path = world.write(".claude/settings.json", "{}\n");
    // Only root may give a file away.
    if nix::unistd::geteuid().is_root() {
        chown(&path, Some(1234), Some(1235)).unwrap();
    }
    let owner = |path: &Path| fs::metadata(path).map(|found| (found.uid(), found.gid(), found.mode())).unwrap();
    let before = owner(&path);
    let done = world.run(&["hook", "install", "claude"]);
    assert!(done.code == Some(0) && fs::read_to_string(&path).unwrap().contains("hook claude"), "{done:?}");
    assert_eq!(owner(&path), before);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let with = file(&path);
    let refused = world.run(&["hook", "uninstall", "claude"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("it may not be written"), "{refused:?}");
    assert_eq!(file(&path), with);
    assert!(world.run(&["hook", "install", "claude"]).stdout.contains("is installed already"));
}

#[test]
fn a_file_that_was_there_is_never_deleted() {
    let world = World::new();
    for (kind, name, text) in [
        ("claude", ".claude/settings.json", "{}\n"),
        ("claude", ".claude/settings.json", "{\"hooks\": {}}\n"),
        ("gemini", ".gemini/settings.json", "{\n  \"hooks\": {\n    \"SessionStart\": []\n  }\n}\n"),
        ("cursor", ".cursor/hooks.json", "{\n  \"version\": 1\n}\n"),
        ("cursor", ".cursor/hooks.json", "{\"version\": 1}"),
    ] {
        let path = world.write(name, text);
        assert_eq!(world.run(&["hook", "install", kind]).code, Some(0));
        assert_ne!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(world.run(&["hook", "uninstall", kind]).code, Some(0));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_link_stays_a_link_and_its_file_is_changed() {
    let world = World::new();
    let target = world.write("dotfiles/claude.json", "{}\n");
    let link = world.path(".claude/settings.json");
    fs::create_dir(world.path(".claude")).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let done = world.run(&["hook", "install", "claude"]);
    assert!(done.stdout.contains("a link to") && done.stdout.contains("dotfiles/claude.json"), "{done:?}");
    assert!(link.is_symlink() && fs::read_to_string(&target).unwrap().contains("hook claude"));
    world.run(&["hook", "uninstall", "claude"]);
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), "{}\n");
    fs::remove_file(&target).unwrap();
    let dangling = world.run(&["hook", "install", "claude"]);
    assert!(
        dangling.code == Some(2) && dangling.stderr.contains("is a link to a file that is not there"),
        "{dangling:?}"
    );
}

#[test]
fn what_cannot_be_changed_safely_is_left_as_it_is_with_a_sentence() {
    let world = World::new();
    for (kind, name, text, said) in [
        ("claude", ".claude/settings.json", "{ // mine\n}", "is no JSON"),
        ("gemini", ".gemini/settings.json", "[]", "no JSON object"),
        ("codex", ".codex/hooks.json", "{\"hooks\": []}", "no list of hooks"),
        ("cursor", ".cursor/hooks.json", "{\"hooks\": {}, \"hooks\": {}}", "stands twice"),
        ("opencode", ".config/opencode/plugins/headcount.js", "// mine", "not written by headcount"),
    ] {
        let path = world.write(name, text);
        let ran = world.run(&["hook", "install", kind]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(said) && ran.stderr.contains(name), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let unknown = world.run(&["hook", "install", "aider"]);
    assert!(unknown.code == Some(64) && unknown.stderr.contains("claude"), "{unknown:?}");
}
