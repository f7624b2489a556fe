//! The listening socket of one shard.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use monoio::io::CancelHandle;
use monoio::net::{TcpListener, TcpStream};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::Shutdown;
use socket2::{Domain, Protocol, Socket, Type};

use crate::limits::LISTEN_BACKLOG;

/// A bound socket that shares its port with those of the other shards (`SO_REUSEPORT`).
#[derive(Debug)]
pub struct Bound(std::net::TcpListener);

/// Binds `address` for one shard.
///
/// # Errors
///
/// The port is in use, the address is not of this machine, or permission is missing.
pub fn bind(address: SocketAddr) -> io::Result<Bound> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(Bound(socket.into()))
}

/// Whether a process of another user, or one without `SO_REUSEPORT`, or an earlier ringgate holds
/// the port: sharing it silently would split the traffic.
///
/// # Errors
///
/// The port is in use, the address is not of this machine, or permission is missing.
pub fn probe(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(1)
}

impl Bound {
    /// The address, with the port that the kernel chose for port 0.
    ///
    /// # Errors
    ///
    /// The socket is gone.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// Accepts connections on the shard's ring.
pub struct Listener(TcpListener);

impl Listener {
    /// Starts to listen. Called on the shard's thread.
    ///
    /// # Errors
    ///
    /// The socket can't listen.
    pub fn listen(bound: Bound) -> io::Result<Self> {
        let socket = Socket::from(bound.0);
        socket.listen(LISTEN_BACKLOG)?;
        TcpListener::from_std(socket.into()).map(Self)
    }

    /// The next connection. It is closed in programs that this process starts: accepting through
    /// the ring sets no flag.
    ///
    /// # Errors
    ///
    /// Descriptors ran out, the connection is gone already, or `cancel` was called.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: dropping it leaks the descriptor of a connection accepted meanwhile. End it
    /// with `cancel`.
    pub async fn accept(&self, cancel: CancelHandle) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.0.cancelable_accept(cancel).await?;
        fcntl(stream.as_raw_fd(), FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        Ok((stream, peer))
    }

    /// Stops listening. Without this the kernel goes on accepting while it takes the ring down
    /// after the process has ended, and a successor on the same port loses connections.
    pub fn stop(self) {
        if let Err(error) = nix::sys::socket::shutdown(self.0.as_raw_fd(), Shutdown::Read) {
            tracing::debug!(%error, "the listener was gone already");
        }
    }
}
