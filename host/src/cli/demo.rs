//! `headcount demo`: what `status` says of a session of stand-ins, live, each line explained once.

use super::{printer, table};
use crate::demo::{self, Demo};
use crate::monitor::Tick;
use crate::report::{self, View};
use crate::setup::{Rosters, Setup};
use owo_colors::OwoColorize as _;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How long to watch
    #[arg(long, value_name = "SECONDS", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

pub fn run(setup: &Setup, args: &Args) -> anyhow::Result<ExitCode> {
    let demo = Demo::start(&std::env::current_exe()?)?;
    let rosters = Rosters { given: Some(demo.roster()?), ..Rosters::default() };
    let mut watcher = setup.watcher(rosters)?;
    printer::line(&"headcount demo".bold().to_string())?;
    let intro = "Five stand-in agents now run on this machine. This is what `headcount status` says of them, and of any real agents that run \
                 here, looked at each second.";
    printer::prose(intro, "")?;
    printer::line("")?;
    let mut frame = Frame::default();
    frame.show(&screen(&watcher.look()?))?;
    for _ in 0..args.seconds {
        thread::sleep(Duration::from_secs(1));
        frame.show(&screen(&watcher.tick()?))?;
    }
    frame.finish()?;
    printer::line(&format!("\n{}", "Line by line".bold()))?;
    for (name, explanation) in demo::explanations() {
        printer::prose(&format!("  {} {explanation}", format!("{name:<9}").bold()), "            ")?;
    }
    drop(demo);
    printer::line("")?;
    let next = format!(
        "The stand-ins have been ended. Next: {} looks at your own agents, {} serves the same answer to MCP clients, and {} says what can be \
         seen on this machine.",
        "headcount status".bold(),
        "headcount serve".bold(),
        "headcount doctor".bold()
    );
    printer::prose(&next, "")?;
    Ok(ExitCode::SUCCESS)
}

fn screen(tick: &Tick) -> String {
    let view = View::default();
    let (ours, others): (Vec<_>, Vec<_>) = tick.sessions.iter().partition(|s| s.facts.session.id == demo::SESSION);
    let show = |seen: &&std::sync::Arc<crate::monitor::Seen>| {
        table::report(&report::report(&seen.facts, &seen.judgement, &view, 0), &view)
    };
    ours.iter().chain(&others).map(show).collect::<Vec<_>>().join("\n")
}

/// A text that is shown again and again in the same place; where stdout is no terminal, or one too small for it, only its first
/// and last state.
#[derive(Default)]
struct Frame {
    shown: bool,
    /// Rows that the text takes which is on the screen now; `None`: it cannot be shown again in its place.
    rows: Option<usize>,
    last: Option<String>,
}

impl Frame {
    fn show(&mut self, text: &str) -> std::io::Result<()> {
        let rows = if std::io::stdout().is_terminal() { table::rows_on_screen(text) } else { None };
        match (self.shown, self.rows, rows) {
            (false, ..) => {}
            // Up to the frame's first line, and clear from there (ECMA-48 CPL and ED).
            (true, Some(up), Some(_)) => printer::write(&format!("\u{1b}[{up}F\u{1b}[J"))?,
            _ => {
                self.last = Some(text.to_owned());
                return Ok(());
            }
        }
        (self.shown, self.rows, self.last) = (true, rows, None);
        printer::write(text)
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.last.take().map_or(Ok(()), |text| printer::write(&format!("\n… and at the end:\n{text}")))
    }
}
