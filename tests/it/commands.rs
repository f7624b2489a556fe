//! The command line as an operator meets it: refusals, event loops, the doctor and the offline
//! check (OP-5, RV-11).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::support::client::{Client, bare, exchange, post};
use crate::support::pod::{EVENTS, Pod, chunk, json};
use crate::support::process::{Ended, Ringgate, run, run_under};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// Refuses `io_uring_setup` with EPERM for itself and then becomes the command behind it, as
/// container runtimes do. The system call has this number on every architecture.
const WITHOUT_URING: [&str; 3] = [
    "python3",
    "-c",
    r#"
import ctypes, os, struct, sys
def step(code, jt, jf, k):
    return struct.pack("HBBI", code, jt, jf, k)
LOAD, EQUAL, RETURN, ERRNO, ALLOW = 0x20, 0x15, 0x06, 0x00050000, 0x7fff0000
steps = step(LOAD, 0, 0, 0) + step(EQUAL, 0, 1, 425) + step(RETURN, 0, 0, ERRNO | 1)
steps += step(RETURN, 0, 0, ALLOW)
held = ctypes.create_string_buffer(steps, len(steps))
program = struct.pack("HxxxxxxQ", len(steps) // 8, ctypes.addressof(held))
prctl = ctypes.CDLL(None, use_errno=True).prctl
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2
if prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(SECCOMP, FILTER, ctypes.c_char_p(program), 0, 0):
    sys.exit("the kernel takes no filter: %s" % os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
"#,
];

/// Asserts that a command ended with this status after exactly one line, which has these parts.
fn assert_refused(ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for part in ["ringgate: "].iter().chain(parts) {
        assert!(ended.stderr.contains(part), "{ended:?} lacks {part:?}");
    }
}

/// LM-1, OP-1: a command line that can't be understood, or names a host that is not there, is
/// refused with status 2 and one line that names the flag, the value and what is accepted.
#[test]
fn bad_flags_are_refused_in_one_line() {
    let check = |arguments: &[&str], parts: &[&str]| {
        assert_refused(&run(arguments, ""), 2, parts);
        let serve: Vec<&str> = std::iter::once("serve").chain(arguments.iter().copied()).collect();
        assert_refused(&run(&serve, ""), 2, parts);
    };
    check(&["--no-such-flag"], &["--no-such-flag"]);
    check(&["--shards", "0"], &["--shards", "'0'", "1..=1024"]);
    check(&["--shards"], &["--shards"]);
    check(&["--driver", "kqueue"], &["--driver", "'kqueue'", "auto, io-uring, epoll"]);
    check(&["--listen", "8080"], &["--listen", "'8080'", "HOST:PORT"]);
    check(&["--upstream", "localhost"], &["--upstream", "http://HOST:PORT"]);
    check(&["--upstream", "http://a:1/mcp"], &["--upstream", "without a path"]);
    let nowhere = "http://does-not-exist.invalid:1";
    check(&["--upstream", nowhere], &["--upstream", nowhere, "no such host"]);
    check(&["--listen", "does-not-exist.invalid:1"], &["--listen", "no such host"]);
    check(&["--head-timeout", "10"], &["--head-timeout", "'10'", "10s"]);
    check(&["--head-timeout", "0s"], &["--head-timeout", "'0s'", "1ms"]);
    check(&["--max-head-bytes", "1"], &["--max-head-bytes", "1KiB to 1MiB"]);
    check(&["--max-fields", "257"], &["--max-fields", "'257'", "1..=256"]);
    check(&["--affinity-header", "a b"], &["--affinity-header", "'a b'"]);
    check(&["--log", "loud"], &["--log", "'loud'"]);
    assert_refused(&run(&["no-such-command"], ""), 2, &["no-such-command"]);
    assert_refused(&run(&["check"], ""), 2, &["FILE"]);
}

/// OP-1: an address that can't be had is refused with status 1 and one line that says why.
#[test]
fn bad_addresses_are_refused_in_one_line() {
    let pod = Pod::proper();
    let upstream = format!("http://{}", pod.address());
    let check = |listen: &str, part: &str| {
        let ended = run(&["--upstream", &upstream, "--listen", listen], "");
        assert_refused(&ended, 1, &[listen, part]);
    };
    check("192.0.2.1:0", "the address is not of this machine");
    // The pod has it, and shares it with nobody.
    check(&pod.address().to_string(), "the port is in use");
}

/// A small set of requests: checked, streamed, plain, chunked, pipelined and refused.
fn assert_serves(proxy: &Ringgate) {
    let mut client = Client::connect(proxy.address());
    for _ in 0..3 {
        client.send(post(PING, ""));
        assert_eq!(client.answer().body, PONG);
        client.send(post(PING, "X-Stream: 1\r\n"));
        assert_eq!(client.answer().body, format!("data: {PONG}\n\n"));
    }
    client.send(post(PING, "").repeat(5));
    for _ in 0..5 {
        assert_eq!(client.answer().body, PONG);
    }
    let fields = "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n";
    let body = "x".repeat(300_000);
    client.send(format!("{}{}", bare("PUT", fields), chunk(&body)));
    client.send("0\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.body.len()), (200, body.len()));
    let foreign = bare("GET", "Origin: https://evil.example\r\n");
    assert_eq!(exchange(proxy.address(), foreign).status, 403);
}

fn serving_pod() -> Pod {
    Pod::scripted(|received, stream| {
        let answer = if received.method() == "PUT" {
            let length = received.body.len();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}", received.body)
        } else if received.value("X-Stream").is_some() {
            format!("{EVENTS}{}0\r\n\r\n", chunk(&format!("data: {PONG}\n\n")))
        } else {
            json(PONG)
        };
        stream.write_all(answer.as_bytes()).is_ok()
    })
}

/// OP-5: each event loop serves, and without asking for one no line says which it is.
#[test]
fn every_driver_serves() {
    let pod = serving_pod();
    for driver in ["auto", "io-uring", "epoll"] {
        let proxy = Ringgate::before(pod.address(), &["--driver", driver]);
        assert_serves(&proxy);
    }
}

/// OP-5: where the kernel refuses `io_uring` the proxy serves on epoll and says so once, however
/// many shards there are; if `io_uring` was asked for, it says why it can't serve.
#[test]
fn a_refused_ring_falls_back_to_epoll() {
    let pod = serving_pod();
    let upstream = format!("http://{}", pod.address());
    let flags = ["--listen", "127.0.0.1:0", "--upstream", &upstream, "--shards", "2"];
    let mut proxy = Ringgate::start_under(&WITHOUT_URING, &flags);
    proxy.announce("io_uring is refused here; running on epoll");
    let line = proxy.wait_for_line("running on epoll");
    assert!(line.contains("permission denied"), "{line}");
    assert_serves(&proxy);
    proxy.signal(Signal::SIGTERM);
    assert_eq!(proxy.wait().code(), Some(0));
    assert_eq!(proxy.said().matches("epoll").count(), 1);
    let asked = [&flags[..], &["--driver", "io-uring"]].concat();
    let ended = run_under(&WITHOUT_URING, &asked, "");
    let parts = ["--driver", "the kernel refuses it", "ringgate doctor"];
    assert_refused(&ended, 1, &parts);
    let ended = run_under(&WITHOUT_URING, &["doctor"], "");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told = ["epoll; io_uring is refused", "change: allow io_uring_setup"];
    for part in told {
        assert!(ended.stdout.contains(part), "{ended:?} lacks {part:?}");
    }
}

/// OP-5: the doctor tells what the machine offers, with a change to make behind what is short, and
/// its status says whether there is any.
#[test]
fn the_doctor_reports() {
    let check = |wrapper: &[&str], has_short_files: bool| {
        let ended = run_under(wrapper, &["doctor"], "");
        assert_eq!(ended.stderr, "");
        let names = ["kernel", "event loop", "open files", "accept queue", "cores", "SIMD"];
        for name in names {
            let line = ended.stdout.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.get(15..)).unwrap_or_default();
            assert!(!value.trim().is_empty(), "{name} in {}", ended.stdout);
        }
        let changes = ended.stdout.matches("change: ").count();
        assert_eq!(ended.code, Some(i32::from(changes > 0)), "{ended:?}");
        let has_advice = ended.stdout.contains("change: raise the hard limit");
        assert!(!has_short_files || has_advice, "{}", ended.stdout);
    };
    check(&[], false);
    check(&["prlimit", "--nofile=512:1024"], true);
}

/// RV-11: the status of the offline check: 0 valid, 1 would be refused, 2 can't be checked; from a
/// file and from standard input.
#[test]
fn captures_are_checked() {
    let file = |name: &str, text: &str| -> PathBuf {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).expect("the directory of tests can be written");
        path
    };
    let check = |more: &[&str], text: &str, code: i32, part: &str| {
        let path = file(&format!("capture-{}", std::process::id()), text);
        let path = path.to_str().expect("the path is text");
        for (name, input) in [(path, ""), ("-", text)] {
            let arguments = [&["check", name], more].concat();
            let ended = run(&arguments, input);
            assert_eq!(ended.code, Some(code), "{text:?}: {ended:?}");
            assert!(ended.stdout.starts_with(part), "{text:?}: {ended:?}");
            assert_eq!(ended.stdout.is_empty(), code == 2, "{ended:?}");
            assert_eq!(ended.stderr.is_empty(), code != 2, "{ended:?}");
        }
    };
    let event = format!("data: {PONG}\n\n");
    check(&[], PONG, 0, "valid body: ");
    check(&["--id", "1"], PONG, 0, "valid body: ");
    check(&[], &event, 0, "valid events: ");
    check(&["--id", "2"], PONG, 1, "invalid: id_not_asked");
    check(&["--id", "2"], &event, 1, "invalid: id_not_asked");
    check(&["--kind", "events", "--id", "1"], ": c\n\n", 1, "invalid: ");
    check(&["--kind", "body"], &PONG[1..], 1, "invalid: ");
    check(&[], "", 1, "invalid: json_truncated");
    check(&["--id", "a"], PONG, 2, "");
    check(&["--kind", "other"], PONG, 2, "");
    assert_eq!(run(&["check", "/no/such/capture"], "").code, Some(2));
}

