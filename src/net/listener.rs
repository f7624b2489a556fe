//! The listening socket of one shard.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsRawFd;

use monoio::io::CancelHandle;
use monoio::net::{TcpListener, TcpStream};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc::sock_filter;
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
pub struct Listener {
    ring: TcpListener,
    /// The same socket, for what the ring does not do.
    socket: Socket,
}

impl Listener {
    /// Starts to listen. Called on the shard's thread.
    ///
    /// # Errors
    ///
    /// The socket can't listen.
    pub fn listen(bound: Bound) -> io::Result<Self> {
        let socket = Socket::from(bound.0);
        socket.listen(LISTEN_BACKLOG)?;
        let ring = TcpListener::from_std(socket.try_clone()?.into())?;
        Ok(Self { ring, socket })
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
        let (stream, peer) = self.ring.cancelable_accept(cancel).await?;
        fcntl(stream.as_raw_fd(), FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        Ok((stream, peer))
    }

    /// Lets nobody begin to connect. A client that tries does so again after a second, when the
    /// successor has the port for itself; one that has begun may finish.
    ///
    /// # Errors
    ///
    /// The kernel takes no filter.
    pub fn refuse_new(&self) -> io::Result<()> {
        /// The flags of a TCP header, and that of a first segment.
        const FLAGS_OFFSET: u32 = 13;
        const SYN: u32 = 0x02;
        let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
        self.socket.attach_filter(&[
            // Load that byte; go on if SYN is set in it, else jump over one; drop; take whole.
            step(0x30, 0, 0, FLAGS_OFFSET),
            step(0x45, 0, 1, SYN),
            step(0x06, 0, 0, 0),
            step(0x06, 0, 0, u32::MAX),
        ])
    }

    /// A connection that is waiting already. To be called while no accept is under way.
    ///
    /// # Errors
    ///
    /// There is none, or descriptors ran out.
    pub fn accept_waiting(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.socket.accept()?;
        stream.set_nonblocking(true)?;
        let peer = peer.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((TcpStream::from_std(stream.into())?, peer))
    }

    /// Stops listening. Without this the kernel goes on accepting while it takes the ring down
    /// after the process has ended, and a successor on the same port loses connections.
    pub fn stop(self) {
        if let Err(error) = self.socket.shutdown(Shutdown::Read) {
            tracing::debug!(%error, "the listener was gone already");
        }
    }
}
