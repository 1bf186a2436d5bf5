//! Real Redis beyond one node: a primary with replicas behind three sentinels, and a cluster.
//!
//! All of it runs on loopback, from the same program `redis-server`. What is shared by the tests of a process is ended by a
//! small guard process, because nothing is dropped at the end of a test process.

use crate::certificates::Certificates;
use crate::redis::{RedisServer, STARTS, SYNCED, free_port};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The name under which sentinels know the primary.
pub const MASTER: &str = "ledger";
/// How long a topology may take to settle.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many slots a cluster has.
const SLOTS: u32 = 16_384;

/// A primary, its replicas, and three sentinels that watch over them.
pub struct SentinelSet {
    /// The data nodes; the first one leads at the start.
    pub nodes: Vec<RedisServer>,
    /// The sentinels.
    pub sentinels: Vec<RedisServer>,
}

impl SentinelSet {
    /// Starts all of them and waits until the sentinels agree.
    pub fn start() -> SentinelSet {
        SentinelSet::start_with("")
    }

    /// The same with nodes that take TLS and know a user; the sentinels ask them by TLS, and are asked without.
    pub fn start_secure(certificates: &Certificates, sentinel_settings: &str) -> SentinelSet {
        let file = |name: &str| certificates.path(name).display().to_string();
        let tls = format!(
            "tls-replication yes\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n{sentinel_settings}",
            file("cert.pem"),
            file("key.pem"),
            file("ca.pem")
        );
        SentinelSet::watch(vec![RedisServer::start_secure(certificates), RedisServer::start_secure(certificates)], &tls)
    }

    /// The same with more lines in the settings of each sentinel, such as a password.
    pub fn start_with(sentinel_settings: &str) -> SentinelSet {
        SentinelSet::watch(vec![RedisServer::start_with(&SYNCED), RedisServer::start_with(&SYNCED)], sentinel_settings)
    }

    /// The same with so many replicas.
    pub fn with_replicas(replicas: usize) -> SentinelSet {
        SentinelSet::watch((0..=replicas).map(|_| RedisServer::start_with(&SYNCED)).collect(), "")
    }

    fn watch(nodes: Vec<RedisServer>, sentinel_settings: &str) -> SentinelSet {
        nodes[1..].iter().for_each(|node| node.follow(nodes[0].announced_port()));
        let sentinel = |_| {
            let mut sentinel = RedisServer::reserved_with(&[]);
            let file = sentinel.folder().join("sentinel.conf");
            let text = format!(
                "sentinel monitor {MASTER} 127.0.0.1 {} 2\nsentinel down-after-milliseconds {MASTER} 400\n\
                 sentinel failover-timeout {MASTER} 2000\n{sentinel_settings}\n",
                nodes[0].announced_port()
            );
            std::fs::write(&file, text).expect("the settings of a sentinel should be written");
            sentinel.run_as_sentinel(&file);
            sentinel
        };
        let set = SentinelSet { sentinels: (0..3).map(sentinel).collect(), nodes };
        set.settle();
        set
    }

    /// Waits until every sentinel knows the others and the replicas.
    fn settle(&self) {
        for sentinel in &self.sentinels {
            patiently("the sentinels to know each other", || {
                let told = sentinel.lines(&["SENTINEL", "MASTER", MASTER], 200);
                // A password may keep us from asking; then time has to do.
                if told.first().is_some_and(|line| line.starts_with('-')) {
                    std::thread::sleep(Duration::from_secs(3));
                    return true;
                }
                let number = |name: &str| {
                    let at = told.iter().position(|line| line == name)?;
                    told.get(at + 2)?.parse::<usize>().ok()
                };
                number("num-other-sentinels") == Some(2) && number("num-slaves") == Some(self.nodes.len() - 1)
            });
        }
    }

    /// Where the store finds it.
    pub fn url(&self) -> String {
        let sentinels: Vec<String> = self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
        format!("redis+sentinel://{}/{MASTER}", sentinels.join(","))
    }

    /// Waits until this node leads.
    pub fn until_leads(&self, node: usize) {
        let leads = || self.nodes[node].lines(&["ROLE"], 3).iter().any(|line| line == "master");
        patiently("another node to lead", leads);
    }

