//! What a new server holds.

mod shop;

use super::access::{Access, Permission};
use super::exports::Site;
use super::job::SimulatedJob;
use super::route::RouteContext;
use super::world::JenkinsWorld;

/// The content and habits of a new server.
#[derive(Debug, Clone)]
pub struct JenkinsSeed {
    jobs: Vec<SimulatedJob>,
    user: String,
    missing: Vec<Permission>,
    plugins: bool,
    still: bool,
    crumbs: bool,
    pub(super) context: String,
}

impl JenkinsSeed {
    /// The CI of a small shop: folders, branches, builds in good and bad shape. What `dev` shows.
    pub fn shop() -> JenkinsSeed {
        let mut seed = JenkinsSeed::empty();
        seed.jobs = shop::jobs();
        seed
    }

    /// A server without jobs.
    pub fn empty() -> JenkinsSeed {
        JenkinsSeed {
            jobs: Vec::new(),
            user: "robot".to_owned(),
            missing: Vec::new(),
            plugins: true,
            still: false,
            crumbs: false,
            context: String::new(),
        }
    }

    /// Adds a job or folder. The folders above it must be added too.
    #[must_use]
    pub fn job(mut self, job: SimulatedJob) -> JenkinsSeed {
        self.jobs.push(job);
        self
    }

    /// The name of the user the token belongs to.
    #[must_use]
    pub fn user(mut self, name: &str) -> JenkinsSeed {
        name.clone_into(&mut self.user);
        self
    }

    /// The user lacks a permission.
    #[must_use]
    pub fn without(mut self, permission: Permission) -> JenkinsSeed {
        self.missing.push(permission);
        self
    }

    /// A server without the plugins for stages, replay and test reports.
    #[must_use]
    pub fn without_plugins(mut self) -> JenkinsSeed {
        self.plugins = false;
        self
    }

    /// Time stands still unless it is moved by hand.
    #[must_use]
    pub fn still(mut self) -> JenkinsSeed {
        self.still = true;
        self
    }

    /// Changes need a crumb though they carry a token.
    #[must_use]
    pub fn with_crumbs(mut self) -> JenkinsSeed {
        self.crumbs = true;
        self
    }

    /// The server lives under this path, such as `/ci`.
    #[must_use]
    pub fn under(mut self, path: &str) -> JenkinsSeed {
        path.trim_end_matches('/').clone_into(&mut self.context);
        self
    }

    pub(super) fn plant(self, site: Site) -> RouteContext {
        let mut world = JenkinsWorld::new(self.still);
        for job in self.jobs {
            world.plant(job);
        }
        let mut access = Access::new(self.user, self.missing);
        access.crumbs = self.crumbs;
        RouteContext { world, access, plugins: self.plugins, site }
    }
}
