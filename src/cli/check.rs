//! `ringgate check`: the checks that answers of pods meet, on a file (RV-11). Blocking; no shard.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use crate::ids::RequestId;
use crate::json::{Automaton, Container, Members, Scalar, Text, Visitor};
use crate::limits::{Limits, REQUEST_ID_BYTES_MAX};
use crate::mcp::response::{Asked, Awaited, Carrier, Checker, Message, Refusal};
use crate::mcp::stream::{End, EventStream};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Check a captured answer or event stream as the proxy would.
///
/// Exits with 0 if it is valid, with 1 if it would be refused, with 2 if it can't be checked.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The captured bytes; `-` reads standard input.
    pub file: PathBuf,
    /// What the bytes are. By default a body if they begin with `{` or `[`, else events.
    #[arg(long, value_enum)]
    pub kind: Option<Kind>,
    /// The id of the request that is answered, as JSON: 1 or '"a"'. By default any.
    #[arg(long, value_name = "TOKEN")]
    pub id: Option<String>,
}

/// What a captured file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The body of one answer.
    Body,
    /// An event stream.
    Events,
}

/// Why nothing could be checked, or the verdict could not be told.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("can't read {path}: {error}")]
    Read { path: String, error: std::io::Error },
    #[error("can't write the verdict: {0}")]
    Write(std::io::Error),
    #[error("--id is not a JSON string or number of bounded length; quote strings: --id '\"a\"'")]
    Id,
}

/// What the file is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Body(Message),
    Events {
        end: End,
        held_bytes: usize,
    },
    Refused(Refusal),
    /// The stream ended, and the request of `--id` has no answer.
    Unanswered,
}

/// Bytes of the offending line shown before the offending byte, and from it on.
const SHOWN_BYTES_MAX: usize = 60;

/// Checks a file and prints the verdict.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    match check(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("ringgate check: {error}");
            ExitCode::from(2)
        }
    }
}

fn check(args: &Args) -> Result<ExitCode, Error> {
    let asked = args.id.as_deref().map_or(Ok(Asked::Anything), asked_by)?;
    let path = args.file.display().to_string();
    let captured = read(&args.file).map_err(|error| Error::Read { path, error })?;
    let kind = args.kind.unwrap_or_else(|| guess(&captured));
    let verdict = judge(kind, asked, &captured);
    std::io::stdout()
        .lock()
        .write_all(report(verdict, &captured).as_bytes())
        .map_err(Error::Write)?;
    Ok(match verdict {
        Verdict::Body(_) | Verdict::Events { .. } => ExitCode::SUCCESS,
        Verdict::Refused(_) | Verdict::Unanswered => ExitCode::FAILURE,
    })
}

fn asked_by(token: &str) -> Result<Asked, Error> {
    let token = token.trim().as_bytes();
    let mut automaton = Automaton::new(1);
    let is_id = token.len() <= REQUEST_ID_BYTES_MAX
        && automaton.push(token, &mut IdToken).is_ok()
        && automaton.finish(&mut IdToken).is_ok();
    if is_id { Ok(Asked::One(RequestId::from_token(token))) } else { Err(Error::Id) }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path);
    }
    let mut captured = Vec::new();
    std::io::stdin().lock().read_to_end(&mut captured)?;
    Ok(captured)
}

/// A capture that holds nothing but blanks is taken for a body: as such it is invalid.
fn guess(captured: &[u8]) -> Kind {
    let text = captured.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(captured);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') | None => Kind::Body,
        Some(_) => Kind::Events,
    }
}

