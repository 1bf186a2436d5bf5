//! The external servers a tenant uses: chosen from the operator's catalog, or at an address of its own where the
//! operator lets it.
//!
//! The tenant's half of the secret chain is checked here: what is given to a marked parameter is a secret of the tenant,
//! and no secret is given to another.

use super::entry::MOST_PARAMS;
use super::{OWN, OWN_PARAM, ServersCheck, USE};
use crate::resolve;
use crate::server::{Accept, Auth, ServerEntry, ServerLimits, ServerReach, ServerUse, TrustedEffects, is_id};
use std::collections::BTreeMap;
use std::sync::Arc;
use tenancy::values::or_nearest;
use tenancy::{MappingFields, ParameterTemplate, ParameterValue, Position, YamlKey, YamlNode, YamlValue, shown};

/// How many servers one tenant may use; each costs connections and a list of tools.
const MOST: usize = 32;

impl ServersCheck<'_, '_> {
    pub(super) fn servers(&mut self, node: &YamlNode) -> Vec<ServerUse> {
        let mut servers: Vec<ServerUse> = Vec::new();
        for item in self.reader.values.some(node, "`servers`", MOST) {
            let used = match &item.value {
                YamlValue::Map(entries) if entries.iter().any(|(key, _)| key.text == "use") => self.chosen(item),
                YamlValue::Map(_) => self.own(item),
                YamlValue::Scalar { .. } | YamlValue::List(_) | YamlValue::Refused => {
                    self.reader.values.fields(item, "a server", &USE, None);
                    None
                }
            };
            let Some(used) = used else { continue };
            if servers.iter().any(|known| known.id == used.id) {
                let message = format!("the server `{}` is there twice", used.id);
                let hint = "give one of them another `id:`".to_owned();
                self.reader.values.report.add(item.at, "repeated_value", message, Some(hint));
            } else {
                servers.push(used);
            }
        }
        servers
    }

    /// A server of the operator's catalog.
    fn chosen(&mut self, node: &YamlNode) -> Option<ServerUse> {
        let fields = self.reader.values.fields(node, "a server", &USE, None)?;
        let name = fields.find("use").and_then(|node| self.reader.values.text(node, "`use`"));
        let Some(server) = name.and_then(|name| self.catalog.find(name)).cloned() else {
            if let (Some(name), Some(node)) = (name, fields.find("use")) {
                let known: Vec<&str> = self.catalog.names().collect();
                let hint = if known.is_empty() {
                    // From a command line the catalog is found through the settings, which are easily forgotten.
                    "there is no catalog at hand; name the settings file as well, or the operator's servers.yaml"
                        .to_owned()
                } else {
                    or_nearest(name, &known, "servers there")
                };
                let message = format!("the operator's catalog has no server {}", shown(name));
                self.reader.values.report.add(node.at, "unknown_server", message, Some(hint));
            }
            self.section.absent.extend(fields.find("id").and_then(YamlNode::scalar).or(name).map(str::to_owned));
            return None;
        };
        let id = self.server_id(fields.find("id").or(fields.find("use")), fields.find("id").is_none());
        let given = fields.find("params").map_or(&[][..], |n| self.reader.values.entries(n, "`params`", MOST_PARAMS));
        let params = self.give(given.iter().map(|(key, node)| (key, node)), &server);
        self.finish(node, &fields, id?, server, params)
    }

