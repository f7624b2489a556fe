//! `ringgate-load`: loads a proxy, stands behind it as a pod, and compares it with another one. It
//! shares no code with the proxy. Every command ends by itself.

mod clock;
mod limit;
mod wire;
mod target;
mod scenario;
mod client;
mod pod;
mod closed;
mod idle;
mod cpu;
mod report;
mod compare;

use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use tokio::net::TcpListener;
use tokio::time::timeout;

use report::{Figures, idle_text, json};
use scenario::{BODY_BYTES_MAX, Scenario};
use target::Target;

/// The exit status for a command line that can't be understood.
const USAGE: u8 = 2;

const SECONDS_MAX: u64 = 24 * 60 * 60;
const CONNECTIONS_MAX: u32 = 60_000;
const ROUNDS_MAX: u8 = 100;
const ANSWER_BYTES_MAX: u32 = 1 << 30;

/// Load for proxies of the Model Context Protocol.
#[derive(Debug, Parser)]
#[command(name = "ringgate-load", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
    /// Load other machines than this one, or listen to them.
    #[arg(long, global = true)]
    allow_remote: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send requests over kept connections, each as soon as the last one is answered.
    Closed(ClosedArgs),
    /// Be a pod that answers well, or badly in one way.
    Pod(PodArgs),
    /// Hold many connections that do nothing.
    Idle(IdleArgs),
    /// Load two proxies in turn and tell the ratios.
    Compare(CompareArgs),
}

/// The shape of a closed loop.
#[derive(Clone, Debug, Args)]
struct LoadArgs {
    /// Kept connections, each with one request at a time.
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    connections: u32,
    /// How long to measure.
    #[arg(long, value_name = "N", default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// How long to run before that.
    #[arg(long, value_name = "N", default_value = "1", value_parser = seconds)]
    warmup_seconds: Duration,
    /// What the requests look like.
    #[arg(long, value_enum, default_value_t = Scenario::ModernCall)]
    scenario: Scenario,
    /// Length of each body; longer if the scenario needs it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=BODY_BYTES_MAX as i64))]
    request_bytes: u32,
    /// Most requests in all, the warm-up included.
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    requests: u64,
    /// Tell the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ClosedArgs {
    /// Where to send them, as http://HOST:PORT/PATH.
    #[arg(long, value_parser = Target::read)]
    url: Target,
    #[command(flatten)]
    load: LoadArgs,
}

#[derive(Debug, Args)]
struct PodArgs {
    /// Where to listen. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Length of each answer's JSON; longer only if an answer can't be that short.
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=i64::from(ANSWER_BYTES_MAX)))]
    answer_bytes: u32,
    /// How to answer.
    #[arg(long, value_enum, default_value_t = pod::Mode::Ok)]
    mode: pod::Mode,
    /// Length of each pause of `slow`, in milliseconds.
    #[arg(long, value_name = "N", default_value_t = 100)]
    delay_ms: u32,
    /// Offset of the bad byte of `invalid-json`; by default the middle.
    #[arg(long, value_name = "N")]
    invalid_at: Option<u32>,
    /// After how many bytes `oversize` gives up.
    #[arg(long, value_name = "N", default_value_t = 256 * 1_024 * 1_024)]
    oversize_bytes: u64,
    /// How long to serve.
    #[arg(long, value_name = "N", default_value = "3600", value_parser = seconds)]
    seconds: Duration,
}

#[derive(Debug, Args)]
struct IdleArgs {
    /// Where to connect, as http://HOST:PORT/PATH.
    #[arg(long, value_parser = Target::read)]
    url: Target,
    /// How many connections to hold.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    connections: u32,
    /// How long to hold them, once all are there.
    #[arg(long, value_name = "N", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Tell the counts as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct CompareArgs {
    /// What to call the first proxy.
    #[arg(long, value_name = "NAME", default_value = "a")]
    name_a: String,
    /// Where the first proxy listens.
    #[arg(long, value_name = "URL", value_parser = Target::read)]
    url_a: Target,
    /// Its processes, separated by commas.
    #[arg(long, value_name = "PID", value_delimiter = ',', required = true)]
    pid_a: Vec<u32>,
    /// What to call the second proxy.
    #[arg(long, value_name = "NAME", default_value = "b")]
    name_b: String,
    /// Where the second proxy listens.
    #[arg(long, value_name = "URL", value_parser = Target::read)]
    url_b: Target,
    /// Its processes, separated by commas.
    #[arg(long, value_name = "PID", value_delimiter = ',', required = true)]
    pid_b: Vec<u32>,
    /// How often to load both.
    #[arg(long, value_name = "N", default_value_t = 7)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=i64::from(ROUNDS_MAX)))]
    rounds: u8,
    #[command(flatten)]
    load: LoadArgs,
}

