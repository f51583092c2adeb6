//! `headcount doctor`: what can be seen on this machine, what not, and why.

use super::printer;
use crate::config::{Environment, make_private};
use crate::hooks::install::State;
use crate::judge::{Evaluation, Outcome};
use crate::observe::records::hooks::meaning::KINDS;
use crate::observe::roster::retained;
use crate::report;
use crate::setup::{Rosters, Setup};
use crate::upstream::{self, Agents, Reach, UpstreamRow};
use owo_colors::OwoColorize as _;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::process::ExitCode;
use std::time::Duration;

/// How long an upstream server is waited for.
const UPSTREAM_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON (schema headcount.doctor/1)
    #[arg(long)]
    json: bool,
}

/// What the doctor found.
#[derive(Serialize)]
struct Findings {
    schema: &'static str,
    findings: Vec<Finding>,
}

/// One thing looked at.
#[derive(Serialize)]
struct Finding {
    part: &'static str,
    name: String,
    works: bool,
    detail: String,
}

pub fn run(setup: &Setup, args: &Args) -> anyhow::Result<ExitCode> {
    let mut findings = vec![configuration(setup)];
    findings.extend(processes(setup));
    findings.extend(sources(setup)?);
    findings.extend(policies(setup)?);
    findings.extend(upstreams(setup)?);
    findings.push(state(setup));
    findings.push(registry(setup));
    let all_well = findings.iter().all(|f| f.works);
    if args.json {
        printer::json(&Findings { schema: "headcount.doctor/1", findings })?;
    } else {
        print(&findings)?;
    }
    Ok(ExitCode::from(u8::from(!all_well)))
}

fn print(findings: &[Finding]) -> std::io::Result<()> {
    let mut part = "";
    for finding in findings {
        if finding.part != part {
            part = finding.part;
            printer::line(&part.bold().to_string())?;
        }
        let mark = if finding.works { "ok".green().to_string() } else { "no".red().to_string() };
        printer::line(&format!("  {mark}  {}: {}", finding.name, finding.detail))?;
    }
    Ok(())
}

fn configuration(setup: &Setup) -> Finding {
    let detail = match &setup.loaded.file {
        Some(file) => format!("read from {}", file.display()),
        None => "there is no file, all settings are defaults or from the environment".to_owned(),
    };
    Finding { part: "configuration", name: "settings".into(), works: true, detail }
}

fn processes(setup: &Setup) -> Vec<Finding> {
    let mut sampler = setup.sampler();
    let mut findings = Vec::new();
    if let Err(error) = sampler.refresh() {
        findings.push(Finding { part: "processes", name: "list".into(), works: false, detail: error.to_string() });
    }
    findings.extend(sampler.abilities().into_iter().map(|a| Finding {
        part: "processes",
        name: a.name.into(),
        works: a.works,
        detail: a.detail,
    }));
    findings
}

/// Where agents come from, and how many each session has now.
fn sources(setup: &Setup) -> anyhow::Result<Vec<Finding>> {
    let mut observer = setup.observer(Rosters::default())?;
    let snapshots = observer.observe();
    let nothing_yet: HashMap<String, &str> = setup
        .config()
        .retained
        .iter()
        .filter_map(|one| Some((retained::name(one), retained::nothing_yet(one)?)))
        .collect();
    let mut findings: Vec<Finding> = observer
        .sources()
        .iter()
        .map(|s| Finding {
            part: "agents",
            name: report::clean(&s.name),
            works: s.error.is_none(),
            detail: report::clean(s.error.as_deref().or(nothing_yet.get(&s.name).copied()).unwrap_or("read")),
        })
        .collect();
    let agents: usize = snapshots.iter().map(|s| s.agents.len()).sum();
    let many = if snapshots.len() == 1 { "" } else { "s" };
    let detail = format!("{agents} in {} session{many}", snapshots.len());
    findings.push(Finding { part: "agents", name: "seen now".into(), works: true, detail });
    let read = observer.readers().scope().into_iter();
    let read = read.map(|(what, kinds)| format!("{what} of {}", kinds.into_iter().collect::<Vec<_>>().join(", ")));
    let detail =
        format!("{}; what is not read is concluded from processes (marked ~)", read.collect::<Vec<_>>().join("; "));
    findings.push(Finding { part: "agents", name: "what is read".into(), works: true, detail });
    let kinds: BTreeSet<&str> = snapshots.iter().flat_map(|s| &s.agents).map(|agent| agent.kind.as_str()).collect();
    findings.extend(KINDS.iter().filter_map(|kind| hooks(kind, kinds.contains(kind))));
    Ok(findings)
}

