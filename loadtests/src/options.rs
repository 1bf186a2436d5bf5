//! The command line.
//!
//! Read by hand: there are a dozen options, and the parser the service uses stays at the service's own door.

use anyhow::{Context, bail, ensure};
use std::path::PathBuf;
use std::str::FromStr;

/// How long tenants are watched that do nothing.
const IDLE_SECONDS: u64 = 60;

/// What `--help` says.
pub(crate) const HELP: &str = "\
Measures quartermaster against floors and prints a table of ratios.

usage: loadtests [--seconds N] [--connections N] [--only TEXT] [--redis PATH] [--quartermaster PATH] [--strict]
       loadtests --pods [--quartermaster PATH] [--strict]
       loadtests --former PATH [--seconds N] [--connections N] [--only TEXT] [--redis PATH] [--quartermaster PATH]
       loadtests --memory [--quartermaster PATH] [--strict]
       loadtests --idle [--seconds N] [--redis PATH] [--quartermaster PATH] [--strict]
       loadtests --search [--strict]
       loadtests --peers | --neighbour | --restart | --growth [--seconds N] [--connections N] [--json FILE] [--chart FILE] [--strict]
       loadtests --proxied [--upstream URL --tool NAME --arguments JSON] [--seconds N] [--connections N] [--strict]

  --seconds N           load on each side of each row, 1 to 600; 5 unless told
  --connections N       connections of the generator, 1 to 1024; 16 unless told
  --only TEXT           the rows whose operation and store hold this text, such as `no-op, modern, redis`
  --redis PATH          the program redis-server; looked up on the PATH unless told
  --quartermaster PATH  the program to measure; the one beside this program unless told
  --former PATH         each operation against the same one of this earlier build of the service, instead of floors
  --memory              how much memory the service on its embedded store has after 100,000 calls, instead of the rows
  --idle                what 1 to 10,000 tenants cost that do nothing, counted for --seconds, instead of the rows; 60 unless told
  --pods                how reading all pods of a cluster grows with their number, instead of the rows
  --search              how long a search of memory takes against a bare search library, instead of the rows; needs a
                        build with the feature `rival`
  --proxied             what a call of an external MCP server costs by way of the service, instead of the rows
  --peers               the service beside servers of others on the same work, instead of the rows; see loadtests/README.md for
                        the variables that name them
  --neighbour           a quiet tenant beside one that calls at 20 times its limit, and a read at half of peak load
  --restart             two replicas restarted one after the other under load
  --growth              cost and memory against sessions, tenants, tools, waiting runs, audit records and replicas; the
                        largest steps with --seconds 10 or more
  --json FILE           with these four: the figures
  --chart FILE          with --peers and --growth: a chart, as SVG
  --upstream URL        with --proxied: a real server besides ours, of the modern era and on this machine
  --tool NAME           with --upstream: the tool that is called, by the server's own name for it
  --arguments JSON      with --upstream: what it is called with; {} unless told
  --strict              end with code 1 when an aim is missed";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandLine {
    /// How to use the program.
    Help,
    /// The measurement.
    Measure(LoadOptions),
    /// One floor, in a process of its own; this program starts itself so.
    Floor(FloorOptions),
    /// One external server, likewise.
    Upstream(ServerOptions),
}

/// How to measure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoadOptions {
    /// Seconds of load on each side of each row.
    pub(crate) seconds: u64,
    /// Connections of the generator.
    pub(crate) connections: usize,
    /// What the name of a row must hold; empty means all rows.
    pub(crate) only: String,
    /// The program `redis-server`.
    pub(crate) redis: PathBuf,
    /// The program to measure.
    pub(crate) quartermaster: Option<PathBuf>,
    /// An earlier build of the service, to compare with instead of floors.
    pub(crate) former: Option<PathBuf>,
    /// Whether memory after many calls is measured, instead of the rows.
    pub(crate) memory: bool,
    /// Whether tenants that do nothing are measured, instead of the rows.
    pub(crate) idle: bool,
    /// Whether long lists are measured, instead of the rows.
    pub(crate) pods: bool,
    /// Whether searching memory is measured, instead of the rows.
    pub(crate) search: bool,
    /// Whether calls of external servers are measured, instead of the rows, and of which.
    pub(crate) proxied: Option<Proxied>,
    /// Another measurement instead of the rows.
    pub(crate) study: Option<Study>,
    /// Where its figures go.
    pub(crate) json: Option<PathBuf>,
    /// Where its chart goes.
    pub(crate) chart: Option<PathBuf>,
    /// Whether a missed aim is a failure.
    pub(crate) strict: bool,
}

