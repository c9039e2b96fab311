//! Forking, confining and ending this process: what cannot be undone.

#![allow(
    unsafe_code,
    reason = "fork, closing others' descriptors and leaving without destructors have no safe form"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;

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

/// Counts the threads of the process that made it, also where that can open no file any more.
pub(crate) struct ThreadCount {
    stat: File,
}

impl ThreadCount {
    pub(crate) fn new() -> io::Result<Self> {
        File::open("/proc/self/stat").map(|stat| Self { stat })
    }

    /// The descriptor, which is to be kept.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stat.as_fd()
    }

    fn count(&self) -> io::Result<u64> {
        let mut line = [0; 1024];
        let length = self.stat.read_at(&mut line, 0)?;
        // proc(5): the name in parentheses may hold anything; `num_threads` is field 20, and the state is field 3.
        let fields = line[..length]
            .rsplit(|&byte| byte == b')')
            .next()
            .and_then(|rest| std::str::from_utf8(rest).ok());
        fields
            .and_then(|fields| fields.split_ascii_whitespace().nth(17)?.parse().ok())
            .ok_or_else(|| io::Error::other("/proc/self/stat is not in the form proc(5) describes"))
    }

    /// # Errors
    ///
    /// There is more than one thread, or they cannot be counted.
    pub(crate) fn check_that_it_is_one(&self) -> io::Result<()> {
        match self.count()? {
            1 => Ok(()),
            count => {
                Err(io::Error::other(format!("this process has {count} threads and may only fork with one")))
            }
        }
    }
}

/// Forks this process, whose threads these are.
///
/// # Errors
///
/// The process has more than one thread (a lock that another thread holds would stay locked in the child for ever),
/// or the kernel refuses.
pub(crate) fn fork(threads: &ThreadCount) -> io::Result<Side> {
    threads.check_that_it_is_one()?;
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

/// Confines this process, which keeps nothing but what the request names, and may still fork.
pub(crate) fn confine_as_template(request: &Request<'_>) -> Result<Report, Refusal> {
    // SAFETY: called by a zygote whose own descriptors, and those that the engine uses, are in `keep`.
    unsafe { pydeno_sandbox::apply_as_template(request) }
}

/// Confines this fork of a template.
pub(crate) fn confine_in_fork(request: &Request<'_>, template: &Report) -> Result<Report, Refusal> {
    // SAFETY: called by a worker right after the fork: of the template's descriptors it uses those in `keep`.
    unsafe { pydeno_sandbox::apply_in_fork(request, template) }
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
