//! `headcount policy bench`.

use super::SETTINGS;
use crate::authoring::bench::{self, Costs, NoCosts, Times, all_verdicts};
use crate::authoring::snapshot::SnapshotFile;
use crate::authoring::trial::{must_exist, place, settings};
use crate::cli::printer;
use crate::judge::sample;
use crate::report::no_verdict;
use crate::setup::Setup;
use owo_colors::OwoColorize as _;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The policy: a component's file, the project that it was built in, or `builtin`
    #[arg(value_name = "POLICY")]
    policy: PathBuf,
    /// Judge the facts in this file [default: a made-up session]
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Agents of the made-up session
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "snapshot",
          value_parser = clap::value_parser!(u32).range(0..=20_000))]
    agents: u32,
    /// How often both policies judge
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rounds: u32,
    #[arg(long, value_name = "JSON|@FILE", help = SETTINGS)]
    settings: Option<String>,
    /// Print JSON (schema headcount.policy-bench/1)
    #[arg(long)]
    json: bool,
}

pub fn run(setup: &Setup, args: &Args) -> anyhow::Result<ExitCode> {
    let place = place(setup, &args.policy, settings(args.settings.as_deref())?)?;
    must_exist(&place)?;
    let facts = match &args.snapshot {
        Some(file) => SnapshotFile::read(file)?.facts,
        None => sample::session(args.agents as usize),
    };
    let costs = match bench::run(setup, place, &facts, args.rounds) {
        Ok(costs) => costs,
        Err(NoCosts::Policy(outcome)) if args.json => {
            printer::json(&no_verdict(&outcome))?;
            return Ok(ExitCode::FAILURE);
        }
        Err(NoCosts::Policy(outcome)) => {
            printer::line(&format!("the policy cannot be loaded: {}", no_verdict(&outcome).detail))?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    if args.json {
        printer::json(&costs)?;
    } else {
        printer::write(&text(&costs))?;
    }
    Ok(ExitCode::from(u8::from(!costs.is_well())))
}

fn text(costs: &Costs) -> String {
    let times = |times: &Times| format!("p50 {} µs, p99 {} µs", times.p50, times.p99);
    let load = &costs.load_micros;
    let outcomes = |outcomes: &BTreeMap<&str, u32>| {
        outcomes.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    };
    let builtin = if all_verdicts(&costs.builtin_outcomes) {
        String::new()
    } else {
        format!(" (not all are verdicts: {})", outcomes(&costs.builtin_outcomes))
    };
    let ratio = costs.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}, the median of the rounds"));
    let detail = costs.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let growth = costs.resident_growth_bytes;
    let growth =
        growth.map_or("cannot be read here".to_owned(), |bytes| format!("{:+} KiB over the rounds", bytes / 1024));
    let lines = [
        ("rounds", format!("{} of {} agents", costs.rounds, costs.agents)),
        ("load", format!("{} µs compiled anew, {} µs once it is compiled", load.compiled_anew, load.compiled_before)),
        ("judgement", times(&costs.micros)),
        ("built-in", times(&costs.builtin_micros) + &builtin),
        ("ratio", ratio),
        ("memory", format!("{} KiB at the most", costs.memory_bytes / 1024)),
        ("outcomes", outcomes(&costs.outcomes) + &detail),
        ("headcount", format!("its own memory grew by {growth}")),
    ];
    let lines = lines.map(|(name, value)| format!("  {name:<10}{value}\n")).concat();
    format!("{} {}  {}\n{lines}", costs.policy.bold(), costs.version, costs.digest.dimmed())
}
