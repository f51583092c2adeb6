//! `headcount stand-in KIND`: hidden, because it is of use only to `demo` and to tests.

use crate::demo::stand_in::{self, Behaviour};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it does
    #[arg(value_parser = PossibleValuesParser::new(Behaviour::ALL.map(|(word, _)| word)).map(behaviour))]
    behaviour: Behaviour,
    /// The process that started it and with which it ends; the one whose child it is, if left out
    #[arg(long, value_name = "PID")]
    parent: Option<u32>,
}

fn behaviour(word: String) -> Behaviour {
    Behaviour::ALL.iter().find(|(known, _)| *known == word).map_or(Behaviour::Idle, |(_, b)| *b)
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    stand_in::run(args.behaviour, args.parent)
}
