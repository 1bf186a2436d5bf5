//! One GET with a bounded answer. Anything but a plain 200 within the cap is an error.

use crate::address::{self, AddressError};
use crate::client::HttpClient;
use reqwest::StatusCode;

/// Why nothing was fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address may not be asked.
    #[error("the address is refused")]
    Address(#[source] AddressError),
    /// No complete answer came.
    #[error("no complete answer")]
    Transport(#[source] reqwest::Error),
    /// Something other than 200, a redirect included.
    #[error("answered with status {0} instead of 200")]
    Status(u16),
    /// More than was allowed for.
    #[error("the answer is longer than {cap} bytes")]
    TooLong {
        /// The most that would have been read.
        cap: usize,
    },
}

/// Fetches an address from the settings and reads at most `cap` bytes of its body.
pub async fn get_capped(client: &HttpClient, url: &str, cap: usize) -> Result<Vec<u8>, FetchError> {
    let url = address::parse(url).map_err(FetchError::Address)?;
    let response = client.0.get(url).send().await.map_err(transport)?;
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    read_capped(response, cap).await
}

/// The body, if it is no longer than `cap`.
pub(crate) async fn read_capped(mut response: reqwest::Response, cap: usize) -> Result<Vec<u8>, FetchError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(transport)? {
        // Counted as it arrives: a declared length proves nothing, and a chunked body declares none.
        if chunk.len() > cap - body.len() {
            return Err(FetchError::TooLong { cap });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The address is the operator's and known to whoever logs this; it need not stand in every message.
pub(crate) fn transport(error: reqwest::Error) -> FetchError {
    FetchError::Transport(error.without_url())
}
