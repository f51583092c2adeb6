//! Checks of an agent's figures against their limits.

use super::{Checker, Rule, limit, over, warning};
use crate::text::Bytes;
use crate::{Activity, MemoryMethod, Outcome};

const CPU_RUNAWAY: Rule = Rule { name: "cpu-runaway", action: "find the busy process in its tree and end it" };
const MEMORY_HIGH: Rule =
    Rule { name: "memory-high", action: "find the large process in its tree, or start the agent anew" };
const MEMORY_GROWTH: Rule = Rule { name: "memory-growth", action: "look for a leak before memory runs out" };
const FD_NEAR_LIMIT: Rule = Rule { name: "fd-near-limit", action: "look for leaked files or raise its limit" };
const THREAD_COUNT: Rule =
    Rule { name: "thread-count", action: "look for a program in its tree that starts threads without end" };
const ZOMBIE_CHILDREN: Rule =
    Rule { name: "zombie-children", action: "start the agent anew: it does not collect its ended children" };
const LEFTOVER_PROCESSES: Rule = Rule { name: "leftover-processes", action: "" };

impl Checker<'_> {
    pub(super) fn cpu_runaway(&mut self) {
        let settings = self.settings;
        if matches!(self.known.activity, Activity::Idle | Activity::WaitingForInput)
            && let Some(percent) = self.mean_cpu()
        {
            let found = over(percent, settings.cpu_runaway_warn, settings.cpu_runaway_fail);
            let detail = format_args!("{percent} % CPU with no work claimed (limit {} %)", limit(found));
            self.report(&CPU_RUNAWAY, settings.cpu_runaway_weight, found, detail);
        }
    }

    pub(super) fn memory_high(&mut self) {
        let settings = self.settings;
        let weight = settings.memory_high_weight;
        let Some(bytes) = self.agent.metrics.memory_bytes else {
            return self.unmeasured(&MEMORY_HIGH, weight, &["memory-bytes"]);
        };
        let mut found = over(bytes, settings.memory_high_warn, settings.memory_high_fail);
        // An estimate counts pages again that a process shares with those it was forked from: it may be a hundred times too high.
        let measured = self.agent.metrics.memory_method == MemoryMethod::Pss;
        if let Some(found) = &mut found
            && !measured
        {
            found.outcome = Outcome::Warn;
        }
        let how = if measured { "" } else { ", estimated" };
        let detail = format_args!("{} of memory{how} (limit {})", Bytes(bytes), Bytes(limit(found)));
        self.report(&MEMORY_HIGH, weight, found, detail);
    }

    pub(super) fn memory_growth(&mut self) {
        let settings = self.settings;
        let slope = self.watched(settings.memory_growth_after).and_then(|trend| trend.memory_bytes_per_minute);
        let (Some(slope), Some(bytes)) = (slope.filter(|slope| slope.is_finite()), self.agent.metrics.memory_bytes)
        else {
            return;
        };
        // Shrinking memory is no growth: the cast makes it 0.
        let growth = slope as u64;
        let found = over(growth, settings.memory_growth_warn, settings.memory_growth_fail)
            .filter(|_| bytes >= settings.memory_growth_above);
        let detail = format_args!("{} more memory a minute (limit {})", Bytes(growth), Bytes(limit(found)));
        self.report(&MEMORY_GROWTH, settings.memory_growth_weight, found, detail);
    }

    pub(super) fn fd_near_limit(&mut self) {
        let settings = self.settings;
        let weight = settings.fd_near_limit_weight;
        let metrics = &self.agent.metrics;
        let (Some(open), Some(most @ 1..)) = (metrics.fullest_fds, metrics.fd_limit) else {
            return self.unmeasured(&FD_NEAR_LIMIT, weight, &["fullest-fds", "fd-limit", "file-descriptors"]);
        };
        let percent = u64::from(open) * 100 / u64::from(most);
        let found = over(percent, settings.fd_near_limit_warn, settings.fd_near_limit_fail);
        self.report(
            &FD_NEAR_LIMIT,
            weight,
            found,
            format_args!("{open} of {most} descriptors (limit {} %)", limit(found)),
        );
    }

    pub(super) fn thread_count(&mut self) {
        let settings = self.settings;
        let weight = settings.thread_count_weight;
        let Some(threads) = self.agent.metrics.threads else {
            return self.unmeasured(&THREAD_COUNT, weight, &["threads"]);
        };
        let found = over(threads.into(), settings.thread_count_warn, settings.thread_count_fail);
        self.report(&THREAD_COUNT, weight, found, format_args!("{threads} threads (limit {})", limit(found)));
    }

    pub(super) fn zombie_children(&mut self) {
        let settings = self.settings;
        let weight = settings.zombie_children_weight;
        let Some(zombies) = self.agent.metrics.zombies else {
            return self.unmeasured(&ZOMBIE_CHILDREN, weight, &["zombies"]);
        };
        let found = over(zombies.into(), settings.zombie_children_warn, settings.zombie_children_fail);
        self.report(
            &ZOMBIE_CHILDREN,
            weight,
            found,
            format_args!("{zombies} ended children not collected (limit {})", limit(found)),
        );
    }

    pub(super) fn leftover_processes(&mut self) {
        let Some(left) = self.agent.metrics.processes else {
            return;
        };
        let found = (left > 0).then(|| warning(Some(left.into())));
        self.report(
            &LEFTOVER_PROCESSES,
            self.settings.leftover_processes_weight,
            found,
            format_args!("{left} of its processes live on"),
        );
    }
}
