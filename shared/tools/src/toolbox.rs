//! Every built-in tool, made once, in the forms tenants need: an argument that chooses among several targets is listed
//! only where there are several, and a toolset that has nothing to act on is not issued at all.

use crate::{Cursors, argo, helm, jenkins, k8s, memory};
use ::helm::Helm;
use ::helm::charts::{BuildError, Charts};
use ::jenkins::Servers;
use ::memory::Notebook;
use catalog::Entry;
use catalog::validate::BadSchema;
use cluster::Clusters;
use domain::ToolsetName;
use std::sync::Arc;
use store::Store;

/// What the built-in tools reach, all of it.
#[derive(Debug, Clone)]
pub struct Kit {
    /// The service's own store.
    pub store: Store,
    /// The documents of all tenants.
    pub notebook: Notebook,
    /// The clusters of all tenants.
    pub clusters: Clusters,
    /// The helm binary.
    pub helm: Helm,
    /// The chart repositories of all tenants.
    pub charts: Charts,
    /// The Jenkins servers of all tenants.
    pub servers: Servers,
    /// Where long results go on, and the clock of ages.
    pub cursors: Cursors,
}

impl Kit {
    /// A kit that reaches nothing, for whoever only looks at the tools.
    pub fn to_look_at(store: Store) -> Result<Kit, BuildError> {
        Ok(Kit {
            notebook: Notebook::new(store.clone()),
            clusters: Clusters::new([0; 32]),
            helm: Helm::absent(),
            charts: Charts::nowhere(store.clone())?,
            servers: Servers::default(),
            cursors: Cursors::new([0; 32]),
            store,
        })
    }
}

/// How many targets a tenant has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Has {
    /// Kubernetes clusters.
    pub clusters: usize,
    /// Jenkins servers.
    pub servers: usize,
}

/// The tools of one toolset, for one target and for several.
struct Set {
    name: &'static str,
    one: Vec<Arc<Entry>>,
    several: Vec<Arc<Entry>>,
    targets: fn(Has) -> usize,
}

/// Every built-in tool.
pub struct Toolbox {
    sets: Vec<Set>,
    every: Vec<Arc<Entry>>,
}

impl Toolbox {
    /// Makes every tool; the order is the product's.
    pub fn new(kit: &Kit) -> Result<Toolbox, BadSchema> {
        let cursors = || kit.cursors.clone();
        let clusters = k8s::K8sKit { clusters: kit.clusters.clone(), cursors: cursors() };
        let releases = helm::HelmKit::new(
            kit.helm.clone(),
            kit.charts.clone(),
            kit.clusters.clone(),
            kit.store.clone(),
            cursors(),
        );
        let documents = memory::MemoryKit { notebook: kit.notebook.clone(), cursors: cursors() };
        let servers = jenkins::JenkinsKit { servers: kit.servers.clone(), cursors: cursors() };
        let set = |name, make: &dyn Fn(bool) -> Result<Vec<Arc<Entry>>, BadSchema>, targets| {
            Ok(Set { name, one: make(false)?, several: make(true)?, targets })
        };
        let sets = vec![
            set(k8s::TOOLSET, &|many| k8s::list(&clusters, many), |has| has.clusters)?,
            set(helm::TOOLSET, &|many| helm::list(&releases, many), |has| has.clusters)?,
            set(argo::TOOLSET, &|many| argo::list(&clusters, many), |has| has.clusters)?,
            set(jenkins::TOOLSET, &|many| jenkins::list(&servers, many), |has| has.servers)?,
            set(memory::TOOLSET, &|_| memory::list(&documents), |_| 1)?,
        ];
        let every = sets.iter().flat_map(|set| set.one.iter().cloned()).collect();
        Ok(Toolbox { sets, every })
    }

    /// Every tool, as it is listed where there is one target of each kind.
    pub fn every(&self) -> &[Arc<Entry>] {
        &self.every
    }

    /// The tools for a tenant that has these targets. What it has loaded by default is issued in any case, and then says
    /// what is missing.
    pub fn issue(&self, has: Has, by_default: &[ToolsetName]) -> Vec<Arc<Entry>> {
        let named = |set: &&Set| by_default.iter().any(|name| name.as_str() == set.name);
        let issued = self.sets.iter().filter(|set| (set.targets)(has) > 0 || named(set));
        issued.flat_map(|set| if (set.targets)(has) > 1 { &set.several } else { &set.one }).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn toolbox() -> Toolbox {
        let config = store::Config {
            url: "memory:".to_owned(),
            prefix: "t".to_owned(),
            deadline: std::time::Duration::from_secs(1),
            accept_unsafe: true,
            confirm_replicas: store::Confirm::Auto,
        };
        Toolbox::new(&Kit::to_look_at(Store::open(&config).await.unwrap()).unwrap()).unwrap()
    }

    fn toolsets(tools: &[Arc<Entry>]) -> Vec<&str> {
        let mut names: Vec<&str> = tools.iter().map(|tool| tool.definition().toolset.as_str()).collect();
        names.dedup();
        names
    }

    #[tokio::test]
    async fn a_toolset_without_a_target_is_issued_only_if_the_tenant_names_it() {
        let toolbox = toolbox().await;
        let k8s = ToolsetName::parse("k8s").unwrap();
        for (clusters, servers, by_default, issued) in [
            (0, 0, &[][..], &["memory"][..]),
            (0, 0, &[k8s][..], &["k8s", "memory"]),
            (0, 1, &[], &["jenkins", "memory"]),
            (1, 0, &[], &["k8s", "helm", "argo", "memory"]),
        ] {
            assert_eq!(toolsets(&toolbox.issue(Has { clusters, servers }, by_default)), issued);
        }
        let lists = |has, name: &str| {
            let tools = toolbox.issue(has, &[]);
            tools.iter().any(|tool| tool.brief().contains(&format!("\"{name}\":{{")))
        };
        let (one, several) = (Has { clusters: 1, servers: 1 }, Has { clusters: 2, servers: 2 });
        assert_eq!([lists(one, "cluster"), lists(several, "cluster")], [false, true]);
        assert_eq!([lists(one, "server"), lists(several, "server")], [false, true]);
    }

    #[tokio::test]
    async fn tools_that_hand_out_words_of_strangers_say_so() {
        let toolbox = toolbox().await;
        let told = toolbox.every().iter().filter(|tool| tool.definition().outside_text);
        let names: Vec<&str> = told.map(|tool| tool.name().as_str()).collect();
        let strangers = ["k8s_logs", "k8s_exec", "k8s_run", "k8s_probe", "helm_show", "helm_test"];
        assert_eq!(names, [&strangers[..], &["jenkins_build", "jenkins_log"]].concat());
    }
}
