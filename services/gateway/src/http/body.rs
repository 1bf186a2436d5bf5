//! A request's body, read after authentication and never beyond the limit.

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use actix_web::web::Payload;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use std::time::Duration;

/// How long a client may take for the whole body.
const SLOWEST: Duration = Duration::from_secs(15);

/// Reads the body, or tells the status that says why not.
pub async fn read(request: &HttpRequest, mut payload: Payload, limit: usize) -> Result<Bytes, StatusCode> {
    let length =
        request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<usize>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let reading = async {
        let mut first: Option<Bytes> = None;
        let mut rest = BytesMut::new();
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|_| StatusCode::BAD_REQUEST)?;
            let length = first.as_ref().map_or(0, Bytes::len) + rest.len();
            if length + chunk.len() > limit {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            // Nearly every request is one chunk; it is handed on as it is.
            match &first {
                None => first = Some(chunk),
                Some(_) => rest.extend_from_slice(&chunk),
            }
        }
        Ok(match first {
            None => Bytes::new(),
            Some(first) if rest.is_empty() => first,
            Some(first) => {
                let mut whole = BytesMut::with_capacity(first.len() + rest.len());
                whole.extend_from_slice(&first);
                whole.extend_from_slice(&rest);
                whole.freeze()
            }
        })
    };
    tokio::time::timeout(SLOWEST, reading).await.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))
}

/// Whether the body says it is JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// What the client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedTypes {
    /// A JSON answer.
    pub json: bool,
    /// An event stream.
    pub stream: bool,
}

/// Reads `Accept`. An absent one means JSON and nothing held open: the plainest client there is.
pub fn accepts(headers: &HeaderMap) -> AcceptedTypes {
    let mut all = headers.get_all(ACCEPT).filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).peekable();
    if all.peek().is_none() {
        return AcceptedTypes { json: true, stream: false };
    }
    let mut accepts = AcceptedTypes { json: false, stream: false };
    for range in all {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        if parts.any(refuses) {
            continue;
        }
        let is_one_of = |kinds: [&str; 3]| kinds.iter().any(|accepted| kind.eq_ignore_ascii_case(accepted));
        accepts.json |= is_one_of(["application/json", "*/*", "application/*"]);
        accepts.stream |= is_one_of(["text/event-stream", "*/*", "text/*"]);
    }
    accepts
}

/// Whether a parameter of a range says that it is not wanted after all.
fn refuses(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    name.trim() == "q" && matches!(value.trim(), "0" | "0.0" | "0.00" | "0.000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    fn of(accept: &[&str]) -> (bool, bool) {
        let mut headers = HeaderMap::new();
        accept.iter().for_each(|v| headers.append(ACCEPT, HeaderValue::from_str(v).unwrap()));
        let AcceptedTypes { json, stream } = accepts(&headers);
        (json, stream)
    }

    #[test]
    fn accept_is_read_as_it_is_written() {
        assert_eq!(of(&[]), (true, false));
        assert_eq!(of(&["application/json, text/event-stream"]), (true, true));
        assert_eq!(of(&["application/json", "text/event-stream;q=0.5"]), (true, true));
        assert_eq!(of(&["*/*"]), (true, true));
        assert_eq!(of(&["text/html"]), (false, false));
        assert_eq!(of(&["application/json;q=0, text/event-stream"]), (false, true));
        assert_eq!(of(&["Application/JSON; v=1 ; q = 0.00, TEXT/*"]), (false, true));
        assert_eq!(of(&["application/*;q=0.001"]), (true, false));
    }
}
