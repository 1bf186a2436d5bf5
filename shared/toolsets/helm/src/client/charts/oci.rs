//! Charts in a registry, by the distribution API: who we are, which versions there are, the manifest, the archive.
//!
//! Written out instead of left to `helm pull`, so that every address goes past the guard. A registry chooses where tokens
//! are to be had; it may send us to any listed host, but the tenant's credential goes to the registry's own host alone.

use super::archive;
use super::credential::Basic;
use super::failures::{no_chart, no_version, not_the_chart};
use super::index::{is_sha256, newest};
use super::place::Registry;
use super::range::Range;
use super::web::{ChartRequest, ChartWeb, refused, unreachable};
use domain::json::sha256_hex;
use domain::{Failure, Tenant};
use egress::header::WWW_AUTHENTICATE;
use egress::{GuardedResponse, Url};
use serde::Deserialize;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// The most that is read of a manifest, a list of tags or a token.
const MOST_DOCUMENT: usize = 1 << 20;
/// How many lists of tags are read, and how long each is.
const TAG_PAGES: usize = 10;
const TAGS_PER_PAGE: usize = 1_000;

/// A chart's place in a registry, for the length of one call.
pub(in crate::client) struct Pull<'a> {
    pub(in crate::client) web: &'a ChartWeb,
    pub(in crate::client) tenant: &'a Tenant,
    pub(in crate::client) registry: &'a Registry,
    /// The path of the chart in the registry.
    pub(in crate::client) path: &'a str,
    pub(in crate::client) credential: Option<Basic>,
}

/// What the manifest says about the archive.
#[derive(Debug)]
pub(in crate::client) struct Layer {
    pub(in crate::client) sha256: String,
    pub(in crate::client) version: String,
    authorization: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciManifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
}

#[derive(Deserialize)]
struct Tags {
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RegistryToken {
    token: Option<String>,
    access_token: Option<String>,
}

impl Pull<'_> {
    /// Which archive a range of versions means.
    pub(in crate::client) async fn find(&self, range: &Range) -> Result<Layer, Failure> {
        let mut authorization = None;
        let version = match range.exact() {
            Some(_) => range.as_str().to_owned(),
            None => {
                let tags = self.tags(&mut authorization).await?;
                let found = range.best(&tags, |tag| tag).cloned();
                found.ok_or_else(|| no_version(self.path, range, &newest(tags.iter(), 3)))?
            }
        };
        // A tag cannot hold the plus sign of a build; helm writes an underscore.
        let url = self.url(&format!("manifests/{}", version.replace('+', "_")))?;
        let answer = self.ask(&url, Some(MANIFEST), &mut authorization).await?;
        if answer.status == 404 {
            let tags = self.tags(&mut authorization).await?;
            return Err(no_version(self.path, range, &newest(tags.iter(), 3)));
        }
        let manifest: OciManifest = document(&answer, &url)?;
        let layer = manifest.layers.iter().find(|layer| layer.media_type == CONTENT);
        let layer = layer.filter(|_| manifest.config.media_type == CONFIG);
        let layer = layer.ok_or_else(|| not_the_chart("the registry holds something else there"))?;
        if layer.size > archive::MOST_BYTES as u64 {
            return Err(not_the_chart("the archive is too large"));
        }
        let sha256 = layer.digest.strip_prefix("sha256:").filter(|hex| is_sha256(hex));
        let sha256 = sha256.ok_or_else(|| not_the_chart("its digest is not a sha256"))?.to_ascii_lowercase();
        Ok(Layer { sha256, version, authorization })
    }

    /// The archive, checked against its digest.
    pub(in crate::client) async fn fetch(&self, layer: &Layer) -> Result<Vec<u8>, Failure> {
        let url = self.url(&format!("blobs/sha256:{}", layer.sha256))?;
        let authorization = layer.authorization.as_deref();
        let ask = ChartRequest { url: &url, accept: None, authorization, cap: archive::MOST_BYTES };
        let answer = self.web.download(self.tenant, &ask).await?;
        match answer.status {
            200 if sha256_hex(&answer.body) == layer.sha256 => Ok(answer.body),
            200 => Err(not_the_chart("its digest is another than the registry says")),
            status => Err(refused(status, &url)),
        }
    }

    /// Whether the registry lets us in at all.
    pub(in crate::client) async fn greet(&self) -> Result<(), Failure> {
        let answer = self.ask(&self.registry.api, None, &mut None).await?;
        match answer.status {
            200 => Ok(()),
            status => Err(refused(status, &self.registry.api)),
        }
    }

