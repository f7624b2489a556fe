//! The proxy before an upstream whose answers real clients can't bear: with it in between, none of
//! them may wait for an answer that never comes.
//!
//! What every client sees of every answer is recorded in `tests/peers/hostile.expected.tsv`,
//! without the proxy and with it, and shown in `docs/hostile-upstreams.md`. With `UPDATE_EXPECT=1`
//! both files are written anew from what is seen through the proxy; with `UPDATE_EXPECT=direct` the
//! figures without it are measured anew as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::Value;

use crate::peers::{CLIENTS, Client, put_before, take_turn};
use crate::support::peer::{Peer, Runtime, run};

/// Cases after which a caller may wait for its own time-out, and why the proxy can't prevent it.
const MAY_HANG: &[(&str, &str)] = &[(
    "sse-prime-close",
    "the stream gave an event id before it ended, so its answer may come when it is resumed",
)];

/// Added to what a caller saw when its client was of no use afterwards.
const SESSION_LOST: &str = ", session lost";

/// What each client sees of each case, in the order of the table.
type Matrix = BTreeMap<(&'static str, String), String>;

/// What one client is to see of one case.
#[derive(Clone, Default)]
struct Expected {
    direct: String,
    proxied: String,
}

type Expectations = BTreeMap<(&'static str, String), Expected>;

#[test]
fn no_client_hangs_on_a_complete_answer() {
    let _turn = take_turn();
    let update = std::env::var("UPDATE_EXPECT").unwrap_or_default();
    let (upstream, cases) = start_upstream();
    let (ringgate, base) = put_before(&upstream, &[]);
    let proxied = call_all(&base, &cases);
    drop(ringgate);
    let hangs = unexcused_hangs(&proxied);

    let recorded = read_expectations();
    let direct = (update == "direct").then(|| call_all(&upstream.url, &cases));
    let seen: Expectations = proxied
        .into_iter()
        .map(|(place, proxied)| {
            let direct = direct.as_ref().map_or_else(
                || recorded.get(&place).cloned().unwrap_or_default().direct,
                |direct| direct[&place].clone(),
            );
            (place, Expected { direct, proxied })
        })
        .collect();
    let files = [
        ("tests/peers/hostile.expected.tsv", render_expectations(&seen, &cases)),
        ("docs/hostile-upstreams.md", render_document(&seen, &cases)),
    ];
    if !update.is_empty() {
        for (path, text) in &files {
            fs::write(from_root(path), text).expect("the file can be written");
        }
    }
    assert!(hangs.is_empty(), "through ringgate, clients wait in vain:\n{hangs}");
    for (path, text) in &files {
        assert_recorded(path, text);
    }
}

/// With faults in-band, none costs the session of a client that gives it up at a 4xx or 5xx: it is
/// lost only where the pod itself sent such a status.
#[test]
fn faults_in_band_cost_no_session() {
    let _turn = take_turn();
    let (upstream, cases) = start_upstream();
    let (ringgate, base) = put_before(&upstream, &["--legacy-fault-status", "200"]);
    let recorded = read_expectations();
    for client in CLIENTS.iter().filter(|client| client.runtime == Runtime::PythonV1) {
        for (place, seen) in call_cases(client, &base, &cases) {
            let is_pods_own = recorded[&place].direct.ends_with(SESSION_LOST) && place.1 != "reset";
            let is_lost = seen.ends_with(SESSION_LOST);
            assert_eq!(is_lost, is_pods_own, "{place:?} ends with {seen}");
        }
    }
    drop(ringgate);
}

fn start_upstream() -> (Peer, Vec<String>) {
    let upstream = Peer::start(&mut Runtime::Node.command("hostile.mjs")).ready();
    let names = run(Runtime::Node.command("hostile.mjs").arg("--list"));
    (upstream, names.lines().map(str::to_owned).collect())
}

/// Has every client call every case at `base`. Those of one runtime take turns, the runtimes don't.
fn call_all(base: &str, cases: &[String]) -> Matrix {
    let call_some = |is_node: bool| -> Matrix {
        CLIENTS
            .iter()
            .filter(|client| (client.runtime == Runtime::Node) == is_node)
            .flat_map(|client| call_cases(client, base, cases))
            .collect()
    };
    thread::scope(|scope| {
        let node = scope.spawn(|| call_some(true));
        let mut seen = call_some(false);
        seen.extend(node.join().expect("the clients on Node.js have run"));
        seen
    })
}

fn call_cases(client: &Client, base: &str, cases: &[String]) -> Matrix {
    let mut command = client.command("clients/ts.mjs", "clients/python.py");
    let rows: Matrix = run(command.args(cases).env("BASE", base))
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).expect("one JSON object a line");
            let text = |key: &str| row[key].as_str().expect("each row has this text").to_owned();
            let mut seen = text("outcome");
            if text("session") == "lost" {
                seen += SESSION_LOST;
            }
            ((client.name, text("case")), seen)
        })
        .collect();
    assert_eq!(rows.len(), cases.len(), "{} has called each case", client.name);
    rows
}

