//! headcount: who is working in this session, what is each one doing, what does it cost the machine, is it healthy?

pub mod clock;
pub mod config;
pub mod history;
pub mod judge;
pub mod names;
pub mod observe;
pub mod report;
pub mod store;
