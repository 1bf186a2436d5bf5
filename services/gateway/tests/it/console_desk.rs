//! How the tests of the console speak: a browser that holds cookies, reads pages and sends their forms.

use crate::here::World;
use domain::{Principal, Tenant};
use gateway::console::{LinkHolder, sign_in_link};
use std::net::SocketAddr;
use testkit::actor::Mint;
use testkit::{Answer, Plan, Request};

/// Where browsers reach the console of these worlds.
pub(crate) const ORIGIN: &str = "https://qm.example.com";
/// The cookie of somebody who is signed in.
pub(crate) const COOKIE: &str = "__Host-qm";

/// A plan whose replicas serve the console.
pub(crate) fn with_console(plan: Plan) -> Plan {
    plan.setting("QM_CONSOLE__ENABLED", "true")
}

/// A browser, with the cookie it holds.
#[derive(Clone, Default)]
pub(crate) struct Browser {
    pub(crate) cookie: Option<String>,
}

impl Browser {
    /// Somebody who signed in by a link at a replica.
    pub(crate) async fn signed_in(world: &World, replica: usize, subject: &str, scopes: &str) -> Browser {
        Browser::signed_in_at(world, world.address(replica), subject, scopes).await
    }

    /// The same at an address of the first replica.
    pub(crate) async fn signed_in_at(world: &World, address: SocketAddr, subject: &str, scopes: &str) -> Browser {
        let mut browser = Browser::default();
        let link = link(world, 0, subject, scopes).await;
        let answer = browser.open_at(address, &link).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        assert!(browser.cookie.is_some(), "{:?}", answer.headers);
        browser
    }

    /// A request as this browser sends it, without the words about where it comes from.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        let request = Request::new(method, path).header("Host", "qm.example.com");
        match &self.cookie {
            Some(value) => request.header("Cookie", format!("{COOKIE}={value}")),
            None => request,
        }
    }

    /// Opens a page, and keeps the cookie that comes with it.
    pub(crate) async fn open(&mut self, world: &World, replica: usize, path: &str) -> Answer {
        self.open_at(world.address(replica), path).await
    }

    async fn open_at(&mut self, address: SocketAddr, path: &str) -> Answer {
        let request = self.request("GET", path).header("Sec-Fetch-Site", "none");
        let answer = request.send(address).await;
        let set = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
        for (_, value) in set {
            if let Some(value) = value.strip_prefix(&format!("{COOKIE}=")) {
                let value = value.split(';').next().unwrap_or_default();
                self.cookie = (!value.is_empty()).then(|| value.to_owned());
            }
        }
        answer
    }

    /// Reads a page.
    pub(crate) async fn get(&self, world: &World, replica: usize, path: &str) -> Answer {
        self.request("GET", path).send(world.address(replica)).await
    }

    /// Sends a form of a page of ours.
    pub(crate) async fn submit(&self, world: &World, replica: usize, path: &str, pairs: &[(&str, &str)]) -> Answer {
        self.form(path, pairs).header("Sec-Fetch-Site", "same-origin").send(world.address(replica)).await
    }

    /// A form, without the words about where it comes from.
    pub(crate) fn form(&self, path: &str, pairs: &[(&str, &str)]) -> Request {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        let encode = |text: &str| -> String {
            text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
        };
        let body: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        let kind = "application/x-www-form-urlencoded";
        self.request("POST", path).header("Content-Type", kind).body(body.join("&"))
    }
}

/// A link that signs somebody of acme in once, as a path.
pub(crate) async fn link(world: &World, replica: usize, subject: &str, scopes: &str) -> String {
    let tenant = Tenant::parse("acme").unwrap();
    let holder = LinkHolder { tenant, principal: Principal::new(Mint::ISSUER, subject), scopes: scopes.to_owned() };
    let link = sign_in_link(world.part(replica), &holder).await.unwrap().expect("the console is on");
    link.strip_prefix(ORIGIN).expect("it leads to the console").to_owned()
}

/// The value of a hidden field of a page.
pub(crate) fn field(page: &Answer, name: &str) -> String {
    let text = page.text();
    let start = format!(r#"name="{name}" value=""#);
    let rest = text.split(&start).nth(1).unwrap_or_else(|| panic!("no field {name} in {text}"));
    rest.split('"').next().unwrap().to_owned()
}
