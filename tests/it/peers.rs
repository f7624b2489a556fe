//! The proxy between real clients and real servers: with it in between, every one of them must see
//! what it sees without.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{MutexGuard, PoisonError};
use std::thread;

use crate::support::peer::{Peer, Runtime, Starting, run};
use crate::support::process::Ringgate;

/// The time-outs of the clients are real, so these tests must not slow one another.
#[expect(clippy::disallowed_types, reason = "orders tests, guards no state")]
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Waits until no other test with real clients runs, and keeps the next one waiting.
pub(crate) fn take_turn() -> MutexGuard<'static, ()> {
    // A test that failed has spoiled nothing for the next.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The clients: what they run on, the line of their SDK, and the era they speak if a server does.
pub(crate) const CLIENTS: &[Client] = &[
    Client::new("typescript 1.x", Runtime::Node, "v1", "legacy"),
    Client::new("typescript 2.x legacy", Runtime::Node, "v2", "legacy"),
    Client::new("typescript 2.x modern", Runtime::Node, "v2", "modern"),
    Client::new("python 1.x", Runtime::PythonV1, "v1", "legacy"),
    Client::new("python 2.x legacy", Runtime::PythonV2, "v2", "legacy"),
    Client::new("python 2.x modern", Runtime::PythonV2, "v2", "modern"),
];

pub(crate) struct Client {
    pub(crate) name: &'static str,
    pub(crate) runtime: Runtime,
    line: &'static str,
    era: &'static str,
}

impl Client {
    const fn new(
        name: &'static str,
        runtime: Runtime,
        line: &'static str,
        era: &'static str,
    ) -> Self {
        Self { name, runtime, line, era }
    }

    /// A command that has this client run the script of one of these two names.
    pub(crate) fn command(&self, node_script: &str, python_script: &str) -> Command {
        let mut command = self.runtime.command(match self.runtime {
            Runtime::Node => node_script,
            Runtime::PythonV1 | Runtime::PythonV2 => python_script,
        });
        command.args([self.line, self.era]);
        command
    }
}

/// A proxy before `peer`, and the URL that reaches the endpoint of `peer` through it.
pub(crate) fn put_before(peer: &Peer, options: &[&str]) -> (Ringgate, String) {
    // The path is the client's; the proxy is told of the origin only.
    let after_scheme = peer.url.find("://").expect("a URL has a scheme") + "://".len();
    let path_offset =
        peer.url[after_scheme..].find('/').map_or(peer.url.len(), |n| n + after_scheme);
    let (origin, path) = peer.url.split_at(path_offset);
    // Two shards, so that sessions are met on a shard that does not own them.
    let mut arguments = vec!["--shards", "2", "--upstream", origin];
    arguments.extend_from_slice(options);
    let ringgate = Ringgate::start(&arguments);
    let url = format!("http://{}{path}", ringgate.address());
    (ringgate, url)
}

/// Every check of the official suite comes out the same through the proxy, and the fixture by
/// itself passes all that are required.
#[test]
fn conformance_suite_sees_no_difference() {
    let _turn = take_turn();
    let fixture = Peer::start(&mut Runtime::Node.command("fixture.mjs")).ready();
    let (ringgate, proxied_url) = put_before(&fixture, &[]);
    for requirements in ["2025-11-25", "2026-07-28"] {
        let suite =
            |url: &str| run(Runtime::Node.command("conformance.mjs").args([url, requirements]));
        let direct = suite(&fixture.url);
        assert!(direct.ends_with("exit\t0\n"), "the fixture fails {requirements}:\n{direct}");
        let difference = difference(&direct, &suite(&proxied_url));
        assert!(difference.is_empty(), "through ringgate, {requirements} says:\n{difference}");
    }
    drop(ringgate);
}

/// A whole conversation (tools, progress, questions to the client, an event on a GET stream, a
/// stream that is cut and resumed, the end of the session) goes the same way through the proxy,
/// for each pair of a client and a server.
#[test]
fn conversations_see_no_difference() {
    let _turn = take_turn();
    // A second set, since servers count what clients do, and since each set has its own thread.
    let (first_servers, second_servers) = (start_servers(), start_servers());
    let gates: Vec<_> =
        second_servers.iter().map(|(name, peer)| (*name, put_before(peer, &[]))).collect();

    let without: Vec<_> =
        first_servers.iter().map(|(name, peer)| target(name, &peer.url)).collect();
    let through: Vec<_> = gates.iter().map(|(name, (_, url))| target(name, url)).collect();

    let mut reports = Vec::new();
    for client in CLIENTS {
        let converse = |targets: &[String]| {
            run(client.command("clients/session.mjs", "clients/session.py").args(targets))
        };
        let (direct, proxied) = thread::scope(|scope| {
            let direct = scope.spawn(|| converse(&without));
            let proxied = converse(&through);
            (direct.join().expect("the direct conversation"), proxied)
        });
        let difference = difference(&direct, &proxied);
        if !difference.is_empty() {
            reports.push(format!("{}:\n{difference}", client.name));
        }
    }
    assert!(reports.is_empty(), "through ringgate clients see otherwise:\n{}", reports.join("\n"));
}

fn target(name: &str, url: &str) -> String {
    format!("{name}={url}")
}

/// Every kind of server, by the name that begins its lines. All start before any is waited for.
fn start_servers() -> Vec<(&'static str, Peer)> {
    let kinds: [(_, _, _, &[&str]); 7] = [
        ("everything 1.x", Runtime::Node, "everything.mjs", &[]),
        ("fixture", Runtime::Node, "fixture.mjs", &[]),
        ("fixture json", Runtime::Node, "fixture.mjs", &["--json"]),
        ("python 1.x", Runtime::PythonV1, "server_v1.py", &[]),
        ("python 1.x json", Runtime::PythonV1, "server_v1.py", &["--json"]),
        ("python 2.x", Runtime::PythonV2, "server_v2.py", &[]),
        ("python 2.x json", Runtime::PythonV2, "server_v2.py", &["--json"]),
    ];
    let starting: Vec<(_, Starting)> = kinds
        .into_iter()
        .map(|(name, runtime, script, options)| {
            (name, Peer::start(runtime.command(script).args(options)))
        })
        .collect();
    starting.into_iter().map(|(name, starting)| (name, starting.ready())).collect()
}

/// The lines that one text has more often than the other: `-` for `direct`, `+` for `proxied`.
fn difference(direct: &str, proxied: &str) -> String {
    let mut surplus = BTreeMap::new();
    for line in direct.lines() {
        *surplus.entry(line).or_insert(0_i32) += 1;
    }
    for line in proxied.lines() {
        *surplus.entry(line).or_insert(0) -= 1;
    }
    let mut report = Vec::new();
    for (line, count) in surplus {
        let sign = if count < 0 { '+' } else { '-' };
        for _ in 0..count.unsigned_abs() {
            report.push(format!("{sign} {line}"));
        }
    }
    report.join("\n")
}