/// Why a command can't do its work.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0} is not this machine; --allow-remote loads it all the same")]
    Remote(SocketAddr),
    #[error("{wanted} connections need more than the {limit} files this process may open")]
    Files { wanted: u32, limit: u64 },
    #[error("can't listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error("can't read the CPU time of a process: {0}")]
    CpuTime(io::Error),
    #[error("can't start the event loop: {0}")]
    EventLoop(io::Error),
    #[error("can't write to standard output: {0}")]
    Write(#[from] io::Error),
}

impl Error {
    fn code(&self) -> ExitCode {
        match self {
            Self::Remote(_) => ExitCode::from(USAGE),
            Self::Files { .. }
            | Self::Listen { .. }
            | Self::CpuTime(_)
            | Self::EventLoop(_)
            | Self::Write(_) => ExitCode::FAILURE,
        }
    }
}

/// Whether all went well. That a proxy failed is told by the exit status too.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    Clean,
    Failures,
}

fn main() -> ExitCode {
    let CommandLine { command, allow_remote } = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return refuse(&error),
    };
    let reach = if allow_remote { Reach::Anywhere } else { Reach::Loopback };
    let done = match command {
        Command::Closed(args) => closed_loop(args, reach),
        Command::Pod(args) => stub_pod(&args, reach),
        Command::Idle(args) => idle_connections(args, reach),
        Command::Compare(args) => comparison(args, reach),
    };
    match done {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Failures) => ExitCode::FAILURE,
        Err(error) => {
            say(&error.to_string());
            error.code()
        }
    }
}

/// Which addresses may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Loopback,
    Anywhere,
}

impl Reach {
    fn check(self, address: SocketAddr) -> Result<(), Error> {
        match self {
            Self::Loopback if !address.ip().is_loopback() => Err(Error::Remote(address)),
            Self::Loopback | Self::Anywhere => Ok(()),
        }
    }
}

fn closed_loop(args: ClosedArgs, reach: Reach) -> Result<Verdict, Error> {
    reach.check(args.url.address)?;
    raise_file_limit(args.load.connections)?;
    let run = block_on(closed::run(args.load.plan(args.url)))?;
    let figures = Figures::of(&run);
    print(&if args.load.json { json(&figures) } else { figures.text() })?;
    Ok(verdict(figures.errors.total()))
}

fn stub_pod(args: &PodArgs, reach: Reach) -> Result<Verdict, Error> {
    reach.check(args.listen)?;
    limit::raise();
    let settings = pod::Settings {
        mode: args.mode,
        answer_bytes: args.answer_bytes as usize,
        delay: Duration::from_millis(args.delay_ms.into()),
        invalid_offset: args.invalid_at.map(|offset| offset as usize),
        oversize_bytes: args.oversize_bytes,
    };
    let pod = Arc::new(pod::Pod { settings, answered: AtomicU64::new(0) });
    block_on(serve_for(args.listen, Arc::clone(&pod), args.seconds))??;
    say(&format!("{} requests answered", pod.answered.load(Ordering::Relaxed)));
    Ok(Verdict::Clean)
}

/// Listens, tells where, and serves until the time is over.
async fn serve_for(listen: SocketAddr, pod: Arc<pod::Pod>, served: Duration) -> Result<(), Error> {
    let refused = |error| Error::Listen { address: listen, error };
    let listener = TcpListener::bind(listen).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    print(&format!("listening on http://{address}"))?;
    match timeout(served, pod::serve(listener, pod)).await {
        Ok(()) | Err(_) => Ok(()),
    }
}

