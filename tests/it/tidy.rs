//! What the source promises of itself: who may know what, and how files look.

use headcount::judge::{BUILTIN, Limits, Policy, Runtime};
use headcount_tests::{BUDGET_POLICY, LEAK_POLICY, MISBEHAVING_POLICY, NIGHT_WATCH_POLICY};
use regex::Regex;
use std::fs;
use std::path::{Path, PathBuf};

/// One source file of the workspace.
pub struct Source {
    /// Its path below the workspace, with `/` between the parts.
    path: String,
    pub text: String,
}

impl Source {
    /// The numbered lines without comments. What stands behind `//` in a string is lost too.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(n, line)| (n + 1, line.split("//").next().unwrap_or_default()))
    }

    /// Whether it is part of the program, and not of its tests.
    fn is_program(&self) -> bool {
        self.path.starts_with("host/src/") && !self.path.ends_with("/tests.rs") && !self.path.contains("/tests/")
    }
}

/// Every Rust file of the workspace.
pub fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut sources = Vec::new();
    let mut folders: Vec<PathBuf> = ["host", "guest", "tests"].map(|folder| root.join(folder)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                sources.push(Source { path: below, text: fs::read_to_string(&path).unwrap() });
            }
        }
    }
    assert!(sources.len() > 100, "the sources are found");
    sources
}

/// The program's lines with `pattern` outside `allowed`. Something must be found inside it, lest the pattern be wrong.
fn strays(pattern: &str, allowed: &[&str]) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    let mut strays = Vec::new();
    let mut at_home = 0;
    for source in sources().iter().filter(|source| source.is_program()) {
        let below = source.path.strip_prefix("host/src/").unwrap();
        let is_allowed = allowed.iter().any(|place| below.starts_with(place));
        for (n, line) in source.code().filter(|(_, line)| pattern.is_match(line)) {
            if is_allowed {
                at_home += 1;
            } else {
                strays.push(format!("{}:{n}: {}", source.path, line.trim()));
            }
        }
    }
    assert!(at_home > 0, "{pattern} is found nowhere in {allowed:?}");
    strays
}

#[test]
fn each_library_is_known_in_one_place_only() {
    for (library, places) in [
        ("wasmtime", &["judge/"][..]),
        ("sysinfo", &["observe/processes/"]),
        ("rmcp", &["mcp/", "upstream/", "bridge/"]),
        ("comfy_table", &["cli/"]),
        ("owo_colors", &["cli/"]),
        ("clap|clap_complete", &["cli/", "main.rs"]),
        ("wit_component", &["authoring/"]),
        ("axum|hyper|hyper_util", &["http/"]),
        ("askama", &["http/"]),
        ("sd_notify", &["config/"]),
        ("tokio_rustls", &["http/"]),
        ("rusqlite", &["store/", "history/"]),
        ("reqwest", &["auth/remote/", "upstream/"]),
        ("jsonwebtoken", &["auth/issuer/"]),
        ("zstd", &["observe/records/"]),
        ("prometheus_client", &["http/rest/metrics.rs", "http/rest/metrics/"]),
    ] {
        assert_eq!(strays(&format!(r"\b({library})::"), places), Vec::<String>::new(), "{library}");
    }
}

/// What is not in the table of routes is not in the description of the interface. MCP and OAuth have descriptions of their own.
#[test]
fn routes_stand_in_one_table() {
    assert_eq!(strays(r"\.route\(", &["http/rest/routes.rs", "http/app.rs", "http/oauth/"]), Vec::<String>::new());
}

#[test]
fn only_the_clock_reads_clocks() {
    assert_eq!(strays(r"(Instant|SystemTime|Timestamp|Zoned)::now\(", &["clock.rs"]), Vec::<String>::new());
}

#[test]
fn only_the_configuration_reads_the_environment() {
    assert_eq!(strays(r"\benv::(var|vars|home|args|temp|current_dir|set)", &["config/"]), Vec::<String>::new());
}

#[test]
fn prose_goes_to_stderr_by_one_way_that_cannot_fail() {
    assert_eq!(strays(r"\beprint(ln)?!|anstream::stderr", &["stderr.rs"]), Vec::<String>::new());
}

#[test]
fn only_the_printer_writes_to_stdout() {
    assert_eq!(strays(r"\bprint(ln)?!|stdout\(\)(\.lock|\.write|;)", &["cli/printer.rs"]), Vec::<String>::new());
}

#[test]
fn sql_is_spoken_only_where_data_is_stored() {
    let sql = r"\b(SELECT .* FROM|INSERT INTO|DELETE FROM|CREATE TABLE)\b";
    assert_eq!(strays(sql, &["store/", "history/"]), Vec::<String>::new());
}

/// The order in which the crate's documentation lists its modules.
const LAYERS: [&[&str]; 10] = [
    &["cli", "mcp", "http", "fuzzing"],
    &["authoring", "demo", "hooks", "registering", "run", "waiting", "query", "monitor", "setup"],
    &["bridge", "upstream"],
    &["clients", "auth"],
    &["report"],
    &["judge"],
    &["history"],
    &["observe"],
    &["store"],
    &["config", "names", "clock", "files", "text", "figures", "stderr"],
];

#[test]
fn no_module_uses_one_that_stands_above_it() {
    let layer = |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    let used = Regex::new(r"\bcrate::([a-z_]+)").unwrap();
    for source in sources().iter().filter(|source| source.is_program()) {
        let below = source.path.strip_prefix("host/src/").unwrap();
        let module = below.split(['/', '.']).next().unwrap();
        if ["lib", "main"].contains(&module) {
            continue;
        }
        let own = layer(module).unwrap_or_else(|| panic!("{module} has no layer"));
        for (n, line) in source.code() {
            for found in used.captures_iter(line) {
                let other = layer(&found[1]);
                assert!(other.is_none_or(|other| other >= own), "{}:{n}: {}", source.path, line.trim());
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is_for_and_is_short() {
    let sources = sources();
    let mut lengths = Vec::new();
    for source in &sources {
        let lines = source.text.lines().count();
        assert!(source.text.starts_with("//! "), "{} says nothing of itself", source.path);
        assert!(lines <= 500, "{} has {lines} lines", source.path);
        lengths.push(lines);
    }
    lengths.sort_unstable();
    println!("{} files, half of them below {} lines", lengths.len(), lengths[lengths.len() / 2]);
}

#[test]
fn nothing_is_left_for_later() {
    let later = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ign", "ore"), concat!("XX", "X:")];
    for source in sources() {
        for (n, line) in source.text.lines().enumerate() {
            let found = later.iter().find(|word| line.contains(**word));
            assert!(found.is_none(), "{}:{}: {}", source.path, n + 1, line.trim());
        }
    }
}

/// Loading refuses whatever asks for something from outside.
#[test]
fn no_policy_that_is_built_here_imports_anything() {
    let runtime = Runtime::new(None, None, 0).unwrap();
    for (name, bytes, settings) in [
        ("built-in", BUILTIN, ""),
        ("misbehaving", MISBEHAVING_POLICY, ""),
        ("budget", BUDGET_POLICY, r#"{"memory_gb":1}"#),
        ("night-watch", NIGHT_WATCH_POLICY, ""),
        ("leak", LEAK_POLICY, ""),
    ] {
        let loaded = Policy::load(&runtime, name, bytes, settings, Limits::default());
        assert!(loaded.is_ok(), "{:?}", loaded.err());
    }
}
