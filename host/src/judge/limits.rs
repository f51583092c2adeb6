//! What one policy may use, and the guard that holds it to it.

use std::time::Duration;
use wasmtime::ResourceLimiter;

/// What one call of a policy may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time from the start of the call; noticed within two ticks of [`super::engine::TICK`].
    pub deadline: Duration,
    /// Linear memory of all its memories together, bytes.
    pub memory: usize,
    /// What its answer may take up in this process, bytes (wasmtime's "hostcall fuel").
    pub result: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_millis(250), memory: 48 << 20, result: 32 << 20 }
    }
}

/// Elements of all tables together. Interpreters compiled to WebAssembly need tens of thousands.
const TABLE_ELEMENTS: usize = 40_000;

/// Holds one store to its limits, and remembers what it refused.
#[derive(Debug)]
pub(super) struct Guard {
    memory: usize,
    in_memories: usize,
    in_tables: usize,
    /// The size that was asked for when memory was refused.
    pub refused_memory: Option<usize>,
}

impl Guard {
    pub fn new(limits: &Limits) -> Self {
        Self { memory: limits.memory, in_memories: 0, in_tables: 0, refused_memory: None }
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