    /// Waits until a failover is over: every sentinel names the same new primary, and so many replicas follow it. One that is
    /// told to forget what it knows before that stays with the old primary for ever.
    pub fn until_settled(&self, replicas: usize) {
        let named = |sentinel: &RedisServer| {
            let address = sentinel.lines(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER], 5);
            address.last().and_then(|port| port.parse::<u16>().ok())
        };
        let leader = || {
            let first = named(&self.sentinels[0]).filter(|port| *port != self.nodes[0].announced_port())?;
            let leader = self.nodes.iter().find(|node| node.announced_port() == first)?;
            self.sentinels.iter().all(|sentinel| named(sentinel) == Some(first)).then_some(leader)
        };
        patiently("all sentinels to name a new primary", || leader().is_some());
        if let Some(leader) = leader() {
            leader.followed_by(replicas);
        }
    }
}

/// A cluster: so many primaries, each with so many replicas.
pub struct ClusterSet {
    /// All nodes: the primaries first, then the replicas of the first, and so on.
    pub nodes: Vec<RedisServer>,
    primaries: usize,
}

impl ClusterSet {
    /// Three primaries without replicas.
    pub fn bare() -> ClusterSet {
        ClusterSet::start(3, 0, None)
    }

    /// Three primaries with one replica each.
    pub fn replicated() -> ClusterSet {
        ClusterSet::start(3, 1, None)
    }

    /// Three primaries that take TLS and know a user.
    pub fn secure(certificates: &Certificates) -> ClusterSet {
        ClusterSet::start(3, 0, Some(certificates))
    }

    fn start(primaries: usize, replicas: usize, certificates: Option<&Certificates>) -> ClusterSet {
        let count = primaries * (1 + replicas);
        let nodes: Vec<RedisServer> = std::thread::scope(|threads| {
            let started: Vec<_> = (0..count).map(|_| threads.spawn(|| cluster_node(certificates))).collect();
            started.into_iter().map(|node| node.join().expect("a node should start")).collect()
        });
        let set = ClusterSet { nodes, primaries };
        for (number, node) in set.nodes.iter().enumerate() {
            // Before they meet, so that no two have to settle whose epoch is higher.
            assert_eq!(node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]), "+OK");
        }
        let share = SLOTS.div_ceil(u32::try_from(primaries).expect("few"));
        for (number, node) in (0_u32..).zip(&set.nodes[..primaries]) {
            let (from, to) = (number * share, ((number + 1) * share - 1).min(SLOTS - 1));
            let range = ["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()];
            assert_eq!(node.command(&range), "+OK");
        }
        for node in &set.nodes[1..] {
            let (port, bus) = (set.nodes[0].announced_port().to_string(), set.nodes[0].bus_port().to_string());
            assert_eq!(node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]), "+OK");
        }
        let known = format!("cluster_known_nodes:{count}");
        patiently("the nodes to know each other", || set.nodes.iter().all(|node| node.cluster_info().contains(&known)));
        for replica in 0..primaries * replicas {
            let primary = set.id(replica / replicas);
            let node = &set.nodes[primaries + replica];
            // A node that has not heard of the primary's slots yet refuses.
            patiently("a replica to follow", || node.command(&["CLUSTER", "REPLICATE", &primary]) == "+OK");
        }
        let well = |node: &RedisServer| node.cluster_info().contains("cluster_state:ok");
        patiently("the cluster to be well", || set.nodes.iter().all(well));
        set.nodes[..primaries].iter().for_each(|node| node.followed_by(replicas));
        let seen = |node: &RedisServer| node.known_replicas() == primaries * replicas;
        patiently("every node to know the replicas", || set.nodes.iter().all(seen));
        set
    }

    /// Where the store finds it, by way of two of its nodes.
    pub fn url(&self) -> String {
        let port = |node: usize| self.nodes[node].announced_port();
        format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", port(0), port(self.primaries - 1))
    }

    /// The cluster's name for a node.
    pub fn id(&self, node: usize) -> String {
        String::from_utf8_lossy(&self.nodes[node].bytes(&["CLUSTER", "MYID"])).into_owned()
    }

    /// The primary that serves a key at the start, by its place among the nodes.
    pub fn primary_of(&self, key: &str) -> usize {
        let slot: u32 = self.slot(key).parse().expect("a slot is a number");
        (slot / SLOTS.div_ceil(u32::try_from(self.primaries).expect("few"))) as usize
    }

    /// The slot of a key, as Redis itself says.
    pub fn slot(&self, key: &str) -> String {
        let told =
            self.nodes.iter().find(|node| node.runs()).expect("some node runs").command(&["CLUSTER", "KEYSLOT", key]);
        told.trim_start_matches(':').to_owned()
    }

    /// The first replica of a primary, by its place among the nodes.
    pub fn replica_of(&self, primary: usize) -> usize {
        primary * (self.nodes.len() / self.primaries - 1) + self.primaries
    }

    /// Waits until a node leads its shard.
    pub fn until_leads(&self, node: usize) {
        let leads = || self.nodes[node].lines(&["ROLE"], 3).iter().any(|line| line == "master");
        patiently("another node to lead", leads);
    }

    /// Begins to move a slot, the old way: from now on both sides send clients back and forth.
    pub fn begin_move(&self, slot: &str, from: usize, to: usize) {
        let (source, target) = (self.id(from), self.id(to));
        assert_eq!(self.nodes[to].command(&["CLUSTER", "SETSLOT", slot, "IMPORTING", &source]), "+OK");
        assert_eq!(self.nodes[from].command(&["CLUSTER", "SETSLOT", slot, "MIGRATING", &target]), "+OK");
    }

    /// Moves so many keys of a slot that is on its way. Tells how many went.
    pub fn move_keys(&self, slot: &str, from: usize, to: usize, most: usize) -> usize {
        let lines = self.nodes[from].lines(&["CLUSTER", "GETKEYSINSLOT", slot, &most.to_string()], 2 * most + 1);
        // The number of keys comes first, and the length of each before itself.
        let keys: Vec<&String> = lines.iter().skip(2).step_by(2).collect();
        let port = self.nodes[to].port().to_string();
        for key in &keys {
            let moved = self.nodes[from].command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000", "REPLACE"]);
            assert!(moved == "+OK" || moved == "+NOKEY", "{moved}");
        }
        keys.len()
    }

    /// Ends the move: every primary knows the new place.
    pub fn end_move(&self, slot: &str, to: usize) {
        let target = self.id(to);
        assert_eq!(self.nodes[to].command(&["CLUSTER", "SETSLOT", slot, "NODE", &target]), "+OK");
        for node in self.nodes[..self.primaries].iter().filter(|node| node.runs()) {
            assert_eq!(node.command(&["CLUSTER", "SETSLOT", slot, "NODE", &target]), "+OK");
        }
    }
}

