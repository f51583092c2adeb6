//! Policies of one's own: a project to start from, and how a component is made of it.

pub mod build;
mod manifest;
pub mod project;
#[cfg(test)]
mod tests;

pub use manifest::{MANIFEST, Manifest};
