//! Who was sent away, as the audit log notes it: each, as long as they are few, and how many there were where they are not. No flood
//! of them fills the disk, or drives out of the log what else is in it.

use crate::auth::Bucket;
use crate::clock::Clock;
use crate::mcp::Service;
use crate::store::audit::{RefusedLine, RefusedRequest, Transport};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// How many of one reason are noted each by itself: in a second, and at once.
const EACH: (f64, f64) = (0.1, 20.0);

/// How often is noted how many others there were.
const SUM: Duration = Duration::from_secs(60);

/// What was refused lately.
pub(super) struct Refused {
    clock: Arc<dyn Clock>,
    /// By reason, of which there are few: they are words of this program's.
    reasons: Mutex<BTreeMap<&'static str, Reason>>,
    note: Box<dyn Fn(RefusedLine) + Send + Sync>,
}

struct Reason {
    each: Bucket,
    /// How many were not noted.
    others: u64,
}

impl Refused {
    /// Nothing yet; `note` is given each line.
    pub fn new(clock: Arc<dyn Clock>, note: impl Fn(RefusedLine) + Send + Sync + 'static) -> Self {
        Self { clock, reasons: Mutex::default(), note: Box::new(note) }
    }

    /// As the audit log of this service notes it.
    pub fn noted_by(service: &Arc<Service>) -> Self {
        let (clock, service) = (Arc::clone(&service.setup().clock), Arc::clone(service));
        Self::new(clock, move |line| service.note_refused(line))
    }

    /// A request was refused for this reason.
    pub fn came(&self, reason: &'static str, request: impl FnOnce() -> RefusedRequest) {
        let is_noted = {
            let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Reason { each: Bucket::new(Arc::clone(&self.clock), EACH.0, EACH.1), others: 0 };
            let known = reasons.entry(reason).or_insert_with(new);
            let is_noted = known.each.take().is_ok();
            known.others += u64::from(!is_noted);
            is_noted
        };
        if is_noted {
            self.tell(reason, 1, Some(request()));
        }
    }

    /// Notes how many there were that were not noted each.
    pub fn sum_up(&self) {
        let others: Vec<_> = {
            let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
            reasons.iter_mut().map(|(reason, known)| (*reason, std::mem::take(&mut known.others))).collect()
        };
        others.into_iter().filter(|(_, times)| *times > 0).for_each(|(reason, times)| self.tell(reason, times, None));
    }

    /// Does so every minute.
    pub async fn keep_summing_up(&self) {
        loop {
            sleep(SUM).await;
            self.sum_up();
        }
    }

    fn tell(&self, reason: &'static str, times: u64, request: Option<RefusedRequest>) {
        let unix_ms = self.clock.now().unix_ms;
        (self.note)(RefusedLine { unix_ms, transport: Transport::Http, refused: reason, times, request });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn request() -> RefusedRequest {
        RefusedRequest { principal: None, client: "x".into(), method: "GET", route: "/mcp", status: 401 }
    }

    #[test]
    fn few_are_noted_each_and_many_are_counted_and_none_is_lost() {
        let (clock, noted) = (Arc::new(ManualClock::at(0)), Arc::new(Mutex::new(Vec::new())));
        let into = Arc::clone(&noted);
        let refused = Refused::new(Arc::clone(&clock) as Arc<dyn Clock>, move |line| into.lock().unwrap().push(line));
        let flood = |times| (0..times).for_each(|_| refused.came("no_token", request));
        flood(100_000);
        // What floods drives out no line of another reason.
        refused.came("scope", || RefusedRequest { principal: Some("ada".into()), ..request() });
        refused.sum_up();
        refused.sum_up();
        let lines = std::mem::take(&mut *noted.lock().unwrap());
        assert_eq!(lines.len(), 22);
        assert_eq!(lines[20].request.as_ref().unwrap().principal.as_deref(), Some("ada"));
        assert_eq!((lines[21].refused, lines[21].times, &lines[21].request), ("no_token", 99_980, &None));
        for _ in 0..60 {
            flood(1000);
            clock.advance(SUM);
            refused.sum_up();
        }
        let lines = noted.lock().unwrap();
        assert!(lines.len() <= 60 * 7, "{} lines in an hour", lines.len());
        assert_eq!(lines.iter().map(|line| line.times).sum::<u64>(), 60_000);
    }
}