/// A measurement of its own that leaves figures behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Study {
    Peers,
    Neighbour,
    Restart,
    Growth,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions {
            seconds: 5,
            connections: 16,
            only: String::new(),
            redis: "redis-server".into(),
            quartermaster: None,
            former: None,
            memory: false,
            idle: false,
            pods: false,
            search: false,
            proxied: None,
            study: None,
            json: None,
            chart: None,
            strict: false,
        }
    }
}

/// Which external servers are called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proxied {
    /// A real one besides ours.
    pub(crate) upstream: Option<String>,
    /// Its tool that is called.
    pub(crate) tool: String,
    /// What it is called with, as JSON.
    pub(crate) arguments: String,
}

/// What an external server of ours needs to know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerOptions {
    /// The port on loopback.
    pub(crate) port: u16,
    /// How long it works on each call.
    pub(crate) work_ms: u64,
    /// How many tools it has.
    pub(crate) tools: usize,
}

/// What a floor needs to know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FloorOptions {
    /// The port on loopback.
    pub(crate) port: u16,
    /// The file that holds the answer.
    pub(crate) bytes_file: PathBuf,
    /// The Redis to ask before each answer.
    pub(crate) redis: Option<String>,
}

/// Reads the words after the program's name.
pub(crate) fn read(words: impl IntoIterator<Item = String>) -> anyhow::Result<CommandLine> {
    let mut words = words.into_iter().peekable();
    if words.next_if(|word| word == "floor").is_some() {
        return floor(words).map(CommandLine::Floor);
    }
    if words.next_if(|word| word == "upstream").is_some() {
        return upstream(words).map(CommandLine::Upstream);
    }
    let (mut options, mut proxied, mut seconds) = (LoadOptions::default(), Proxied::default(), None);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(CommandLine::Help),
            "--pods" => options.pods = true,
            "--memory" => options.memory = true,
            "--idle" => options.idle = true,
            "--former" => options.former = Some(value(&word, &mut words)?),
            "--search" => options.search = true,
            "--peers" | "--neighbour" | "--restart" | "--growth" => {
                ensure!(options.study.is_none(), "{word} does not go with another measurement");
                options.study = Some(study(&word));
            }
            "--json" => options.json = Some(value(&word, &mut words)?),
            "--chart" => options.chart = Some(value(&word, &mut words)?),
            "--proxied" => options.proxied = Some(Proxied::default()),
            "--upstream" => proxied.upstream = Some(value(&word, &mut words)?),
            "--tool" => proxied.tool = value(&word, &mut words)?,
            "--arguments" => proxied.arguments = value(&word, &mut words)?,
            "--strict" => options.strict = true,
            "--seconds" => seconds = Some(value(&word, &mut words)?),
            "--connections" => options.connections = value(&word, &mut words)?,
            "--only" => options.only = value(&word, &mut words)?,
            "--redis" => options.redis = value(&word, &mut words)?,
            "--quartermaster" => options.quartermaster = Some(value(&word, &mut words)?),
            unknown => bail!("unknown option `{unknown}`\n\n{HELP}"),
        }
    }
    options.seconds = seconds.unwrap_or(if options.idle { IDLE_SECONDS } else { options.seconds });
    ensure!((1..=600).contains(&options.seconds), "--seconds is between 1 and 600");
    ensure!((1..=1024).contains(&options.connections), "--connections is between 1 and 1024");
    ensure!(proxied.upstream.is_some() != proxied.tool.is_empty(), "--upstream and --tool go together");
    ensure!(
        proxied == Proxied::default() || options.proxied.is_some(),
        "--upstream, --tool and --arguments go with --proxied"
    );
    if proxied.arguments.is_empty() {
        proxied.arguments = "{}".to_owned();
    }
    options.proxied = options.proxied.map(|_| proxied);
    for (option, alone) in [
        ("--pods", LoadOptions { pods: true, ..LoadOptions::default() }),
        ("--memory", LoadOptions { memory: true, ..LoadOptions::default() }),
    ] {
        let LoadOptions { pods, memory, quartermaster, strict, .. } = &options;
        if (*pods && alone.pods) || (*memory && alone.memory) {
            let fixed = LoadOptions { quartermaster: quartermaster.clone(), strict: *strict, ..alone };
            ensure!(options == fixed, "{option} goes with --quartermaster and --strict only");
        }
    }
    if options.idle {
        let LoadOptions { seconds, redis, quartermaster, strict, .. } = &options;
        let (redis, quartermaster) = (redis.clone(), quartermaster.clone());
        let fixed = LoadOptions {
            idle: true,
            seconds: *seconds,
            redis,
            quartermaster,
            strict: *strict,
            ..LoadOptions::default()
        };
        ensure!(options == fixed, "--idle goes with --seconds, --redis, --quartermaster and --strict only");
    }
    check_measurement(&options)?;
    Ok(CommandLine::Measure(options))
}

