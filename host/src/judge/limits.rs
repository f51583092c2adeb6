//! What one policy may use, and the guard that holds it to it.

use crate::config;
use std::time::Duration;
use wasmtime::ResourceLimiter;

/// What each call of a policy may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time from the start of a judgement; noticed within two ticks of [`super::engine::TICK`].
    pub deadline: Duration,
    /// Time for each call when it is loaded: its start, `describe` and `validate-settings`.
    pub load: Duration,
    /// Linear memory of all its memories together, bytes.
    pub memory: usize,
    /// What its answer may take up in this process, bytes (wasmtime's "hostcall fuel").
    pub result: usize,
}

impl From<config::Limits> for Limits {
    fn from(limits: config::Limits) -> Self {
        let bytes = |size: config::Size| usize::try_from(size.0).unwrap_or(usize::MAX);
        Self {
            deadline: limits.deadline.0,
            load: limits.load.0,
            memory: bytes(limits.memory),
            result: bytes(limits.result),
        }
    }
}

impl From<Limits> for config::Limits {
    fn from(limits: Limits) -> Self {
        let size = |bytes: usize| config::Size(bytes as u64);
        Self {
            deadline: config::Span(limits.deadline),
            load: config::Span(limits.load),
            memory: size(limits.memory),
            result: size(limits.result),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        config::Limits::default().into()
    }
}

impl Limits {
    /// The same, with the time that loading may take in the place of a judgement's.
    pub(super) fn while_loading(self) -> Self {
        Self { deadline: self.load, ..self }
    }
}

/// Elements of all tables together. Interpreters compiled to WebAssembly need tens of thousands.
pub(super) const TABLE_ELEMENTS: usize = 40_000;

/// Holds one store to its limits, and remembers what it refused.
#[derive(Debug)]
pub(super) struct Guard {
    memory: usize,
    /// What all its memories take up now, bytes. It never falls: memories do not shrink.
    pub in_memories: usize,
    in_tables: usize,
    /// The size that was asked for when memory was refused.
    pub refused_memory: Option<usize>,
    /// The elements that were asked for when a table was refused.
    pub refused_table: Option<usize>,
}

impl Guard {
    pub fn refused_anything(&self) -> bool {
        self.refused_memory.is_some() || self.refused_table.is_some()
    }

    pub fn new(limits: &Limits) -> Self {
        Self { memory: limits.memory, in_memories: 0, in_tables: 0, refused_memory: None, refused_table: None }
    }
}

impl ResourceLimiter for Guard {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.in_memories + desired.saturating_sub(current);
        if total > self.memory {
            // An allocator probes and copes with a refusal; that it did not cope shows in a trap afterwards.
            self.refused_memory = Some(total);
            return Ok(false);
        }
        self.in_memories = total;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.in_tables + desired.saturating_sub(current);
        if total > TABLE_ELEMENTS {
            self.refused_table = Some(total);
            return Ok(false);
        }
        self.in_tables = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        32
    }

    fn memories(&self) -> usize {
        8
    }
}
