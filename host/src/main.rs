//! The `headcount` program: parse, telemetry, run, exit code.

use headcount::cli::{ERROR, Invocation, USAGE, hook_event};
use headcount::config::command_line;
use headcount::hooks;
use headcount::upstream::NEVER_LOGGED;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let command_line = command_line();
    if let Some(event) = hook_event(&command_line) {
        // An agent waits for this. Only who asks for a log gets one.
        if let Ok(filter) = EnvFilter::try_from_default_env() {
            start_log(filter);
        }
        hooks::receive(event);
        return ExitCode::SUCCESS;
    }
    let invocation = match Invocation::parse(&command_line) {
        Ok(invocation) => invocation,
        Err(error) => {
            // Help and version are no errors and go to stdout; clap sees to both.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    start_log(match invocation.log_filter() {
        Some(fixed) => EnvFilter::new(fixed),
        None => EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,rmcp=off")),
    });
    match invocation.run() {
        Ok(code) => code,
        Err(error) => {
            // Each error says by itself what is wrong; its sources would say it again.
            headcount::stderr::line(&format!("headcount: {error}"));
            ExitCode::from(ERROR)
        }
    }
}

/// Everything that is no result goes to stderr. rmcp tells session ids at INFO and vanished clients at ERROR: neither is wanted,
/// unless it is asked for by name. Of its OAuth nothing is told ever: it has codes and answers with tokens in its log.
fn start_log(mut filter: EnvFilter) {
    let named = filter.to_string().contains("rmcp");
    let silent = ["rmcp=off", NEVER_LOGGED].into_iter().skip(usize::from(named));
    for directive in silent.filter_map(|directive| directive.parse().ok()) {
        filter = filter.add_directive(directive);
    }
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        // That the log cannot be written would be said on stderr, by a macro that panics where that cannot be written.
        .log_internal_errors(false)
        .init();
}
