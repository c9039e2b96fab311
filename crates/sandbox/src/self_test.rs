//! Layer 6: tries from inside what a guest would try. Whatever works is named and undone.

#![allow(unsafe_code, reason = "signals a thread of the parent, with the signal that only asks")]

use std::error::Error;
use std::fmt;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, set_dumpable_behavior, set_parent_process_death_signal,
    test_kill_process,
};
use rustix::thread::set_thread_res_uid;

use crate::{Found, Missing, Request, sys};

/// What worked.
#[derive(Debug)]
pub(crate) struct Breach {
    worked: Vec<&'static str>,
    tried: usize,
}

/// Something a guest must not be able to do. `Ok` means that it could.
struct Attempt {
    name: &'static str,
    run: fn(&Request<'_>) -> Result<(), Errno>,
}

/// Each leaves nothing behind when it works. Calls that the filter kills for are not among them: they cannot be tried
/// and survived; a throwaway child proves those.
const ATTEMPTS: &[Attempt] = &[
    Attempt { name: "list the root directory", run: |_| open("/", OFlags::RDONLY | OFlags::DIRECTORY) },
    Attempt { name: "read a file", run: |_| open("/etc/passwd", OFlags::RDONLY) },
    Attempt { name: "read its own environment", run: |_| open("/proc/self/environ", OFlags::RDONLY) },
    Attempt { name: "write its own memory", run: |_| open("/proc/self/mem", OFlags::RDWR) },
    Attempt {
        name: "write a file",
        run: |_| ["/", "/tmp", "/dev/shm"].into_iter().try_fold(Errno::NOENT, write_in).map_or(Ok(()), Err),
    },
    Attempt {
        name: "make a file in memory",
        run: |_| rustix::fs::memfd_create("attempt", MemfdFlags::CLOEXEC).map(drop),
    },
    Attempt { name: "make an IPv4 socket", run: |_| socket(AddressFamily::INET) },
    Attempt { name: "make an IPv6 socket", run: |_| socket(AddressFamily::INET6) },
    Attempt { name: "make a Unix socket", run: |_| socket(AddressFamily::UNIX) },
    Attempt { name: "make a netlink socket", run: |_| socket(AddressFamily::NETLINK) },
    Attempt { name: "signal its parent", run: |request| test_kill_process(parent(request)?) },
    Attempt { name: "signal a thread of its parent", run: signal_parent_thread },
    Attempt { name: "start a process", run: |_| sys::try_task(0) },
    Attempt { name: "start a process in a new user namespace", run: |_| sys::try_task(libc::CLONE_NEWUSER) },
    Attempt {
        name: "map executable memory",
        run: |_| sys::try_mapping(libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE, None),
    },
    Attempt {
        name: "make memory executable",
        run: |_| {
            let executable = libc::PROT_READ | libc::PROT_EXEC;
            sys::try_mapping(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE, Some(executable))
        },
    },
    Attempt {
        name: "share memory",
        run: |_| sys::try_mapping(libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, None),
    },
    Attempt { name: "raise a limit", run: |_| raise_limit() },
    Attempt { name: "become root", run: |_| become_root() },
    Attempt { name: "become dumpable", run: |_| become_dumpable() },
    Attempt { name: "outlive its parent", run: |_| outlive_parent() },
];

/// Runs every attempt.
pub(crate) fn apply(request: &Request<'_>) -> Found<Breach> {
    let worked: Vec<&str> = ATTEMPTS
        .iter()
        .filter(|attempt| (attempt.run)(request).is_ok())
        .map(|attempt| attempt.name)
        .collect();
    if worked.is_empty() {
        Ok(format!("{} attempts, none worked", ATTEMPTS.len()))
    } else {
        Err(Breach { worked, tried: ATTEMPTS.len() })
    }
}

fn open(path: &str, flags: OFlags) -> Result<(), Errno> {
    rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()).map(drop)
}

/// An unnamed file in `directory`; `None` once one could be made.
fn write_in(_: Errno, directory: &str) -> Option<Errno> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, directory, flags, Mode::RUSR).err()
}

fn socket(family: AddressFamily) -> Result<(), Errno> {
    let kind = if family == AddressFamily::NETLINK { SocketType::RAW } else { SocketType::STREAM };
    rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).map(drop)
}

fn parent(request: &Request<'_>) -> Result<Pid, Errno> {
    Pid::from_raw(request.parent).ok_or(Errno::SRCH)
}

fn signal_parent_thread(request: &Request<'_>) -> Result<(), Errno> {
    let parent = parent(request)?.as_raw_pid() as usize;
    // SAFETY: signal 0 asks whether the thread could be signalled and does nothing to it.
    unsafe { sys::call(libc::SYS_tgkill, [parent, parent, 0, 0, 0]) }.map(drop)
}

fn raise_limit() -> Result<(), Errno> {
    let before = rustix::process::getrlimit(Resource::Core);
    let above = before.maximum.map(|hard| hard.saturating_add(1)).ok_or(Errno::PERM)?;
    rustix::process::setrlimit(Resource::Core, Rlimit { current: before.current, maximum: Some(above) })?;
    rustix::process::setrlimit(Resource::Core, before)
}

fn become_root() -> Result<(), Errno> {
    let root = rustix::process::Uid::ROOT;
    set_thread_res_uid(root, root, root)
}

fn become_dumpable() -> Result<(), Errno> {
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

fn outlive_parent() -> Result<(), Errno> {
    set_parent_process_death_signal(None)?;
    set_parent_process_death_signal(Some(Signal::KILL))
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} attempts worked: {}", self.worked.len(), self.tried, self.worked.join(", "))
    }
}

impl Error for Breach {}

impl Missing for Breach {
    fn fix(&self) -> String {
        "put the missing layers in force; if none is missing, treat this kernel as unfit".to_owned()
    }
}
