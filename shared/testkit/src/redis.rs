//! A real Redis of one's own: on a free port, in a private folder, gone with the value.
//!
//! Nothing is simulated. A pause is SIGSTOP, a crash is SIGKILL, and a restart finds the same port and the same files.

use crate::certificates::Certificates;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The settings an audit log asks for.
pub const SAFE: [&str; 4] = ["--appendonly", "yes", "--maxmemory-policy", "noeviction"];
/// The same, and what it has answered for is in its file: one that syncs every second holds its writes back while the disk
/// is busy, and then a kill does lose the last of them.
pub const SYNCED: [&str; 6] = ["--appendonly", "yes", "--maxmemory-policy", "noeviction", "--appendfsync", "always"];
/// How long the server may take to come up.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often a server is started whose ports others turn out to have.
pub(crate) const STARTS: usize = 5;

/// The bytes, and behind them every packed text in them as it reads: whoever has stolen them can unpack it too.
fn unpacked(mut bytes: Vec<u8>) -> Vec<u8> {
    const MARK: &[u8] = b"\x01LZ4";
    let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    let text = |at: usize| {
        let (length, packed) = (number(at + 4)?, number(at + 8)?);
        lz4_flex::block::decompress(bytes.get(at + 12..at + 12 + packed)?, length).ok()
    };
    let marks = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(MARK));
    let texts: Vec<u8> = marks.filter_map(text).flatten().collect();
    bytes.extend(texts);
    bytes
}

/// A running Redis server.
pub struct RedisServer {
    port: u16,
    folder: TempDir,
    settings: Vec<String>,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts a server that keeps what it is told: append-only file, no eviction.
    pub fn start() -> RedisServer {
        RedisServer::start_with(&SAFE)
    }

    /// Starts a server with other settings.
    pub fn start_with(settings: &[&str]) -> RedisServer {
        // Whoever takes a free port between us and the server has it; then there are others.
        (0..STARTS).find_map(|_| RedisServer::try_start(settings)).expect("redis-server should find a port")
    }

    /// The same, unless the server leaves at once because somebody else has one of its ports.
    pub(crate) fn try_start(settings: &[&str]) -> Option<RedisServer> {
        let mut server = RedisServer::reserved_with(settings);
        server.process = Some(server.spawn());
        server.comes_up().then_some(server)
    }

    /// Where it keeps its files.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The process, while there is one.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Starts a server that takes TLS as well, at another port.
    pub fn start_secure(certificates: &Certificates) -> RedisServer {
        let words = certificates.words(free_port());
        let words: Vec<&str> = SYNCED.into_iter().chain(words.iter().map(String::as_str)).collect();
        RedisServer::start_with(&words)
    }

    /// The port that others should use: the one with TLS, if there is one.
    pub fn announced_port(&self) -> u16 {
        self.setting("--tls-port").unwrap_or(self.port)
    }

    fn setting(&self, name: &str) -> Option<u16> {
        let at = self.settings.iter().position(|word| word == name)?;
        self.settings.get(at + 1)?.parse().ok()
    }

    /// A port and a folder, with nobody there yet.
    pub fn reserved() -> RedisServer {
        RedisServer::reserved_with(&SAFE)
    }

    /// Where to reach it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Follows another server from now on, by way of this port, and has caught up with it when this ends.
    pub fn follow(&self, port: u16) {
        assert_eq!(self.command(&["REPLICAOF", "127.0.0.1", &port.to_string()]), "+OK");
        const LINKED: &str = "return redis.call('INFO','replication'):match('master_link_status:(%a+)')";
        self.until("it to follow", || self.info(LINKED) == "up");
    }

    /// Follows nobody from now on.
    pub fn lead(&self) {
        assert_eq!(self.command(&["REPLICAOF", "NO", "ONE"]), "+OK");
    }

    /// Waits until that many others follow this one.
    pub fn followed_by(&self, many: usize) {
        const ONLINE: &str = "return tostring(select(2, redis.call('INFO','replication'):gsub('state=online', '')))";
        self.until("others to follow", || self.info(ONLINE) == many.to_string());
    }

    /// What a script over the server's account of itself says.
    pub(crate) fn info(&self, script: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("redis-server should listen");
        let text = format!("*3\r\n$7\r\nEVAL_RO\r\n${}\r\n{script}\r\n$1\r\n0\r\n", script.len());
        stream.write_all(text.as_bytes()).expect("redis-server should take a command");
        BufReader::new(stream).lines().nth(1).and_then(Result::ok).unwrap_or_default()
    }

