//! `weir completion` and `weir man`: what shells and `man` need, from the definition of the command
//! line.

use crate::cli;
use anyhow::{Context, Result, bail};
use clap::{Args, Command, CommandFactory, ValueEnum};
use clap_mangen::Man;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A shell that completes command lines.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

/// Arguments of `weir completion`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  eval \"$(weir completion bash)\"                  in ~/.bashrc\n  eval \"$(weir completion zsh)\"                   in ~/.zshrc, behind compinit\n  weir completion fish > ~/.config/fish/completions/weir.fish\n\nBehind `weir ctl`, tables, keys and actions of the running target are completed too."
)]
pub struct Completion {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Arguments of `weir man`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir man ~/.local/share/man/man1 && man weir-run\n  weir man out && man ./out/weir-ctl-insert.1"
)]
pub struct ManPages {
    /// The directory, which must exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints what a shell evaluates to complete all of `weir`.
pub fn completion(arguments: &Completion) -> Result<u8> {
    let mut out = crate::output::stdout();
    let generator = match arguments.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut cli::Cli::command(), "weir", &mut script);
    out.write_all(&script)?;
    let ctl = match arguments.shell {
        Shell::Bash => {
            r#"
_weir_ctl() {
    local words=("${COMP_WORDS[@]:2:$((COMP_CWORD - 1))}")
    local IFS=$'\n'
    COMPREPLY=($(weir ctl complete -- "${words[@]}" 2>/dev/null))
    [[ "${COMPREPLY[*]}" == *= ]] && compopt -o nospace
}
_weir_or_ctl() {
    if [ "${COMP_WORDS[1]}" = ctl ] && [ "$COMP_CWORD" -gt 1 ]; then _weir_ctl "$@"; else _weir "$@"; fi
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}
COMP_WORDBREAKS=${COMP_WORDBREAKS//:/}
complete -o bashdefault -o default -F _weir_or_ctl weir"#
        }
        Shell::Zsh => {
            r#"
_weir_or_ctl() {
    if [ "${words[2]}" != ctl ] || [ "$CURRENT" -le 2 ]; then _weir "$@"; return; fi
    local -a found
    found=(${(f)"$(weir ctl complete -- "${(@)words[3,CURRENT]}" 2>/dev/null)"})
    compadd -S '' -- $found
}
compdef _weir_or_ctl weir"#
        }
        Shell::Fish => {
            r#"
function __weir_ctl
    set -l words (commandline -opc) (commandline -ct)
    test "$words[2]" = ctl; and weir ctl complete -- $words[3..] 2>/dev/null
end
complete -c weir -n '__fish_seen_subcommand_from ctl' -f -a '(__weir_ctl)'"#
        }
    };
    writeln!(out, "{ctl}")?;
    Ok(0)
}

/// Writes a man page for `weir` and one for each command.
pub fn man(arguments: &ManPages) -> Result<u8> {
    let directory = &arguments.directory;
    if !directory.is_dir() {
        bail!("{} is no directory: make it first", directory.display());
    }
    let mut command = cli::Cli::command().disable_help_subcommand(true);
    command.build();
    let count = pages(directory, &command, "weir")?;
    let mut out = crate::output::stdout();
    writeln!(out, "{count} pages in {}", directory.display())?;
    Ok(0)
}

fn pages(directory: &Path, command: &Command, name: &str) -> Result<usize> {
    // `help` of commands that have commands, and what only shells call, have no page.
    let commands = command.get_subcommands();
    let shown = commands.filter(|c| !c.is_hide_set() && c.get_name() != "help");
    let mut count = 1;
    for sub in shown {
        count += pages(directory, sub, &format!("{name}-{}", sub.get_name()))?;
    }
    let page = command.clone().name(name.to_owned());
    let mut text = Vec::new();
    Man::new(page).render(&mut text).context("cannot render a man page")?;
    weir_files::write(&directory.join(format!("{name}.1")), &text)?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().expect("a directory");
        let arguments = ManPages {
            directory: folder.path().to_path_buf(),
        };
        assert_eq!(man(&arguments).expect("writes pages"), 0);
        for (name, part) in [
            ("weir", "weir\\-run"),
            ("weir-run", "p4runtime"),
            ("weir-ctl", "insert"),
            ("weir-ctl-insert", "TABLE"),
            ("weir-bench", "suite"),
        ] {
            let path = folder.path().join(format!("{name}.1"));
            let text = std::fs::read_to_string(&path).expect("a page");
            assert!(text.contains(part), "{name}: {text}");
        }
    }

    #[test]
    fn pages_need_a_directory() {
        let arguments = ManPages {
            directory: "/nonexistent/man".into(),
        };
        let error = man(&arguments).expect_err("there is none");
        assert!(error.to_string().contains("is no directory"), "{error}");
    }
}
