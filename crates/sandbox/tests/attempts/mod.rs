//! What native code inside a worker would try, for real. `Ok` is a breach.

#![allow(unsafe_code, reason = "tries what the sandbox is there to stop")]

mod files;
mod kernel;
mod memory;
mod network;
mod processes;

use std::os::fd::{AsRawFd as _, OwnedFd};

use libc::{c_int, c_long};

/// Something to try.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Targets) -> Outcome,
    /// Whether hosts are known to forbid it (a container's filter, a sysctl, not being root): then its negative control
    /// shows that instead of a breach.
    pub(crate) hosts_forbid: bool,
}

/// The error number of what stopped it.
pub(crate) type Outcome = Result<(), c_int>;

/// What the attempts aim at, made by their host before they are confined.
pub(crate) struct Targets {
    /// The host: this process's parent.
    pub(crate) host: c_int,
    /// A TCP listener and a UDP socket of the host, on the loopback interface.
    pub(crate) tcp: std::net::TcpListener,
    pub(crate) udp: std::net::UdpSocket,
    /// A Unix listener of the host, by its abstract name and by a path.
    pub(crate) abstract_name: Vec<u8>,
    pub(crate) path: std::path::PathBuf,
    /// A file of the host that was open when the process was made.
    pub(crate) open_file: OwnedFd,
}

/// Every attempt.
pub(crate) fn all() -> impl Iterator<Item = &'static Attempt> {
    [files::ATTEMPTS, processes::ATTEMPTS, network::ATTEMPTS, memory::ATTEMPTS, kernel::ATTEMPTS]
        .into_iter()
        .flatten()
}

const fn attempt(name: &'static str, run: fn(&Targets) -> Outcome) -> Attempt {
    Attempt { name, run, hosts_forbid: false }
}

const fn attempt_that_hosts_forbid(name: &'static str, run: fn(&Targets) -> Outcome) -> Attempt {
    Attempt { name, run, hosts_forbid: true }
}

fn last_error() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Turns a C result, negative on error, into an outcome with its value.
fn check(result: c_long) -> Result<c_long, c_int> {
    if result < 0 { Err(last_error()) } else { Ok(result) }
}

/// The error number of the standard library's error.
fn number_of(error: &std::io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn raw(descriptor: &OwnedFd) -> c_int {
    descriptor.as_raw_fd()
}

/// A system call with these arguments; the attempts' own calls say what they do.
///
/// # Safety
///
/// As the call itself.
unsafe fn call(number: c_long, arguments: [usize; 6]) -> Result<c_long, c_int> {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: passed on to the caller.
    check(unsafe { libc::syscall(number, first, second, third, fourth, fifth, sixth) })
}
