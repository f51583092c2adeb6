//! `headcount serve`: MCP over stdin and stdout.

use crate::mcp;
use crate::setup::{Rosters, Setup};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read this roster too; may be given several times
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
    /// Do not start with a policy that cannot be loaded
    #[arg(long)]
    strict: bool,
}

pub fn run(setup: Setup, args: Args) -> anyhow::Result<ExitCode> {
    let setup = setup.strict(args.strict);
    if std::io::stdin().is_terminal() {
        anstream::eprintln!("headcount serves MCP on stdin and stdout, and waits for a client; Ctrl-C ends it.");
    }
    if args.strict {
        // Once before anybody is answered; what was compiled is kept for the second time.
        setup.judge()()?;
    }
    let service = mcp::Service::start(setup, Rosters { files: args.roster, given: None })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(mcp::serve_stdio(service))?;
    // A read of stdin that is still waiting would keep the runtime from ending.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}
