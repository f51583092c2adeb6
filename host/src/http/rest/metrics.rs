//! `/metrics`: what the server counts, as Prometheus and OpenMetrics read it. Nothing is counted here: a scrape reads what each
//! part keeps of itself. Labels are words of this program or of its configuration, never of an agent or a client, and nobody is
//! named: a series is kept for ever by whoever reads it.

mod families;
mod text;

use super::super::app::App;
use super::sessions::Asking;
use super::{Problem, failed};
use crate::auth::Admitted;
use crate::setup::Setup;
use crate::store::audit::Outcome;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;
use text::Format;

/// What can be answered, by the first word of which it is chosen.
pub(super) const TYPES: [&str; 2] = [Format::Plain.media_type(), Format::OpenMetrics.media_type()];

/// Answers a scrape.
pub(super) async fn scrape(
    State(app): State<Arc<App>>,
    Extension(admitted): Extension<Admitted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if admitted.principal.user_id != app.service.setup().user {
        // They are of all sessions, whosever they are.
        let detail = "these figures are of the whole machine, and only for the user who runs this server";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail).because("scope"));
    }
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|accepted| accepted.to_str().ok());
    let format = Format::wanted(accepted);
    // It reads the database, and what this process has open.
    let asking = Asking::begin(&app, &admitted, &headers, "GET /metrics");
    let write = move |_: &Setup, _: &str| text::written(families::all(&app), format);
    let of = |written: &Result<_, _>| if written.is_ok() { Outcome::Ok } else { Outcome::Failed };
    let text = asking.done(write, of).await?.map_err(failed)?;
    let kind = HeaderValue::from_static(format.media_type());
    let vary = HeaderValue::from_static("accept");
    Ok(([(header::CONTENT_TYPE, kind), (header::VARY, vary)], text).into_response())
}
