//! `headcount policy list`: who judges, here and in the servers that run.

use crate::cli::{printer, table};
use crate::report::{PolicyRow, policy_rows};
use crate::setup::Setup;
use crate::store::serving;
use serde::Serialize;
use std::fmt::Write as _;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON (schema headcount.policies/1)
    #[arg(long)]
    json: bool,
}

/// Who judges.
#[derive(Serialize)]
struct Policies {
    schema: &'static str,
    /// The chain as the configuration has it now.
    policies: Vec<PolicyRow>,
    /// What the servers that run have.
    servers: Vec<Server>,
}

#[derive(Serialize)]
struct Server {
    process_id: u32,
    policies: Vec<PolicyRow>,
}

pub fn run(setup: &Setup, args: &Args) -> anyhow::Result<ExitCode> {
    let judge = setup.judge()()?;
    let said = serving::servers(&setup.dirs.state)?.into_iter();
    let servers = said.filter_map(|said| Some(Server { process_id: said.process_id, policies: said.of("policies")? }));
    let all =
        Policies { schema: "headcount.policies/1", policies: policy_rows(judge.chain()), servers: servers.collect() };
    let well = all.policies.iter().all(|policy| policy.refused.is_none());
    if args.json {
        printer::json(&all)?
    } else {
        printer::write(&text(&all))?
    }
    Ok(ExitCode::from(u8::from(!well)))
}

fn text(all: &Policies) -> String {
    let mut out = table::policies(&all.policies);
    for policy in &all.policies {
        if let Some(why) = &policy.refused {
            let _ = writeln!(out, "{} is not in use: {why}", policy.name);
        }
    }
    for Server { process_id, policies } in &all.servers {
        let _ = writeln!(out, "\nserver {process_id}");
        for policy in policies {
            let _ = writeln!(out, "  {}", held(policy));
        }
    }
    out
}

/// What a server has in a place of its chain.
fn held(policy: &PolicyRow) -> String {
    let PolicyRow { name, version, digest, .. } = policy;
    match (&policy.refused, &policy.stale_since, &policy.stale_reason) {
        (Some(why), ..) => format!("{name} is not in use: {why}"),
        (None, Some(since), Some(why)) => format!("{name} {version} {digest:.12} is stale since {since}: {why}"),
        _ => format!("{name} {version} {digest:.12}"),
    }
}
