//! All servers of all tenants in this process. A tenant's are reached by its permit and in no other way.

use crate::config::{BadServer, ServerConfig};
use crate::line::Line;
use crate::server::Server;
use domain::outcome::near;
use domain::{Code, Effect, Failure, Tenant};
use policy::Permit;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// All servers of all tenants. Cheap to clone.
#[derive(Clone, Default)]
pub struct Servers {
    tenants: Arc<RwLock<HashMap<Tenant, Lines>>>,
}

/// The servers of one tenant, in the order of its configuration.
type Lines = Arc<[Arc<Line>]>;

impl Servers {
    /// Sets the servers of a tenant, all at once. Those that stay as they were keep their connections.
    pub fn replace(&self, tenant: &Tenant, servers: Vec<ServerConfig>) -> Result<(), BadServer> {
        for (n, config) in servers.iter().enumerate() {
            config.check()?;
            if servers[..n].iter().any(|other| other.name == config.name) {
                return Err(BadServer { name: config.name.clone(), what: "there are two of that name".to_owned() });
            }
        }
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        let before = tenants.remove(tenant);
        let kept = |config: &ServerConfig| before.iter().flat_map(|l| l.iter()).find(|l| l.config == *config).cloned();
        let lines: Lines = servers
            .into_iter()
            .map(|config| kept(&config).unwrap_or_else(|| Arc::new(Line::new(tenant.clone(), config))))
            .collect();
        if !lines.is_empty() {
            tenants.insert(tenant.clone(), lines);
        }
        Ok(())
    }

    /// The names of a tenant's servers, in the order of its configuration.
    pub fn names_of(&self, tenant: &Tenant) -> Vec<String> {
        self.lines(tenant).iter().map(|line| line.config.name.clone()).collect()
    }

    /// One server of the permit's tenant. Where there are several, a read may leave the name out if the tenant set a
    /// default; a write never may, so that nothing is started in a place nobody named.
    pub fn of<'p>(&self, permit: &'p Permit, name: Option<&str>) -> Result<Server<'p>, Failure> {
        let lines = self.lines(permit.tenant());
        let default = || lines.iter().find(|line| line.config.default && permit.effect() == Effect::Read);
        let line = match (name, &*lines) {
            (_, []) => {
                let failure = Failure::new(Code::ToolsetNotConfigured, "the tenant has no Jenkins server");
                return Err(failure.next("ask an admin of the tenant to configure one"));
            }
            (None, [only]) => only,
            (None, _) => default().ok_or_else(|| required(&lines))?,
            (Some(wanted), _) => {
                lines.iter().find(|line| line.config.name == wanted).ok_or_else(|| unknown(wanted, &lines))?
            }
        };
        Ok(Server::new(Arc::clone(line), permit))
    }

    fn lines(&self, tenant: &Tenant) -> Lines {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        tenants.get(tenant).cloned().unwrap_or_else(|| Arc::from([]))
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        write!(f, "Servers of {} tenants", tenants.len())
    }
}

fn required(lines: &Lines) -> Failure {
    let failure = Failure::new(Code::ServerRequired, "the tenant has several Jenkins servers; name one");
    failure.next(format!("set server to one of: {}", names(lines).join(", ")))
}

fn unknown(wanted: &str, lines: &Lines) -> Failure {
    Failure::new(Code::ServerUnknown, "the tenant has no Jenkins server of that name")
        .next(format!("set server to one of: {}", names(lines).join(", ")))
        .did_you_mean(near(wanted, names(lines)))
}

fn names(lines: &Lines) -> Vec<&str> {
    lines.iter().map(|line| line.config.name.as_str()).collect()
}