fn judge(kind: Kind, asked: Asked, captured: &[u8]) -> Verdict {
    let limits = Limits::default();
    let mut awaited = Awaited::new(asked);
    match kind {
        Kind::Body => {
            let mut checker = Checker::new(Carrier::Body, limits.json_depth_max);
            let pushed = checker.push(captured, &awaited);
            match pushed.and_then(|()| checker.finish(&mut awaited)) {
                Ok(message) => Verdict::Body(message),
                Err(refusal) => Verdict::Refused(refusal),
            }
        }
        Kind::Events => {
            let mut stream = EventStream::new(awaited, &limits);
            if let Some(refusal) = stream.push(captured).refusal {
                return Verdict::Refused(refusal);
            }
            match stream.finish() {
                End::Unanswered => Verdict::Unanswered,
                end @ (End::Answered | End::Resumable) => {
                    Verdict::Events { end, held_bytes: stream.held_bytes() }
                }
            }
        }
    }
}

fn report(verdict: Verdict, captured: &[u8]) -> String {
    match verdict {
        Verdict::Body(message) => {
            let what = match message {
                Message::Response => "a response",
                Message::Batch => "an array of responses",
                Message::Request => "a request",
                Message::Notification => "a notification",
            };
            format!("valid body: {what}\n")
        }
        Verdict::Events { end, held_bytes } => {
            let what = match end {
                End::Answered => "nothing is left to answer",
                End::Resumable => "not answered yet, to be resumed",
                End::Unanswered => "not answered",
            };
            let discarded = match held_bytes {
                0 => String::new(),
                _ => format!("; {held_bytes} bytes after the last whole event are discarded"),
            };
            format!("valid events: {what}{discarded}\n")
        }
        Verdict::Refused(refusal) => {
            let Refusal { why, offset } = refusal;
            let label = why.label();
            let shown = shown(captured, usize::try_from(offset).unwrap_or(usize::MAX));
            format!("invalid: {label} at byte {offset}: {why}\n{shown}")
        }
        Verdict::Unanswered => {
            let label = crate::mcp::fault::Fault::UpstreamNoAnswer.row().reason;
            let offset = captured.len();
            let shown = shown(captured, offset);
            format!(
                "invalid: {label} at byte {offset}: the stream ends without the answer\n{shown}"
            )
        }
    }
}

/// The part of the line around the byte at `offset`, and a caret under that byte.
fn shown(captured: &[u8], offset: usize) -> String {
    let (before, from) =
        captured.split_at_checked(offset).unwrap_or((captured.trim_ascii_end(), &[]));
    let before = if from.is_empty() { before.trim_ascii_end() } else { before };
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let line_start = before.iter().rposition(is_end).map_or(0, |at| at + 1);
    let start = line_start.max(before.len().saturating_sub(SHOWN_BYTES_MAX));
    let line_end = from.iter().position(is_end).unwrap_or(from.len());
    let end = line_end.min(SHOWN_BYTES_MAX);
    let head = printable(before.get(start..).unwrap_or_default());
    let tail = printable(from.get(..end).unwrap_or_default());
    format!("{head}{tail}\n{:>column$}\n", '^', column = head.len() + 1)
}

/// Printable ASCII as it is, and any other byte as an escape: one column a character.
fn printable(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, &byte| {
        if byte == b' ' || byte.is_ascii_graphic() {
            text.push(char::from(byte));
        } else {
            text.extend(byte.escape_ascii().map(char::from));
        }
        text
    })
}

/// Takes a scalar that can be an id, and nothing else.
struct IdToken;

impl Visitor for IdToken {
    type Why = ();

    fn open(&mut self, _: Container) -> Result<Members, ()> {
        Err(())
    }

    fn close(&mut self, _: Container) -> Result<(), ()> {
        Err(())
    }

    fn key(&mut self, _: Text<'_>) -> Result<(), ()> {
        Err(())
    }

