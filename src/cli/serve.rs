//! `ringgate` and `ringgate serve`: from flags to a checked plan, then serves it.

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use super::say::{say, say_as_it_is};
use super::{demo, limits};
use crate::control::plan::{Plan, Port};
use crate::control::serve;
use crate::mcp::fault::{Codes, Style};
use crate::proxy::options::{
    Batches, FaultStatus, Hosts, Options, Origins, OtherOrigins, Sessions,
};
use crate::shard::ring::Driver;
use crate::upstream::{Pod, PodSet};

/// The flags of serving.
#[derive(Clone, Debug, clap::Args)]
#[expect(missing_docs, reason = "the help of each flag is its documentation")]
pub struct Args {
    /// Where to listen, as HOST:PORT. Port 0 takes a free one.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = listen)]
    pub listen: SocketAddr,
    /// A pod, as http://HOST:PORT; repeat for more. Without any, two demonstration pods start.
    #[arg(long, value_name = "URL", value_parser = upstream)]
    pub upstream: Vec<Pod>,
    /// Shards, one thread each; as many as there are cores by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub shards: Option<u16>,
    /// The event loop.
    #[arg(long, value_enum, default_value_t)]
    pub driver: Driver,
    /// Start beside a ringgate on the same port that will be told to drain (an upgrade).
    #[arg(long)]
    pub share_port: bool,
    /// Host that is served, with or without a port; repeat for more; `*` serves all. By default
    /// loopback names on a loopback listener, all on another.
    #[arg(long, value_name = "HOST")]
    pub allowed_host: Vec<String>,
    /// Origin that is served, as `SCHEME://HOST[:PORT]`; repeat for more; `*` serves all. By
    /// default loopback origins on a loopback listener, none on another.
    #[arg(long, value_name = "ORIGIN")]
    pub allowed_origin: Vec<String>,
    /// Serve no legacy sessions: GET, HEAD and DELETE are refused.
    #[arg(long)]
    pub stateless: bool,
    /// What becomes of arrays of messages.
    #[arg(long, value_enum, default_value_t)]
    pub batches: Batches,
    /// Field whose value chooses the pod of a request without a session; the client's address
    /// chooses without it.
    #[arg(long, value_name = "NAME", value_parser = field_name)]
    pub affinity_header: Option<String>,
    /// Who answers, in `error.data.origin` of faults.
    #[arg(long, value_name = "NAME", default_value = "ringgate", value_parser = origin_name)]
    pub origin: String,
    /// Codes of faults: own (-31997 to -31999) or legacy (-32000).
    #[arg(long, value_enum, default_value_t = FaultCodes::Own)]
    pub fault_codes: FaultCodes,
    /// HTTP status of faults that answer legacy requests: own (502, 503, 504), or 200 for clients
    /// that give a session up at any other.
    #[arg(long, value_enum, default_value_t = LegacyFaultStatus::Own)]
    pub legacy_fault_status: LegacyFaultStatus,
    /// What to log on standard error: error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub log: tracing::Level,
    /// How to log.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    #[command(flatten)]
    pub limits: limits::LimitArgs,
}

/// `--fault-codes`.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[expect(missing_docs, reason = "the values are documented by the flag")]
pub enum FaultCodes {
    Own,
    Legacy,
}

/// `--legacy-fault-status`.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[expect(missing_docs, reason = "the values are documented by the flag")]
pub enum LegacyFaultStatus {
    Own,
    #[value(name = "200")]
    InBand,
}

/// `--log-format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[expect(missing_docs, reason = "the values name what they are")]
pub enum LogFormat {
    Text,
    Json,
}

