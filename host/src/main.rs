//! The `headcount` program: parse, telemetry, run, exit code.

fn main() {}
