//! One engine for all policies, and the only place that makes stores: no store exists without every limit set.

use super::cache::SealedCache;
use super::limits::{Guard, Limits};
use super::outcome::LoadError;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;
use wasmtime::{Cache, Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

/// How often running policies are looked at for their deadline. Shorter costs more: 1 ms is 2 % of a core, 10 ms 0.3 %.
pub const TICK: Duration = Duration::from_millis(10);

/// The engine with its clock.
#[derive(Clone)]
pub struct Runtime {
    engine: Engine,
    sealed: Option<SealedCache>,
    running: Arc<Running>,
}

impl Runtime {
    /// An engine that keeps what it compiled in `cache`: the built-in policy then starts in a millisecond instead of forty and
    /// without the 15 MiB that compiling takes; policies in interpreted languages in a few milliseconds instead of seconds.
    /// Where nothing may be kept, or the directory cannot be used, everything is compiled at each start.
    ///
    /// # Errors
    /// When this machine cannot run WebAssembly at all.
    pub fn new(cache: Option<&Path>) -> Result<Self, LoadError> {
        let open = |folder: &Path| {
            let opened = SealedCache::open(folder);
            opened
                .inspect_err(|error| tracing::warn!("compiled policies are not kept in {}: {error}", folder.display()))
                .ok()
        };
        let (sealed, opened) = cache.and_then(open).unzip();
        let engine = Engine::new(&config(Memory::Pooled, opened.clone())).or_else(|pooled| {
            tracing::debug!(error = %pooled, "no address space for a pool of memories, allocating them one by one");
            Engine::new(&config(Memory::OnDemand, opened))
        });
        let engine = engine.map_err(|e| LoadError::Engine(format!("{e:#}")))?;
        let running = Arc::new(Running::default());
        start_ticker(engine.weak(), Arc::downgrade(&running)).map_err(|e| LoadError::Engine(e.to_string()))?;
        Ok(Self { engine, sealed, running })
    }

    /// Seals what has been compiled, so that the next start finds it. To be called when all policies are loaded.
    pub fn keep(&self) {
        if let Some(sealed) = &self.sealed
            && let Err(error) = sealed.seal()
        {
            tracing::warn!("compiled policies are not kept: {error}");
        }
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
        // One tick more than the deadline has, because the running tick is already partly over.
        let ticks = limits.deadline.as_nanos().div_ceil(TICK.as_nanos()) + 1;
        store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX / 2));
        (store, ticking)
    }
}

enum Memory {
    Pooled,
    OnDemand,
}

fn config(memory: Memory, cache: Option<Cache>) -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true).concurrency_support(false).cranelift_nan_canonicalization(true).cache(cache);
    match memory {
        // No more than is used, and hardly any guard: this is for processes that may have little address space.
        Memory::OnDemand => {
            config.memory_reservation(0).memory_reservation_for_growth(1 << 20).memory_guard_size(1 << 16)
        }
        Memory::Pooled => {
            // Resetting only what was touched makes a fresh instance as cheap as a used one, where the kernel can say what was.
            let scan = PoolingAllocationConfig::is_pagemap_scan_available();
            let mut pool = PoolingAllocationConfig::new();
            pool.total_component_instances(8)
                .total_core_instances(64)
                .total_memories(8)
                .total_tables(32)
                .table_elements(40_000)
                .max_memories_per_component(8)
                .max_memory_size(64 << 20)
                .linear_memory_keep_resident(if scan { 1 << 20 } else { 256 << 10 })
                .table_keep_resident(64 << 10)
                .pagemap_scan(Enabled::Auto);
            config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        }
    };
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
