//! Tests with real processes, each with those that it has made itself.

mod cpu;
mod stage;