/// LM-2: no program that the proxy starts inherits a socket: all are closed on exec.
#[test]
fn sockets_are_closed_on_exec() {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    const CLIENTS: usize = 8;
    let check = |driver: &str| {
        let pod = serving_pod();
        let proxy = Ringgate::before(pod.address(), &["--driver", driver]);
        let clients = (0..CLIENTS).map(|_| {
            let mut client = Client::connect(proxy.address());
            client.send(post(PING, ""));
            assert_eq!(client.answer().body, PONG);
            client
        });
        let clients: Vec<Client> = clients.collect();
        let root = PathBuf::from(format!("/proc/{}", proxy.id()));
        let mut sockets_count = 0;
        for entry in std::fs::read_dir(root.join("fd")).expect("the proxy runs") {
            let entry = entry.expect("the proxy runs");
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            if !target.to_string_lossy().starts_with("socket:") {
                continue;
            }
            sockets_count += 1;
            let info = root.join("fdinfo").join(entry.file_name());
            let info = std::fs::read_to_string(info).expect("the socket is open");
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
            let flags = flags.expect("a descriptor has flags");
            assert_ne!(flags & CLOSE_ON_EXEC, 0, "{driver}: {target:?}, {info}");
        }
        // The clients', the pod's and the listener's.
        assert!(CLIENTS + 2 <= sockets_count, "{driver}: {sockets_count}");
        drop(clients);
    };
    check("io-uring");
    check("epoll");
}

