//! What connections that wait cost (LM-1).

use std::thread;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::support::client::{Client, post};
use crate::support::pod::Pod;
use crate::support::process::Ringgate;

const IDLE: u64 = 10_000;
const BUSY: u64 = 64;
const REQUESTS: u64 = 20;

/// Most resident memory of the proxy for each connection that waits.
const BYTES_MAX: u64 = 16 * 1024;

fn raise_file_limit() {
    let wanted = IDLE + 2_000;
    let limits = getrlimit(Resource::RLIMIT_NOFILE);
    let (soft, hard) = limits.expect("the limit can be read");
    assert!(
        wanted <= hard,
        "this test needs a hard limit of {wanted} open files, and it is {hard}"
    );
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).expect("below the hard limit");
    }
}

fn resident_bytes(proxy: &Ringgate) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.id()));
    let status = status.expect("the proxy runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"));
    let kilobytes: Option<u64> = line.and_then(|kilobytes| kilobytes.trim().parse().ok());
    kilobytes.expect("a process has resident memory") * 1024
}

fn ping(client: &mut Client, id: u64) {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    client.send(post(&body, ""));
    assert_eq!(client.answer().json()["id"], id);
}

/// LM-1: one shard holds 10,000 connections that wait for their next request, each for less than
/// 16 KiB, while busy ones are served; those that waited are served afterwards.
#[test]
fn idle_connections_are_cheap() {
    raise_file_limit();
    let pod = Pod::proper();
    let proxy = Ringgate::before(pod.address(), &["--client-idle", "10m"]);
    ping(&mut Client::connect(proxy.address()), 0);
    let before = resident_bytes(&proxy);
    let idle = (0..IDLE).map(|id| {
        let mut client = Client::connect(proxy.address());
        ping(&mut client, id);
        client
    });
    let mut idle: Vec<Client> = idle.collect();
    let bytes = resident_bytes(&proxy).saturating_sub(before) / IDLE;
    eprintln!("{bytes} bytes of resident memory a connection that waits");
    assert!(bytes < BYTES_MAX, "{bytes} bytes a connection");
    thread::scope(|scope| {
        for busy in 0..BUSY {
            let address = proxy.address();
            scope.spawn(move || {
                let mut client = Client::connect(address);
                (0..REQUESTS).for_each(|index| ping(&mut client, busy * REQUESTS + index));
            });
        }
    });
    for (client, id) in idle.iter_mut().zip(0..).step_by(100) {
        ping(client, id);
    }
}