fn cluster_node(certificates: Option<&Certificates>) -> RedisServer {
    (0..STARTS).find_map(|_| try_cluster_node(certificates)).expect("a node should find its ports")
}

fn try_cluster_node(certificates: Option<&Certificates>) -> Option<RedisServer> {
    let bus = free_port().to_string();
    let words = certificates.map(|certificates| certificates.words(free_port())).unwrap_or_default();
    let mut settings: Vec<&str> = SYNCED.into_iter().chain(words.iter().map(String::as_str)).collect();
    if certificates.is_some() {
        settings.extend(["--tls-cluster", "yes"]);
    }
    settings.extend(["--cluster-enabled", "yes", "--cluster-port", &bus, "--cluster-node-timeout", "1500"]);
    settings.extend(["--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no"]);
    RedisServer::try_start(&settings)
}

fn patiently(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Something that is kept until its test process ends, however it ends.
pub struct Kept<T> {
    /// What is kept.
    pub topology: T,
    _guard: Child,
}

impl Kept<SentinelSet> {
    /// Keeps sentinels and their nodes.
    pub fn sentinels(topology: SentinelSet) -> Kept<SentinelSet> {
        let guard = guard(topology.nodes.iter().chain(&topology.sentinels));
        Kept { topology, _guard: guard }
    }
}

impl Kept<ClusterSet> {
    /// Keeps a cluster.
    pub fn cluster(topology: ClusterSet) -> Kept<ClusterSet> {
        let guard = guard(topology.nodes.iter());
        Kept { topology, _guard: guard }
    }
}

/// A process that waits for our end, which closes its standard input, and then ends the servers.
#[expect(clippy::disallowed_methods, reason = "a test's own guard, never part of the service")]
fn guard<'a>(servers: impl Iterator<Item = &'a RedisServer>) -> Child {
    let (mut processes, mut folders) = (Vec::new(), Vec::new());
    for server in servers {
        processes.extend(server.process_id().map(|id| id.to_string()));
        folders.push(server.folder().display().to_string());
    }
    let script = format!("cat >/dev/null; kill -9 {}; rm -rf {}", processes.join(" "), folders.join(" "));
    Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("these tests need sh")
}
