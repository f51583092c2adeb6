//! Sessions and their reports.

use super::super::app::App;
use super::super::traffic::client;
use super::{Answer, Asked, Named, Problem, failed, flag, unavailable};
use crate::auth::Admitted;
use crate::monitor::{Sight, Tick};
use crate::query::{self, QueryError, micros};
use crate::report::{self, DEFAULT_LIMIT, Filter, Rendered, View, ViewError};
use crate::setup::Setup;
use crate::store::audit::{AuditLine, Outcome, Transport};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// What of a report is wanted: as `get_session_status` takes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Whether to show each agent's figures.
    #[serde(default = "yes", deserialize_with = "flag")]
    include_metrics: bool,
    /// Whether to show how each agent fared in the checks.
    #[serde(default = "yes", deserialize_with = "flag")]
    include_health: bool,
    /// List only agents with one of these statuses or activities; with commas between.
    #[serde(default)]
    only: String,
    /// List this many agents at the most.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = report::MAX_LIMIT))]
    limit: u64,
    /// Where to go on: `next_cursor` of the answer before.
    cursor: Option<String>,
}

fn yes() -> bool {
    true
}

fn default_limit() -> u64 {
    DEFAULT_LIMIT as u64
}

impl Wanted {
    fn view(&self) -> Result<View, ViewError> {
        let words = self.only.split(',').filter(|word| !word.is_empty());
        Ok(View {
            metrics: self.include_metrics,
            health: self.include_health,
            only: words.map(str::parse::<Filter>).collect::<Result<_, _>>()?,
            limit: View::check_limit(self.limit)?,
            cursor: self.cursor.as_deref().map(str::parse).transpose()?,
        })
    }
}

/// One who asks, for the audit log.
pub(super) struct Asking {
    app: Arc<App>,
    user: String,
    sight: Sight,
    client: String,
    what: &'static str,
    began: Duration,
}

impl Asking {
    /// Somebody begins to ask for this.
    pub fn begin(app: &Arc<App>, admitted: &Admitted, headers: &HeaderMap, what: &'static str) -> Self {
        let principal = &admitted.principal;
        Self {
            app: Arc::clone(app),
            user: principal.user_id.clone(),
            sight: Sight::granted(principal, &app.service.setup().config().access, &app.service.setup().user),
            client: client(headers.get(header::USER_AGENT)),
            what,
            began: app.service.steady(),
        }
    }

    /// Does `work` for whoever asks, as it waits for the disk, and notes what came of it, as `outcome` calls that.
    ///
    /// # Errors
    /// When it has not come to its end.
    pub async fn done<T: Send + 'static>(
        self,
        work: impl FnOnce(&Setup, &str) -> T + Send + 'static,
        outcome: impl FnOnce(&T) -> Outcome,
    ) -> Result<T, Problem> {
        let (app, user) = (Arc::clone(&self.app), self.user.clone());
        let done = tokio::task::spawn_blocking(move || work(app.service.setup(), &user)).await;
        self.note(done.as_ref().map_or(Outcome::Failed, outcome), None, None, 0);
        done.map_err(failed)
    }

    /// Notes what came of it.
    pub fn note(self, outcome: Outcome, tick: Option<&Tick>, session: Option<String>, agents: usize) {
        let service = &self.app.service;
        let total = service.steady().saturating_sub(self.began);
        service.note(AuditLine {
            unix_ms: service.unix_ms(),
            principal: self.user,
            client: self.client,
            transport: Transport::Http,
            tool: self.what,
            session,
            outcome,
            agents: u32::try_from(agents).unwrap_or(u32::MAX),
            micros: micros(tick, Duration::ZERO, total),
        });
    }
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    headers: HeaderMap,
) -> Answer {
    let asking = Asking::begin(&app, &admitted, &headers, "GET /v1/sessions");
    let tick = app.service.tick(&asking.sight).await.map_err(unavailable)?;
    let sessions = report::sessions(tick.sessions.iter().map(|s| (&s.facts, &s.judgement)), &tick.sources);
    asking.note(Outcome::Ok, Some(&tick), None, 0);
    Ok(Json(sessions).into_response())
}

pub(super) async fn status(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    Named(id): Named,
    Asked(wanted): Asked<Wanted>,
    headers: HeaderMap,
) -> Answer {
    let asking = Asking::begin(&app, &admitted, &headers, "GET /v1/sessions/{id}/status");
    let named = Some(report::clean(&id));
    let view = match wanted.view() {
        Ok(view) => view,
        Err(error) => {
            asking.note(Outcome::Invalid, None, named, 0);
            return Err(Problem::new(StatusCode::BAD_REQUEST, error.to_string()));
        }
    };
    let tick = app.service.tick(&asking.sight).await.map_err(unavailable)?;
    let seen = match query::find(&tick, &id) {
        Ok(seen) => seen,
        Err(error) => {
            asking.note(error.outcome(), Some(&tick), named, 0);
            return Err(Problem::new(not_found(&error), error.to_string()));
        }
    };
    let (age_ms, rendered) = app.service.report(&tick, seen, view).await.map_err(failed)?;
    let outcome = if rendered.partial { Outcome::Partial } else { Outcome::Ok };
    asking.note(outcome, Some(&tick), Some(seen.facts.session.id.clone()), rendered.agents);
    Ok(report_response(age_ms, &rendered))
}

fn not_found(error: &QueryError) -> StatusCode {
    match error {
        QueryError::Unknown { .. } => StatusCode::NOT_FOUND,
        QueryError::Ambiguous { .. } => StatusCode::CONFLICT,
        QueryError::BadName(_) | QueryError::View(_) => StatusCode::BAD_REQUEST,
        QueryError::Ended(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn report_response(age_ms: u64, rendered: &Rendered) -> Response {
    let text = Rendered::head(age_ms) + rendered.tail();
    ([(header::CONTENT_TYPE, "application/json")], Body::from(Bytes::from(text))).into_response()
}
