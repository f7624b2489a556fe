//! What an operator set, checked, as the pipeline needs it. It knows no flag and no file.

use crate::limits::Limits;
use crate::mcp::fault::Style;

/// The options of the pipeline. One value for the process; each shard has a copy.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Every bound.
    pub limits: Limits,
    /// How faults are rendered.
    pub style: Style,
    /// HTTP status of faults that answer legacy requests.
    pub legacy_fault_status: FaultStatus,
    /// Which Host fields are served (HT-5).
    pub hosts: Hosts,
    /// Which Origin fields are served (HT-5).
    pub origins: Origins,
    /// Whether GET, HEAD and DELETE are refused altogether (RC-3).
    pub sessions: Sessions,
    /// What becomes of arrays of messages (RC-2).
    pub batches: Batches,
    /// Name of the field whose value chooses the pod of a request without a session (RT-2).
    pub affinity_field: Option<String>,
}

/// The status of faults that answer legacy requests (`--legacy-fault-status`, FA-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultStatus {
    /// The fault's own.
    #[default]
    Own,
    /// 200, but for an unknown session, whose 404 makes clients start over.
    InBand,
}

/// Host fields that are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hosts {
    /// Names of this machine's loopback.
    #[default]
    Loopback,
    /// Those listed, with or without a port.
    Listed(Vec<String>),
    /// All: the operator's front door checks them.
    Any,
}

/// Origin fields that are served. A request without one comes from no browser and is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// Listed origins, as `scheme://host[:port]`.
    pub listed: Vec<String>,
    /// What else is served.
    pub others: OtherOrigins,
}

/// Origins beyond those listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherOrigins {
    /// Those of this machine's loopback.
    #[default]
    Loopback,
    /// None.
    None,
    /// All.
    Any,
}

/// Whether legacy sessions are served (`--stateless`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sessions {
    /// They are.
    #[default]
    Served,
    /// Only POST is.
    Refused,
}

/// What becomes of arrays of messages (`--batches`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Batches {
    /// They go to the pod as legacy traffic.
    #[default]
    Forward,
    /// They are refused.
    Refuse,
}

impl Hosts {
    /// Whether `host`, the value of a Host field, is served.
    #[must_use]
    pub fn allow(&self, host: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Loopback => is_loopback(name_of(host)),
            Self::Listed(listed) => listed.iter().any(|allowed| {
                let allowed = allowed.as_bytes();
                allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name_of(host))
            }),
        }
    }
}

impl Origins {
    /// Whether `origin`, the value of an Origin field, is served.
    #[must_use]
    pub fn allow(&self, origin: &[u8]) -> bool {
        let is_listed = |listed: &String| listed.as_bytes().eq_ignore_ascii_case(origin);
        if self.listed.iter().any(is_listed) {
            return true;
        }
        match self.others {
            OtherOrigins::Any => true,
            OtherOrigins::None => false,
            OtherOrigins::Loopback => {
                let host = origin.strip_prefix(b"http://").or(origin.strip_prefix(b"https://"));
                host.is_some_and(|host| is_loopback(name_of(host)))
            }
        }
    }
}

/// The host of an authority, without its port.
fn name_of(authority: &[u8]) -> &[u8] {
    let end = match authority.iter().rposition(|byte| *byte == b':') {
        // A colon inside brackets belongs to an IPv6 address.
        Some(colon) if !authority.ends_with(b"]") => colon,
        _ => authority.len(),
    };
    authority.get(..end).unwrap_or_default()
}

fn is_loopback(name: &[u8]) -> bool {
    if name.eq_ignore_ascii_case(b"localhost") {
        return true;
    }
    let Ok(name) = std::str::from_utf8(name) else {
        return false;
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match address {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok_and(|ip| ip.is_loopback()),
        None => name.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-5: names of the loopback, with any port, and nothing that only looks like one.
    #[test]
    fn loopback_hosts() {
        let check = |host: &str, is_allowed| {
            assert_eq!(Hosts::Loopback.allow(host.as_bytes()), is_allowed, "{host}");
        };
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.1.2.3:1", "[::1]", "[::1]:80"]
        {
            check(host, true);
        }
        let hosts =
            ["evil.example", "localhost.evil", "127.0.0.1.evil", "[::2]", "128.0.0.1", "::1"];
        for host in hosts {
            check(host, false);
        }
    }

    /// HT-5: `null` and foreign origins are refused unless they are listed.
    #[test]
    fn origins() {
        let loopback = Origins::default();
        assert!(loopback.allow(b"http://localhost:6274"));
        assert!(loopback.allow(b"https://127.0.0.1"));
        for origin in ["null", "http://evil.example", "http://localhost.evil", "file://localhost"] {
            assert!(!loopback.allow(origin.as_bytes()), "{origin}");
        }
        let listed =
            Origins { listed: vec!["https://app.example".to_owned()], others: OtherOrigins::None };
        assert!(listed.allow(b"https://app.example"));
        assert!(!listed.allow(b"https://app.example:444"));
        assert!(!listed.allow(b"http://localhost"));
    }

    /// HT-5: a listed host is served with any port, a listed authority with its own only.
    #[test]
    fn listed_hosts() {
        let hosts = Hosts::Listed(vec!["mcp.example".to_owned(), "other.example:8443".to_owned()]);
        assert!(hosts.allow(b"mcp.example"));
        assert!(hosts.allow(b"MCP.example:443"));
        assert!(hosts.allow(b"other.example:8443"));
        assert!(!hosts.allow(b"other.example:1"));
        assert!(!hosts.allow(b"evil.mcp.example"));
    }
}
