//! Every `weir …` in an `sh` block of the documentation is a command line that `weir` takes.
//!
//! `console` blocks are run by `tests/documentation.rs`. What `sh` blocks show needs root, hardware
//! or a terminal, so that only its arguments are checked.

use crate::cli::Cli;
use clap::Parser;
use clap::error::ErrorKind;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

/// Commands whose arguments may be a command.
const WRAPPERS: &[&str] = &[
    "sudo", "chrt", "taskset", "time", "timeout", "ip", "nsenter", "unshare", "exec",
];

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    for folder in ["docs", "p4/programs"] {
        collect(&root.join(folder), &mut found);
    }
    found
}

fn collect(folder: &Path, to: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, to);
        } else if path.extension().is_some_and(|e| e == "md") {
            to.push(path);
        }
    }
}

/// The `sh` blocks of a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    let behind = page.split("```sh\n").skip(1);
    behind.filter_map(|rest| rest.split("```").next())
}

/// Splits the text of a shell into simple commands, those in `$(…)` and here documents included.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        match c {
            ' ' | '\t' => {
                chars.next();
            }
            '#' => while chars.next_if(|&c| c != '\n').is_some() {},
            '\n' | ';' | '&' | '|' | '(' | ')' => {
                chars.next();
                found.push(std::mem::take(&mut words));
            }
            '<' | '>' => {
                // A redirection; what it names is no argument.
                while chars.next_if(|&c| "<>&".contains(c)).is_some() {}
                while chars.next_if_eq(&' ').is_some() {}
                word(&mut chars, &mut found);
            }
            _ => {
                let one = word(&mut chars, &mut found);
                let is_descriptor = one == "2" && chars.peek() == Some(&'>');
                if !is_descriptor && one != "\n" {
                    words.push(one);
                }
            }
        }
    }
    found.push(words);
    found.retain(|words| !words.is_empty());
    found
}

/// The next word, without its quotes; `"\n"` for a line that continues.
fn word(chars: &mut Peekable<Chars<'_>>, found: &mut Vec<Vec<String>>) -> String {
    let mut out = String::new();
    let mut quote = None;
    while let Some(&c) = chars.peek() {
        if quote.is_none() && " \t\n;&|()<>".contains(c) {
            break;
        }
        chars.next();
        match c {
            '\'' | '"' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            '\\' if quote != Some('\'') => match chars.next() {
                Some('\n') if out.is_empty() => return "\n".to_owned(),
                Some('\n') | None => {}
                Some(next) => out.push(next),
            },
            '$' if quote != Some('\'') && chars.next_if_eq(&'(').is_some() => {
                let inner: String = chars.by_ref().take_while(|&c| c != ')').collect();
                found.extend(commands(&inner));
                out.push_str("$()");
            }
            _ => out.push(c),
        }
    }
    out
}

/// The arguments of `weir`, if a command is one of it.
fn of_weir(words: &[String]) -> Option<&[String]> {
    let is_setting = |w: &&String| w.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '-']));
    let words = &words[words.iter().take_while(is_setting).count()..];
    let first = words.first()?.as_str();
    let is_weir = |w: &String| w == "weir" || w.ends_with("/weir");
    let at = words.iter().position(is_weir)?;
    (at == 0 || WRAPPERS.contains(&first)).then(|| &words[at..])
}

#[test]
fn every_command_line_of_the_documentation_is_one() {
    let (mut count, mut wrong) = (0, Vec::new());
    for path in pages() {
        let text = std::fs::read_to_string(&path).expect("a page");
        for words in blocks(&text).flat_map(commands) {
            let Some(arguments) = of_weir(&words) else { continue };
            count += 1;
            if let Err(error) = Cli::try_parse_from(arguments)
                && !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
            {
                wrong.push(format!("{}: {}\n{error}", path.display(), arguments.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 100, "only {count} command lines were found");
}

#[test]
fn commands_are_found_in_what_a_shell_reads() {
    let text = "A=1 weir run 'a b' -i 1@x > out 2>&1 &  # weir no\nsudo weir \\\n    ctl \"$x\"; cargo run -p weir\n\
                eval \"$(weir completion bash)\" | weir lab --run - < weir\nsh <<'END'\n/usr/bin/weir man d\nEND\n";
    let all = commands(text);
    let found: Vec<String> = all.iter().filter_map(|w| of_weir(w)).map(|w| w.join("|")).collect();
    let expected = [
        "weir|run|a b|-i|1@x",
        "weir|ctl|$x",
        "weir|completion|bash",
        "weir|lab|--run|-",
        "/usr/bin/weir|man|d",
    ];
    assert_eq!(found, expected);
}
