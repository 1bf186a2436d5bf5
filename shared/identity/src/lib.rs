//! JWT and JWKS in, [`Caller`](domain::Caller) out.
//!
//! Reading order: [`config`] (whom we believe), [`verifier`] (the one verb, [`Verifier::caller`]), [`refused`] (every
//! way it can say no), [`id_token`] (people who sign in with a browser); inside, `token` (the three parts), `issuer`, `keys`, `jwks` and `remote` (who signs, and with
//! what), `claims` (what the token says), `bounds` (what its issuer may say), `known` (tokens seen before). [`mint`] makes tokens for development.
//!
//! A caller comes out of one place, after signature, issuer, audience, time, subject, scope and tenant were all found
//! good. There is no anonymous caller and no default one, so a branch that fails has nothing to fall back on.
//!
//! Not here: headers, challenges and status lines (see the gateway), what a scope allows (see `domain` and `policy`),
//! whether a tenant exists (see `tenancy`), the clock (whoever asks says what time it is).

mod bounds;
mod claims;
pub mod config;
pub mod id_token;
mod issuer;
mod jwks;
mod keys;
mod known;
pub mod mint;
pub mod refused;
mod remote;
mod span;
mod token;
pub mod verifier;

pub use config::{Algorithm, Config, ConfigError, ConfigWarning, IssuerConfig};
pub use id_token::{IdTokenChecks, SignedIn};
pub use issuer::KeyFileError;
pub use refused::TokenRefused;
pub use verifier::{Verifier, VerifierError};