    /// The versions there are.
    async fn tags(&self, authorization: &mut Option<String>) -> Result<Vec<String>, Failure> {
        let mut tags: Vec<String> = Vec::new();
        for _ in 0..TAG_PAGES {
            let mut url = self.url("tags/list")?;
            url.query_pairs_mut().append_pair("n", &TAGS_PER_PAGE.to_string());
            if let Some(last) = tags.last() {
                url.query_pairs_mut().append_pair("last", &last.replace('+', "_"));
            }
            let answer = self.ask(&url, None, authorization).await?;
            if answer.status == 404 {
                return Err(no_chart(self.path, Vec::new()));
            }
            let page = document::<Tags>(&answer, &url)?.tags.unwrap_or_default();
            let full = page.len() >= TAGS_PER_PAGE;
            tags.extend(page.into_iter().take(TAGS_PER_PAGE).map(|tag| tag.replace('_', "+")));
            if !full {
                break;
            }
        }
        Ok(tags)
    }

    /// Asks, and once more with whatever the registry wants to see first.
    async fn ask(
        &self,
        url: &Url,
        accept: Option<&'static str>,
        known: &mut Option<String>,
    ) -> Result<GuardedResponse, Failure> {
        let ask = ChartRequest { url, accept, authorization: known.as_deref(), cap: MOST_DOCUMENT };
        let answer = self.web.ask(self.tenant, &ask).await?;
        if answer.status != 401 || known.is_some() {
            return Ok(answer);
        }
        *known = Some(self.authorization(&answer, url).await?);
        let ask = ChartRequest { url, accept, authorization: known.as_deref(), cap: MOST_DOCUMENT };
        self.web.ask(self.tenant, &ask).await
    }

    /// What the registry wants to see: the credential itself, or a token for it.
    async fn authorization(&self, answer: &GuardedResponse, url: &Url) -> Result<String, Failure> {
        let challenge = answer.headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (scheme, rest) = challenge.split_once(' ').unwrap_or((challenge, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return self.credential.as_ref().map(|basic| basic.header().to_owned()).ok_or_else(|| refused(401, url));
        }
        let realm = scheme.eq_ignore_ascii_case("bearer").then(|| parameter(rest, "realm")).flatten();
        let mut realm =
            realm.and_then(|text| self.web.limits.guard.parse(&text).ok()).ok_or_else(|| refused(401, url))?;
        if let Some(service) = parameter(rest, "service") {
            realm.query_pairs_mut().append_pair("service", &service);
        }
        // Asked for what we need, not for what the registry suggests.
        if !self.path.is_empty() {
            realm.query_pairs_mut().append_pair("scope", &format!("repository:{}:pull", self.path));
        }
        // The tenant named the registry, and nobody named the other host.
        let own = realm.origin() == self.registry.api.origin();
        let basic = self.credential.as_ref().filter(|_| own).map(Basic::header);
        let ask = ChartRequest { url: &realm, accept: None, authorization: basic, cap: MOST_DOCUMENT };
        let answer = self.web.ask(self.tenant, &ask).await?;
        let token: RegistryToken = document(&answer, &realm)?;
        let token = token.token.or(token.access_token).filter(|token| token.len() <= 16 * 1024);
        token.map(|token| format!("Bearer {token}")).ok_or_else(|| refused(401, url))
    }

    fn url(&self, rest: &str) -> Result<Url, Failure> {
        // Path and version passed their grammars, so joining cannot lead away.
        let joined = self.registry.api.join(&format!("{}/{rest}", self.path));
        joined.map_err(|_| unreachable(&self.registry.api))
    }
}

fn document<T: for<'de> Deserialize<'de>>(answer: &GuardedResponse, url: &Url) -> Result<T, Failure> {
    match answer.status {
        200 => serde_json::from_slice(&answer.body).map_err(|_| unreachable(url)),
        status => Err(refused(status, url)),
    }
}

/// One `name="value"` of a challenge.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    loop {
        let (key, behind) = rest.split_once("=\"")?;
        let (value, next) = behind.split_once('"')?;
        if key.trim_start_matches([',', ' ']).eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_taken_apart() {
        let challenge =
            r#"realm="https://auth.example/token",service="registry.example", scope="repository:a:pull,push""#;
        assert_eq!(parameter(challenge, "realm").as_deref(), Some("https://auth.example/token"));
        assert_eq!(parameter(challenge, "service").as_deref(), Some("registry.example"));
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("repository:a:pull,push"));
        for bad in ["", "realm=", "realm=\"", "realm", "x=\"y\" z"] {
            assert_eq!(parameter(bad, "realm"), None, "{bad}");
        }
    }
}
