//! The network and the sockets of other processes.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::time::Duration;

use super::{Attempt, attempt, check, number_of};

pub(super) const ATTEMPTS: &[Attempt] = &[
    attempt("connect over TCP", |targets| {
        let address = of(targets.tcp.local_addr())?;
        of(TcpStream::connect_timeout(&address, Duration::from_secs(1))).map(drop)
    }),
    attempt("listen on a TCP port", |_| {
        of(std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))).map(drop)
    }),
    attempt("send over UDP", |targets| {
        let address = of(targets.udp.local_addr())?;
        let socket = of(UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))))?;
        of(socket.send_to(b"x", address)).map(drop)
    }),
    attempt("connect to a Unix socket by its path", |targets| {
        of(UnixStream::connect(&targets.path)).map(drop)
    }),
    attempt("connect to an abstract Unix socket", |targets| {
        let address = of(UnixAddress::from_abstract_name(&targets.abstract_name))?;
        of(UnixStream::connect_addr(&address)).map(drop)
    }),
    attempt("make a pair of sockets", |_| of(UnixStream::pair()).map(drop)),
    attempt("talk to the kernel over netlink", |_| {
        // SAFETY: makes a descriptor of this process.
        check(unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE) }.into()).map(drop)
    }),
    attempt("send on a socket that was open before", |targets| of(targets.udp.send(b"x")).map(drop)),
];

fn of<T>(result: std::io::Result<T>) -> Result<T, libc::c_int> {
    result.map_err(|error| number_of(&error))
}
