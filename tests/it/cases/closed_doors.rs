//! What this user may not look at.

use crate::world::{HEADCOUNT, World, agent, finish};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// In namespaces of its own, mounts a procfs that hides other users' processes, starts one, declares it, and asks as
/// another user what it does. The first argument is the roster, the second the executable.
const SCRIPT: &str = r#"
mount -t proc -o hidepid=2 proc /proc || exit 77
sleep 1000 &
start=$(sed 's/.*) //' "/proc/$!/stat" | cut -d ' ' -f 20)
printf '[[session]]\nid = "s"\n[[session.agent]]\nname = "it"\npid = %s\nstart = %s\n' "$!" "$start" > "$1"
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$2" status s --json --roster "$1"
"#;

/// Without the right to make namespaces nothing can be hidden; a made-up procfs does so everywhere, in the sampler's tests.
fn may_hide() -> bool {
    let tried = Command::new("unshare")
        .args(["-mpf", "setpriv", "--reuid", "65534", "--clear-groups", HEADCOUNT, "--version"])
        .output();
    tried.is_ok_and(|ran| ran.status.success())
}

#[test]
fn case_19_what_the_system_hides_is_neither_dead_nor_zero() {
    if !may_hide() {
        return;
    }
    let world = World::new();
    fs::set_permissions(world.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let roster = world.write("roster.toml", "");
    let mut command = world.command(&[]);
    let environment: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.unwrap().to_owned())).collect();
    command = Command::new("unshare");
    command.args(["-mpf", "--kill-child", "sh", "-c", SCRIPT, "sh"]).arg(&roster).arg(HEADCOUNT);
    command.env_clear().envs(environment).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let ran = finish(command);
    let report = ran.json();
    let it = agent(&report, "it");
    assert_eq!(
        (ran.code, &it["status"], &it["activity"]["state"]),
        (Some(1), &"UNKNOWN".into(), &"unknown".into()),
        "{it:#}"
    );
    let metrics = &it["metrics"];
    for figure in ["cpu_percent", "memory_mb", "file_descriptors", "thread_count", "process_count", "read_mb"] {
        assert_eq!(metrics[figure], Value::Null, "{figure}: {it:#}");
    }
    let why = metrics["unmeasured"]["process"].as_str().unwrap();
    assert!(why.ends_with("may not be seen by this user"), "{it:#}");
    assert_eq!(report["session_metrics"]["unmeasured_agents"], 1, "{report:#}");
    assert_eq!(report["session_health"], "UNKNOWN");
}
