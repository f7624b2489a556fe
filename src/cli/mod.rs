//! The command line: one module a command. Says no in one line that names the flag, the value and
//! what is accepted.

mod say;
pub mod check;
pub mod demo;
pub mod doctor;
pub mod limits;
pub mod serve;

use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use say::say;

/// The exit status for a command line that can't be understood.
pub const USAGE: u8 = 2;

/// A Model Context Protocol proxy that lets through only what is well-formed, allowed and asked
/// for.
///
/// Without arguments it serves on 127.0.0.1:8080 in front of two demonstration pods.
#[derive(Debug, Parser)]
#[command(name = "ringgate", version, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Box<serve::Args>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve in front of pods (the default).
    Serve(Box<serve::Args>),
    /// Check a captured answer or event stream as the proxy would.
    Check(check::Args),
    /// Tell what this machine offers and what to change.
    Doctor,
}

/// Runs the command that the arguments of the process name.
#[must_use]
pub fn main() -> ExitCode {
    match CommandLine::try_parse() {
        Ok(CommandLine { command: Some(Command::Check(args)), .. }) => check::run(&args),
        Ok(CommandLine { command: Some(Command::Doctor), .. }) => doctor::run(),
        Ok(CommandLine { command: Some(Command::Serve(args)), .. }) => serve::run(&args),
        Ok(CommandLine { command: None, serve }) => serve::run(&serve),
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let written = std::io::stdout().write_all(error.to_string().as_bytes());
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    say(&one_line(&error.to_string()));
    ExitCode::from(USAGE)
}

/// The first paragraph of a message, on one line, without the tool's `error: `.
fn one_line(message: &str) -> String {
    let paragraph = message.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    let line = paragraph.collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn refusal(arguments: &[&str]) -> String {
        let arguments = std::iter::once("ringgate").chain(arguments.iter().copied());
        let error = CommandLine::try_parse_from(arguments).expect_err("the arguments are refused");
        one_line(&error.to_string())
    }

    #[test]
    fn the_definition_is_sound() {
        CommandLine::command().debug_assert();
    }

    /// Bad flags: one line that names the flag, the value and what is accepted.
    #[test]
    fn refusals_are_one_line() {
        let check = |arguments: &[&str], parts: &[&str]| {
            let line = refusal(arguments);
            assert!(!line.contains('\n'), "{line}");
            for part in parts {
                assert!(line.contains(part), "{line:?} lacks {part:?}");
            }
        };
        check(&["--shards", "0"], &["--shards", "'0'", "1..=1024"]);
        check(&["--shards", "x"], &["--shards", "'x'"]);
        check(&["--driver", "kqueue"], &["--driver", "'kqueue'", "auto, io-uring, epoll"]);
        check(&["--upstream", "ftp://x"], &["--upstream", "'ftp://x'", "http://HOST:PORT"]);
        check(&["--head-timeout", "10"], &["--head-timeout", "'10'", "10s"]);
        check(&["--max-head-bytes", "1"], &["--max-head-bytes", "'1'", "1KiB to 1MiB"]);
        check(&["--nonsense"], &["--nonsense"]);
    }
}
