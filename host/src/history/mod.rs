//! What was, in memory: enough of each agent's past to say how its figures move and for how long it has been quiet.

mod series;

use crate::observe::facts::Trend;
use series::Series;
use std::collections::HashMap;
use std::time::Duration;

/// How the past is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How far back trends reach.
    pub window: Duration,
    /// Noise floor: percent of one core.
    pub quiet_cpu_percent: f64,
    /// Noise floor: bytes moved by system calls in a second.
    pub quiet_io: u64,
}

/// One agent's figures at one moment. CPU time and IO are counters that never fall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// When, on the steady clock.
    pub at: Duration,
    /// CPU time of its tree since it was first seen.
    pub cpu_time: Duration,
    /// Memory of its tree, bytes.
    pub memory: Option<u64>,
    /// Bytes moved by system calls since it was first seen.
    pub io: Option<u64>,
}

/// The past of all agents that are seen now.
#[derive(Debug)]
pub struct History {
    options: Options,
    /// By session and agent: the ids of declared agents are their session's own.
    sessions: HashMap<String, HashMap<String, Series>>,
}

impl History {
    /// No past yet.
    pub fn new(options: Options) -> Self {
        Self { options, sessions: HashMap::new() }
    }

    /// Adds a sample of one agent and says how its figures have moved.
    pub fn record(&mut self, session_id: &str, agent_id: &str, sample: Sample) -> Trend {
        if let Some(series) = self.sessions.get_mut(session_id).and_then(|agents| agents.get_mut(agent_id)) {
            return series.record(sample, &self.options);
        }
        let series = Series::starting_with(sample);
        let trend = series.trend();
        self.sessions.entry(session_id.to_owned()).or_default().insert(agent_id.to_owned(), series);
        trend
    }

    /// Forgets all agents that had no sample at `at`.
    pub fn forget_before(&mut self, at: Duration) {
        self.sessions.retain(|_, agents| {
            agents.retain(|_, series| series.latest() >= at);
            !agents.is_empty()
        });
    }
}
