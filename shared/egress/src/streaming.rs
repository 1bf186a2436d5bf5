//! An answer that is read as it comes: its head first, then piece by piece, counted.
//!
//! At an address that a tenant can influence the request goes the same way as every other (see [`Guarded`]): the address
//! is judged, what it resolves to is vetted, and so is who answered. Dropping the answer ends the exchange.

use crate::address::{self, AddressError};
use crate::client::HttpClient;
use crate::guard::AddressRefused;
use crate::guarded::{Guarded, GuardedRequest, SendError, failed};
use bytes::Bytes;
use reqwest::header::HeaderMap;
use std::time::Duration;

/// What one streamed exchange may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamBounds {
    /// For the whole exchange, from the first byte sent to the last one read.
    pub within: Duration,
    /// Most bytes of the body.
    pub bytes: usize,
}

/// The head of an answer, and its body still on the way. Nothing is decompressed.
#[derive(Debug)]
pub struct Streaming {
    /// The status; 3xx included, since redirects are not followed.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    response: reqwest::Response,
    cap: usize,
    left: usize,
}

impl Guarded {
    /// Sends a request and gives its answer as soon as the head is there.
    pub async fn open(&self, request: GuardedRequest<'_>, bounds: StreamBounds) -> Result<Streaming, SendError> {
        Ok(Streaming::begin(self.begin(request, Some(bounds.within)).await?, bounds))
    }
}

impl HttpClient {
    /// The same at an address that an operator or the user of a command vouched for: https, or this very machine.
    pub async fn open(&self, request: GuardedRequest<'_>, bounds: StreamBounds) -> Result<Streaming, SendError> {
        let url = address::parse(request.url.as_str()).map_err(|error| {
            SendError::Refused(match error {
                AddressError::NotAnAddress => AddressRefused::NotAnAddress,
                AddressError::Insecure => AddressRefused::Insecure,
                AddressError::Credentials => AddressRefused::Credentials,
            })
        })?;
        let outgoing = self.0.request(request.method, url).headers(request.headers).timeout(bounds.within);
        let outgoing = match request.body {
            Some(body) => outgoing.body(body),
            None => outgoing,
        };
        Ok(Streaming::begin(outgoing.send().await.map_err(failed)?, bounds))
    }
}

impl Streaming {
    fn begin(mut response: reqwest::Response, bounds: StreamBounds) -> Streaming {
        let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
        Streaming { status, headers, response, cap: bounds.bytes, left: bounds.bytes }
    }

    /// The next piece of the body, or nothing when it is complete. A piece that goes beyond the bound is an error.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        let Some(chunk) = self.response.chunk().await.map_err(failed)? else { return Ok(None) };
        match self.left.checked_sub(chunk.len()) {
            Some(left) => {
                self.left = left;
                Ok(Some(chunk))
            }
            None => Err(SendError::TooLong { cap: self.cap }),
        }
    }
}
