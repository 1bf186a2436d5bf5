//! Where a command hands text to an interpreter: `sh -c TEXT`, `python -c TEXT`, `ssh HOST TEXT`.
//!
//! An argument is a word of a command and no text of a program. Where somebody puts one into such a text all the same, its
//! value is read as code there, and `check` warns. `QM_ARG_…` in the environment is the way that needs no such text.

/// Programs that take a program text after a flag.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "ksh",
    "mksh",
    "fish",
    "csh",
    "tcsh",
    "busybox",
    "toybox",
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "R",
    "Rscript",
    "julia",
    "elixir",
    "erl",
    "groovy",
    "scala",
    "osascript",
    "su",
    "runuser",
    "script",
    "nsenter",
    "powershell",
    "pwsh",
    "cmd",
    "psql",
    "mysql",
    "mariadb",
    "sqlplus",
    "mongosh",
    "mongo",
    "redis-cli",
];
/// Programs that read every word after them as text of a program, or hand it to a shell elsewhere.
const READERS: &[&str] =
    &["ssh", "eval", "awk", "gawk", "mawk", "nawk", "sed", "jq", "sqlite3", "expect", "parallel", "watch"];
/// Flags that a program text follows, besides short ones that end in `c` or `e`.
const FLAGS: &[&str] =
    &["--command", "--eval", "--execute", "-Command", "-EncodedCommand", "/c", "/C", "/k", "-r", "-E", "-p"];

/// The words of a command in which an argument stands inside the text of a program.
pub fn words_with_arguments(command: &[String]) -> Vec<usize> {
    let is_text = |n: usize| {
        let before = &command[..n];
        let interpreted = before.iter().any(|word| is_interpreter(word));
        let flagged = before.last().is_some_and(|word| is_flag(word));
        // `--eval=TEXT` is flag and text in one word.
        let joined = command[n].split_once('=').is_some_and(|(flag, _)| FLAGS.contains(&flag));
        (interpreted && (flagged || joined)) || before.iter().any(|word| READERS.contains(&base(word)))
    };
    (0..command.len()).filter(|n| command[*n].contains("{{") && is_text(*n)).collect()
}

fn base(word: &str) -> &str {
    word.rsplit(['/', '\\']).next().unwrap_or(word)
}

/// An interpreter by its name, with or without a version: `python3.12`.
fn is_interpreter(word: &str) -> bool {
    let name = base(word).trim_end_matches(".exe");
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&bare)
}

fn is_flag(word: &str) -> bool {
    let short = word.strip_prefix('-').is_some_and(|letters| {
        !letters.is_empty() && letters.bytes().all(|b| b.is_ascii_alphabetic()) && letters.ends_with(['c', 'e'])
    });
    short || FLAGS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(words: &[&str]) -> Vec<usize> {
        words_with_arguments(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn an_argument_inside_a_program_text_is_found() {
        for words in [
            &["sh", "-c", "echo {{ args.a }}"][..],
            &["/bin/bash", "-ec", "{{ args.a }}"],
            &["bash", "-lc", "x {{ args.a }}"],
            &["python3.12", "-c", "print('{{ args.a }}')"],
            &["perl", "-e", "{{ args.a }}"],
            &["perl", "-ne", "{{ args.a }}"],
            &["ruby", "-e", "{{ args.a }}"],
            &["node", "--eval", "{{ args.a }}"],
            &["php", "-r", "{{ args.a }}"],
            &["psql", "-c", "select '{{ args.a }}'"],
            &["ssh", "host", "uptime {{ args.a }}"],
            &["cmd.exe", "/c", "dir {{ args.a }}"],
            &["awk", "{ print {{ args.a }} }"],
        ] {
            assert_eq!(found(words), [words.len() - 1], "{words:?}");
        }
        assert_eq!(found(&["env", "A=b", "timeout", "5", "sh", "-c", "{{ args.a }}"]), [6]);
        assert_eq!(found(&["node", "--eval={{ args.a }}"]), [1]);
    }

    #[test]
    fn an_argument_that_is_a_word_is_none() {
        for words in [
            &["/opt/shop/seed", "--key", "{{ args.a }}"][..],
            &["sh", "-c", "echo \"$QM_ARG_A\""],
            &["sh", "-c", "echo \"$1\"", "sh", "{{ args.a }}"],
            &["python3", "seed.py", "{{ args.a }}"],
            &["test", "-e", "/x/{{ args.a }}"],
        ] {
            assert_eq!(found(words), [] as [usize; 0], "{words:?}");
        }
    }
}
