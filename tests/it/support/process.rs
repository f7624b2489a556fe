//! The built proxy as a child process.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::SOON;

/// A running proxy. It is killed when dropped, and then must have logged no warning and no error
/// that the test did not announce.
pub(crate) struct Ringgate {
    child: Child,
    address: SocketAddr,
    lines: Receiver<String>,
    seen: Vec<String>,
    announced: Vec<&'static str>,
}

impl Ringgate {
    /// Starts the proxy on a free port with these arguments, and waits until it listens.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut all = vec!["--listen", "127.0.0.1:0"];
        all.extend_from_slice(arguments);
        Self::start_under(&[], &all)
    }

    /// Starts the proxy through a program that turns into the command behind its own arguments,
    /// and waits until it listens.
    pub(crate) fn start_under(wrapper: &[&str], all: &[&str]) -> Self {
        let mut child = command(wrapper)
            .args(all)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the built binary starts");
        let lines = read_lines(&mut child);
        let mut seen = Vec::new();
        let deadline = Instant::now() + SOON;
        let address = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = lines.recv_timeout(left).unwrap_or_else(|_| {
                panic!("ringgate {all:?} does not listen; it said {seen:?}");
            });
            let address = line.strip_prefix("ringgate: listening on http://").map(str::parse);
            seen.push(line);
            if let Some(address) = address {
                break address.expect("the line ends in an address");
            }
        };
        Self { child, address, lines, seen, announced: Vec::new() }
    }

    /// Starts the proxy in front of one pod, on one shard.
    pub(crate) fn before(pod: SocketAddr, arguments: &[&str]) -> Self {
        let upstream = format!("http://{pod}");
        let mut all = vec!["--shards", "1", "--upstream", &upstream];
        all.extend_from_slice(arguments);
        Self::start(&all)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Says that the proxy will warn or complain with a line that has `part`.
    pub(crate) fn announce(&mut self, part: &'static str) {
        self.announced.push(part);
    }

    /// Waits for a line on its standard error that has `part`.
    pub(crate) fn wait_for_line(&mut self, part: &str) -> String {
        if let Some(line) = self.seen.iter().find(|line| line.contains(part)) {
            return line.clone();
        }
        let deadline = Instant::now() + SOON;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no line with {part:?} among {:?}", self.seen);
            };
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Waits until its standard error has `count` lines with `part`.
    pub(crate) fn wait_for_lines(&mut self, part: &str, count: usize) {
        let deadline = Instant::now() + SOON;
        let has_part = |line: &&String| line.contains(part);
        while self.seen.iter().filter(has_part).count() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            self.seen.push(line.unwrap_or_else(|_| panic!("too few lines with {part:?}")));
        }
    }

    /// All that it said, once it has ended.
    pub(crate) fn said(&mut self) -> String {
        self.seen.extend(self.lines.iter());
        self.seen.join("\n")
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id is an i32"));
        kill(id, signal).expect("the proxy runs");
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status;
            }
            assert!(Instant::now() < deadline, "ringgate does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Ringgate {
    fn drop(&mut self) {
        self.child.kill().unwrap_or_default();
        let ended = self.child.wait();
        // The reader thread ends with the pipe.
        self.seen.extend(self.lines.iter());
        if std::thread::panicking() {
            eprintln!("ringgate said: {:#?}", self.seen);
            return;
        }
        assert!(ended.is_ok(), "the child was reaped");
        for line in &self.seen {
            let is_loud = line.contains(" WARN ") || line.contains(" ERROR ");
            let is_announced = self.announced.iter().any(|part| line.contains(part));
            assert!(!is_loud || is_announced, "an unannounced line in the log: {line}");
        }
    }
}

/// What a command that ended by itself said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its exit status.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary, through a wrapper as in [`Ringgate::start_under`], to its end.
pub(crate) fn run_under(wrapper: &[&str], arguments: &[&str], input: &str) -> Ended {
    let mut child = command(wrapper)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the built binary starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    // A command that does not read may have ended already.
    stdin.write_all(input.as_bytes()).unwrap_or_default();
    drop(stdin);
    let deadline = Instant::now() + SOON;
    while child.try_wait().expect("the child can be waited for").is_none() {
        if deadline < Instant::now() {
            child.kill().unwrap_or_default();
            panic!("ringgate {arguments:?} does not end");
        }
        std::thread::yield_now();
    }
    let output = child.wait_with_output().expect("the child has ended");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str], input: &str) -> Ended {
    run_under(&[], arguments, input)
}

fn command(wrapper: &[&str]) -> Command {
    let binary = env!("CARGO_BIN_EXE_ringgate");
    match wrapper {
        [] => Command::new(binary),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(binary);
            command
        }
    }
}

fn read_lines(child: &mut Child) -> Receiver<String> {
    let stderr = child.stderr.take().expect("standard error is piped");
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}
