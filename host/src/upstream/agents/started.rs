//! Who has started whom: a headcount that is started as an upstream server reads the same configuration, and would start itself
//! again without end.

use crate::config::{STARTED_BY, Upstream};
use crate::names::Instance;

/// So many headcounts may start one another.
const DEEPEST: usize = 8;

/// The upstreams that the headcount `me` may ask for agents, when it was itself started by these. Servers that it starts are
/// told by whom; where it has started itself it starts none, and those that are there already it asks all the same.
pub fn may_be_asked(upstreams: &[Upstream], me: Instance, started_by: &[Instance]) -> Vec<Upstream> {
    let starts_none = started_by.contains(&me) || started_by.len() >= DEEPEST;
    let chain: Vec<_> = started_by.iter().chain([&me]).map(Instance::to_string).collect();
    let mut asked = Vec::new();
    for upstream in upstreams {
        let mut upstream = upstream.clone();
        if upstream.command.is_some() {
            if starts_none && upstream.agents_from.is_some() {
                tracing::warn!("upstream {}: not started, as this program was started as one itself", upstream.name);
                continue;
            }
            upstream.env.insert(STARTED_BY.to_owned(), chain.join(","));
        }
        asked.push(upstream);
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Environment, check_toml};

    #[test]
    fn nobody_starts_itself_again() {
        let text = "[[upstream]]\nname = 'near'\ncommand = 'headcount'\nagents_from = { tool = 'list_sessions' }\n\
            [[upstream]]\nname = 'far'\nurl = 'https://e.org'\nagents_from = { tool = 'list_sessions' }\n";
        let upstreams = check_toml::<Config>(text, "config.toml".as_ref()).unwrap().value.upstreams;
        let names = |asked: &[Upstream]| asked.iter().map(|one| one.name.clone()).collect::<Vec<_>>().join(" ");
        let [me, other] = [Instance::of(&[b"me"]), Instance::of(&[b"other"])];
        let first = may_be_asked(&upstreams, me, &[]);
        assert_eq!(names(&first), "near far");
        assert!(first[1].env.is_empty(), "only what is started has an environment");
        let child = Environment::from_iter(first[0].env.clone()).started_by();
        assert_eq!(child, [me]);
        assert_eq!(names(&may_be_asked(&upstreams, me, &child)), "far");
        let second = may_be_asked(&upstreams, other, &child);
        assert_eq!(Environment::from_iter(second[0].env.clone()).started_by(), [me, other]);
        assert_eq!(names(&may_be_asked(&upstreams, other, &[me; DEEPEST])), "far");
    }
}