/// Whether a kind of agent tells what it does; `None`: nobody uses it here. That it does not tell is no defect.
fn hooks(kind: &str, is_seen: bool) -> Option<Finding> {
    let State { configured, installed } = State::of(kind, &Environment::of_process());
    let (works, detail) = match installed {
        Ok(true) => (true, "installed".to_owned()),
        Ok(false) if configured || is_seen => {
            (true, format!("not installed; `headcount hook install {kind}` has it tell what it does"))
        }
        Ok(false) => return None,
        Err(error) if configured || is_seen => (false, report::clean(&error.to_string())),
        Err(_) => return None,
    };
    Some(Finding { part: "hooks", name: kind.into(), works, detail })
}

fn registry(setup: &Setup) -> Finding {
    let (works, detail) = match setup.store.list() {
        Ok(agents) => (true, format!("{} agents registered", agents.len())),
        Err(error) => (false, error.to_string()),
    };
    Finding { part: "state", name: "registry".into(), works, detail }
}

/// Has each policy judge a made-up session.
fn policies(setup: &Setup) -> anyhow::Result<Vec<Finding>> {
    let finding = |p: Evaluation| Finding {
        part: "policies",
        works: p.outcome == Outcome::Verdict,
        detail: match &p.outcome {
            Outcome::Verdict => format!("judged a made-up session ({} µs, version {})", p.took.as_micros(), p.version),
            failed if p.digest.is_empty() => failed.to_string(),
            failed => format!("on trial {failed}"),
        },
        name: p.name,
    };
    Ok(setup.judge()()?.try_out().policies.into_iter().map(finding).collect())
}

/// Connects to each upstream server.
fn upstreams(setup: &Setup) -> anyhow::Result<Vec<Finding>> {
    let configured = &setup.config().upstreams;
    if configured.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let seen = runtime.block_on(upstream::look(configured, setup.me(), &setup.clock, UPSTREAM_PATIENCE));
    let finding =
        |row: UpstreamRow| Finding { part: "upstream", works: row.is_well(), detail: detail(&row), name: row.name };
    Ok(seen.into_iter().map(finding).collect())
}

/// What a server says of itself, and of agents; or what is wrong.
fn detail(row: &UpstreamRow) -> String {
    let UpstreamRow { state: Reach::Ready, about: Some(about), tools: Some(tools), agents, .. } = row else {
        return format!(
            "{}: {}",
            report::word(&row.state),
            row.last_error.as_deref().unwrap_or("nothing is known of it")
        );
    };
    let server = about.server.as_deref().unwrap_or("a server without a name");
    let agents = match agents {
        Some(Agents { error: Some(error), .. }) => format!("; its agents: {error}"),
        Some(Agents { count, note, .. }) => {
            let note = note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
            format!(", {} agents{note}", count.unwrap_or_default())
        }
        None => String::new(),
    };
    format!("{server}, protocol {}, {tools} tools{agents}", about.protocol)
}

fn state(setup: &Setup) -> Finding {
    let dir = &setup.dirs.state;
    let (works, detail) = match make_private(dir) {
        Ok(()) => (true, format!("{} can be written", dir.display())),
        Err(error) => (false, format!("{}: {error}", dir.display())),
    };
    Finding { part: "state", name: "directory".into(), works, detail }
}
