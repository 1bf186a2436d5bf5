//! `auth.client_credentials`: which authorization server gives tokens for a server, and for which client.
//!
//! Everything but the client is written out, so that no value of a session says where a secret goes or what a token
//! allows. The client's secret is one reference to a marked parameter, as everywhere under `auth`.

use super::entry::EntryReader;
use crate::server::{Auth, ClientAuthMethod, Param, TokenGrant};
use std::collections::BTreeMap;
use tenancy::params::VALUE_BYTES;
use tenancy::{MappingFields, YamlNode};

/// The keys under `client_credentials`.
pub(super) const CREDENTIALS: [&str; 7] =
    ["token_url", "client_id", "client_secret", "scope", "audience", "resource", "auth_method"];

impl EntryReader<'_, '_> {
    pub(super) fn client_credentials(&mut self, node: &YamlNode, params: &BTreeMap<String, Param>) -> Option<Auth> {
        let fields = self.values.fields(node, "`client_credentials`", &CREDENTIALS, None)?;
        let token_url = match fields.find("token_url") {
            Some(node) => self.token_url(node),
            None => self.values.missing(node, "token_url", "where tokens are given"),
        };
        let client_id = match fields.find("client_id") {
            Some(node) => self.values.template(node, "`client_id`", VALUE_BYTES).inspect(|client_id| {
                self.in_the_open(node.at, "`client_id`", client_id, params);
            }),
            None => self.values.missing(node, "client_id", "who we are there"),
        };
        let secret = match fields.find("client_secret") {
            Some(node) => self.auth_secret(node, params),
            None => {
                let hint = "add `client_secret: \"{{ params.NAME }}\"` with a parameter that is marked `secret: true`";
                let message = "`client_credentials` has no `client_secret`";
                self.values.report.add(node.at, "auth_without_secret", message, Some(hint.to_owned()));
                None
            }
        };
        let [scope, audience, resource] = ["scope", "audience", "resource"].map(|key| self.written_out(&fields, key));
        let methods =
            [("client_secret_basic", ClientAuthMethod::Basic), ("client_secret_post", ClientAuthMethod::Post)];
        let method = match fields.find("auth_method") {
            Some(node) => self.values.choice(node, "`auth_method`", &methods),
            None => Some(ClientAuthMethod::default()),
        };
        let grant = TokenGrant { token_url: token_url?, scope, audience, resource, method: method? };
        Some(Auth::ClientCredentials { grant, client_id: client_id?, secret: secret? })
    }

    /// Where the client's secret goes: no part of it is anybody else's to say.
    fn token_url(&mut self, node: &YamlNode) -> Option<String> {
        let url = self.web_address(node, "`token_url`")?;
        let plain = url.names().next().is_none();
        let why = || "`token_url` takes no parameters: it says where a secret goes".to_owned();
        self.values.accept(node, plain.then(|| url.to_string()).ok_or_else(why))
    }

    fn written_out(&mut self, fields: &MappingFields<'_>, key: &str) -> Option<String> {
        fields.find(key).and_then(|node| self.values.plain(node, &format!("`{key}`")))
    }
}
