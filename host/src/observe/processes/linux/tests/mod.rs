//! Tests with real processes, each with those that it has made itself, and with made-up trees for what no test can
//! bring about: a pid that is used again, a mount that hides processes, a kernel without CPU clocks.

mod cpu;
mod descriptors;
mod figures;
mod life;
mod made_up;
mod stage;