    fn scalar(&mut self, scalar: Scalar, _: Text<'_>) -> Result<(), ()> {
        match scalar {
            Scalar::String | Scalar::Number => Ok(()),
            Scalar::Boolean | Scalar::Null => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: Option<&str>, captured: &str, expected: &str) {
        let asked = id.map_or(Ok(Asked::Anything), asked_by).expect("the id is valid");
        let captured = captured.as_bytes();
        let told = report(judge(guess(captured), asked, captured), captured);
        assert_eq!(told, expected, "{}", captured.escape_ascii());
    }

    /// RV-11: the verdict, its reason, its offset and the place.
    #[test]
    fn verdicts_are_told() {
        let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        check(None, result, "valid body: a response\n");
        check(Some("1"), result, "valid body: a response\n");
        check(None, &format!("\n [{result}]\n"), "valid body: an array of responses\n");
        check(
            Some("\"1\""),
            result,
            &format!(
                "invalid: id_not_asked at byte 35: an id that was not asked\n{result}\n{:>36}\n",
                '^'
            ),
        );
        check(
            None,
            "{\n  \"a\": \"\u{1}\u{e9}\"\n}",
            concat!(
                "invalid: json_control at byte 10: a control character in a string\n",
                "  \"a\": \"\\x01\\xc3\\xa9\"\n",
                "        ^\n",
            ),
        );
        check(
            None,
            "{\"a\":\n",
            "invalid: json_truncated at byte 6: the text ends too early\n{\"a\":\n     ^\n",
        );
        check(None, " ", "invalid: json_truncated at byte 1: the text ends too early\n\n^\n");
        check(
            None,
            "\u{FEFF}{}",
            "invalid: json_unexpected at byte 0: a byte that can't stand here\n\
             \\xef\\xbb\\xbf{}\n^\n",
        );
    }

    /// RV-11: event streams are told apart from bodies by their first byte.
    #[test]
    fn streams_are_judged() {
        let event = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
        check(None, event, "valid events: nothing is left to answer\n");
        check(
            None,
            &format!("{event}data: x\n"),
            "valid events: nothing is left to answer; 8 bytes after the last whole event are \
             discarded\n",
        );
        check(Some("1"), "id: 1\n\n", "valid events: not answered yet, to be resumed\n");
        check(
            Some("1"),
            ": c\n\n",
            "invalid: upstream_no_answer at byte 5: the stream ends without the answer\n\
             : c\n   ^\n",
        );
        check(
            None,
            "data: {\ndata: x\n\n",
            "invalid: json_unexpected at byte 14: a byte that can't stand here\n\
             data: x\n      ^\n",
        );
    }

    /// RV-11: only a bounded part of a long line is shown.
    #[test]
    fn long_lines_are_cut() {
        let long = "a".repeat(1000);
        let shown = shown(format!("{long}!{long}").as_bytes(), 1000);
        let (line, caret) = shown.split_once('\n').expect("there are two lines");
        assert_eq!(line.len(), 2 * SHOWN_BYTES_MAX);
        assert_eq!(caret, format!("{:>61}\n", '^'));
        assert_eq!(line.as_bytes().get(60), Some(&b'!'));
    }

    /// RV-11: what can't be checked is told apart from what is invalid.
    #[test]
    fn missing_files_are_errors() {
        let args = Args { file: PathBuf::from("/nonexistent/capture"), kind: None, id: None };
        let said = super::check(&args).err().map(|error| error.to_string());
        let path = args.file.display().to_string();
        assert!(said.is_some_and(|said| said.starts_with(&format!("can't read {path}: No such"))));
        let args = Args { id: Some("a".to_owned()), ..args };
        assert!(matches!(super::check(&args), Err(Error::Id)));
        let command = clap::Command::new("check");
        <Args as clap::Args>::augment_args(command).debug_assert();
    }

    /// RV-11: `--id` takes a JSON string or number.
    #[test]
    fn ids_are_json() {
        for good in ["1", " 1 ", "\"a\"", "-0", "1.0"] {
            assert!(asked_by(good).is_ok(), "{good}");
        }
        for bad in ["", "a", "null", "true", "[]", "{}", "1 2", "01", "\"a"] {
            assert!(asked_by(bad).is_err(), "{bad}");
        }
    }
}
