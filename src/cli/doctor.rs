//! `ringgate doctor`: what this machine offers, and what to change (OP-5).

use std::io::{self, Write};
use std::process::ExitCode;

use nix::sys::resource::{Resource, getrlimit};

use crate::shard::ring::{Driver, Flags, Ring, build};

/// Open files below which the default number of connections can't be reached.
const FILES_WANTED: u64 = 65_536;

/// Prints the report; the exit status says whether ringgate runs at its best here.
#[must_use]
pub fn run() -> ExitCode {
    let mut out = io::stdout().lock();
    match report(&mut out) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}

/// Writes the report and returns how many things to change it names.
fn report(out: &mut impl Write) -> io::Result<u32> {
    let mut advice_count = 0;
    let mut line = |name: &str, value: &str, advice: Option<&str>| {
        writeln!(out, "{name:<14} {value}")?;
        if let Some(advice) = advice {
            advice_count += 1;
            writeln!(out, "{:<14} change: {advice}", "")?;
        }
        Ok::<(), io::Error>(())
    };
    line("kernel", &setting("/proc/sys/kernel/osrelease"), None)?;
    let (loop_kind, loop_advice) = event_loop();
    line("event loop", &loop_kind, loop_advice)?;
    line("io_uring off", &setting("/proc/sys/kernel/io_uring_disabled"), None)?;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let files_advice = "raise the hard limit of open files (LimitNOFILE= in a systemd unit)";
    let files_advice = (hard < FILES_WANTED).then_some(files_advice);
    line(
        "open files",
        &format!("{soft} soft, {hard} hard; ringgate takes the hard one"),
        files_advice,
    )?;
    let somaxconn = setting("/proc/sys/net/core/somaxconn");
    let is_short = somaxconn.parse::<i32>().is_ok_and(|n| n < crate::limits::LISTEN_BACKLOG);
    let backlog_advice = is_short.then_some("sysctl net.core.somaxconn=4096");
    line("accept queue", &somaxconn, backlog_advice)?;
    line("queue moves", &setting("/proc/sys/net/ipv4/tcp_migrate_req"), None)?;
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let names: Vec<String> = cores.iter().map(|core| core.id.to_string()).collect();
    line("cores", &format!("{} (numbers {})", cores.len(), names.join(", ")), None)?;
    line("SIMD", simd(), None)?;
    Ok(advice_count)
}

fn event_loop() -> (String, Option<&'static str>) {
    // On a thread of its own: a ring belongs to the thread that made it.
    let built = std::thread::spawn(|| match build(Driver::Auto) {
        Ok(Ring::Uring(_, Flags::Deferred)) => {
            ("io_uring, single issuer, deferred task running".to_owned(), None)
        }
        Ok(Ring::Uring(_, Flags::Cooperative)) => (
            "io_uring, single issuer, cooperative task running".to_owned(),
            Some("Linux 6.1 or later has deferred task running"),
        ),
        Ok(Ring::Uring(_, Flags::Plain)) => {
            ("io_uring without flags".to_owned(), Some("Linux 6.1 or later has the flags"))
        }
        Ok(Ring::Epoll(_, refusal)) => (
            format!("epoll; io_uring is refused ({refusal:?})"),
            Some(
                "allow io_uring_setup, io_uring_enter and io_uring_register in the seccomp profile",
            ),
        ),
        Err(error) => (format!("none: {error}"), Some("neither io_uring nor epoll works here")),
    });
    built.join().unwrap_or_else(|_| ("none".to_owned(), Some("the event loop can't be built")))
}

fn setting(path: &str) -> String {
    std::fs::read_to_string(path).map_or("unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(target_arch = "x86_64")]
fn simd() -> &'static str {
    if is_x86_feature_detected!("avx2") { "AVX2" } else { "SSE2" }
}

#[cfg(not(target_arch = "x86_64"))]
fn simd() -> &'static str {
    if cfg!(target_arch = "aarch64") { "NEON" } else { "none" }
}
