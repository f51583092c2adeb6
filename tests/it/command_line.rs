//! The commands beside `status`: help, completions, configuration, doctor.

use crate::world::World;
use serde_json::Value;

#[test]
fn help_tells_the_exit_codes() {
    let world = World::new();
    for args in [&["--help"][..], &["-h"], &["help"]] {
        let ran = world.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.stdout.contains("Exit codes: 0") && ran.stdout.contains("64"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("\n  stand-in"), "what is only for tests is hidden");
    }
    let version = world.run(&["--version"]);
    assert_eq!(version.stdout, format!("headcount {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn shells_complete_every_command() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = world.run(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["status", "doctor", "unregister", "roster"] {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(world.run(&["completions", "tcsh"]).code, Some(64));
}

#[test]
fn what_the_program_starts_itself_as_is_neither_completed_nor_suggested() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.run(&["completions", shell]).stdout;
        for word in ["compile-policy", "anchor", "Becomes an agent for", "Keeps an agent for"] {
            assert!(!script.contains(word), "{shell}: {word}");
        }
    }
    for mistyped in ["stag", "kep", "ancor", "stand"] {
        let ran = world.run(&[mistyped]);
        assert_eq!(ran.code, Some(64), "{mistyped}");
        for word in ["'stage'", "'keep'", "'anchor'", "'stand-in'"] {
            assert!(!ran.stderr.contains(word), "{}", ran.stderr);
        }
    }
    let ran = world.run(&["wait", "s", "--timeout", "5"]);
    assert_eq!(ran.code, Some(64));
    assert!(ran.stderr.contains("5 has no unit; write 5s or 5m"), "{}", ran.stderr);
}

#[test]
fn a_sound_configuration_is_called_so() {
    let world = World::new();
    assert_eq!(world.run(&["config", "check"]).code, Some(0), "none at all is sound");
    let file = world.write(".config/headcount/config.toml", "[sampling]\ntick = \"500ms\"\n");
    let ran = world.run(&["config", "check"]);
    let said = format!("{} is sound, and so are the policies and rosters that it names\n", file.display());
    assert_eq!((ran.code, ran.stdout), (Some(0), said));
}

#[test]
fn users_that_this_machine_does_not_know_are_warned_of() {
    let world = World::new();
    let text = "[[auth.issuer]]\nissuer = \"https://id.example\"\naudience = [\"a\"]\n\
                users = { a = \"no-such-1\", b = \"root\" }\n\
                [[access]]\nuser = \"no-such-1\"\nsees = [\"root\", \"no-such-2\"]\n[[access]]\nuser = \"root\"\nsees = [\"*\"]\n";
    world.write(".config/headcount/config.toml", text);
    let ran = world.run(&["config", "check"]);
    assert_eq!((ran.code, ran.stderr.matches("warning: ").count()), (Some(0), 2), "{ran:#?}");
    for part in ["auth.issuer[0].users: this machine knows no user \"no-such-1\"", "config.toml:7: access[0].sees: "] {
        assert!(ran.stderr.contains(part), "{part}: {ran:#?}");
    }
    let told = world.run(&["config", "check", "--json"]).json();
    assert_eq!((told["ok"].as_bool(), told["warnings"].as_array().map(Vec::len)), (Some(true), Some(2)), "{told:#}");
}