    /// A server at an address of the tenant's own.
    fn own(&mut self, node: &YamlNode) -> Option<ServerUse> {
        let why = "a server is chosen with `use:`, or has a name and a url of the tenant's own";
        let fields = self.reader.values.fields(node, "a server", &OWN, Some(why))?;
        let name = match fields.find("name") {
            Some(node) => self.reader.values.label(node, "`name`"),
            None => self.reader.values.missing(node, "use", "with a name from the operator's catalog"),
        };
        let named = fields.find("id").or(fields.find("name"));
        let id = named.and_then(|node| self.server_id(Some(node), fields.find("id").is_none()));
        if let (Some(id), Some(node)) = (id.as_deref(), named)
            && self.catalog.find(id).is_some()
        {
            let message = format!("the operator's catalog has a server `{id}`, and this would pass for it");
            let hint = format!("choose it with `use: {id}`, or give this one another name");
            self.reader.values.report.add(node.at, "repeated_value", message, Some(hint));
        }
        let description = fields.find("description").and_then(|node| self.reader.values.words(node, "`description`"));
        let declared = fields.find("params").map_or_else(BTreeMap::new, |node| self.entry().declared(node, &OWN_PARAM));
        let web = self.entry().web(&fields, &declared);
        let transport = self.entry().transport(&fields);
        let url = match (fields.find("url"), web.url) {
            (Some(node), Some(url)) => self.own_address(node, url),
            (Some(_), None) => None,
            (None, _) if name.is_none() => None,
            (None, _) => self.reader.values.missing(node, "url", "where the server is"),
        };
        let auth = web.auth.filter(|auth| self.own_token_url(fields.find("auth"), auth));
        let (Some(name), Some(url)) = (name, url) else {
            self.section.absent.extend(id);
            return None;
        };
        let (limits, vouch, reach) =
            (ServerLimits::default(), TrustedEffects::default(), ServerReach::Http { url, transport });
        let server = ServerEntry {
            name,
            description,
            reach,
            auth,
            headers: web.headers,
            params: declared,
            limits,
            vouch,
            own: true,
        };
        let values = fields.find("params").map_or(&[][..], |node| match &node.value {
            YamlValue::Map(entries) => entries.as_slice(),
            YamlValue::Scalar { .. } | YamlValue::List(_) | YamlValue::Refused => &[],
        });
        let values = values.iter().filter_map(|(key, node)| Some((key, node.find("value")?)));
        let server = Arc::new(server);
        let params = self.give(values, &server);
        self.finish(node, &fields, id?, server, params)
    }

    /// What both kinds say alike: who may be called, and what becomes of the first list.
    fn finish(
        &mut self,
        node: &YamlNode,
        fields: &MappingFields<'_>,
        id: String,
        server: Arc<ServerEntry>,
        params: BTreeMap<String, Option<ParameterValue>>,
    ) -> Option<ServerUse> {
        self.complete(node.at, &server, &params);
        let mut gates = Vec::new();
        let allow = fields.find("access").and_then(|node| self.access(node, &id, &mut gates));
        let known = [("first", Accept::First), ("each", Accept::Each)];
        let accept = match fields.find("accept") {
            Some(node) => self.reader.values.choice(node, "`accept`", &known),
            None => Some(Accept::default()),
        };
        let params = params.into_iter().filter_map(|(name, given)| Some((name, given?))).collect();
        Some(ServerUse { id, server, params, allow, gates, accept: accept.unwrap_or_default() })
    }

    fn own_address(&mut self, node: &YamlNode, url: ParameterTemplate) -> Option<ParameterTemplate> {
        // Whatever fills the places, the host is written out; any text will do to ask whether it may be reached.
        let sample = resolve::fill_url(&url, |_| Ok("x".to_owned())).ok()?;
        let reached = self.reader.may_reach(&sample);
        let why = reached.map_err(|why| format!("{} cannot be used: {why}", shown(&url.to_string())));
        self.reader.values.accept(node, why).map(|()| url)
    }

    /// Whether the tenant may reach the authorization server that its own entry names.
    fn own_token_url(&mut self, node: Option<&YamlNode>, auth: &Auth) -> bool {
        let (Some(node), Auth::ClientCredentials { grant, .. }) = (node, auth) else { return true };
        let reached = self.reader.may_reach(&grant.token_url);
        let why = reached.map_err(|why| format!("{} cannot be used: {why}", shown(&grant.token_url)));
        let at = node.find("client_credentials").and_then(|node| node.find("token_url")).unwrap_or(node);
        self.reader.values.accept(at, why).is_some()
    }

