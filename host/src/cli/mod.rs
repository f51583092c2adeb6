//! The command line: what can be typed, and one file for each command. Nothing here decides anything about agents.

mod bridge;
mod clients;
mod compile_policy;
mod completions;
mod config;
mod demo;
mod doctor;
mod grants;
mod hook;
mod interrupt;
mod look;
mod policy;
mod printer;
mod register;
mod run;
mod serve;
mod sessions;
mod stand_in;
mod status;
mod table;
mod token;
mod upstream;
mod wait;
mod work;

pub use hook::event as hook_event;

use crate::setup::Setup;
use crate::store::audit::{AuditLine, Micros, Outcome, Transport};
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code for what was asked could not be done.
pub const ERROR: u8 = 2;
/// Exit code for a command line that makes no sense (`EX_USAGE` of sysexits.h).
pub const USAGE: u8 = 64;

/// Who is working in this session, what is each agent doing, what does it cost the machine, is it healthy?
#[derive(Debug, Parser)]
#[command(
    name = "headcount",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 all is well, or done; 1 not so: something is degraded or worse or not known, nobody came \
                  (wait), a tool has failed (upstream call); 2 error; 64 wrong usage. --help of a command says what it has of its own.\n\
                  Results go to stdout, everything else to stderr. RUST_LOG=headcount=debug says more."
)]
struct Cli {
    /// Read this configuration file [default: $XDG_CONFIG_HOME/headcount/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Looks once: who works in each session, what it costs, and whether it is healthy
    Status(status::Args),
    /// Waits until an agent of a session needs somebody
    Wait(wait::Args),
    /// Lists the sessions of this machine
    Sessions(sessions::Args),
    /// Lists the MCP clients of headcount: who is connected, and what each has called
    Clients(clients::Args),
    /// Lists who may use your servers, or ends that
    #[command(subcommand)]
    Grants(grants::Command),
    /// Makes, lists or ends tokens to use your servers with
    #[command(subcommand)]
    Token(token::Command),
    /// Asks MCP servers that headcount is a client of
    #[command(subcommand)]
    Upstream(upstream::Command),
    /// Keeps one MCP session open for programs that can only read and write files
    Bridge(bridge::Args),
    /// Shows headcount at work on stand-in agents; needs nothing, leaves nothing
    Demo(demo::Args),
    /// Says what can be seen on this machine, what not, and what would help
    Doctor(doctor::Args),
    /// Serves MCP over stdin and stdout, or over HTTP
    Serve(serve::Args),
    /// Starts an agent and stands by it: registered, its end recorded, and started again if so wanted
    Run(run::Args),
    /// Declares an agent, so that it is seen under this name
    Register(register::RegisterArgs),
    /// Takes a declared agent off the list
    Unregister(register::UnregisterArgs),
    /// Takes an event that an agent sends, or arranges that agents send them
    Hook(hook::Args),
    /// Checks or shows the configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Writes, builds and tries policies of your own
    #[command(subcommand)]
    Policy(policy::Command),
    /// Prints a completion script for a shell
    Completions(completions::Args),
}

/// What this program starts itself as. Apart from the rest, so that it is neither listed nor completed nor suggested.
#[derive(Debug, Parser)]
#[command(name = "headcount")]
struct Own {
    #[command(subcommand)]
    command: OwnCommand,
}

#[derive(Debug, Subcommand)]
enum OwnCommand {
    /// Behaves like an agent of some kind, for `demo` and tests
    StandIn(stand_in::Args),
    /// Is an MCP server that misbehaves, for tests
    StandInServer(stand_in::ServerArgs),
    /// Compiles a policy from stdin into the cache, within limits
    CompilePolicy(compile_policy::Args),
    /// Keeps an agent for `run`
    Keep(run::KeepArgs),
    /// Becomes an agent for `run`
    Stage(run::StageArgs),
    /// Sleeps beside an agent for `run`
    Anchor(run::AnchorArgs),
    /// Hears signals beside an agent for `run`
    Witness,
}

