//! Forking, confining and ending this process: what cannot be undone.

#![allow(
    unsafe_code,
    reason = "fork, closing others' descriptors and leaving without destructors have no safe form"
)]

use std::fs;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};

use pydeno_sandbox::{Refusal, Report, Request};
use rustix::process::Pid;

/// Closes what the host left open by oversight: a descriptor that is inherited here would stay open for as long as any
/// worker lives, and its other end would wait for an end of file. Where the kernel does not let it, a worker's own layer
/// finds the same, and says so.
pub(crate) fn close_inherited() {
    const FIRST_OTHER: u32 = 3;
    // SAFETY: called first thing; this process has opened nothing yet beyond the three standard descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, FIRST_OTHER, u32::MAX, 0) };
}

/// Which side of the fork this is.
pub(crate) enum Side {
    Child,
    Parent { child: Pid },
}

/// Forks this process.
///
/// # Errors
///
/// The process has more than one thread (a lock that another thread holds would stay locked in the child for ever),
/// or the kernel refuses.
pub(crate) fn fork() -> io::Result<Side> {
    let threads = fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other(format!("the zygote has {threads} threads and may only fork with one")));
    }
    // SAFETY: the process has just been counted to have one thread, so no other thread can hold a lock or start one,
    // and the child may do all that the parent could.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        child => {
            Ok(Side::Parent { child: Pid::from_raw(child).expect("fork returns a positive number here") })
        }
    }
}

/// Makes this process hear of its children's ends, which a host that ignores `SIGCHLD` would have passed on not to.
pub(crate) fn hear_of_children() {
    // SAFETY: names no handler, only the default meaning, in a process that has installed none and has one thread.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Confines this process, which keeps nothing but what the request names.
pub(crate) fn confine(request: &Request<'_>) -> Result<Report, Refusal> {
    // SAFETY: called by a worker or a probe before it has opened anything: the descriptors that it or the engine uses
    // afterwards are in `keep`.
    unsafe { pydeno_sandbox::apply(request) }
}

/// Takes over a descriptor that this process holds for somebody who only remembers its number.
pub(crate) fn take_over(number: i32) -> OwnedFd {
    // SAFETY: the zygote has just found the number open and takes each over once. The engine opened it, uses it by its
    // number and never closes it, and neither does this process while the engine is in use.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Ends the process at once. The engine's destructors would stop threads and free what the kernel takes back anyway, and
/// in a fork they would do it to the zygote's state.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: `_exit` runs no code of this process.
    unsafe { libc::_exit(code) }
}
