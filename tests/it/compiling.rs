//! What is not trusted is compiled in a process of its own, within limits.

use crate::world::{Ran, World, stand_in};
use headcount::demo::stand_in::Behaviour;
use headcount_tests::misbehaving::{ALIASED_TEXT, COMPILE_BOMB, HONEST};
use std::fs;

/// A look at one session that is judged by a policy of these bytes; what is logged stands on stderr.
fn judged_by(world: &World, policy: &[u8]) -> Ran {
    let idle = stand_in(Behaviour::Idle);
    let roster = world.roster("s", &[("it", idle.pid())]);
    world.write("policy.wasm", policy);
    let config = world.write("config.toml", "[[policy]]\npath = \"policy.wasm\"\n");
    let [config, roster] = [&config, &roster].map(|path| path.to_str().unwrap());
    let mut command = world.command(&["--config", config, "status", "s", "--json", "--roster", roster]);
    command.env("RUST_LOG", "headcount=warn");
    crate::world::finish(command)
}

fn fared(ran: &Ran) -> (String, String) {
    let policy = &ran.json()["policies"][1];
    let text = |key: &str| policy[key].as_str().unwrap_or_default().to_owned();
    (text("outcome"), text("detail"))
}

#[test]
fn a_policy_that_takes_too_much_to_compile_is_refused_and_the_others_judge() {
    let ran = judged_by(&World::new(), COMPILE_BOMB);
    let (outcome, detail) = fared(&ran);
    assert_eq!((outcome.as_str(), ran.json()["policies"][0]["outcome"].as_str()), ("compile", Some("verdict")));
    assert!(detail.starts_with("compiling it took more than the "), "{detail}");
    assert_eq!(ran.code, Some(0));
}

#[test]
fn padding_buys_no_time() {
    // A custom section of 16 MiB, which no compiler looks at.
    let padded = [COMPILE_BOMB, &[0, 0x80, 0x80, 0x80, 0x08], &vec![0; 16 << 20]].concat();
    let (outcome, detail) = fared(&judged_by(&World::new(), &padded));
    let (_, unpadded) = fared(&judged_by(&World::new(), COMPILE_BOMB));
    assert_eq!((outcome.as_str(), detail), ("compile", unpadded));
}

#[test]
fn what_was_compiled_elsewhere_is_found_and_kept() {
    let world = World::new();
    let cache = world.path(".cache/headcount/policies/seals.json");
    let first = judged_by(&world, HONEST);
    // A warning would say that it was compiled here once more.
    assert_eq!((fared(&first).0.as_str(), first.stderr.as_str()), ("verdict", ""));
    let sealed = fs::read_to_string(&cache).unwrap();
    let again = judged_by(&world, HONEST);
    assert_eq!((fared(&again).0.as_str(), again.stderr.as_str()), ("verdict", ""));
    assert_eq!(fs::read_to_string(&cache).unwrap(), sealed, "nothing was compiled");
}

#[test]
fn where_nothing_can_be_kept_policies_are_compiled_all_the_same() {
    let world = World::new();
    world.write(".cache/headcount", "a file in the place of the folder");
    let ran = judged_by(&world, HONEST);
    assert_eq!(fared(&ran).0, "verdict");
    assert!(ran.stderr.contains("compiled policies are not kept"), "{}", ran.stderr);
}

#[test]
fn what_the_compiler_refuses_is_told_in_its_words() {
    let mut damaged = ALIASED_TEXT.to_vec();
    damaged.truncate(damaged.len() - 100);
    let (outcome, detail) = fared(&judged_by(&World::new(), &damaged));
    assert_eq!(outcome, "not-a-policy");
    assert!(detail.starts_with("the file is damaged"), "{detail}");
}
