//! Makes a template of a process, and has it fork as it does for workers.

#![allow(unsafe_code, reason = "forks, and ends as its fork did")]

use std::os::unix::process::parent_id;

use libc::c_int;
use pydeno_sandbox::{Limits, Mode, Report, Request};

use crate::attempts::Targets;
use crate::confined::stdio;

/// Becomes a template, forks a sibling that waits, and goes on in another fork: the host of the attempts is then the sibling,
/// and the template ends as the fork does. Without `own_layers` the forks have what the template has and nothing else.
pub(crate) fn become_fork(targets: &mut Targets, mode: Mode, own_layers: bool) -> bool {
    let keep = stdio();
    let request = |parent: u32| Request {
        mode,
        empty_root: true,
        parent: parent.cast_signed(),
        keep: &keep,
        limits: Limits::default(),
    };
    let template = Request { limits: Limits::TEMPLATE, ..request(parent_id()) };
    // SAFETY: this process uses no other descriptors.
    let Ok(report) = (unsafe { pydeno_sandbox::apply_as_template(&template) }) else { return false };
    let own = std::process::id();
    let confine = |report: &Report| {
        // SAFETY: as above.
        !own_layers || unsafe { pydeno_sandbox::apply_in_fork(&request(own), report) }.is_ok()
    };
    // SAFETY: a template has one thread.
    let sibling = unsafe { libc::fork() };
    if sibling == 0 {
        // It holds the part's output open, so it must not outlive the template, also without layers of its own.
        // SAFETY: numbers only.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
        if parent_id() == own && confine(&report) {
            std::thread::sleep(std::time::Duration::from_secs(20));
        }
        end(0);
    }
    // SAFETY: as above.
    match unsafe { libc::fork() } {
        0 => {
            targets.host = sibling;
            sibling > 0 && confine(&report)
        }
        fork => end_as(fork),
    }
}

fn end(code: c_int) -> ! {
    // SAFETY: ends the fork without the part's destructors.
    unsafe { libc::_exit(code) }
}

/// Ends this process as the fork does, by the filter where the filter killed that. The sibling ends with it.
fn end_as(fork: c_int) -> ! {
    // SAFETY: all zeroes is a valid `siginfo_t`.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: makes a descriptor of this process.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, fork, 0) };
    // SAFETY: the kernel writes `info`.
    if unsafe { libc::waitid(libc::P_PIDFD, pidfd as libc::id_t, &raw mut info, libc::WEXITED) } != 0 {
        end(crate::NOT_CONFINED);
    }
    // SAFETY: filled in for the end of a child.
    let status = unsafe { info.si_status() };
    if info.si_code == libc::CLD_EXITED {
        end(status);
    }
    if status == libc::SIGSYS {
        // SAFETY: without a path the call fails even if it were allowed.
        unsafe { libc::syscall(libc::SYS_execve, 0, 0, 0) };
    }
    end(crate::NOT_CONFINED)
}
