//! `headcount wait`: the same as the tool `wait_for_attention`, for scripts.

use super::interrupt::{INTERRUPTED, uninterrupted};
use super::{Noted, note, printer};
use crate::config::Span;
use crate::monitor::{Monitor, Sight};
use crate::query::{self, QueryError};
use crate::report::{self, Mark};
use crate::setup::{Rosters, Setup};
use crate::store::audit::Outcome;
use crate::waiting::{DEFAULT_SECONDS, MAX_SECONDS, Waited, Waiting};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 somebody needs attention, or the session has ended; 1 nobody did until the time was over; \
                        2 error; 130 Ctrl-C or SIGTERM."
)]
pub struct Args {
    /// The session's id, or its name where that is unique
    session: String,
    /// Wait this long at the most, up to 1h
    #[arg(long, value_name = "TIME", default_value_t = Span::from_millis(DEFAULT_SECONDS * 1000), value_parser = timeout)]
    timeout: Span,
    /// The mark of an earlier answer: only what has begun after it counts
    #[arg(long, value_name = "MARK")]
    since: Option<Mark>,
    /// Print JSON (schema headcount.attention/1)
    #[arg(long)]
    json: bool,
    /// Read this roster too; may be given several times
    #[arg(long, value_name = "FILE")]
    roster: Vec<PathBuf>,
}

fn timeout(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    let most = Span(Duration::from_secs(MAX_SECONDS));
    let fits = (Span::from_millis(1000)..=most).contains(&span);
    if fits { Ok(span) } else { Err(format!("it can be 1s to {most}")) }
}

pub fn run(setup: Setup, args: Args) -> anyhow::Result<ExitCode> {
    let setup = Arc::new(setup);
    let started = setup.clock.now().steady;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let came_to = runtime.block_on(wait(&setup, &args));
    let (outcome, agents) = match &came_to {
        Ok(Some(waited)) => (Outcome::Ok, waited.attention.needs.len()),
        Ok(None) => (Outcome::Cancelled, 0),
        Err(error) => (error.downcast_ref().map_or(Outcome::Failed, QueryError::outcome), 0),
    };
    let noted = Noted {
        command: "wait",
        session: Some(report::clean(&args.session)),
        outcome,
        agents: u32::try_from(agents).unwrap_or(u32::MAX),
        micros: query::micros(None, Duration::ZERO, setup.clock.now().steady - started),
    };
    note(&setup, noted);
    let Some(waited) = came_to? else { return Ok(ExitCode::from(INTERRUPTED)) };
    if args.json {
        printer::json(&waited)?;
    } else {
        printer::write(&waited.summary("--since"))?;
    }
    Ok(ExitCode::from(u8::from(waited.timed_out)))
}

/// What came of waiting; `None`: somebody has interrupted it.
async fn wait(setup: &Arc<Setup>, args: &Args) -> anyhow::Result<Option<Waited>> {
    let upstreams = setup.pool(None)?;
    let rosters = Rosters { files: args.roster.clone(), upstreams: upstreams.clone(), ..Rosters::default() };
    let for_thread = Arc::clone(setup);
    let monitor = Monitor::start(move || for_thread.patient_watcher(rosters), setup.pace(), Arc::clone(&setup.clock))?;
    let waited = uninterrupted(async {
        let mut waiting = Waiting::begin(&monitor, &Sight::All, &args.session, args.since.clone()).await?;
        let in_time = tokio::time::timeout(args.timeout.0, waiting.until_needed()).await;
        Ok::<_, QueryError>(in_time.unwrap_or_else(|_| Ok(waiting.timed_out()))?)
    });
    let waited = waited.await;
    if let Some(upstreams) = upstreams {
        upstreams.end();
    }
    Ok(waited?.transpose()?)
}