/// Where a client waited although it had no reason to, one place a line.
fn unexcused_hangs(seen: &Matrix) -> String {
    let hangs: Vec<_> = seen
        .iter()
        .filter(|(_, outcome)| outcome.starts_with("hang"))
        .filter(|((_, case), _)| MAY_HANG.iter().all(|(excused, _)| excused != case))
        .map(|((client, case), _)| format!("{client}: {case}"))
        .collect();
    hangs.join("\n")
}

fn read_expectations() -> Expectations {
    let text = fs::read_to_string(from_root("tests/peers/hostile.expected.tsv"));
    let mut expectations = Expectations::new();
    for line in text.unwrap_or_default().lines().skip(1) {
        let [client, case, direct, proxied] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not four columns: {line}");
        };
        let client = CLIENTS.iter().find(|known| known.name == client).expect("a known client");
        let expected = Expected { direct: direct.to_owned(), proxied: proxied.to_owned() };
        expectations.insert((client.name, case.to_owned()), expected);
    }
    expectations
}

fn render_expectations(seen: &Expectations, cases: &[String]) -> String {
    let mut lines = vec!["client\tcase\tdirect\tthrough ringgate\n".to_owned()];
    for client in CLIENTS {
        for case in cases {
            let Expected { direct, proxied } = &seen[&(client.name, case.clone())];
            lines.push(format!("{}\t{case}\t{direct}\t{proxied}\n", client.name));
        }
    }
    lines.concat()
}

fn render_document(seen: &Expectations, cases: &[String]) -> String {
    let excused: Vec<_> =
        MAY_HANG.iter().map(|(case, reason)| format!("- `{case}`: {reason}.\n")).collect();
    let names: Vec<_> = CLIENTS.iter().map(|client| client.name).collect();
    let head = format!("| answer | {} |\n", names.join(" | "));
    let rule = format!("|---|{}\n", "---|".repeat(names.len()));
    let rows: Vec<_> = cases
        .iter()
        .map(|case| {
            let cells: Vec<_> =
                names.iter().map(|name| render_cell(&seen[&(*name, case.clone())])).collect();
            format!("| `{case}` | {} |\n", cells.join(" | "))
        })
        .collect();
    [DOCUMENT_HEAD, &excused.concat(), "\n", &head, &rule, &rows.concat()].concat()
}

fn render_cell(Expected { direct, proxied }: &Expected) -> String {
    if direct == proxied { direct.clone() } else { format!("{direct} → **{proxied}**") }
}

const DOCUMENT_HEAD: &str = "\
# What clients see of broken upstreams

An upstream that answers a call with each of the answers below was called by real clients, directly
and through the proxy. A cell says what the caller saw, and where the two differ, what it saw
directly → **through the proxy**:

- *delivered*: a result;
- *error*: the JSON-RPC error that was sent;
- *rejected*: an error that the client made up at once;
- *hang*: nothing, until the caller's own time-out;
- *session lost*: the client could not be used for another call.

The answers are in `tests/peers/hostile/answers.mjs`; this table is written by the test in
`tests/it/hostile.rs`, which fails when a client hangs on an answer other than these:

";

fn assert_recorded(path: &str, text: &str) {
    let recorded = fs::read_to_string(from_root(path)).unwrap_or_default();
    let changed: Vec<_> =
        text.lines().filter(|&line| recorded.lines().all(|old| old != line)).collect();
    assert!(
        recorded == text,
        "{path} says otherwise; UPDATE_EXPECT=1 writes it anew. New lines:\n{}",
        changed.join("\n"),
    );
}

fn from_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
