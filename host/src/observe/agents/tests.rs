//! One case for each way that a kind of agent looks, and for each thing that only looks like one.

use super::*;
use crate::config::Kind;
use proptest::prelude::*;
use std::cell::RefCell;
use std::path::PathBuf;

fn program(exe: &str, argv: &[&str]) -> Program {
    Program {
        exe: if exe.is_empty() { Err("permission denied".to_owned()) } else { Ok(PathBuf::from(exe)) },
        argv: Ok(argv.iter().map(ToString::to_string).collect()),
        cwd: Ok(PathBuf::from("/srv/shop")),
        env: Ok(Vec::new()),
        uid: Some(1000),
    }
}

fn kind_of(exe: &str, argv: &[&str]) -> Option<String> {
    let kinds = Kinds::new(&[]).unwrap();
    kinds.recognise(&program(exe, argv), "MainThread").map(|found| found.kind.to_string())
}

const NODE: &str = "/usr/bin/node";
const PYTHON: &str = "/usr/bin/python3.12";
const CLAUDE: &str = "/home/u/.local/share/claude/versions/2.1.236";
const CODEX: &str = "/usr/lib/node_modules/@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex";

#[test]
fn every_kind_is_recognised_by_how_it_is_run() {
    let cursor = "/home/u/.local/share/cursor-agent/versions/2026.1/node";
    let cases: &[(&str, &str, &[&str])] = &[
        ("claude", CLAUDE, &["claude"]),
        ("claude", CLAUDE, &["claude", "-p", "list the files", "--output-format", "json"]),
        ("claude", CLAUDE, &["/home/u/.local/share/claude/versions/2.1.236", "--resume"]),
        ("claude", "", &["/home/u/.local/share/claude/versions/2.1.236"]),
        ("claude", "/home/u/.claude/remote/ccd-cli/2.1.9", &["ccd-cli"]),
        ("claude", "/srv/venv/lib/python3.12/site-packages/claude_agent_sdk/_bundled/claude", &["claude", "-p"]),
        ("claude", "/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", &["claude"]),
        ("claude", NODE, &["claude"]),
        ("claude", NODE, &["node", "--no-warnings", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"]),
        ("claude", NODE, &["node", "/usr/local/bin/claude", "--continue"]),
        ("codex", NODE, &["node", "/usr/lib/node_modules/@openai/codex/bin/codex.js"]),
        ("codex", CODEX, &[CODEX, "exec", "do it"]),
        ("codex", "/opt/codex-x86_64-unknown-linux-musl", &["./codex-x86_64-unknown-linux-musl"]),
        ("codex", CODEX, &["codex", "app-server"]),
        ("gemini", NODE, &["node", "/usr/local/bin/gemini"]),
        (
            "gemini",
            NODE,
            &["/usr/bin/node", "--max-old-space-size=8192", "/home/u/.nvm/versions/node/v24.1.0/bin/gemini"],
        ),
        ("gemini", NODE, &["node", "/usr/lib/node_modules/@google/gemini-cli/dist/index.js"]),
        ("qwen", NODE, &["node", "/usr/lib/node_modules/@qwen-code/qwen-code/dist/index.js"]),
        ("opencode", "/usr/local/bin/opencode", &["opencode"]),
        ("opencode", NODE, &["node", "/usr/lib/node_modules/opencode-ai/bin/opencode", "run", "fix it"]),
        ("copilot", "/usr/local/bin/copilot", &["copilot"]),
        ("copilot", NODE, &["node", "/usr/lib/node_modules/@github/copilot/index.js"]),
        (
            "cursor",
            cursor,
            &["/home/u/.local/bin/cursor-agent", "--use-system-ca", "/x/cursor-agent/versions/2026.1/index.js"],
        ),
        ("cursor", cursor, &["/home/u/.local/bin/agent", "/x/cursor-agent/versions/2026.1/index.js", "fix it"]),
        ("aider", PYTHON, &["/usr/bin/python3", "/home/u/.local/bin/aider", "--model", "x"]),
        ("aider", PYTHON, &["python", "-m", "aider"]),
        ("aider", PYTHON, &["python", "-X", "dev", "-W", "ignore", "-Im", "aider", "--no-git"]),
        ("aider", "/usr/bin/uv", &["uv", "tool", "run", "--from", "aider-chat", "aider"]),
        ("goose", "/usr/local/bin/goose", &["goose", "session"]),
        ("goose", "/usr/local/bin/goose", &["goose", "run", "-t", "status"]),
        ("crush", "/usr/local/bin/crush", &["crush"]),
        ("amp", NODE, &["node", "--no-warnings", "/usr/local/bin/amp"]),
        ("kiro", "/home/u/.local/bin/kiro-cli", &["kiro-cli", "chat"]),
        ("kimi", PYTHON, &["/usr/bin/python3", "/home/u/.local/bin/kimi"]),
        ("hermes", PYTHON, &["python3", "-m", "hermes_cli.main"]),
        ("hermes", PYTHON, &["/usr/bin/python3", "/home/u/.local/bin/hermes", "chat"]),
    ];
    for (kind, exe, argv) in cases {
        assert_eq!(kind_of(exe, argv).as_deref(), Some(*kind), "{exe} {argv:?}");
    }
}

#[test]
fn what_only_looks_like_an_agent_is_none() {
    let cases: &[(&str, &[&str])] = &[
        (CLAUDE, &["claude", "daemon", "run"]),
        (CLAUDE, &["claude", "--bg-pty-host"]),
        (CLAUDE, &["claude", "--session-id", "x", "--bg-spare"]),
        (CLAUDE, &["claude", "mcp", "serve"]),
        (CLAUDE, &["claude", "--debug", "mcp", "serve"]),
        (CLAUDE, &["claude", "--type=renderer"]),
        (CLAUDE, &["claude", "--output-format", "stream-json", "--input-format", "stream-json"]),
        (CLAUDE, &["claude", "--input-format=stream-json"]),
        (CLAUDE, &["rg", "--files"]),
        (CLAUDE, &["claude", "--version"]),
        (NODE, &["node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js", "mcp", "serve"]),
        (CODEX, &["codex", "mcp-server"]),
        (CODEX, &["codex", "-c", "model=x", "mcp-server"]),
        (CODEX, &["/tmp/x/codex-linux-sandbox", "--", "ls"]),
        (CODEX, &["apply_patch", "*** Begin Patch"]),
        ("/usr/bin/codex-code-mode-host", &["codex-code-mode-host"]),
        ("/Applications/ChatGPT.app/Contents/Codex Framework", &["/Applications/ChatGPT.app/Contents/Codex Framework"]),
        (NODE, &["node", "/usr/local/bin/gemini", "mcp", "list"]),
        ("/usr/local/bin/opencode", &["opencode", "serve", "--port", "4096"]),
        ("/usr/local/bin/copilot-language-server", &["copilot-language-server", "--stdio"]),
        (NODE, &["/home/u/.local/bin/cursor-agent", "/x/cursor-agent/versions/2026.1/index.js", "worker"]),
        ("/usr/local/bin/goose", &["goose", "mcp", "memory"]),
        ("/usr/local/bin/goose", &["goose", "-dir", "migrations", "postgres", "dsn", "up"]),
        (PYTHON, &["python3", "/home/u/.local/bin/hermes", "gateway", "run"]),
        (NODE, &["node", "-r", "/usr/local/bin/gemini", "/srv/shop/server.js"]),
        (NODE, &["node", "--require", "/usr/local/bin/gemini", "server.js"]),
        (NODE, &["node", "--loader", "/usr/local/bin/gemini", "server.js"]),
        (NODE, &["node", "-e", "claude", "/usr/local/bin/claude"]),
        (PYTHON, &["python", "-c", "import aider", "/usr/bin/aider"]),
        (PYTHON, &["python", "-m", "pytest", "aider"]),
        (PYTHON, &["python", "train.py", "-m", "aider"]),
        ("/usr/bin/bash", &["bash", "-c", "claude -p 'x'"]),
        ("/usr/bin/bash", &["bash", "-lc", "/usr/local/bin/claude"]),
        ("/usr/bin/vim", &["vim", "/usr/local/bin/claude"]),
        ("/usr/bin/tail", &["tail", "-f", "claude"]),
        ("/usr/bin/grep", &["grep", "-r", "claude"]),
        (NODE, &["node"]),
        (PYTHON, &["python", "-m"]),
        ("/usr/bin/agent", &["agent"]),
        ("/usr/sbin/init", &[]),
    ];
    for (exe, argv) in cases {
        assert_eq!(kind_of(exe, argv), None, "{exe} {argv:?}");
    }
}

#[test]
fn a_prompt_that_mentions_an_exclusion_is_still_a_prompt() {
    let cases: &[(&str, &[&str])] = &[
        (CLAUDE, &["claude", "fix the --bg-spare flag"]),
        (CLAUDE, &["claude", "-p", "what does claude daemon run do"]),
        (CLAUDE, &["claude", "-p", "explain", "--", "--bg-spare"]),
        (CLAUDE, &["claude", "--input-format", "text", "stream-json"]),
        (CODEX, &["codex", "exec", "mcp-server"]),
        ("/usr/local/bin/opencode", &["opencode", "run", "serve"]),
    ];
    for (exe, argv) in cases {
        assert!(kind_of(exe, argv).is_some(), "{argv:?}");
    }
}

#[test]
fn a_name_alone_counts_only_where_nothing_else_is_shown_and_says_so() {
    let kinds = Kinds::new(&[]).unwrap();
    let mut hidden = program("", &[]);
    hidden.argv = Err("permission denied".to_owned());
    let found = kinds.recognise(&hidden, "claude").unwrap();
    assert_eq!((&*found.kind, found.launcher), ("claude", false));
    assert!(found.doubt.unwrap().contains("permission denied"));
    for comm in ["2.1.236", "MainThread", "node-MainThread", "node", "claude2", "agent", ""] {
        assert_eq!(kinds.recognise(&hidden, comm), None, "{comm}");
    }
    assert_eq!(kinds.recognise(&program(PYTHON, &["python3", "x.py"]), "claude"), None);
    assert_eq!(kinds.recognise(&program("", &[]), "claude"), None);
    hidden.exe = Ok(PathBuf::from(CLAUDE));
    assert!(kinds.recognise(&hidden, "2.1.236").unwrap().doubt.is_some());
}

fn own(name: &str, program: &str) -> Kind {
    Kind {
        name: name.to_owned(),
        exe: Vec::new(),
        program: vec![program.to_owned()],
        script: Vec::new(),
        module: Vec::new(),
        exclude: Vec::new(),
        launcher: Vec::new(),
    }
}

#[test]
fn the_users_kinds_come_first_and_replace_built_in_ones() {
    let kinds = Kinds::new(&[own("reviewer", "claude"), own("amp", "amplifier")]).unwrap();
    let kind = |argv: &[&str]| kinds.recognise(&program("/usr/bin/x", argv), "x").map(|found| found.kind.to_string());
    assert_eq!(kind(&["claude"]).as_deref(), Some("reviewer"));
    assert_eq!(kind(&["amplifier"]).as_deref(), Some("amp"));
    assert_eq!(kind(&["amp"]), None);
    assert_eq!(kind(&["crush"]).as_deref(), Some("crush"));
}

#[test]
fn a_kind_that_cannot_work_is_refused() {
    let error = Kinds::new(&[own("x", "[")]).unwrap_err().to_string();
    assert!(error.contains("\"x\"") && error.contains("program"), "{error}");
    let mut nothing = own("x", "y");
    nothing.program.clear();
    assert!(matches!(Kinds::new(&[nothing]), Err(KindError::Nothing { .. })));
}

fn process(pid: u32, parent: u32, program: &Arc<Program>) -> Process {
    Process {
        id: ProcessId { pid, start: u64::from(pid) },
        parent,
        group: pid,
        session: pid,
        tty_nr: 0,
        comm: "x".to_owned(),
        state: ProcessState::Sleeping,
        started_at_ms: u64::from(pid),
        details: Details::Read(Arc::clone(program)),
    }
}

/// The pids of the rows among processes that are given with their parent, executable and command line.
fn rows(processes: &[(u32, u32, &str, &[&str])]) -> Vec<u32> {
    let made =
        |(pid, parent, exe, argv): &(u32, u32, &str, &[&str])| process(*pid, *parent, &Arc::new(program(exe, argv)));
    let processes: Vec<Process> = processes.iter().map(made).collect();
    let look = Recogniser::new(Kinds::new(&[]).unwrap()).look(&processes);
    let heads = Heads::new(&look.sightings);
    look.sightings.iter().map(|sighting| sighting.id).filter(|id| heads.is_head(*id)).map(|id| id.pid).collect()
}

#[test]
fn a_launcher_a_shim_or_a_second_start_is_the_same_agent() {
    let gemini = "/usr/local/bin/gemini";
    assert_eq!(
        rows(&[
            (10, 1, NODE, &["node", gemini, "-p", "x"]),
            (11, 10, NODE, &["node", "--max-old-space-size=8192", gemini, "-p", "x"]),
        ]),
        [10]
    );
    let wrapper = "/usr/lib/node_modules/@openai/codex/bin/codex.js";
    assert_eq!(rows(&[(10, 1, NODE, &["node", wrapper, "-m", "x"]), (11, 10, CODEX, &[CODEX, "--managed"])]), [10]);
    let volta = "/home/u/.volta/bin/volta-shim";
    let claude = "/usr/bin/claude";
    assert_eq!(
        rows(&[(9, 1, volta, &["claude"]), (10, 9, NODE, &["node", claude]), (11, 10, CLAUDE, &["claude"])]),
        [9]
    );
    // A program may overwrite its command line with a title.
    assert_eq!(rows(&[(9, 1, volta, &["claude", "-p", "x"]), (10, 9, NODE, &["claude"])]), [9]);
}

#[test]
fn an_agent_below_another_is_a_row_of_its_own() {
    let shell = "/usr/bin/bash";
    let claude: (u32, u32, &str, &[&str]) = (10, 1, CLAUDE, &["claude"]);
    let tool: (u32, u32, &str, &[&str]) = (11, 10, shell, &["bash", "-c", "claude -p x"]);
    assert_eq!(rows(&[claude, tool, (12, 11, CLAUDE, &["claude", "-p", "x"])]), [10, 12]);
    assert_eq!(rows(&[claude, tool, (12, 11, CLAUDE, &["claude"])]), [10, 12]);
    assert_eq!(rows(&[claude, (11, 10, CODEX, &["codex", "exec", "x"])]), [10, 11]);
    assert_eq!(rows(&[claude, (11, 10, CLAUDE, &["claude", "-p", "x"])]), [10, 11]);
    assert_eq!(rows(&[(10, 1, CLAUDE, &["claude", "daemon", "run"]), (11, 10, CLAUDE, &["claude"])]), [11]);
}

#[test]
fn an_agents_program_is_known_as_one_though_it_is_no_agent() {
    let mut recogniser = Recogniser::new(Kinds::new(&[]).unwrap());
    let agent = Arc::new(program(CLAUDE, &["claude"]));
    let driven = Arc::new(program(CLAUDE, &["claude", "-p", "x", "--input-format", "stream-json"]));
    let script =
        Arc::new(program(NODE, &["node", "/x/@anthropic-ai/claude-code/cli.js", "--input-format", "stream-json"]));
    let other = Arc::new(program(NODE, &["node", "server.js"]));
    let look = recogniser.look([
        &process(7, 1, &agent),
        &process(8, 7, &driven),
        &process(9, 7, &script),
        &process(10, 7, &other),
    ]);
    assert_eq!(look.sightings.iter().map(|sighting| sighting.id.pid).collect::<Vec<_>>(), [7]);
    assert_eq!(look.programs.iter().map(|id| id.pid).collect::<Vec<_>>(), [7, 8, 9]);
}

#[test]
fn a_circle_of_parents_has_an_end() {
    assert!(
        rows(&[(10, 11, CLAUDE, &["claude"]), (11, 10, CLAUDE, &["claude"]), (12, 12, CLAUDE, &["claude"])]).len() <= 3
    );
}

#[test]
fn a_process_is_looked_at_again_only_when_it_runs_something_else() {
    let mut recogniser = Recogniser::new(Kinds::new(&[]).unwrap());
    let shell = Arc::new(program("/usr/bin/bash", &["bash"]));
    let claude = Arc::new(program(CLAUDE, &["claude"]));
    let mut pending = process(7, 1, &shell);
    pending.details = Details::Pending;
    assert!(recogniser.look([&pending]).fresh.is_empty());
    assert_eq!(recogniser.look([&process(7, 1, &shell)]).fresh.len(), 1);
    let again = recogniser.look([&process(7, 1, &shell)]);
    assert!(again.fresh.is_empty() && again.sightings.is_empty());
    let execed = recogniser.look([&process(7, 1, &claude)]);
    assert_eq!((execed.fresh.len(), execed.sightings.len()), (1, 1));
    let mut zombie = process(7, 1, &Arc::new(program("", &[])));
    zombie.state = ProcessState::Zombie;
    assert_eq!(recogniser.look([&zombie]).sightings.len(), 1);
    let mut recycled = process(7, 1, &shell);
    recycled.id.start = 99;
    assert!(recogniser.look([&recycled]).sightings.is_empty());
    assert!(recogniser.look([]).sightings.is_empty());
    assert!(recogniser.seen.is_empty());
}

#[test]
fn a_wrapper_is_known_by_the_command_that_it_ends_with() {
    let sighting = |exe: &str, argv: &[&str]| {
        let program = Arc::new(program(exe, argv));
        Recogniser::new(Kinds::new(&[]).unwrap()).look([&process(7, 1, &program)]).sightings.remove(0)
    };
    let run = |argv: &[&str]| program("/usr/bin/headcount", argv);
    let claude = sighting(CLAUDE, &["claude", "-p", "x"]);
    assert!(wraps(&run(&["headcount", "run", "--name", "a", "--", "claude", "-p", "x"]), &claude));
    assert!(wraps(&run(&["timeout", "600", "/usr/local/bin/claude", "-p", "x"]), &claude));
    assert!(!wraps(&run(&["headcount", "run", "--", "claude", "-p", "y"]), &claude));
    assert!(!wraps(&run(&["orchestrator"]), &claude));
    assert!(!wraps(&run(&["claude", "-p", "x"]), &claude));
    let gemini = sighting(NODE, &["node", "/usr/local/bin/gemini"]);
    assert!(wraps(&run(&["timeout", "600", "gemini"]), &gemini));
    assert!(!wraps(&run(&["timeout", "600"]), &gemini));
}

thread_local! {
    /// One for all cases: the table takes longer to make than to use.
    static RECOGNISER: RefCell<Recogniser> = RefCell::new(Recogniser::new(Kinds::new(&[]).unwrap()));
}

proptest! {
    #[test]
    fn no_command_line_does_harm(
        argv in prop::collection::vec(prop_oneof![".*", "(-|--)?[a-z-]{0,8}", Just("--".to_owned()), Just("-m".to_owned()), Just("node".to_owned()), Just("claude".to_owned())], 0..8),
        exe in prop_oneof![Just(String::new()), "/usr/bin/(node|python3|uv|bash|x)", ".*"],
        comm in ".{0,15}",
    ) {
        let slots: Vec<&str> = argv.iter().map(String::as_str).collect();
        let program = Arc::new(program(&exe, &slots));
        let mut process = process(7, 1, &program);
        process.comm = comm;
        let look = RECOGNISER.with_borrow_mut(|recogniser| recogniser.look([&process]));
        for sighting in &look.sightings {
            prop_assert!(sighting.recognised.args_from <= argv.len());
            wraps(&program, sighting);
        }
    }
}
