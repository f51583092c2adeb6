//! Bodies of requests, read as there is room for them.

use super::problem::Problem;
use crate::mcp::http::{Refusal, Room};
use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{StatusCode, header};
use http_body_util::BodyExt as _;
use std::pin::pin;
use std::time::Duration;
use tokio::time::sleep;

/// The largest body of a request, bytes.
const MAX_BODY: usize = 4 << 20;

/// How long the body of a request may take to come.
const BODY: Duration = Duration::from_secs(30);

/// A body, and its room: both go together.
struct Held {
    bytes: Vec<u8>,
    _room: Room,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body. Room is taken for what has come of it, not for what was announced, and given back with the last of its bytes.
pub(super) async fn read(
    mut body: Body,
    mut room: Room,
    refused: impl Fn(Refusal) -> Problem,
) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let mut late = pin!(sleep(BODY));
    loop {
        let frame = tokio::select! {
            frame = body.frame() => frame,
            () = &mut late => {
                return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time").because("slow"));
            }
        };
        let Some(frame) = frame else { return Ok(Bytes::from_owner(Held { bytes, _room: room })) };
        let frame = frame.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body has broken off"))?;
        // Trailers are passed over.
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > MAX_BODY {
            return Err(too_large());
        }
        room.grow(data.len()).await.map_err(&refused)?;
        bytes.extend_from_slice(&data);
    }
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than {MAX_BODY} bytes");
    // The rest of it is not waited for.
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).with(header::CONNECTION, "close").because("too_large")
}
