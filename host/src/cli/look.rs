//! One look, as all commands take it that look once.

use super::interrupt::uninterrupted;
use crate::monitor::{Tick, Watcher};
use crate::setup::{Rosters, Setup};
use crate::upstream::Pool;
use anyhow::Context as _;
use std::sync::Arc;
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

/// What was seen, and who has looked, which ends when this is dropped.
pub(super) struct Look {
    pub tick: Tick,
    #[expect(dead_code, reason = "what it has to write is written while this is shown")]
    watcher: Watcher,
    #[expect(dead_code, reason = "its sessions end while this is shown, and are waited for")]
    upstreams: Option<Arc<Pool>>,
}

/// Looks once, at the agents of upstream servers, too, as far as these answer in time; `None`: somebody has interrupted it.
pub(super) fn look(setup: &Setup, rosters: Rosters) -> anyhow::Result<Option<Look>> {
    let upstreams = setup.pool(None)?;
    let mut watcher = setup.patient_watcher(Rosters { upstreams: upstreams.clone(), ..rosters })?;
    let Some(pool) = &upstreams else {
        return Ok(Some(Look { tick: watcher.look()?, watcher, upstreams }));
    };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let looking = async { spawn_blocking(move || (watcher.look(), watcher)).await };
    let looked = runtime.block_on(uninterrupted(looking));
    pool.close();
    // Nobody waits for a look that was interrupted, and that still holds on to them.
    runtime.shutdown_background();
    let Some(looked) = looked? else {
        pool.end();
        return Ok(None);
    };
    let (tick, watcher) = looked.context("looking has failed; see the log")?;
    Ok(Some(Look { tick: tick?, watcher, upstreams }))
}