    pub(crate) fn until(&self, what: &str, so: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !so() {
            assert!(Instant::now() < end, "waited too long for {what}: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The first lines of an answer, as they come, with the marks of the protocol on their kinds and lengths.
    pub(crate) fn lines(&self, words: &[&str], most: usize) -> Vec<String> {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else { return Vec::new() };
        let mut text = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| text.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        // What ends the answer: a server that knows no lists of unknown length cannot be waited for otherwise.
        text.push_str("*1\r\n$4\r\nPING\r\n");
        let limit = stream.set_read_timeout(Some(Duration::from_secs(1)));
        if limit.is_err() || stream.write_all(text.as_bytes()).is_err() {
            return Vec::new();
        }
        BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| line != "+PONG").take(most).collect()
    }

    /// What it says of its cluster.
    pub(crate) fn cluster_info(&self) -> String {
        String::from_utf8_lossy(&self.bytes(&["CLUSTER", "INFO"])).into_owned()
    }

    /// How many replicas it knows of in its cluster.
    pub(crate) fn known_replicas(&self) -> usize {
        let nodes = self.bytes(&["CLUSTER", "NODES"]);
        String::from_utf8_lossy(&nodes).lines().filter(|line| line.contains("slave")).count()
    }

    /// The port on which the nodes of a cluster talk to each other.
    pub(crate) fn bus_port(&self) -> u16 {
        self.setting("--cluster-port").expect("only a node of a cluster has one")
    }

    /// Runs as a sentinel, by this file of settings.
    pub(crate) fn run_as_sentinel(&mut self, file: &std::path::Path) {
        self.settings = vec![file.display().to_string(), "--sentinel".to_owned()];
        self.restart();
    }

    /// Ends the server at once, without letting it tidy up. What it has synced stays in its folder.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Both fail only if it has ended by itself, which is what we want.
            drop(process.kill());
            drop(process.wait());
        }
    }

    /// From now on what it has answered for is in its file, as with [`SYNCED`]: for tests that end it and go on with what
    /// it held.
    pub fn sync_every_write(&self) {
        assert_eq!(self.command(&["CONFIG", "SET", "appendfsync", "always"]), "+OK");
    }

    /// Starts it on the same port and the same files, stopping it first if it runs.
    pub fn restart(&mut self) {
        self.stop();
        self.process = Some(self.spawn());
        assert!(self.comes_up(), "redis-server ended by itself: {}", self.log());
    }

    /// Freezes the server: connections stay open, nothing answers.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Thaws it.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    /// Sends one command and gives back the first line of the answer, for settings a test wants to turn.
    pub fn command(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("redis-server should listen");
        let mut text = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| text.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        stream.write_all(text.as_bytes()).expect("redis-server should take a command");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("redis-server should answer");
        line.trim_end().to_owned()
    }

    /// How many commands it has carried out, those inside of scripts included.
    pub fn commands(&self) -> u64 {
        let text = self.bytes(&["INFO", "commandstats"]);
        let calls = |line: &str| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok();
        String::from_utf8_lossy(&text).lines().filter_map(calls).sum()
    }

    /// Every key with all it holds: records, indexes and streams, each byte as it is, and what is packed once more as it reads.
    pub fn dump(&self) -> Vec<u8> {
        const ALL: &str = "local read = {string = {'GET'}, hash = {'HGETALL'}, stream = {'XRANGE', '-', '+'}, \
            zset = {'ZRANGE', 0, -1, 'WITHSCORES'}, set = {'SMEMBERS'}, list = {'LRANGE', 0, -1}} \
            local all = {} \
            for _, key in ipairs(redis.call('KEYS', '*')) do \
              local how = read[redis.call('TYPE', key).ok] \
              all[#all + 1] = key \
              all[#all + 1] = redis.call(how[1], key, unpack(how, 2)) \
            end \
            return cmsgpack.pack(all)";
        unpacked(self.bytes(&["EVAL", ALL, "0"]))
    }

