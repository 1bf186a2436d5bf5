//! Whether a server answers, for whoever looks after the service. It needs no permit, since it is no tool's call: it
//! asks who we are there and for nothing else, once.

use crate::client::connection::{BodyLimit, MOST_BYTES};
use crate::client::fault::{self, header};
use crate::client::mask;
use crate::client::request::{MissingSubject, ServerRequest};
use crate::client::servers::JenkinsServers;
use domain::Failure;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

impl JenkinsServers {
    /// The version that a server says it has, if it says one, or why it cannot be used.
    pub async fn health(&self, name: &str, within: Duration) -> Result<Option<String>, Failure> {
        let connection = self.connection(name)?;
        let request = ServerRequest::get("/whoAmI/api/json", "/whoAmI/api/json", MissingSubject::Server).tree("name");
        let sent = connection.send(&request, BodyLimit::Whole(MOST_BYTES), Instant::now() + within).await;
        let answer = sent.map_err(|lost| fault::of_read(&lost))?;
        if !(200..300).contains(&answer.status) {
            return Err(fault::of_status(&request, &answer));
        }
        let _: Value = serde_json::from_slice(&answer.body).map_err(|_| fault::not_jenkins())?;
        Ok(header(&answer, "x-jenkins").map(mask::line))
    }
}
