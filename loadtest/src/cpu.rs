//! The CPU time of other processes, as the scheduler counts it: in nanoseconds, all threads.

use std::fs;
use std::io;
use std::time::Duration;

/// CPU time of all threads of all these processes so far. A thread that has ended is not in it.
///
/// # Errors
///
/// What the system says if a process is not there, or [`io::ErrorKind::InvalidData`] if the kernel
/// keeps no such statistics.
pub(crate) fn time_of(pids: &[u32]) -> io::Result<Duration> {
    pids.iter().map(|pid| time_of_process(*pid)).sum()
}

fn time_of_process(pid: u32) -> io::Result<Duration> {
    let mut total = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the listing and the reading.
        match fs::read_to_string(thread?.path().join("schedstat")) {
            Ok(text) => total += on_cpu(&text).ok_or(io::ErrorKind::InvalidData)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

/// The first figure of a `schedstat` file.
fn on_cpu(text: &str) -> Option<Duration> {
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        assert_eq!(on_cpu("1500 7 3\n"), Some(Duration::from_nanos(1_500)));
        assert_eq!(on_cpu(""), None);
        let before = time_of(&[std::process::id()]).unwrap();
        let sum: u64 = (0..5_000_000_u64).map(std::hint::black_box).sum();
        std::hint::black_box(sum);
        assert!(before < time_of(&[std::process::id()]).unwrap());
        assert!(time_of(&[u32::MAX]).is_err());
    }
}