fn idle_connections(args: IdleArgs, reach: Reach) -> Result<Verdict, Error> {
    reach.check(args.url.address)?;
    raise_file_limit(args.connections)?;
    let plan = idle::Plan {
        target: args.url,
        connections_count: args.connections as usize,
        silence: args.seconds,
    };
    let run = block_on(idle::run(plan))?;
    print(&if args.json { json(&run) } else { idle_text(&run) })?;
    Ok(verdict(run.failures.total() + run.closed))
}

fn comparison(args: CompareArgs, reach: Reach) -> Result<Verdict, Error> {
    reach.check(args.url_a.address)?;
    reach.check(args.url_b.address)?;
    raise_file_limit(args.load.connections)?;
    let a = compare::Side { name: args.name_a, plan: args.load.plan(args.url_a), pids: args.pid_a };
    let b = compare::Side { name: args.name_b, plan: args.load.plan(args.url_b), pids: args.pid_b };
    let compared = block_on(compare::run([a, b], args.rounds.into(), say))?;
    let comparison = compared.map_err(Error::CpuTime)?;
    print(&if args.load.json { json(&comparison) } else { comparison.text() })?;
    Ok(if comparison.is_clean() { Verdict::Clean } else { Verdict::Failures })
}

impl LoadArgs {
    fn plan(&self, target: Target) -> closed::Plan {
        closed::Plan {
            target,
            scenario: self.scenario,
            connections_count: self.connections as usize,
            warmup: self.warmup_seconds,
            measured: self.seconds,
            body_bytes: self.request_bytes as usize,
            requests_max: self.requests,
        }
    }
}

fn verdict(failures: u64) -> Verdict {
    if failures == 0 { Verdict::Clean } else { Verdict::Failures }
}

/// A few files are open besides the connections.
fn raise_file_limit(connections: u32) -> Result<(), Error> {
    const OTHERS: u64 = 16;
    match limit::raise() {
        Some(limit) if limit < u64::from(connections) + OTHERS => {
            Err(Error::Files { wanted: connections, limit })
        }
        Some(_) | None => Ok(()),
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(Error::EventLoop)?.block_on(future))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds <= SECONDS_MAX);
    let expected = || format!("expected a whole number of seconds up to {SECONDS_MAX}");
    seconds.map(Duration::from_secs).ok_or_else(expected)
}

fn refuse(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return if print(error.to_string().trim_end()).is_ok() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
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

/// Tells a result.
fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Says one line on standard error. If nobody listens there, nobody does.
fn say(line: &str) {
    writeln!(io::stderr(), "ringgate-load: {line}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn refusals_are_one_line() {
        let check = |arguments: &str, parts: &[&str]| {
            let arguments = std::iter::once("ringgate-load").chain(arguments.split(' '));
            let error = CommandLine::try_parse_from(arguments).unwrap_err();
            let line = one_line(&error.to_string());
            assert!(!line.contains('\n'), "{line}");
            for part in parts {
                assert!(line.contains(part), "{line:?} lacks {part:?}");
            }
        };
        check("closed", &["--url"]);
        check("closed --url x", &["--url", "'x'", "http://HOST:PORT"]);
        check("closed --url http://127.0.0.1:1 --connections 0", &["--connections", "'0'"]);
        check("closed --url http://127.0.0.1:1 --seconds 1.5", &["--seconds", "'1.5'", "whole"]);
        check("pod --mode no", &["--mode", "'no'", "truncate"]);
        check("pod --listen x", &["--listen", "'x'"]);
        check("compare --rounds 0", &["--rounds", "'0'"]);
    }

    #[test]
    fn other_machines_have_to_be_asked_for() {
        let check = |reach: Reach, address: &str| reach.check(address.parse().unwrap()).is_ok();
        assert!(check(Reach::Loopback, "127.0.0.1:1") && check(Reach::Loopback, "[::1]:1"));
        assert!(!check(Reach::Loopback, "192.0.2.1:1") && !check(Reach::Loopback, "0.0.0.0:1"));
        assert!(check(Reach::Anywhere, "192.0.2.1:1"));
    }
}