/// A command line that was understood.
#[derive(Debug)]
pub struct Invocation(Typed);

#[derive(Debug)]
enum Typed {
    ByUser(Cli),
    ByUs(Own),
}

impl Invocation {
    /// Reads a command line, the program's own name first.
    ///
    /// # Errors
    /// When it makes no sense, or asks for help or the version.
    pub fn parse(command_line: &[OsString]) -> Result<Self, clap::Error> {
        let is_own = |word: &OsString| word.to_str().is_some_and(OwnCommand::has_subcommand);
        Ok(Self(match command_line.get(1).is_some_and(is_own) {
            true => Typed::ByUs(Own::try_parse_from(command_line)?),
            false => Typed::ByUser(Cli::try_parse_from(command_line)?),
        }))
    }

    /// What alone is logged, whatever `RUST_LOG` says; `None`: that decides.
    pub fn log_filter(&self) -> Option<&'static str> {
        matches!(&self.0, Typed::ByUser(Cli { command: Command::Bridge(_), .. })).then_some(bridge::LOG_FILTER)
    }

    /// Does what it says.
    ///
    /// # Errors
    /// When it cannot be done; the program then ends with [`ERROR`].
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.0 {
            Typed::ByUser(cli) => cli.run(),
            Typed::ByUs(own) => match own.command {
                OwnCommand::StandIn(args) => stand_in::run(&args),
                OwnCommand::StandInServer(args) => stand_in::serve(args),
                OwnCommand::CompilePolicy(args) => Ok(compile_policy::run(args)),
                OwnCommand::Keep(args) => run::keep(args),
                OwnCommand::Stage(args) => run::stage(&args),
                OwnCommand::Anchor(args) => run::anchor(&args),
                OwnCommand::Witness => run::witness(),
            },
        }
    }
}

impl Cli {
    fn run(self) -> anyhow::Result<ExitCode> {
        let setup = || Setup::new(self.config.as_deref());
        match self.command {
            Command::Status(args) => status::run(setup()?, args),
            Command::Wait(args) => wait::run(setup()?, args),
            Command::Sessions(args) => sessions::run(&setup()?, &args),
            Command::Clients(args) => clients::run(&setup()?.reading_once(), &args),
            Command::Grants(command) => grants::run(&setup()?.reading_once(), &command),
            Command::Token(command) => token::run(&setup()?.reading_once(), command),
            Command::Upstream(command) => upstream::run(&setup()?, command),
            Command::Bridge(args) => bridge::run(&setup()?, args),
            Command::Demo(args) => demo::run(&setup()?.without_cache(), &args),
            Command::Doctor(args) => doctor::run(&setup()?, &args),
            Command::Serve(args) => serve::run(setup()?, args),
            Command::Run(args) => run::run(setup(), args),
            Command::Register(args) => register::register(&setup()?, args),
            Command::Unregister(args) => register::unregister(&setup()?, &args),
            Command::Hook(args) => hook::run(&args),
            Command::Config(command) => config::run(self.config.as_deref(), &command),
            Command::Policy(command) => policy::run(self.config.as_deref(), command),
            Command::Completions(args) => completions::run(&args),
        }
    }
}

/// What a command that looks leaves in the audit log.
struct Noted {
    command: &'static str,
    session: Option<String>,
    outcome: Outcome,
    agents: u32,
    micros: Micros,
}

/// Notes in the audit log what a command has looked at, as MCP calls are noted.
fn note(setup: &Setup, Noted { command, session, outcome, agents, micros }: Noted) {
    setup.audit().record(AuditLine {
        unix_ms: setup.clock.now().unix_ms,
        principal: setup.user.clone(),
        client: format!("headcount {command}"),
        transport: Transport::Cli,
        tool: command,
        session,
        outcome,
        agents,
        micros,
    });
}
