//! The demonstration: a session of stand-in agents, and what there is to see on each of its lines.

pub mod server;
pub mod stand_in;

use crate::names::{AgentName, BadName, SessionId};
use crate::observe::roster::{DeclaredAgent, DeclaredSession, Given, Locator, Roster, Said, Written};
use stand_in::{Behaviour, StandIn};
use std::path::Path;

/// The demonstration's session.
pub const SESSION: &str = "demo";

/// One stand-in with its part in the demonstration.
struct Part {
    name: &'static str,
    specialization: &'static str,
    behaviour: Behaviour,
    explanation: &'static str,
}

const PARTS: [Part; 5] = [
    Part {
        name: "busy",
        specialization: "builder",
        behaviour: Behaviour::Busy,
        explanation: "computes in two children and starts a short-lived one again and again. CPU, memory, threads and descriptors are \
                      those of the whole process tree, and the CPU of children that came and went between two looks is counted too.",
    },
    Part {
        name: "idle",
        specialization: "reviewer",
        behaviour: Behaviour::Idle,
        explanation: "does nothing. No record says so, it follows from its processes: the ~ marks what was concluded and not told.",
    },
    Part {
        name: "crowded",
        specialization: "tester",
        behaviour: Behaviour::Crowded,
        explanation: "has many threads, and almost as many open files as its own limit allows. The check fd-near-limit fails, so it is \
                      DEGRADED although nothing has broken yet.",
    },
    Part {
        name: "stopped",
        specialization: "writer",
        behaviour: Behaviour::Stopped,
        explanation: "was stopped by a signal, as Ctrl-Z does it. It is alive and will do nothing until somebody continues it.",
    },
    Part {
        name: "crashing",
        specialization: "deployer",
        behaviour: Behaviour::Crashing,
        explanation: "works for two seconds and then ends with exit code 3. An agent that ended badly is FAILED, and makes its session \
                      DEGRADED at least.",
    },
];

/// A running demonstration. Its processes end when it is dropped, or when this program ends, however it ends.
pub struct Demo {
    stand_ins: Vec<StandIn>,
}

impl Demo {
    /// Starts the stand-ins; `program` is the headcount executable.
    ///
    /// # Errors
    /// When a process cannot be started.
    pub fn start(program: &Path) -> std::io::Result<Self> {
        let stand_ins = PARTS.iter().map(|part| StandIn::start(program, part.behaviour)).collect::<Result<_, _>>()?;
        Ok(Self { stand_ins })
    }

    /// The roster that declares them.
    ///
    /// # Errors
    /// None, as long as the names of the parts are names.
    pub fn roster(&self) -> Result<Given, BadName> {
        let agent = |(part, stand_in): (&Part, &StandIn)| {
            Ok(DeclaredAgent {
                name: AgentName::parse(part.name)?,
                specialization: Some(part.specialization.to_owned()),
                process: Locator::Pid { pid: stand_in.pid(), start: None, written: Written::default() },
                declared_at_ms: None,
                run: None,
                said: Said::default(),
            })
        };
        let agents = PARTS.iter().zip(&self.stand_ins).map(agent).collect::<Result<_, _>>()?;
        let session = DeclaredSession {
            name: Some("Demonstration".to_owned()),
            agents,
            ..DeclaredSession::new(SessionId::parse(SESSION)?)
        };
        Ok(Given::new("demo", Roster { sessions: vec![session] }))
    }
}

/// What there is to see on each line: the agent's name, and the explanation.
pub fn explanations() -> impl Iterator<Item = (&'static str, &'static str)> {
    PARTS.iter().map(|part| (part.name, part.explanation))
}
