//! Cookies, and what is derived from them.
//!
//! Behind https the names begin with `__Host-`: such a cookie is sent to this host alone, over TLS alone, and no
//! neighbour can set it. On plain http, which is only served on this very machine for development, not every browser
//! keeps a `Secure` cookie, so the cookie has a plain name and no `Secure`; it is `HttpOnly` and `SameSite=Lax` as well.

use super::Console;
use actix_web::HttpRequest;
use actix_web::cookie::{Cookie, SameSite};
use domain::Tenant;
use domain::json::{hex, sha256_hex};
use store::{StoreError, random_bits};

/// How long a sign-in may take, as a cookie says it.
const SIGN_IN_SECONDS: i64 = 600;

/// Which cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CookieKind {
    /// Of somebody who is signed in.
    Session,
    /// Of somebody who is about to.
    SignIn,
}

impl Console {
    fn cookie_name(&self, kind: CookieKind) -> &'static str {
        match (kind, self.secure) {
            (CookieKind::Session, true) => "__Host-qm",
            (CookieKind::SignIn, true) => "__Host-qm-login",
            (CookieKind::Session, false) => "qm-dev",
            (CookieKind::SignIn, false) => "qm-dev-login",
        }
    }

    /// The value of the cookie, if the browser sent exactly one.
    pub(super) fn cookie(&self, request: &HttpRequest, kind: CookieKind) -> Option<String> {
        let cookies = request.cookies().ok()?;
        let mut values = cookies.iter().filter(|cookie| cookie.name() == self.cookie_name(kind));
        let value = values.next()?.value().to_owned();
        values.next().is_none().then_some(value)
    }

    /// A cookie with this value.
    pub(super) fn set_cookie(&self, kind: CookieKind, value: &str) -> Cookie<'static> {
        let mut cookie = Cookie::build(self.cookie_name(kind), value.to_owned())
            .path("/")
            .http_only(true)
            .secure(self.secure)
            .same_site(SameSite::Lax)
            .finish();
        if kind == CookieKind::SignIn {
            cookie.set_max_age(actix_web::cookie::time::Duration::seconds(SIGN_IN_SECONDS));
        }
        cookie
    }

    /// A cookie that takes the browser's away.
    pub(super) fn drop_cookie(&self, kind: CookieKind) -> Cookie<'static> {
        let mut cookie = self.set_cookie(kind, "");
        cookie.make_removal();
        cookie
    }
}

/// What a browser holds: the tenant, so that its record is found under the tenant's keys, and 256 random bits.
#[derive(Debug, Clone)]
pub(super) struct BrowserKey {
    pub(super) tenant: Tenant,
    value: String,
}

impl BrowserKey {
    /// A new one for a tenant.
    pub(super) fn fresh(tenant: &Tenant) -> Result<BrowserKey, StoreError> {
        Ok(BrowserKey { tenant: tenant.clone(), value: format!("{tenant}.{}", secret()?) })
    }

    /// What a browser sent.
    pub(super) fn parse(value: &str) -> Option<BrowserKey> {
        let (tenant, secret) = value.split_once('.')?;
        let drawn = secret.len() == 64 && secret.bytes().all(|b| b.is_ascii_hexdigit());
        Some(BrowserKey { tenant: Tenant::parse(tenant).ok().filter(|_| drawn)?, value: value.to_owned() })
    }

    /// As it stands in the cookie.
    pub(super) fn value(&self) -> &str {
        &self.value
    }

    /// Under which the store keeps it.
    pub(super) fn digest(&self) -> String {
        sha256_hex(self.value.as_bytes())
    }

    /// What every form of this session carries. It does not lead back to the cookie.
    pub(super) fn form_token(&self) -> String {
        sha256_hex(format!("form\n{}", self.value).as_bytes())
    }
}

/// 256 random bits as text.
pub(super) fn secret() -> Result<String, StoreError> {
    let (one, two) = (random_bits()?, random_bits()?);
    Ok(hex(&[one, two].concat()))
}

/// Whether two secrets are equal; the time tells nothing of the first letter that differs.
pub(super) fn same(one: &str, two: &str) -> bool {
    one.len() == two.len() && one.bytes().zip(two.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_holds_names_its_tenant_and_proves_nothing_else() {
        let acme = Tenant::parse("acme").unwrap();
        let key = BrowserKey::fresh(&acme).unwrap();
        let read = BrowserKey::parse(key.value()).unwrap();
        assert_eq!((read.tenant, read.value.len()), (acme, 69));
        assert_ne!(key.digest(), key.form_token());
        for bad in
            ["", "acme", "acme.", "acme.12", &format!("~.{}", "a".repeat(64)), &format!("acme.{}", "g".repeat(64))]
        {
            assert!(BrowserKey::parse(bad).is_none(), "{bad}");
        }
        assert!(same("abc", "abc") && !same("abc", "abd") && !same("abc", "ab"));
    }
}
