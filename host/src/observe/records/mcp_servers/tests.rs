//! Agents with configurations of the tests' own, and children that are made up.

use super::super::tests::{home, now, subject};
use super::*;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::thread;

struct Stage {
    home: tempfile::TempDir,
    reader: McpServers,
    second: u64,
}

impl Stage {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), reader: McpServers::default(), second: 0 }
    }

    fn write(&self, file: &str, text: &str) {
        let file = self.home.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// A Claude in `work` below the home directory, with these children.
    fn agent(&self, children: &[&[&str]]) -> Subject {
        let mut agent = subject("claude", home(self.home.path()));
        let program = Arc::clone(&agent.processes[0].1);
        let runs = |argv: &[&str]| Program {
            argv: Ok(argv.iter().map(ToString::to_string).collect()),
            cwd: Ok(self.home.path().join("work")),
            ..Program::clone(&program)
        };
        agent.processes[0].1 = Arc::new(runs(&["claude"]));
        let child = |argv: &&[&str]| Child { program: Arc::new(runs(argv)), children: Vec::new() };
        agent.children = children.iter().map(child).collect();
        agent
    }

    /// What is said once the configuration has been looked at anew.
    fn look(&mut self, agent: &Subject) -> Testimony {
        self.second += EVERY.as_secs();
        self.reader.read(&[agent], now(self.second));
        self.now(agent)
    }

    /// What is said once nobody reads any more.
    fn now(&mut self, agent: &Subject) -> Testimony {
        loop {
            let said = self.reader.read(&[agent], now(self.second)).remove(0);
            if self.reader.agents.values().all(|agent| agent.due.is_some()) {
                return said;
            }
            thread::yield_now();
        }
    }
}

fn servers(said: &Testimony) -> Option<u32> {
    assert!(said.unmeasured.is_empty(), "{said:?}");
    said.usage.as_ref()?.mcp_servers
}

fn gap(said: &Testimony) -> &str {
    let [Gap { field, reason, .. }] = said.unmeasured.as_slice() else { panic!("{said:?}") };
    assert_eq!((field.as_ref(), &said.usage), ("mcp-servers", &None));
    reason
}

#[test]
fn children_that_run_what_is_configured_are_counted() {
    let mut stage = Stage::new();
    let folder = stage.home.path().join("work");
    let own = json!({"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"], "env": {"KEY": "secret"}}},
        "projects": {folder.to_str().unwrap(): {"mcpServers": {"b": {"command": "/opt/b"}}}}});
    stage.write(".claude.json", &own.to_string());
    stage.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"c": {"command": "uvx", "args": ["c"]}, "d": {"url": "https://d"}}}"#,
    );
    let children: [&[&str]; 5] =
        [&["npm exec a"], &["b"], &["uv", "tool", "uvx", "c"], &["sh", "-c", "make"], &["rg", "a"]];
    let said = stage.look(&stage.agent(&children));
    assert_eq!(servers(&said), Some(3));
    assert_eq!(servers(&stage.look(&stage.agent(&children[..1]))), Some(1));
    assert_eq!(servers(&stage.look(&stage.agent(&[]))), Some(0), "it is read, and none of them runs");
    assert!(!format!("{:?}", stage.reader).contains("secret"));
}

#[test]
fn a_launcher_s_child_is_the_server() {
    let mut stage = Stage::new();
    stage.write(".claude.json", r#"{"mcpServers": {"a": {"command": "serve-a"}}}"#);
    let mut agent = stage.agent(&[&["sh", "/opt/start-a"], &["vim"]]);
    let server = stage.agent(&[&["serve-a"]]).children.remove(0).program;
    agent.children.iter_mut().for_each(|child| child.children = vec![Arc::clone(&server)]);
    assert_eq!(servers(&stage.look(&agent)), Some(1), "what an editor runs is its own");
}

#[test]
fn without_a_configuration_there_are_none_and_a_new_one_is_found() {
    let mut stage = Stage::new();
    let agent = stage.agent(&[&["npx", "x"]]);
    assert_eq!(servers(&stage.look(&agent)), Some(0));
    stage.write(".claude.json", r#"{"mcpServers": {"x": {"command": "npx", "args": ["x"]}}}"#);
    assert_eq!(servers(&stage.now(&agent)), Some(0), "it is not looked at again at once");
    assert_eq!(servers(&stage.look(&agent)), Some(1));
}

#[test]
fn of_a_kind_whose_configuration_nobody_knows_that_is_said() {
    let mut stage = Stage::new();
    let said = stage.reader.read(&[&subject("amp", home(stage.home.path()))], now(0)).remove(0);
    let why = "headcount reads no configuration of MCP servers of amp";
    assert_eq!((said.usage, said.unmeasured), (None, vec![Gap::by_design("mcp-servers", why)]));
}

#[test]
fn what_is_not_known_is_said() {
    let mut stage = Stage::new();
    stage.write(".claude.json", "secret");
    let agent = stage.agent(&[]);
    assert_eq!(gap(&stage.reader.read(&[&agent], now(0))[0]), "the configuration of its servers is being read");
    let said = stage.now(&agent);
    assert_eq!(gap(&said), "the configuration of its servers, .claude.json, is not understood");
    let closed = subject("claude", Err("permission denied".to_owned()));
    assert!(gap(&stage.look(&closed)).contains("permission denied"));
    stage.write(".claude.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let mut agent = stage.agent(&[&["x"]]);
    let denied = Program { argv: Err("permission denied".to_owned()), ..Program::clone(&agent.processes[0].1) };
    agent.children[0].program = Arc::new(denied);
    assert!(gap(&stage.look(&agent)).contains("what its children run"));
}

#[test]
fn a_configuration_that_a_link_leads_to_is_read_and_what_is_no_file_is_not() {
    let mut stage = Stage::new();
    stage.write("dotfiles/claude.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let link = stage.home.path().join(".claude.json");
    std::os::unix::fs::symlink(stage.home.path().join("dotfiles/claude.json"), &link).unwrap();
    let agent = stage.agent(&[&["a"]]);
    assert_eq!(servers(&stage.look(&agent)), Some(1));
    fs::remove_file(&link).unwrap();
    nix::unistd::mkfifo(Path::new(&link), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(gap(&stage.look(&agent)).contains("cannot be read"));
}
