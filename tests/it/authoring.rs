//! A policy of one's own, from nothing to a verdict.

use crate::world::{World, finish, stand_in};
use headcount::demo::stand_in::Behaviour;
use std::env;
use std::fs;
use std::path::Path;

/// Builds a project with what the toolchain has and nothing else: an empty home of cargo's, and no network.
fn build(world: &World, project: &str) -> String {
    let cargo = env::var_os("CARGO").unwrap();
    let toolchain = Path::new(&cargo).parent().unwrap();
    let mut command = world.command(&["policy", "build", project]);
    let path = env::join_paths([toolchain, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    command.env("PATH", path).env("CARGO_HOME", world.path("empty")).env("CARGO_NET_OFFLINE", "true");
    let ran = finish(command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.stdout
}

#[test]
fn a_new_project_in_rust_becomes_a_policy_that_judges() {
    let world = World::new();
    let ran = world.run(&["policy", "new", "thrift"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for next in ["headcount policy build thrift ", "headcount policy test thrift "] {
        assert!(ran.stdout.lines().any(|line| line.trim().starts_with(next)), "{}", ran.stdout);
    }
    let said = build(&world, "thrift");
    let size = fs::metadata(world.path("thrift/thrift.wasm")).unwrap().len();
    assert!(said.starts_with(&format!("thrift/thrift.wasm  {size} bytes  sha256 ")), "{said}");

    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("s", &[("it", idle.pid())]);
    let policies = "[[policy]]\npath = \"builtin\"\n\
                    [[policy]]\npath = \"thrift/thrift.wasm\"\nsettings = { memory_gb = 0.0001, tokens_millions = 1 }\n";
    let config = world.write("config.toml", policies);
    let [config, roster] = [&config, &roster].map(|path| path.to_str().unwrap());
    let report = world.run(&["--config", config, "status", "s", "--json", "--roster", roster]).json();
    assert_eq!(report["session_health"], "DEGRADED", "{report:#}");
    assert_eq!(report["policies"][1]["name"], "thrift");
    let checks: Vec<_> = report["session_checks"].as_array().unwrap().iter().collect();
    let found: Vec<_> = checks.iter().map(|check| (check["name"].as_str().unwrap(), &check["outcome"])).collect();
    assert_eq!(found, [("memory-budget", &"fail".into()), ("token-budget", &"unknown".into())], "{report:#}");
    assert!(checks[0]["value"].as_f64().unwrap() > 100_000.0, "{report:#}");
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let world = World::new();
    world.run(&["policy", "new", "thrift", "--dir", "policies"]);
    let again = world.run(&["policy", "new", "thrift", "--dir", "policies"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("policies/thrift is there already"), "{}", again.stderr);
    assert_eq!(world.run(&["policy", "new", "Thrift"]).code, Some(2));
    assert_eq!(world.run(&["policy", "new", "thrift", "--lang", "cobol"]).code, Some(64));
    // Nothing is installed where there is no PATH.
    let ran = world.run(&["policy", "build", "policies/thrift"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("`cargo`, which is not installed") && ran.stderr.contains("rustup target add"),
        "{ran:?}"
    );
}

#[test]
fn each_language_says_which_tool_it_lacks_and_how_to_get_it() {
    let world = World::new();
    for (language, tool, install) in [
        ("python", ".venv/bin/componentize-py", ".venv/bin/pip install -r requirements.txt"),
        ("js", "node_modules/.bin/componentize-qjs", "npm install"),
        ("c", "clang", "apt-get install clang lld"),
    ] {
        assert_eq!(world.run(&["policy", "new", language, "--lang", language]).code, Some(0));
        let mut command = world.command(&["policy", "build", language]);
        command.env("PATH", world.path("nothing"));
        let ran = finish(command);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains(&format!("`{tool}`, which is not installed")), "{}", ran.stderr);
        assert!(ran.stderr.trim_end().ends_with(install), "{}", ran.stderr);
    }
}
