//! The terminal that an agent runs in, as that terminal itself names it.

use crate::observe::facts::Terminal;
use crate::observe::processes::{Process, Program, terminal_name};
use std::borrow::Cow;

/// The innermost terminal that says its name: a tmux pane keeps the variables of the window that tmux was once
/// started in, so it comes first. Without either, the device.
pub fn terminal_of(process: &Process, program: &Program) -> Option<Terminal> {
    let variable = |name: &str| {
        let environment = program.env.as_ref().ok()?;
        environment.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.clone())
    };
    let named = |app, id: Option<String>| id.map(|id| Terminal { app: Cow::Borrowed(app), id });
    named("tmux", variable("TMUX_PANE"))
        .or_else(|| named("iterm2", variable("ITERM_SESSION_ID")))
        .or_else(|| named("tty", terminal_name(process.tty_nr)))
}