/// Serves until it is told to end.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    log_to_stderr(args);
    raise_file_limit();
    let is_demo = args.upstream.is_empty();
    let pods = if is_demo { demonstration_pods() } else { Ok(args.upstream.clone()) };
    let pods = match pods {
        Ok(pods) => pods,
        Err(error) => {
            say(&format!("the demonstration pods can't start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let plan = plan(args, pods.clone());
    let started = |address: SocketAddr| greet(address, &pods, is_demo);
    match serve(&plan, started) {
        Ok(snapshot) => {
            for (label, count) in snapshot.counted() {
                tracing::info!(label, count, "counted");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn plan(args: &Args, pods: Vec<Pod>) -> Plan {
    let cores_count = std::thread::available_parallelism().map_or(1, usize::from);
    let shards_count = args.shards.unwrap_or(u16::try_from(cores_count).unwrap_or(1024).min(1024));
    let is_loopback = args.listen.ip().is_loopback();
    let is_any = |listed: &[String]| listed.iter().any(|name| name == "*");
    Plan {
        listen: args.listen,
        shards_count,
        driver: args.driver,
        port: if args.share_port { Port::Shared } else { Port::Own },
        pods: PodSet::new(pods),
        options: Options {
            limits: args.limits.limits(),
            style: Style {
                origin: args.origin.clone(),
                codes: match args.fault_codes {
                    FaultCodes::Own => Codes::Own,
                    FaultCodes::Legacy => Codes::Legacy,
                },
            },
            legacy_fault_status: match args.legacy_fault_status {
                LegacyFaultStatus::Own => FaultStatus::Own,
                LegacyFaultStatus::InBand => FaultStatus::InBand,
            },
            hosts: match &args.allowed_host[..] {
                [] if is_loopback => Hosts::Loopback,
                [] => Hosts::Any,
                hosts if is_any(hosts) => Hosts::Any,
                hosts => Hosts::Listed(hosts.to_vec()),
            },
            origins: Origins {
                listed: args.allowed_origin.clone(),
                others: match &args.allowed_origin[..] {
                    [] if is_loopback => OtherOrigins::Loopback,
                    origins if is_any(origins) => OtherOrigins::Any,
                    _ => OtherOrigins::None,
                },
            },
            sessions: if args.stateless { Sessions::Refused } else { Sessions::Served },
            batches: args.batches,
            affinity_field: args.affinity_header.clone(),
        },
    }
}

fn demonstration_pods() -> std::io::Result<Vec<Pod>> {
    let addresses = demo::start(&["pod-a", "pod-b"])?;
    let pod = |address: SocketAddr| Pod { name: format!("http://{address}"), address };
    Ok(addresses.into_iter().map(pod).collect())
}

fn greet(address: SocketAddr, pods: &[Pod], is_demo: bool) {
    say(&format!("listening on http://{address}"));
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    if !is_demo {
        say(&format!("in front of {}", names.join(", ")));
        return;
    }
    say(&format!("no --upstream given: in front of two demonstration pods, {}", names.join(", ")));
    say("try it, in another terminal:");
    let call = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","#,
        r#""arguments":{"text":"hello"},"_meta":{"#,
        r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#
    );
    say_as_it_is(&format!(
        "curl -s http://{address}/mcp -H 'Content-Type: application/json' \
         -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' \
         -H 'Mcp-Method: tools/call' -H 'Mcp-Name: echo' -d '{call}'"
    ));
}

fn log_to_stderr(args: &Args) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(format!("ringgate={}", args.log)))
        .with_writer(std::io::stderr);
    let set = match args.log_format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if set.is_err() {
        say("something else logs already; its settings hold");
    }
}

/// Each connection needs a descriptor, and the usual soft limit is 1,024.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected HOST:PORT, such as 127.0.0.1:8080 or [::]:8080".to_owned();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !has_port {
        return Err(expected());
    }
    resolve(text)
}

fn upstream(text: &str) -> Result<Pod, String> {
    let expected = || "expected http://HOST:PORT without a path".to_owned();
    let uri: http::Uri = text.parse().map_err(|_| expected())?;
    let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http") && is_bare);
    let authority = authority.filter(|authority| !authority.as_str().contains('@'));
    let authority = authority.ok_or_else(expected)?;
    let port = authority.port_u16().unwrap_or(80);
    let address = resolve(&format!("{}:{port}", authority.host()))?;
    Ok(Pod { name: format!("http://{authority}"), address })
}

/// The first address of a name.
fn resolve(name: &str) -> Result<SocketAddr, String> {
    let refused = |error: std::io::Error| format!("no such host ({error})");
    let mut addresses = name.to_socket_addrs().map_err(refused)?;
    addresses.next().ok_or_else(|| "no such host".to_owned())
}

fn field_name(text: &str) -> Result<String, String> {
    let name = http::HeaderName::from_bytes(text.as_bytes());
    name.map(|name| name.as_str().to_owned()).map_err(|_| "expected a field name".to_owned())
}

/// The name stands in JSON strings as it is.
fn origin_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("expected 1 to 64 letters, digits, dots, dashes or underscores".to_owned())
    }
}
