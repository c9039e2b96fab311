//! Other processes: none may be seen, signalled, traced, read or made, and this one may not become more than it is.

use std::ffi::CStr;
use std::ptr;

use super::{Attempt, Outcome, Targets, attempt, attempt_that_hosts_forbid, call, check, last_error};

pub(super) const ATTEMPTS: &[Attempt] = &[
    attempt("ask whether the host may be signalled", |targets| {
        // SAFETY: signal 0 does nothing to the process.
        check(unsafe { libc::kill(targets.host, 0) }.into()).map(drop)
    }),
    attempt("signal a thread of the host", |targets| {
        let host = targets.host as usize;
        // SAFETY: as above.
        unsafe { call(libc::SYS_tgkill, [host, host, 0, 0, 0, 0]) }.map(drop)
    }),
    attempt("learn who its parent is", |_| {
        // SAFETY: reads a number.
        unsafe { call(libc::SYS_getppid, [0; 6]) }.map(drop)
    }),
    attempt("see where the host may run", |targets| {
        let mut cores = [0_u64; 128];
        let (host, size) = (targets.host as usize, size_of_val(&cores));
        // SAFETY: the kernel writes at most `size` bytes of `cores`.
        unsafe { call(libc::SYS_sched_getaffinity, [host, size, cores.as_mut_ptr() as usize, 0, 0, 0]) }
            .map(drop)
    }),
    attempt("read the host's processor time", |targets| {
        // How the C library makes the number of another process's clock.
        let clock = (!targets.host << 3) | 2;
        // SAFETY: all zeroes is a valid `timespec`.
        let mut time: libc::timespec = unsafe { std::mem::zeroed() };
        // The raw call: the C library's own goes through the kernel's page first.
        // SAFETY: the kernel writes `time`.
        unsafe { call(libc::SYS_clock_gettime, [clock as usize, (&raw mut time) as usize, 0, 0, 0, 0]) }
            .map(drop)
    }),
    attempt("see the host's priority", |targets| {
        // SAFETY: reads a number.
        unsafe {
            call(libc::SYS_getpriority, [libc::PRIO_PROCESS as usize, targets.host as usize, 0, 0, 0, 0])
        }
        .map(drop)
    }),
    attempt("open a handle to the host", |targets| {
        // SAFETY: makes a descriptor of this process.
        unsafe { call(libc::SYS_pidfd_open, [targets.host as usize, 0, 0, 0, 0, 0]) }.map(drop)
    }),
    attempt_that_hosts_forbid("trace the host", |targets| {
        const PTRACE_SEIZE: usize = 0x4206;
        // SAFETY: attaches without stopping; the kernel detaches when this process ends.
        unsafe { call(libc::SYS_ptrace, [PTRACE_SEIZE, targets.host as usize, 0, 0, 0, 0]) }.map(drop)
    }),
    attempt_that_hosts_forbid("read the host's memory", read_host_memory),
    attempt("fork", |_| {
        // SAFETY: this process has one thread, and the child ends at once.
        match unsafe { libc::fork() } {
            -1 => Err(last_error()),
            0 => end_at_once(),
            _ => Ok(()),
        }
    }),
    attempt("fork with the old call", |_| {
        // SAFETY: as above.
        let child = unsafe { call(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0]) }?;
        if child == 0 { end_at_once() } else { Ok(()) }
    }),
    attempt("execute a program", |_| execute(c"/bin/sh")),
    attempt("execute a program made in memory", execute_from_memory),
    attempt_that_hosts_forbid("become another user", |_| {
        const ANYBODY: usize = 54_322;
        // SAFETY: changes who this process is, which is there for it.
        unsafe { call(libc::SYS_setresuid, [ANYBODY, ANYBODY, ANYBODY, 0, 0, 0]) }.map(drop)
    }),
    attempt("become dumpable", |_| {
        // SAFETY: numbers only.
        unsafe { call(libc::SYS_prctl, [libc::PR_SET_DUMPABLE as usize, 1, 0, 0, 0, 0]) }.map(drop)
    }),
    attempt("outlive its parent", |_| {
        // SAFETY: numbers only.
        unsafe { call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, 0, 0, 0, 0, 0]) }.map(drop)
    }),
    attempt("leave its session", |_| {
        // SAFETY: makes this process the leader of a new session.
        unsafe { call(libc::SYS_setsid, [0; 6]) }.map(drop)
    }),
    attempt("raise its own limits", |_| {
        let limit = libc::rlimit { rlim_cur: 200, rlim_max: 200 };
        // SAFETY: `limit` outlives the call, which reads it.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }.into()).map(drop)
    }),
    attempt("change the host's limits", |targets| {
        let limit = ptr::null::<libc::rlimit>();
        let mut current = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: no new limit; the kernel writes `current`.
        check(unsafe { libc::prlimit(targets.host, libc::RLIMIT_NOFILE, limit, &raw mut current) }.into())
            .map(drop)
    }),
    attempt("start more tasks than a worker may have", thread_bomb),
];

fn end_at_once() -> ! {
    // SAFETY: runs no code of this process.
    unsafe { libc::_exit(0) }
}

/// Bytes that lie at the same address in the host, whose fork this process is.
static SECRET: [u8; 6] = *b"secret";

fn read_host_memory(targets: &Targets) -> Outcome {
    let mut copy = [0_u8; 6];
    let local = libc::iovec { iov_base: copy.as_mut_ptr().cast(), iov_len: copy.len() };
    let remote = libc::iovec { iov_base: SECRET.as_ptr().cast_mut().cast(), iov_len: copy.len() };
    // SAFETY: the kernel writes as many bytes of `copy` as it has, and only reads from the other process.
    let read = unsafe { libc::process_vm_readv(targets.host, &raw const local, 1, &raw const remote, 1, 0) };
    check(read as i64)?;
    if copy == SECRET { Ok(()) } else { Err(libc::EIO) }
}

/// The program ends with the code that says that the attempt has worked.
fn execute(program: &CStr) -> Outcome {
    let arguments = [program.as_ptr(), c"-c".as_ptr(), c"exit 200".as_ptr(), ptr::null()];
    let environment = [ptr::null()];
    // SAFETY: both lists end with a null pointer and outlive the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    Err(last_error())
}

fn execute_from_memory(_: &Targets) -> Outcome {
    // SAFETY: makes a descriptor of this process.
    let file = check(unsafe { libc::memfd_create(c"program".as_ptr(), 0) }.into())? as i32;
    let program = b"#!/bin/sh\nexit 200\n";
    // SAFETY: writes bytes of a static.
    check(unsafe { libc::write(file, program.as_ptr().cast(), program.len()) } as i64)?;
    let arguments = [c"program".as_ptr(), ptr::null()];
    let environment = [ptr::null()];
    // SAFETY: both lists end with a null pointer and outlive the call.
    unsafe { libc::fexecve(file, arguments.as_ptr(), environment.as_ptr()) };
    Err(last_error())
}

/// Threads until there are more than a worker may have. The bound of the bomb itself is set first.
fn thread_bomb(_: &Targets) -> Outcome {
    const ALLOWED: usize = 64;
    extern "C" fn wait(_: *mut libc::c_void) -> *mut libc::c_void {
        loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
    }
    for _ in 0..=ALLOWED {
        let mut thread = 0;
        // SAFETY: `wait` touches nothing, and the threads end with this process.
        let error = unsafe { libc::pthread_create(&raw mut thread, ptr::null(), wait, ptr::null_mut()) };
        if error != 0 {
            return Err(error);
        }
    }
    Ok(())
}