/// Whether what is asked for can be measured together.
fn check_measurement(options: &LoadOptions) -> anyhow::Result<()> {
    let is_more = options.search || options.proxied.is_some() || options.former.is_some();
    ensure!(options.study.is_none() || !is_more, "{:?} does not go with another measurement", options.study);
    ensure!(
        options.study.is_some() || (options.json.is_none() && options.chart.is_none()),
        "--json and --chart need one of --peers, --neighbour, --restart and --growth"
    );
    ensure!(
        options.former.is_none() || (options.proxied.is_none() && !options.search && !options.strict),
        "--former has no aims and goes with the rows only"
    );
    if options.search {
        let fixed = LoadOptions { search: true, strict: options.strict, ..LoadOptions::default() };
        ensure!(*options == fixed, "--search goes with --strict only");
    }
    Ok(())
}

fn study(word: &str) -> Study {
    match word {
        "--peers" => Study::Peers,
        "--neighbour" => Study::Neighbour,
        "--restart" => Study::Restart,
        _ => Study::Growth,
    }
}

fn floor(mut words: impl Iterator<Item = String>) -> anyhow::Result<FloorOptions> {
    let (mut port, mut bytes_file, mut redis) = (None, None, None);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--port" => port = Some(value(&word, &mut words)?),
            "--bytes-file" => bytes_file = Some(value(&word, &mut words)?),
            "--redis" => redis = Some(value(&word, &mut words)?),
            unknown => bail!("unknown option `{unknown}` of a floor"),
        }
    }
    let port = port.context("a floor needs --port")?;
    Ok(FloorOptions { port, bytes_file: bytes_file.context("a floor needs --bytes-file")?, redis })
}

fn upstream(mut words: impl Iterator<Item = String>) -> anyhow::Result<ServerOptions> {
    let (mut port, mut work_ms, mut tools) = (None, 0, 1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--port" => port = Some(value(&word, &mut words)?),
            "--work-ms" => work_ms = value(&word, &mut words)?,
            "--tools" => tools = value(&word, &mut words)?,
            unknown => bail!("unknown option `{unknown}` of a server"),
        }
    }
    Ok(ServerOptions { port: port.context("a server needs --port")?, work_ms, tools })
}

