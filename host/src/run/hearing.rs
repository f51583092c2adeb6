//! Who has heard which signal, so that each of the user's reaches the agent once.
//!
//! A signal may be sent to the front, to the keeper, to both by their common name, or to the whole process group, which the agent
//! is in too where it has the caller's terminal. Front and keeper alone cannot tell the last two apart: the
//! [witness](super::witness) can, for it is in the group and has another name.

use nix::sys::signal::Signal;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// What was sent to several processes at once has come to all of them within so long, also where the machine is busy.
pub const TOGETHER: Duration = Duration::from_secs(5);

/// Who hears signals in the agent's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ear {
    /// The process that the user has started.
    Front,
    /// The process that keeps the agent.
    Keeper,
}

/// What is known of signals that are still on their way to one of the ears.
#[derive(Debug, Default)]
pub struct Hearing {
    /// What the agent has already, by whom it is yet to be heard, and since when.
    known: HashMap<(Ear, Signal), VecDeque<Duration>>,
}

impl Hearing {
    /// The witness has heard a signal: so has the agent, and so will both ears. To be told before what they hear.
    pub fn came_to_all(&mut self, signal: Signal, now: Duration) {
        self.expect(Ear::Front, signal, now);
        self.expect(Ear::Keeper, signal, now);
    }

    /// One of the ears has heard a signal. Whether it is to be passed on.
    pub fn is_new(&mut self, ear: Ear, signal: Signal, now: Duration) -> bool {
        let known = self.known.entry((ear, signal)).or_default();
        known.retain(|since| now.saturating_sub(*since) <= TOGETHER);
        if known.pop_front().is_some() {
            return false;
        }
        let other = if ear == Ear::Front { Ear::Keeper } else { Ear::Front };
        self.expect(other, signal, now);
        true
    }

    fn expect(&mut self, ear: Ear, signal: Signal, now: Duration) {
        self.known.entry((ear, signal)).or_default().push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum To {
        Front,
        Keeper,
        Both,
        Group,
    }

    /// One signal of the user's, and in which order it is heard.
    fn sendings() -> impl Strategy<Value = Vec<(To, bool)>> {
        let to = prop_oneof![Just(To::Front), Just(To::Keeper), Just(To::Both), Just(To::Group)];
        prop::collection::vec((to, any::<bool>()), 1..20)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn each_reaches_the_agent_once(sendings in sendings(), killed in 0..30_usize, front_is_killed: bool) {
            let mut hearing = Hearing::default();
            let signal = Signal::SIGTERM;
            for (at, (to, keeper_first)) in sendings.into_iter().enumerate() {
                let lives = |ear| at < killed || (ear == Ear::Front) != front_is_killed;
                let now = (TOGETHER + Duration::from_millis(1)) * u32::try_from(at).unwrap();
                let mut ears = match to {
                    To::Front => vec![Ear::Front],
                    To::Keeper => vec![Ear::Keeper],
                    To::Both | To::Group => vec![Ear::Front, Ear::Keeper],
                };
                ears.retain(|ear| lives(*ear));
                if keeper_first {
                    ears.reverse();
                }
                // What was sent to a dead process alone reaches nobody.
                let wanted = usize::from(to == To::Group || !ears.is_empty());
                let mut reached = usize::from(to == To::Group);
                for (turn, ear) in ears.into_iter().enumerate() {
                    if to == To::Group && turn == 0 {
                        hearing.came_to_all(signal, now);
                    }
                    reached += usize::from(hearing.is_new(ear, signal, now));
                }
                prop_assert_eq!(reached, wanted, "{:?} at {}", to, at);
            }
        }

        #[test]
        fn signals_are_told_apart(first in 1..20_i32, second in 1..20_i32) {
            prop_assume!(first != second);
            let [first, second] = [first, second].map(|number| Signal::try_from(number).unwrap());
            let mut hearing = Hearing::default();
            hearing.came_to_all(first, Duration::ZERO);
            prop_assert!(hearing.is_new(Ear::Front, second, Duration::ZERO));
            prop_assert!(!hearing.is_new(Ear::Front, first, Duration::ZERO));
        }
    }
}
