//! How the layers are found, laid over each other and checked together.

use super::super::*;
use std::fs;
use std::path::Path;

/// Loads the file `text` in a folder of its own, with an environment that holds only what is given.
pub(super) fn load_text(text: &str, variables: &[(&str, &str)], flags: &[Flag]) -> Result<Loaded, LoadError> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    fs::write(&file, text).unwrap();
    load(&variables.iter().copied().collect(), Some(&file), flags)
}

fn flag(name: &str, key: &str, value: &str) -> Flag {
    Flag { name: name.into(), key: key.into(), value: value.into() }
}

#[test]
fn each_layer_wins_over_those_before_it() {
    let text = "[sampling]\ntick = \"300ms\"\nidle_tick = \"3s\"\nwindow = \"3m\"\n";
    let variables = [
        ("HEADCOUNT_SAMPLING_IDLE_TICK", "4s"),
        ("HEADCOUNT_SAMPLING_WINDOW", "4m"),
        ("HEADCOUNT_SAMPLING_QUIET_CPU_PERCENT", "4"),
        ("HEADCOUNT_AUDIT_ENABLED", "false"),
        ("HEADCOUNT_AUDIT_KEEP", ""),
        ("HEADCOUNT_SESSIONS_WORKTREES", "apart"),
        ("HEADCOUNT_AGENT", "a"),
        ("HEADCOUNT_SOMETHING_ELSE", "of another program"),
    ];
    let loaded = load_text(text, &variables, &[flag("--window", "sampling.window", "5m")]).unwrap();
    let sampling = Sampling {
        tick: Span::from_millis(300),
        idle_tick: Span::from_millis(4_000),
        window: Span::from_millis(300_000),
        quiet_cpu_percent: 4.0,
        ..Sampling::default()
    };
    let sessions = Sessions { worktrees: Worktrees::Apart };
    let audit = Audit { enabled: false, ..Audit::default() };
    assert_eq!(loaded.config, Config { sampling, sessions, audit, ..Config::default() });
    let of = |key| loaded.origins.of(key);
    assert!(matches!(of("sampling.tick"), Origin::File { line: 2, column: 1, .. }));
    assert_eq!(of("sampling.idle_tick"), Origin::Variable("HEADCOUNT_SAMPLING_IDLE_TICK".into()));
    assert_eq!(of("sampling.window"), Origin::Flag("--window".into()));
    assert_eq!(of("sampling.keep_ended"), Origin::Default);
}

#[test]
fn every_layer_is_checked_in_one_go() {
    let variables = [
        ("HEADCOUNT_AUDIT_ENABLED", "yes"),
        ("HEADCOUNT_AUDIT_KEEEP", "3"),
        ("HEADCOUNT_AUDIT_FOLDER", "x"),
        ("HEADCOUNT_ROSTERS", "a"),
        ("HEADCOUNT_SAMPLING_TICK", "1h"),
    ];
    let flags =
        [flag("--a", "sampling.tikc", "1s"), flag("--b", "audit.keep", "0"), flag("--c", "sampling.window", "20m")];
    let error = load_text("sessions = 3\n", &variables, &flags).unwrap_err().to_string();
    let dir = error.lines().last().unwrap().split("config.toml").next().unwrap();
    let expected = "\
HEADCOUNT_AUDIT_FOLDER: sets nothing; known are HEADCOUNT_AUDIT_ENABLED, HEADCOUNT_AUDIT_KEEP, HEADCOUNT_AUDIT_MAX_BYTES
HEADCOUNT_AUDIT_KEEEP: sets nothing; did you mean HEADCOUNT_AUDIT_KEEP?
HEADCOUNT_ROSTERS: lists are set in the configuration file, not by a variable
--a: sampling.tikc: unknown key; did you mean `sampling.tick`?
HEADCOUNT_AUDIT_ENABLED: audit.enabled: wanted true or false, found \"yes\"
--b: audit.keep: wanted at least 1, found 0
HEADCOUNT_SAMPLING_TICK: sampling.idle_tick: wanted at least `tick` (1h), found 10s
--c: sampling.window: wanted at least `tick` (1h), found 20m
config.toml:1:1: sessions: wanted a table, found 3";
    assert_eq!(error.replace(dir, ""), expected);
}