fn value<T: FromStr>(option: &str, words: &mut impl Iterator<Item = String>) -> anyhow::Result<T> {
    let text = words.next().with_context(|| format!("{option} needs a value"))?;
    text.parse().ok().with_context(|| format!("{option} cannot be `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<CommandLine, String> {
        read(line.split_whitespace().map(str::to_owned)).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn every_option_has_a_default_and_can_be_told() {
        assert_eq!(asked(""), Ok(CommandLine::Measure(LoadOptions::default())));
        let told = LoadOptions {
            seconds: 2,
            connections: 4,
            only: "list".into(),
            redis: "/r".into(),
            quartermaster: Some("/q".into()),
            former: None,
            memory: false,
            idle: false,
            pods: false,
            search: false,
            proxied: None,
            study: None,
            json: None,
            chart: None,
            strict: true,
        };
        let line = "--seconds 2 --connections 4 --only list --redis /r --quartermaster /q --strict";
        assert_eq!(asked(line), Ok(CommandLine::Measure(told)));
        let long_lists =
            LoadOptions { pods: true, quartermaster: Some("/q".into()), strict: true, ..LoadOptions::default() };
        assert_eq!(asked("--strict --pods --quartermaster /q"), Ok(CommandLine::Measure(long_lists)));
        let memory = LoadOptions { memory: true, ..LoadOptions::default() };
        assert_eq!(asked("--memory"), Ok(CommandLine::Measure(memory)));
        let idle = LoadOptions { idle: true, seconds: 60, ..LoadOptions::default() };
        assert_eq!(asked("--idle"), Ok(CommandLine::Measure(idle)));
        let quick = LoadOptions { idle: true, seconds: 9, strict: true, ..LoadOptions::default() };
        assert_eq!(asked("--idle --seconds 9 --strict"), Ok(CommandLine::Measure(quick)));
        let former = LoadOptions { former: Some("/f".into()), ..LoadOptions::default() };
        assert_eq!(asked("--former /f"), Ok(CommandLine::Measure(former)));
        let searching = LoadOptions { search: true, strict: true, ..LoadOptions::default() };
        assert_eq!(asked("--search --strict"), Ok(CommandLine::Measure(searching)));
        let (upstream, arguments) = (Some("http://u/mcp".to_owned()), r#"{"a":1}"#.to_owned());
        let proxied = Proxied { upstream, tool: "t".to_owned(), arguments };
        let through = LoadOptions { proxied: Some(proxied), seconds: 9, ..LoadOptions::default() };
        let line = r#"--proxied --upstream http://u/mcp --tool t --arguments {"a":1} --seconds 9"#;
        assert_eq!(asked(line), Ok(CommandLine::Measure(through)));
        let ours = Proxied { arguments: "{}".to_owned(), ..Proxied::default() };
        let through = LoadOptions { proxied: Some(ours), ..LoadOptions::default() };
        assert_eq!(asked("--proxied"), Ok(CommandLine::Measure(through)));
        for (word, study) in [
            ("--peers", Study::Peers),
            ("--neighbour", Study::Neighbour),
            ("--restart", Study::Restart),
            ("--growth", Study::Growth),
        ] {
            let (json, chart) = (Some("/j".into()), Some("/c".into()));
            let told = LoadOptions { study: Some(study), json, chart, ..LoadOptions::default() };
            assert_eq!(asked(&format!("{word} --json /j --chart /c")), Ok(CommandLine::Measure(told)));
        }
        assert_eq!(asked("--seconds 2 --help"), Ok(CommandLine::Help));
    }

    #[test]
    fn a_floor_is_a_command_of_its_own() {
        let floor = FloorOptions { port: 7, bytes_file: "/b".into(), redis: Some("redis://x".into()) };
        assert_eq!(asked("floor --port 7 --bytes-file /b --redis redis://x"), Ok(CommandLine::Floor(floor)));
        assert!(asked("floor --bytes-file /b").unwrap_err().contains("--port"));
        assert!(asked("floor --port 7").unwrap_err().contains("--bytes-file"));
        assert!(asked("floor --port 70000 --bytes-file /b").unwrap_err().contains("70000"));
    }

    #[test]
    fn an_external_server_is_a_command_of_its_own() {
        assert_eq!(
            asked("upstream --port 7 --work-ms 5 --tools 9"),
            Ok(CommandLine::Upstream(ServerOptions { port: 7, work_ms: 5, tools: 9 }))
        );
        assert!(asked("upstream").unwrap_err().contains("--port"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_name() {
        for (line, told) in [
            ("--fast", "unknown option `--fast`"),
            ("--seconds", "--seconds needs a value"),
            ("--seconds soon", "--seconds cannot be `soon`"),
            ("--seconds 0", "between 1 and 600"),
            ("--pods --seconds 2", "--pods goes with"),
            ("--only list --pods", "--pods goes with"),
            ("--memory --seconds 2", "--memory goes with"),
            ("--memory --pods", "goes with"),
            ("--idle --connections 2", "--idle goes with"),
            ("--idle --pods", "goes with"),
            ("--peers --growth", "does not go with"),
            ("--peers --search", "does not go with"),
            ("--growth --proxied", "does not go with"),
            ("--json /j", "need one of"),
            ("--former /f --strict", "--former has no aims"),
            ("--search --pods", "goes with"),
            ("--pods --proxied", "--pods goes with"),
            ("--upstream http://u/mcp --tool t", "go with --proxied"),
            ("--proxied --upstream http://u/mcp", "go together"),
            ("--connections 5000", "between 1 and 1024"),
        ] {
            let error = asked(line).unwrap_err();
            assert!(error.contains(told), "{line}: {error}");
        }
    }
}
