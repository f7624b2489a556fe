//! Behaviour on the wire: every test drives the built binary over loopback sockets.