#[test]
fn only_the_default_file_may_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    let environment =
        |more: Option<(&str, &str)>| -> Environment { [("HOME", home)].into_iter().chain(more).collect() };
    let nowhere = dir.path().join("nowhere.toml");
    assert_eq!(load(&environment(None), None, &[]).unwrap().file, None);
    assert_eq!(load(&Environment::default(), None, &[]).unwrap().config, Config::default());
    let error = load(&environment(None), Some(&nowhere), &[]).unwrap_err().to_string();
    assert!(error.contains("nowhere.toml (named by --config)"), "{error}");
    let named = environment(Some(("HEADCOUNT_CONFIG", nowhere.to_str().unwrap())));
    let error = load(&named, None, &[]).unwrap_err().to_string();
    assert!(error.contains("nowhere.toml (named by HEADCOUNT_CONFIG)"), "{error}");

    let config = dir.path().join(".config/headcount");
    fs::create_dir_all(&config).unwrap();
    let file = config.join("config.toml");
    fs::write(
        &file,
        "rosters = ['a.toml', '~/b.toml', '/c.toml']\n[[policy]]\npath = 'builtin'\n[[policy]]\npath = 'p.wasm'\n\
         [[retained]]\ndir = '~/kept'\n[[retained]]\nscan = 'kept'",
    )
    .unwrap();
    let loaded = load(&environment(None), None, &[]).unwrap();
    assert_eq!(loaded.file.as_ref(), Some(&file));
    let rosters = [config.join("a.toml"), dir.path().join("b.toml"), "/c.toml".into()];
    assert_eq!(loaded.config.rosters, rosters);
    let retained: Vec<_> = loaded.config.retained.iter().filter_map(|one| one.folder()).collect();
    assert_eq!(retained, [dir.path().join("kept"), config.join("kept")]);
    let policies: Vec<_> = loaded.config.policies.into_iter().map(|policy| policy.path).collect();
    assert_eq!(policies, ["builtin".into(), config.join("p.wasm")]);

    fs::write(&file, b"\xff").unwrap();
    assert!(matches!(load(&environment(None), None, &[]), Err(LoadError::Unreadable { .. })));
}

#[test]
fn of_a_file_that_is_garbage_the_first_problems_are_told() {
    let told = |text: &str| load_text(text, &[], &[]).unwrap_err().to_string();
    let no_toml = told(&"rror =".repeat(10_000));
    assert!(no_toml.contains(": not TOML: ") && no_toml.len() < 8000, "{} bytes are told", no_toml.len());
    let wrong_keys = told(&(0..1000).map(|n| format!("key{n} = 1\n")).collect::<String>());
    assert!(wrong_keys.ends_with("\nand 980 more"), "{wrong_keys}");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_no_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("config.toml");
    crate::files::make_pipe(&pipe);
    for special in [pipe.as_path(), Path::new("/dev/zero"), dir.path()] {
        let error = load(&Environment::default(), Some(special), &[]).unwrap_err().to_string();
        assert!(error.contains(&*special.to_string_lossy()) && error.ends_with("is not a regular file"), "{error}");
    }
    let error = load_text(&"#".repeat((1 << 20) + 1), &[], &[]).unwrap_err().to_string();
    assert!(error.ends_with("is larger than 1 MiB"), "{error}");
    let homeless = [("HOME", "/dev/null")].into_iter().collect();
    assert_eq!(load(&homeless, None, &[]).unwrap().file, None);
}

#[test]
fn directories_follow_the_variables_that_are_set() {
    let dirs = |variables: &[(&str, &str)]| Dirs::of(&variables.iter().copied().collect());
    let home = dirs(&[("HOME", "/h"), ("XDG_CACHE_HOME", "not/absolute")]).unwrap();
    assert_eq!(home.state, Path::new("/h/.local/state/headcount"));
    assert_eq!(home.cache, Path::new("/h/.cache/headcount"));
    assert_eq!(home.config, Path::new("/h/.config/headcount"));
    let xdg = dirs(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("HEADCOUNT_CACHE_DIR", "/c")]).unwrap();
    assert_eq!((xdg.state.as_path(), xdg.cache.as_path()), (Path::new("/s/headcount"), Path::new("/c")));
    let error = dirs(&[("HOME", "")]).unwrap_err().to_string();
    assert_eq!(error, "no place for headcount's state: set HEADCOUNT_STATE_DIR or HOME");
}

#[cfg(unix)]
#[test]
fn a_new_directory_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("a/b");
    make_private(&state).unwrap();
    make_private(&state).unwrap();
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_client_has_an_id_that_clients_have() {
    let said = |client: &str, more: &str| {
        let text = format!("{more}\n[[access]]\nclient = {client:?}\nsees = [\"bob\"]\n");
        load_text(&text, &[], &[]).map(drop).map_err(|error| error.to_string())
    };
    for good in ["hci_0123ab", "https://app.example/client.json"] {
        assert_eq!(said(good, ""), Ok(()), "{good}");
    }
    for bad in ["hci_", "hci_xyz", "desk", "grt_01", "http://app.example/client.json"] {
        let told = said(bad, "").unwrap_err();
        assert!(told.contains("access[0].client: wanted the id of a client") && told.contains(bad), "{told}");
    }
    let issuer = "[[auth.issuer]]\nissuer = \"https://id.example\"\naudience = [\"a\"]\nusers = { a = \"bob\" }";
    assert_eq!(said("desk", issuer), Ok(()), "other authorization servers call theirs as they like");
}
