//! How much of a report goes in one message. Over HTTP an answer may be one event of a stream, and clients do not take events
//! of any size: those in Python break off at a mebibyte.

use super::server::Server;
use crate::monitor::{Seen, Tick};
use crate::report::{Rendered, View};
use crate::store::audit::Transport;
use std::sync::Arc;

/// Bytes of a report in one message over HTTP; what stands around it has room beside them.
const LARGEST: usize = (1 << 20) - (32 << 10);

/// How a report goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// As structure.
    Structured,
    /// As a text, in which its quotation marks are escaped.
    Text,
}

impl Form {
    /// How many bytes a report has in this form, at the most.
    fn size(self, report: &Rendered) -> usize {
        let json = report.tail();
        match self {
            Self::Structured => json.len(),
            Self::Text => json.len() + json.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count(),
        }
    }
}

impl Server {
    /// A session's report with its age, as [`Service::report`](super::Service::report) gives it, with no more agents than go
    /// in one message: `next_cursor` in it says where to go on.
    ///
    /// # Errors
    /// When it cannot be written, which would be a defect.
    pub(super) async fn page(
        &self,
        tick: &Tick,
        seen: &Arc<Seen>,
        mut view: View,
        form: Form,
    ) -> anyhow::Result<(u64, Arc<Rendered>)> {
        loop {
            let (age_ms, report) = self.service.report(tick, seen, view.clone()).await?;
            let (size, agents) = (form.size(&report), report.agents);
            match self.fewer(size, agents) {
                None => return Ok((age_ms, report)),
                Some(limit) => view.limit = limit,
            }
        }
    }

    /// How many of `count` things, which have `size` bytes together, are tried instead; `None`: they go in one message.
    pub(super) fn fewer(&self, size: usize, count: usize) -> Option<usize> {
        let goes = self.connection.transport != Transport::Http || size <= LARGEST || count <= 1;
        // They differ in size; a little less than their mean says is mostly enough.
        (!goes).then(|| (count * LARGEST / size * 15 / 16).clamp(1, count - 1))
    }
}
