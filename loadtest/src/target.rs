//! Where a load goes. Another machine has to be asked for by name: a mistyped address must not
//! become an attack.

use std::net::{SocketAddr, ToSocketAddrs};

/// The endpoint that requests go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub address: SocketAddr,
    /// What stands in `Host`.
    pub authority: String,
    pub path: String,
}

impl Target {
    /// Reads `http://HOST[:PORT][/PATH]`.
    ///
    /// # Errors
    ///
    /// A sentence for the one who typed it.
    pub(crate) fn read(url: &str) -> Result<Self, String> {
        let expected = || "expected http://HOST:PORT/PATH".to_owned();
        let rest = url.strip_prefix("http://").ok_or_else(expected)?;
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !is_plain(rest) {
            return Err(expected());
        }
        let is_ported = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let name = if is_ported { authority.to_owned() } else { format!("{authority}:80") };
        let mut addresses = name.to_socket_addrs().map_err(|error| format!("no host: {error}"))?;
        let address = addresses.next().ok_or_else(|| "no such host".to_owned())?;
        Ok(Self { address, authority: authority.to_owned(), path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let target = Target::read("http://127.0.0.1:81/mcp?x").unwrap();
        assert_eq!(target.address, "127.0.0.1:81".parse().unwrap());
        assert_eq!((target.authority.as_str(), target.path.as_str()), ("127.0.0.1:81", "/mcp?x"));
        assert_eq!(Target::read("http://[::1]").unwrap().address, "[::1]:80".parse().unwrap());
        assert_eq!(Target::read("http://127.0.0.1").unwrap().path, "/");
        for url in ["127.0.0.1:81", "https://127.0.0.1/", "http://", "http://a@b/", "http://a b/"] {
            assert!(Target::read(url).is_err(), "{url}");
        }
    }
}
