//! How an agent ended, and what that means for whoever waits for it.

use crate::text;
use rustix::process::{WaitIdStatus, WaitStatus};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// The signals by which people and systems ask a process to end: SIGHUP, SIGINT and SIGTERM.
pub const REQUESTS: [i32; 3] = [1, 2, 15];

/// How a process ended: its exit code, or minus the number of the signal that ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending(pub i32);

impl Ending {
    /// How the process of this status ended; `None`: it has not.
    pub fn of(status: WaitStatus) -> Option<Self> {
        status.exit_status().or_else(|| status.terminating_signal().map(|signal| -signal)).map(Self)
    }

    /// The same of a process that nobody has waited for yet.
    pub fn peeked(status: &WaitIdStatus) -> Option<Self> {
        status.exit_status().or_else(|| status.terminating_signal().map(|signal| -signal)).map(Self)
    }

    /// Whether it is to be started again. Who was asked to end has not failed, be it by a signal or by the exit code with which
    /// shells, and programs that catch the signal, tell of it.
    pub fn is_failure(self) -> bool {
        self.0 != 0 && self.request().is_none()
    }

    /// The signal by which it was asked to end, as far as its end tells.
    pub fn request(self) -> Option<i32> {
        REQUESTS.into_iter().find(|signal| self.0 == -signal || self.0 == 128 + signal)
    }

    /// The signal that ended it.
    pub fn signal(self) -> Option<i32> {
        (self.0 < 0).then_some(-self.0)
    }

    /// What a shell makes of it: its exit code, or 128 and the number of the signal.
    pub fn exit_code(self) -> u8 {
        let code = self.signal().map_or(self.0, |signal| 128 + signal);
        // The kernel keeps eight bits of an exit code.
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }
}

impl Display for Ending {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(&text::ending(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};

    fn of_script(script: &str) -> Ending {
        let status = Command::new("sh").args(["-c", script]).stderr(Stdio::null()).status().unwrap();
        Ending(status.code().unwrap_or_else(|| -status.signal().unwrap()))
    }

    #[test]
    fn only_who_ends_badly_by_itself_has_failed() {
        for (script, ending, failed) in [
            ("exit 0", 0, false),
            ("exit 3", 3, true),
            ("exit 143", 143, false),
            ("kill -KILL $$", -9, true),
            ("kill -ABRT $$", -6, true),
            ("kill -TERM $$", -15, false),
            ("kill -INT $$", -2, false),
            ("kill -HUP $$", -1, false),
        ] {
            let found = of_script(script);
            assert_eq!((found, found.is_failure()), (Ending(ending), failed), "{script}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_exit_code_is_passed_on_as_it_is(code in 0..=255_i32) {
            prop_assert_eq!(i32::from(Ending(code).exit_code()), code);
            prop_assert_eq!(Ending(code).signal(), None);
        }

        #[test]
        fn a_signal_is_told_as_shells_do(signal in 1..=64_i32) {
            prop_assert_eq!(i32::from(Ending(-signal).exit_code()), 128 + signal);
            prop_assert_eq!(Ending(-signal).signal(), Some(signal));
        }
    }
}