    /// What a server is called in the names of its tools.
    fn server_id(&mut self, node: Option<&YamlNode>, named_otherwise: bool) -> Option<String> {
        let node = node?;
        let text = self.reader.values.text(node, "`id`")?;
        if is_id(text) {
            return Some(text.to_owned());
        }
        let message = format!("{} cannot be part of the names of tools", shown(text));
        let also = if named_otherwise { "add `id:` with" } else { "use" };
        let hint = format!("{also} 1 to 32 of a-z, 0-9 and '-', neither first nor last a dash");
        self.reader.values.report.add(node.at, "bad_value", message, Some(hint));
        None
    }

    /// What is given for a server's parameters. A value with a mistake counts as given, so that a mistake is told once.
    pub(super) fn give<'n>(
        &mut self,
        values: impl Iterator<Item = (&'n YamlKey, &'n YamlNode)>,
        server: &ServerEntry,
    ) -> BTreeMap<String, Option<ParameterValue>> {
        let mut params = BTreeMap::new();
        for (key, node) in values {
            let name = &key.text;
            let Some(param) = server.params.get(name) else {
                self.entry().unknown_param(key.at, name, &server.params);
                continue;
            };
            let given = self.reader.given(node, &format!("the parameter `{name}`"));
            let sound = match (&given, param.secret) {
                (Some(ParameterValue::Secret(secret)), false) => {
                    let message =
                        format!("the secret `{secret}` would reach the parameter `{name}`, which is not marked as one");
                    let hint = "only a parameter with `secret: true` may hold a secret; choose another value";
                    self.reader.values.report.add(node.at, "secret_leak", message, Some(hint.to_owned()));
                    false
                }
                (Some(ParameterValue::Text(_)), true) => {
                    let message = format!("the secret parameter `{name}` is given plain text");
                    let hint =
                        "declare a parameter of the tenant with `secret: true` and write `\"{{ params.NAME }}\"`";
                    self.reader.values.report.add(node.at, "secret_literal", message, Some(hint.to_owned()));
                    false
                }
                (Some(ParameterValue::Text(text)), false) => self.fits(node.at, name, text, server),
                (Some(ParameterValue::Secret(_)), true) => true,
                (None, _) => false,
            };
            params.insert(name.clone(), given.filter(|_| sound));
        }
        params
    }

    /// Whether a value can stand where the server's entry puts it.
    fn fits(&mut self, at: Position, name: &str, text: &str, server: &ServerEntry) -> bool {
        let why = resolve::may_stand(server, name, text).err();
        if let Some(why) = &why {
            let message = format!("the parameter `{name}` cannot be {}: {why}", shown(text));
            self.reader.values.report.add(at, "bad_value", message, None);
        }
        why.is_none()
    }

    /// Every parameter has a value, whoever opens a session: the list of tools is fetched before anybody does.
    fn complete(&mut self, at: Position, server: &ServerEntry, params: &BTreeMap<String, Option<ParameterValue>>) {
        for (name, param) in server.params.iter().filter(|(name, _)| !params.contains_key(*name)) {
            if param.default.is_some() {
                continue;
            }
            let way = match (server.own, param.secret) {
                (false, false) => format!("add `{name}:` to the server's `params:`"),
                (false, true) => format!("add `{name}: \"{{{{ params.NAME }}}}\"` to the server's `params:`"),
                (true, false) => "add `default:` or `value:` to it".to_owned(),
                (true, true) => "add `value: \"{{ params.NAME }}\"` to it".to_owned(),
            };
            let hint = format!("{way}; agents and workflows can then give another");
            let message = format!("nobody gives the parameter `{name}` of the server `{}`", server.name);
            self.reader.values.report.add(at, "missing_param", message, Some(hint));
        }
    }
}
