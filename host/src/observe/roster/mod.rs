//! Agents that somebody has declared.
