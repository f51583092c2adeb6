//! One engine for all policies, and the only place that makes stores: no store exists without every limit set.

use super::compile::{Compiler, Trust};
use super::limits::{Guard, Limits};
use super::outcome::{LoadError, Outcome};
use crate::clock::{Clock as _, SystemClock};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;
use wasmtime::component::Component;
use wasmtime::{
    Cache, Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store, Trap, UpdateDeadline,
};

/// How often running policies are looked at for their deadline. Shorter costs more: 1 ms is 2 % of a core, 10 ms 0.3 %.
pub const TICK: Duration = Duration::from_millis(10);

/// The largest memory that a policy may have unless more is configured, bytes.
const LARGEST_MEMORY: usize = 64 << 20;

/// The engine with its clock.
#[derive(Clone)]
pub struct Runtime {
    engine: Engine,
    layout: Layout,
    compiler: Compiler,
    running: Arc<Running>,
    clock: Arc<SystemClock>,
}

impl Runtime {
    /// An engine that keeps what it compiled in `cache`: the built-in policy then starts in a millisecond instead of forty and
    /// without the 15 MiB that compiling takes; policies in interpreted languages in a few milliseconds instead of seconds.
    /// Where nothing may be kept, or the directory cannot be used, everything is compiled at each start.
    ///
    /// `program` compiles what is not trusted, in a process of its own; without it, everything is compiled in this one.
    /// `memory` is the most that any policy may have, in bytes.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly at all.
    pub fn new(cache: Option<&Path>, program: Option<&Path>, memory: usize) -> Result<Self, LoadError> {
        let (compiler, opened) = Compiler::open(cache, program);
        let mut layout = Layout { pooled: true, largest: memory.max(LARGEST_MEMORY) };
        let engine = Engine::new(&config(layout, opened.clone())).or_else(|pooled| {
            tracing::debug!(error = %pooled, "no address space for a pool of memories, allocating them one by one");
            layout.pooled = false;
            Engine::new(&config(layout, opened))
        });
        let engine = engine.map_err(|e| LoadError::Engine(format!("{e:#}")))?;
        let running = Arc::new(Running::default());
        start_ticker(engine.weak(), Arc::downgrade(&running)).map_err(|e| LoadError::Engine(e.to_string()))?;
        Ok(Self { engine, layout, compiler, running, clock: Arc::default() })
    }

    /// Compiles a policy: where it is not trusted, within limits.
    ///
    /// # Errors
    /// [`Outcome::Compile`] when it takes more than compiling may, [`Outcome::NotAPolicy`] when it cannot be compiled.
    pub(super) fn compile(&self, bytes: &[u8], trust: Trust) -> Result<Component, Outcome> {
        if trust != Trust::Trusted {
            self.compiler.prepare(&self.engine, self.layout, bytes, trust == Trust::UntrustedAgain)?;
        }
        let missing = self.compiler.misses();
        let component = Component::new(&self.engine, bytes).map_err(|error| super::compile::not_compiled(&error))?;
        if trust != Trust::Trusted && self.compiler.is_apart() && self.compiler.misses() > missing {
            // It is known to compile within the limits, so that this cannot have taken much.
            tracing::warn!("what was compiled in a process of its own was not found, and was compiled again");
        }
        Ok(component)
    }

    /// Whether loading these bytes takes no compiling.
    pub(super) fn is_prepared(&self, bytes: &[u8]) -> bool {
        self.compiler.is_prepared(&self.engine, bytes)
    }

    /// Seals what has been compiled, so that the next start finds it. To be called when policies have been loaded.
    pub fn keep(&self) {
        self.compiler.keep();
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// A store with every limit set. The deadline runs from now.
    pub(super) fn store(&self, limits: &Limits) -> (Store<Guard>, Ticking) {
        let ticking = Running::enter(&self.running);
        let mut store = Store::new(&self.engine, Guard::new(limits));
        store.limiter(|guard| guard);
        store.set_hostcall_fuel(limits.result);
        // On a busy machine ticks come late, so the clock counts. But a process that was not let run for a while has not had its
        // time either: then some ticks must have passed, too.
        let (clock, deadline) = (Arc::clone(&self.clock), limits.deadline);
        let start = clock.now().steady;
        let mut ticks_left = deadline.as_nanos() / TICK.as_nanos() / 4;
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| {
            ticks_left = ticks_left.saturating_sub(1);
            let over = ticks_left == 0 && clock.now().steady.saturating_sub(start) >= deadline;
            if over { Err(Trap::Interrupt.into()) } else { Ok(UpdateDeadline::Continue(1)) }
        });
        (store, ticking)
    }
}

/// How memories are laid out. Compiled code depends on it, so that another process must lay them out alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Whether there is a pool of them, which takes address space.
    pub pooled: bool,
    /// The largest, bytes.
    pub largest: usize,
}

/// The engine's settings.
pub(super) fn config(layout: Layout, cache: Option<Cache>) -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).concurrency_support(false).cranelift_nan_canonicalization(true).cache(cache);
    // What a policy says before it breaks is read from its memory, which only the dump of a trap gives access to.
    config.coredump_on_trap(true);
    if layout.pooled {
        // Resetting only what was touched makes a fresh instance as cheap as a used one, where the kernel can say what was.
        let scan = PoolingAllocationConfig::is_pagemap_scan_available();
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(8)
            .total_core_instances(64)
            .total_memories(8)
            .total_tables(32)
            .table_elements(40_000)
            .max_memories_per_component(8)
            .max_memory_size(layout.largest)
            .linear_memory_keep_resident(if scan { 1 << 20 } else { 256 << 10 })
            .table_keep_resident(64 << 10)
            .pagemap_scan(Enabled::Auto);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    } else {
        // No more than is used, and hardly any guard: this is for processes that may have little address space.
        config.memory_reservation(0).memory_reservation_for_growth(1 << 20).memory_guard_size(1 << 16);
    }
    config
}

/// How many calls run now; the ticker sleeps while none does.
#[derive(Default)]
struct Running {
    calls: Mutex<usize>,
    changed: Condvar,
}

impl Running {
    fn enter(this: &Arc<Self>) -> Ticking {
        *this.calls.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        this.changed.notify_all();
        Ticking(Arc::clone(this))
    }
}

/// Keeps the ticker going while a call runs.
pub(super) struct Ticking(Arc<Running>);

impl Drop for Ticking {
    fn drop(&mut self) {
        *self.0.calls.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

/// Ends by itself when the engine is gone.
fn start_ticker(engine: wasmtime::EngineWeak, running: Weak<Running>) -> std::io::Result<()> {
    thread::Builder::new().name("policy-deadlines".into()).spawn(move || {
        while let (Some(running), Some(engine)) = (running.upgrade(), engine.upgrade()) {
            let calls = running.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let idle = *calls == 0;
            if idle {
                // Wakes now and then to see whether the engine still exists.
                let waited = running.changed.wait_timeout(calls, Duration::from_secs(1));
                drop(waited.unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            drop(calls);
            thread::sleep(TICK);
            engine.increment_epoch();
        }
    })?;
    Ok(())
}
