//! The targets of one kind that one tenant has, and which of them a call means.

use crate::codes;
use domain::outcome::near;
use domain::{Code, Effect, Failure, Tenant};
use policy::Permit;
use std::sync::Arc;

/// A target that a tenant configures under a name.
pub trait NamedTarget: Sized {
    /// What the tenant configures.
    type Config: PartialEq;
    /// The words for its kind.
    const WORDS: TargetWords;

    /// The configuration it was made from.
    fn config(&self) -> &Self::Config;

    /// The name by which callers choose it.
    fn name(config: &Self::Config) -> &str;

    /// Whether a call that only reads and names none means this one.
    fn is_default(config: &Self::Config) -> bool;
}

/// How failures call a kind of target.
#[derive(Debug, Clone, Copy)]
pub struct TargetWords {
    /// One of them.
    pub one: &'static str,
    /// Several of them.
    pub several: &'static str,
    /// The argument that names one.
    pub argument: &'static str,
    /// The code where there are several and none was named.
    pub required: Code,
    /// The code where there is none of that name.
    pub unknown: Code,
}

/// The targets of one kind that one tenant has, in the order of its configuration. Cheap to clone.
pub struct Targets<T> {
    /// Whose they are; nobody's where there are none.
    tenant: Option<Tenant>,
    all: Arc<[Arc<T>]>,
}

impl<T> Clone for Targets<T> {
    fn clone(&self) -> Targets<T> {
        Targets { tenant: self.tenant.clone(), all: Arc::clone(&self.all) }
    }
}

/// Two targets of a tenant have this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTaken(pub String);

impl<T: NamedTarget> Targets<T> {
    /// No targets, for whoever only looks at tools.
    pub fn none() -> Targets<T> {
        Targets { tenant: None, all: Arc::from([]) }
    }

    /// The targets of a tenant. One whose configuration stays as it was before is taken over, with its connections.
    pub fn build(
        tenant: &Tenant,
        configs: Vec<T::Config>,
        before: Option<&Targets<T>>,
        make: impl Fn(T::Config) -> T,
    ) -> Result<Targets<T>, NameTaken> {
        for (n, config) in configs.iter().enumerate() {
            if configs[..n].iter().any(|other| T::name(other) == T::name(config)) {
                return Err(NameTaken(T::name(config).to_owned()));
            }
        }
        let before: &[Arc<T>] =
            before.filter(|before| before.tenant.as_ref() == Some(tenant)).map_or(&[], |before| &before.all);
        let kept = |config: &T::Config| before.iter().find(|target| target.config() == config).cloned();
        let all = configs.into_iter().map(|config| kept(&config).unwrap_or_else(|| Arc::new(make(config)))).collect();
        Ok(Targets { tenant: Some(tenant.clone()), all })
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<T>] {
        &self.all
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.all.iter().map(|target| T::name(target.config())).collect()
    }

    /// The target of this name.
    pub fn find(&self, name: &str) -> Result<&Arc<T>, Failure> {
        self.all.iter().find(|target| T::name(target.config()) == name).ok_or_else(|| self.unknown(name))
    }

    /// The name of the target that a call means which named this one, or none; as [`Targets::choose`] takes it for a read.
    pub fn meant(&self, named: Option<&str>) -> Option<String> {
        let target = match (named, &*self.all) {
            (None, [only]) => Some(only),
            (None, all) => all.iter().find(|target| T::is_default(target.config())),
            (Some(wanted), all) => all.iter().find(|target| T::name(target.config()) == wanted),
        };
        target.map(|target| T::name(target.config()).to_owned())
    }

    /// The target a call means. Where there are several, a read may leave the name out if the tenant set a default; a
    /// write never may, so that nothing is changed in a place nobody named.
    pub fn choose(&self, permit: &Permit, name: Option<&str>) -> Result<Arc<T>, Failure> {
        let words = T::WORDS;
        if self.tenant.as_ref().is_some_and(|tenant| tenant != permit.tenant()) {
            // A tool holds its own tenant's targets, so this cannot happen; if it does, nothing is reached.
            return Err(Failure::new(Code::Internal, "the call is not for the tenant of these targets"));
        }
        let default =
            || self.all.iter().find(|target| T::is_default(target.config()) && permit.effect() == Effect::Read);
        let target = match (name, &*self.all) {
            (_, []) => {
                let message = format!("the tenant has no {}", words.one);
                let failure = Failure::new(codes::TOOLSET_NOT_CONFIGURED, message);
                return Err(failure.next("ask an admin of the tenant to configure one"));
            }
            (None, [only]) => only,
            (None, _) => default().ok_or_else(|| self.required())?,
            (Some(wanted), _) => self.find(wanted)?,
        };
        Ok(Arc::clone(target))
    }

    fn required(&self) -> Failure {
        let words = T::WORDS;
        Failure::new(words.required, format!("the tenant has several {}; name one", words.several)).next(self.choices())
    }

    fn unknown(&self, wanted: &str) -> Failure {
        let words = T::WORDS;
        Failure::new(words.unknown, format!("the tenant has no {} of that name", words.one))
            .next(self.choices())
            .did_you_mean(near(wanted, self.names()))
    }

    fn choices(&self) -> String {
        format!("set {} to one of: {}", T::WORDS.argument, self.names().join(", "))
    }
}