/// OP-1: without arguments two demonstration pods are started, and the line that is printed to try
/// works as it is printed.
#[test]
fn the_first_command_shows_the_product() {
    let mut proxy = Ringgate::start(&[]);
    proxy.wait_for_line("two demonstration pods");
    let line = proxy.wait_for_line("curl -s");
    let tried = Command::new("sh").args(["-c", &line]).output().expect("a shell runs");
    let said = String::from_utf8_lossy(&tried.stdout);
    assert!(tried.status.success(), "{tried:?}");
    let answer: serde_json::Value = serde_json::from_str(&said).expect("the answer is JSON");
    assert_eq!(answer["result"]["content"][0]["text"], "hello", "{said}");
}

/// RV-11, OB-1: what was counted is told when the process ends: exchanges, faults by their reason,
/// refused messages by the rule.
#[test]
fn counters_are_told_at_the_end() {
    let pod = Pod::answering(json(r#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#));
    let mut proxy = Ringgate::before(pod.address(), &["--log", "info", "--log-format", "json"]);
    for _ in 0..3 {
        assert_eq!(exchange(proxy.address(), post(PING, "")).status, 502);
    }
    proxy.signal(Signal::SIGTERM);
    for (label, count) in
        [("exchanges", 3), ("fault_upstream_not_json_rpc", 3), ("refused_key_duplicated", 3)]
    {
        let line = proxy.wait_for_line(&format!("\"label\":\"{label}\""));
        let line: serde_json::Value = serde_json::from_str(&line).expect("a line of JSON");
        assert_eq!(line["fields"]["count"], count, "{line}");
    }
}