    /// Sends one command and gives back the text that it is answered with.
    pub(crate) fn bytes(&self, words: &[&str]) -> Vec<u8> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("redis-server should listen");
        let mut text = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| text.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        stream.write_all(text.as_bytes()).expect("redis-server should take a command");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).expect("redis-server should answer");
        let length = line.strip_prefix('$').and_then(|length| length.trim_end().parse().ok());
        let mut bytes = vec![0; length.unwrap_or_else(|| panic!("a text should come, and not {line}"))];
        reader.read_exact(&mut bytes).expect("redis-server should answer");
        bytes
    }

    /// Every key there is.
    pub fn keys(&self) -> Vec<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("redis-server should listen");
        stream.write_all(b"*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n").expect("redis-server should take a command");
        let mut lines = BufReader::new(stream).lines().map(|line| line.expect("redis-server should answer"));
        let count = lines.next().and_then(|line| line.strip_prefix('*')?.parse::<usize>().ok());
        // Each key is two lines: its length, then itself. No key of ours holds a line break.
        lines.skip(1).step_by(2).take(count.expect("a list should come")).collect()
    }

    /// Everything it has written to its files, as whoever can read its disk finds it, and what is packed once more as it reads.
    pub fn written(&self) -> Vec<u8> {
        let mut folders = vec![self.folder.path().to_owned()];
        let mut bytes = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("its folder should be there") {
                let path = entry.expect("its folder should be readable").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    bytes.extend(std::fs::read(path).expect("its files should be readable"));
                }
            }
        }
        unpacked(bytes)
    }

    /// Whether it has been started and not stopped.
    pub fn runs(&self) -> bool {
        self.process.is_some()
    }

    pub(crate) fn reserved_with(settings: &[&str]) -> RedisServer {
        let folder = tempfile::tempdir().expect("a temporary folder should be made");
        let settings = settings.iter().map(|&word| word.to_owned()).collect();
        RedisServer { port: free_port(), folder, settings, process: None }
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own server, never part of the service")]
    fn spawn(&self) -> Child {
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log file should be made");
        let mut command = Command::new("redis-server");
        // A file of settings stands first, where there is one.
        let file = self.settings.first().filter(|word| !word.starts_with("--"));
        command
            .args(file)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--daemonize", "no"])
            // A replica waits for no others before it copies.
            .args(["--save", "", "--repl-diskless-sync-delay", "0"].iter().filter(|_| file.is_none()))
            .arg("--dir")
            .arg(self.folder.path())
            .args(self.settings.iter().skip(usize::from(file.is_some())))
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .spawn()
            .expect("these tests need the program redis-server on the PATH; install Redis 7 or newer")
    }

    /// Asks until the server says PONG: it listens before it has read its files. False if somebody else has its port.
    fn comes_up(&mut self) -> bool {
        let end = Instant::now() + PATIENCE;
        loop {
            let process = self.process.as_mut().expect("it was just started");
            let ended = process.try_wait().expect("the state of redis-server should be known");
            if ended.is_some() {
                assert!(self.log().contains("in use"), "redis-server ended by itself: {}", self.log());
                return false;
            }
            if self.answers() {
                return true;
            }
            assert!(Instant::now() < end, "redis-server did not come up: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) else { return false };
        let mut line = String::new();
        // Somebody else may listen there who answers nothing.
        stream.set_read_timeout(Some(Duration::from_secs(1))).is_ok()
            && stream.write_all(b"PING\r\n").is_ok()
            && BufReader::new(stream).read_line(&mut line).is_ok()
            // One that wants a password is up as well, and tells nobody who it is.
            && (line.starts_with("-NOAUTH") || (line.starts_with("+PONG") && self.is_own()))
    }

    /// Whether our own process answers, and not another server that has the port.
    fn is_own(&self) -> bool {
        let own = self.process_id().map(|id| format!("process_id:{id}"));
        self.lines(&["INFO", "server"], 100).into_iter().any(|line| Some(line) == own)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    #[expect(clippy::disallowed_methods, reason = "sends a signal to a test's own server")]
    fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("only a running server can be signalled");
        let done = Command::new("kill").args([signal, &process.id().to_string()]).status();
        assert!(done.is_ok_and(|status| status.success()), "kill {signal} should reach redis-server");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A port nobody uses at this moment, and that was not given to anybody else in this process.
pub(crate) fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port should be free");
        let port = listener.local_addr().expect("a bound port is known").port();
        if GIVEN.lock().expect("nobody panics while holding it").insert(port) {
            return port;
        }
    }
}
