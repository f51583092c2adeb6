//! The authorization server, step by step and out of step.
