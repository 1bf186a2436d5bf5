//! A tiny set of commands that simulated containers can run, in a pod's own process and by exec.

use std::time::Duration;

use serde_json::Value;

use crate::json;
use crate::world::ClusterWorld;

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProgramExit {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit: i64,
    pub(crate) lasts: Duration,
    /// There is no such program in the image.
    pub(crate) unknown: bool,
}

/// Commands every simulated image has.
const KNOWN: [&str; 13] =
    ["echo", "cat", "env", "sleep", "false", "true", "sh", "printf", "hostname", "ls", "id", "date", "test"];

/// The command of a container, empty if it is the image's own.
pub(crate) fn argv(container: &Value) -> Vec<String> {
    let part = |field: &str| json::list(container, field).iter().filter_map(Value::as_str).map(str::to_owned);
    let command: Vec<String> = part("/command").collect();
    let whole: Vec<String> = command.iter().cloned().chain(part("/args")).collect();
    // Arguments alone go to the image's own program, unless they read as a command, as with a plain shell image.
    let is_command = !command.is_empty() || whole.first().is_some_and(|word| KNOWN.contains(&word.as_str()));
    if is_command { whole } else { Vec::new() }
}

/// The variables of a container, as its kubelet makes them: each may refer to those before it.
pub(crate) fn environment(world: &ClusterWorld, pod: &Value, container: &Value) -> Vec<(String, String)> {
    let mut environment = vec![
        ("PATH".to_owned(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("HOSTNAME".to_owned(), json::name(pod).to_owned()),
    ];
    for variable in json::list(container, "/env") {
        let plain = json::text(variable, "/value").map(|text| expanded(text, &environment));
        let value = plain.or_else(|| referred(world, pod, variable)).unwrap_or_default();
        environment.push((json::text_or_empty(variable, "/name").to_owned(), value));
    }
    environment
}

/// A variable's value from a ConfigMap or Secret.
fn referred(world: &ClusterWorld, pod: &Value, variable: &Value) -> Option<String> {
    use base64::Engine as _;
    let find = |source: &str, resource: &str| {
        let reference = variable.pointer(&format!("/valueFrom/{source}"))?;
        let object = world.objects.find(resource, json::namespace(pod), json::text(reference, "/name")?)?;
        object.get("data")?.get(json::text(reference, "/key")?)?.as_str().map(str::to_owned)
    };
    let secret = || {
        let bytes = base64::engine::general_purpose::STANDARD.decode(find("secretKeyRef", "secrets")?).ok()?;
        String::from_utf8(bytes).ok()
    };
    find("configMapKeyRef", "configmaps").or_else(secret)
}

/// The command of a container as its kubelet starts it.
pub(crate) fn started(container: &Value, environment: &[(String, String)]) -> Vec<String> {
    argv(container).iter().map(|word| expanded(word, environment)).collect()
}

/// A text with its references filled in: `$(NAME)` is a variable, `$$` a dollar sign. What names no variable stays.
fn expanded(text: &str, environment: &[(String, String)]) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let reference = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        rest = match (after.strip_prefix('$'), reference) {
            (Some(after), _) => {
                out.push('$');
                after
            }
            (None, Some((name, after))) => {
                let value = environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
                out.push_str(&value.map_or_else(|| format!("$({name})"), str::to_owned));
                after
            }
            (None, None) => {
                out.push('$');
                after
            }
        };
    }
    out + rest
}

/// Compares texts; there is no file system, so no file is there.
fn test(args: &[String]) -> bool {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["-n", text] => !text.is_empty(),
        ["-z", text] => text.is_empty(),
        [one, "=", other] => one == other,
        [one, "!=", other] => one != other,
        _ => false,
    }
}