#[test]
fn policies_and_rosters_that_a_configuration_names_are_checked_too() {
    let world = World::new();
    let text = "rosters = [\"nowhere.toml\"]\n[[policy]]\npath = \"builtin\"\nsettings = { idle_afer = \"2m\" }\n\
                [[policy]]\npath = \"nowhere.wasm\"\n";
    let file = world.write("c.toml", text);
    let ran = world.run(&["--config", file.to_str().unwrap(), "config", "check"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    for part in ["c.toml:1", "nowhere.toml", "c.toml:2", "did you mean `idle_after`?", "c.toml:5", "nowhere.wasm"] {
        assert!(ran.stderr.contains(part), "{part} in {}", ran.stderr);
    }
    let ran = world.run(&["--config", file.to_str().unwrap(), "config", "check", "--json"]);
    assert_eq!(
        (ran.code, ran.json()["ok"].as_bool(), ran.json()["problems"].as_array().map(Vec::len)),
        (Some(2), Some(false), Some(3))
    );
}

#[test]
fn a_wrong_configuration_is_told_with_its_place() {
    let world = World::new();
    let file = world.write("c.toml", "[sampling]\ntikc = \"500ms\"\nwindow = \"1 parsec\"\n");
    for command in [&["config", "check"][..], &["status"], &["doctor"], &["serve"]] {
        let ran = world.run(&[&["--config", file.to_str().unwrap()], command].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command:?}");
        for part in ["c.toml:2", "did you mean `tick`?", "c.toml:3"] {
            assert!(ran.stderr.contains(part), "{command:?}: {part} in {}", ran.stderr);
        }
    }
    let ran = world.run(&["--config", "nowhere.toml", "status"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("nowhere.toml") && ran.stderr.contains("--config"), "{}", ran.stderr);
}

#[test]
fn the_configuration_in_effect_says_where_each_value_is_from() {
    let world = World::new();
    world.write(".config/headcount/config.toml", "[sampling]\ntick = \"500ms\"\n");
    let mut command = world.command(&["config", "print", "--origin"]);
    command.env("HEADCOUNT_AUDIT_KEEP", "7");
    let printed = crate::world::finish(command).stdout;
    let line =
        |start: &str| printed.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{printed}"));
    assert!(line("tick = \"500ms\"").contains("config.toml:2"), "{printed}");
    assert!(line("keep = 7").contains("HEADCOUNT_AUDIT_KEEP"), "{printed}");
    assert!(line("window = ").contains("default"), "{printed}");
    let again = world.write("again.toml", &printed);
    let ran = world.run(&["--config", again.to_str().unwrap(), "config", "print"]);
    let values = |text: &str| text.lines().map(|l| l.split("  #").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(values(&ran.stdout), values(&printed), "what is printed can be read again");
}

#[test]
fn the_doctor_looks_at_every_part() {
    let world = World::new();
    let ran = world.run(&["doctor", "--json"]);
    let findings = ran.json();
    assert_eq!(findings["schema"], "headcount.doctor/1");
    let findings = findings["findings"].as_array().unwrap();
    for part in ["configuration", "processes", "agents", "policies", "state"] {
        assert!(findings.iter().any(|f| f["part"] == part), "{part}");
    }
    let all_well = findings.iter().all(|f| f["works"] == true);
    assert_eq!(ran.code, Some(i32::from(!all_well)));
    world.write("state", "a file where a folder should be");
    let mut command = world.command(&["doctor", "--json"]);
    command.env("HEADCOUNT_STATE_DIR", world.path("state/headcount"));
    let sick = crate::world::finish(command);
    let broken = |f: &Value| f["part"] == "state" && f["works"] == false;
    assert_eq!(sick.code, Some(1));
    assert!(sick.json()["findings"].as_array().unwrap().iter().any(broken), "{}", sick.stdout);
}

#[test]
fn the_doctor_says_what_is_read_and_which_agents_could_tell() {
    let world = World::new();
    let hooks = || {
        let findings = world.run(&["doctor", "--json"]).json()["findings"].as_array().unwrap().clone();
        let of = |part: &str, name: &str| {
            let found = findings.iter().find(|found| found["part"] == part && found["name"] == name);
            found.map(|found| found["detail"].as_str().unwrap().to_owned())
        };
        let read = of("agents", "what is read").unwrap();
        for part in
            ["activity and work of aider, claude", "goose", "MCP servers of ", "events, where hooks are installed, of "]
        {
            assert!(read.contains(part), "{part} in {read}");
        }
        of("hooks", "cursor")
    };
    std::fs::create_dir(world.path(".cursor")).unwrap();
    assert!(hooks().unwrap().starts_with("not installed; `headcount hook install cursor`"));
    assert_eq!(world.run(&["hook", "install", "cursor"]).code, Some(0));
    assert_eq!(hooks().as_deref(), Some("installed"));
}
