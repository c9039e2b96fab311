//! The proof that the filter kills, by a throwaway child that does what no engine ever does.

#![allow(unsafe_code, reason = "forks, and makes the call that must kill")]

use std::error::Error;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, waitpid};

use crate::process::has_one_thread;
use crate::{Layer, Limits, Missing, Mode, Request, layer, sys};

/// How the child says that it is confined and makes the call next.
const CONFINED: u8 = b'c';
/// The child's exit code when it was refused.
const REFUSED: i32 = 3;
/// The child's exit code when the call did not kill it.
const SURVIVED: i32 = 4;

/// Why nothing is proved.
#[derive(Debug)]
enum ProbeError {
    /// This process has threads, so a child could not run what it is to prove.
    Threads,
    /// No pipe to the child.
    Pipe(Errno),
    /// No child.
    Fork(Errno),
    /// The child could not be awaited.
    Wait(Errno),
    /// The child took longer than this and was killed.
    Overran(Duration),
    /// The child ended before it was confined.
    Unconfined(WaitStatus),
    /// The child made the call and lived.
    NotKilled,
    /// The child made the call and ended otherwise than by the filter.
    OtherEnd(WaitStatus),
}

/// Forks a child that applies every layer it can but the empty root, and then calls `execve`: it must die of `SIGSYS`. For a process with
/// one thread. A child that has not ended after `patience` is killed; it is gone when this returns.
pub fn kill_is_enforced(patience: Duration) -> Layer {
    match prove(patience) {
        Ok(()) => Layer {
            name: layer::SECCOMP,
            applied: true,
            detail: "a confined child that called execve was killed".to_owned(),
            fix: String::new(),
        },
        Err(error) => {
            Layer { name: layer::SECCOMP, applied: false, detail: error.to_string(), fix: error.fix() }
        }
    }
}

fn prove(patience: Duration) -> Result<(), ProbeError> {
    if !has_one_thread() {
        return Err(ProbeError::Threads);
    }
    let (from_child, to_parent) = pipe_with(PipeFlags::CLOEXEC).map_err(ProbeError::Pipe)?;
    let parent = getpid().as_raw_pid();
    // SAFETY: this process has one thread.
    match unsafe { sys::fork() }.map_err(ProbeError::Fork)? {
        0 => be_killed(parent, &to_parent),
        child => {
            drop(to_parent);
            let child = Pid::from_raw(child).ok_or(ProbeError::Fork(Errno::CHILD))?;
            judge(child, &from_child, patience)
        }
    }
}

/// The child's part.
fn be_killed(parent: i32, to_parent: &OwnedFd) -> ! {
    let request = Request {
        mode: Mode::Auto,
        // Namespaces change nothing about the filter and are what takes longest to make.
        empty_root: false,
        parent,
        keep: &[to_parent.as_fd()],
        limits: Limits::default(),
    };
    // SAFETY: the child uses no descriptor but the pipe's, and ends without running anybody's destructors.
    if unsafe { crate::apply(&request) }.is_err() {
        sys::exit_now(REFUSED);
    }
    if rustix::io::write(to_parent, &[CONFINED]) != Ok(1) {
        sys::exit_now(REFUSED);
    }
    // SAFETY: without a path the call fails even if it were allowed.
    let _ = unsafe { sys::call(libc::SYS_execve, [0; 5]) };
    sys::exit_now(SURVIVED)
}

/// The parent's part: what the child said, and how it ended.
fn judge(child: Pid, from_child: &OwnedFd, patience: Duration) -> Result<(), ProbeError> {
    let ended = wait_for_end(from_child, patience);
    if ended != Ok(true) {
        // A child that has ended meanwhile is awaited below all the same.
        let _ = kill_process(child, Signal::KILL);
    }
    let status = loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => break status,
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(ProbeError::Wait(error)),
        }
    };
    match ended {
        Ok(true) => {}
        Ok(false) => return Err(ProbeError::Overran(patience)),
        Err(error) => return Err(ProbeError::Wait(error)),
    }
    let mut said = [0];
    let confined = rustix::io::read(from_child, &mut said) == Ok(1) && said == [CONFINED];
    match (confined, status.terminating_signal(), status.exit_status()) {
        (false, ..) => Err(ProbeError::Unconfined(status)),
        (true, Some(libc::SIGSYS), _) => Ok(()),
        (true, _, Some(SURVIVED)) => Err(ProbeError::NotKilled),
        (true, ..) => Err(ProbeError::OtherEnd(status)),
    }
}

/// Whether the child's end of the pipe was closed, which its death does, in time.
fn wait_for_end(from_child: &OwnedFd, patience: Duration) -> Result<bool, Errno> {
    let patience = Timespec::try_from(patience).map_err(|_| Errno::INVAL)?;
    loop {
        // Nothing is asked for, so only the hang-up is reported, not the byte.
        let mut end = [PollFd::new(from_child, PollFlags::empty())];
        match poll(&mut end, Some(&patience)) {
            Ok(reported) => return Ok(reported > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads => f.write_str("the process has more than one thread"),
            Self::Pipe(error) => write!(f, "no pipe could be made: {error}"),
            Self::Fork(error) => write!(f, "no child could be made: {error}"),
            Self::Wait(error) => write!(f, "the child could not be awaited: {error}"),
            Self::Overran(patience) => write!(f, "the child overran {patience:?} and was killed"),
            Self::Unconfined(status) => write!(f, "the child ended before it was confined: {status:?}"),
            Self::NotKilled => f.write_str("exec-not-killed: a confined child called execve and lived"),
            Self::OtherEnd(status) => {
                write!(f, "a confined child called execve and was not killed for it: {status:?}")
            }
        }
    }
}

impl Error for ProbeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Pipe(error) | Self::Fork(error) | Self::Wait(error) => Some(error),
            _ => None,
        }
    }
}

impl Missing for ProbeError {
    fn fix(&self) -> String {
        match self {
            Self::Threads => "ask before the process starts threads",
            Self::Pipe(_) | Self::Fork(_) | Self::Wait(_) | Self::Overran(_) => {
                "let the host start another process and open two more descriptors"
            }
            Self::Unconfined(_) | Self::NotKilled | Self::OtherEnd(_) => {
                "use Linux 4.14 or newer with CONFIG_SECCOMP_FILTER, outside other system-call filters"
            }
        }
        .to_owned()
    }
}