/// Runs a command with the given input and environment. Nothing on this machine is touched.
pub(crate) fn run(argv: &[String], stdin: &str, environment: &[(String, String)]) -> ProgramExit {
    let Some((program, args)) = argv.split_first() else { return ProgramExit::default() };
    let said = |stdout: String| ProgramExit { stdout, ..ProgramExit::default() };
    match program.rsplit('/').next().unwrap_or(program) {
        "echo" => match args.split_first() {
            Some((flag, rest)) if flag == "-n" => said(rest.join(" ")),
            _ => said(format!("{}\n", args.join(" "))),
        },
        "printf" => said(args.first().map(|text| text.replace("\\n", "\n")).unwrap_or_default()),
        "cat" if args.is_empty() || args == ["-"] => said(stdin.to_owned()),
        "cat" | "ls" if args.iter().any(|path| path.starts_with('/')) => ProgramExit {
            stderr: format!("{program}: {}: No such file or directory\n", args.join(" ")),
            exit: 1,
            ..ProgramExit::default()
        },
        "ls" => said(String::new()),
        "env" => said(environment.iter().map(|(name, value)| format!("{name}={value}\n")).collect()),
        "hostname" => {
            let name = environment.iter().find(|(name, _)| name == "HOSTNAME").map(|(_, value)| value.as_str());
            said(format!("{}\n", name.unwrap_or("sandbox")))
        }
        "id" => said("uid=1000(app) gid=1000(app) groups=1000(app)\n".to_owned()),
        "date" => said(format!("{}\n", jiff::Timestamp::now().strftime("%a %b %e %H:%M:%S UTC %Y"))),
        "sleep" => {
            let seconds = args.first().and_then(|text| text.trim_end_matches('s').parse::<f64>().ok());
            let lasts = Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or(Duration::MAX);
            ProgramExit { lasts, ..ProgramExit::default() }
        }
        "false" => ProgramExit { exit: 1, ..ProgramExit::default() },
        "true" => ProgramExit::default(),
        "test" => ProgramExit { exit: i64::from(!test(args)), ..ProgramExit::default() },
        "sh" | "bash" if args.first().is_some_and(|flag| flag.starts_with('-')) => {
            shell(args.get(1).map(String::as_str).unwrap_or_default(), stdin, environment)
        }
        "sh" | "bash" => ProgramExit::default(),
        _ => ProgramExit { unknown: !KNOWN.contains(&program.as_str()), exit: 127, ..ProgramExit::default() },
    }
}

/// A script as a row of commands; the last one's end counts, `exit` stops.
fn shell(script: &str, stdin: &str, environment: &[(String, String)]) -> ProgramExit {
    let mut whole = ProgramExit::default();
    for line in
        script.split([';', '\n']).flat_map(|line| line.split("&&")).map(str::trim).filter(|line| !line.is_empty())
    {
        let (line, to_stderr) = match line.strip_suffix(">&2") {
            Some(line) => (line.trim(), true),
            None => (line, false),
        };
        let argv: Vec<String> = words(line, environment);
        if argv.first().is_some_and(|word| word == "exit") {
            whole.exit = argv.get(1).and_then(|code| code.parse().ok()).unwrap_or(whole.exit);
            return whole;
        }
        let mut ended = run(&argv, stdin, environment);
        if ended.unknown {
            ended.stderr = format!("sh: {}: not found\n", argv.first().map(String::as_str).unwrap_or_default());
        }
        let stream = if to_stderr { &mut whole.stderr } else { &mut whole.stdout };
        stream.push_str(&ended.stdout);
        whole.stderr.push_str(&ended.stderr);
        whole.exit = ended.exit;
        whole.lasts = whole.lasts.saturating_add(ended.lasts);
    }
    whole
}

/// Splits a line into words: quotes hold together, variables are filled in.
fn words(line: &str, environment: &[(String, String)]) -> Vec<String> {
    let (mut words, mut word, mut quote, mut open) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (None, '\'' | '"') => (quote, open) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if open || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            (_, c) => word.push(c),
        }
    }
    if open || !word.is_empty() {
        words.push(word);
    }
    let fill = |word: String| {
        let found = word.strip_prefix('$').map(|name| name.trim_matches(['{', '}']).to_owned());
        found.map_or(word, |name| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone()).unwrap_or_default()
        })
    };
    words.into_iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_words(words: &[&str], stdin: &str) -> ProgramExit {
        run(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), stdin, &[("A".into(), "1".into())])
    }

    #[test]
    fn the_small_command_set_answers() {
        assert_eq!(run_words(&["echo", "a", "b"], "").stdout, "a b\n");
        assert_eq!(run_words(&["cat"], "hello").stdout, "hello");
        assert_eq!(run_words(&["env"], "").stdout, "A=1\n");
        assert_eq!(run_words(&["false"], "").exit, 1);
        assert!(run_words(&["frobnicate"], "").unknown);
    }

    #[test]
    fn references_are_filled_in_as_a_kubelet_does() {
        let environment = [("A".to_owned(), "1".to_owned())];
        for (text, filled) in
            [("$(A)", "1"), ("$$(A)", "$(A)"), ("$(B)", "$(B)"), ("$A $", "$A $"), ("$(", "$("), ("$$$(A)", "$1")]
        {
            assert_eq!(expanded(text, &environment), filled, "{text}");
        }
    }

    #[test]
    fn test_compares_texts_and_finds_no_files() {
        for (words, exit) in [
            (&["test", "a", "=", "a"][..], 0),
            (&["test", "a", "!=", "a"], 1),
            (&["test", "-f", "/etc/passwd"], 1),
            (&["test", "-n", "a"], 0),
            (&["test"], 1),
        ] {
            assert_eq!(run_words(words, "").exit, exit, "{words:?}");
        }
    }

    #[test]
    fn a_script_is_a_row_of_commands() {
        let ended = run_words(&["sh", "-c", "echo 'one two'; echo $A >&2; exit 3"], "");
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str(), ended.exit), ("one two\n", "1\n", 3));
    }
}
