//! The kernel's large or rarely used interfaces, where its own holes have been.

use std::ptr;

use super::{Attempt, Outcome, Targets, attempt, attempt_that_hosts_forbid, call, check};

pub(super) const ATTEMPTS: &[Attempt] = &[
    attempt_that_hosts_forbid("make a user namespace", |_| {
        // SAFETY: changes what names mean to this process, which is there for it.
        check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into()).map(drop)
    }),
    attempt_that_hosts_forbid("mount a file system in namespaces of its own", mount),
    attempt_that_hosts_forbid("set up an io_uring", |_| {
        let mut parameters = [0_u64; 15];
        // SAFETY: the kernel reads and writes the parameters, whose size is its own.
        unsafe { call(libc::SYS_io_uring_setup, [1, parameters.as_mut_ptr() as usize, 0, 0, 0, 0]) }.map(drop)
    }),
    attempt_that_hosts_forbid("handle page faults itself", |_| {
        const USER_MODE_ONLY: usize = 1;
        // SAFETY: makes a descriptor of this process.
        unsafe { call(libc::SYS_userfaultfd, [USER_MODE_ONLY, 0, 0, 0, 0, 0]) }.map(drop)
    }),
    attempt_that_hosts_forbid("make a BPF map", |_| {
        // type, key size, value size, entries: an array of one number.
        let attributes: [u32; 4] = [2, 4, 4, 1];
        let size = size_of_val(&attributes);
        // SAFETY: the kernel reads `size` bytes of the attributes.
        unsafe { call(libc::SYS_bpf, [0, attributes.as_ptr() as usize, size, 0, 0, 0]) }.map(drop)
    }),
    attempt_that_hosts_forbid("add a key to a keyring", |_| {
        const PROCESS_KEYRING: i32 = -2;
        let (kind, name) = (c"user".as_ptr() as usize, c"pydeno-attempt".as_ptr() as usize);
        let payload = b"x".as_ptr() as usize;
        // SAFETY: the kernel reads two names and one byte; the keyring ends with this process.
        unsafe { call(libc::SYS_add_key, [kind, name, payload, 1, PROCESS_KEYRING as usize, 0]) }.map(drop)
    }),
    attempt_that_hosts_forbid("count events of the processor", |_| {
        // A software event of this process: type 1, size, and the clock as configuration.
        let mut attributes = [0_u32; 32];
        attributes[..3].copy_from_slice(&[1, 128, 0]);
        let (event, any, none) = (attributes.as_ptr() as usize, usize::MAX, usize::MAX);
        // SAFETY: the kernel reads the 128 bytes that the attributes say they have.
        unsafe { call(libc::SYS_perf_event_open, [event, 0, any, none, 0, 0]) }.map(drop)
    }),
    attempt("install another filter", |_| {
        const ALLOW: u32 = 0x7fff_0000;
        let mut program = libc::sock_filter { code: 6, jt: 0, jf: 0, k: ALLOW };
        let header = libc::sock_fprog { len: 1, filter: &raw mut program };
        // SAFETY: numbers only; what is executed gains no privileges.
        check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
        // SAFETY: `header` and the instruction it points to live until the call returns.
        unsafe { call(libc::SYS_seccomp, [1, 0, (&raw const header) as usize, 0, 0, 0]) }.map(drop)
    }),
    attempt("change its execution domain", |_| {
        // SAFETY: asks for what is in force, or sets it to that of Linux.
        check(unsafe { libc::personality(0) }.into()).map(drop)
    }),
    attempt("read the kernel's clock discipline", |_| {
        // SAFETY: all zeroes asks for nothing to be changed.
        let mut state: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes `state`.
        check(unsafe { libc::adjtimex(&raw mut state) }.into()).map(drop)
    }),
    attempt("learn the machine's name", |_| {
        // SAFETY: all zeroes is a valid `utsname`.
        let mut name: libc::utsname = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes `name`.
        check(unsafe { libc::uname(&raw mut name) }.into()).map(drop)
    }),
    attempt("make a timer", |_| {
        let mut timer = ptr::null_mut::<libc::c_void>();
        // SAFETY: the kernel writes the timer's number; the timer is never armed.
        unsafe { call(libc::SYS_timer_create, [0, 0, (&raw mut timer) as usize, 0, 0, 0]) }.map(drop)
    }),
    attempt("watch a directory", |_| {
        // SAFETY: makes a descriptor of this process.
        check(unsafe { libc::inotify_init1(0) }.into()).map(drop)
    }),
];

fn mount(_: &Targets) -> Outcome {
    // SAFETY: changes what names mean to this process, which is there for it.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) }.into())?;
    let (kind, target) = (c"tmpfs".as_ptr(), c"/tmp".as_ptr());
    // SAFETY: both are statics; the mount is in the namespace made above and ends with it.
    check(unsafe { libc::mount(kind, target, kind, 0, ptr::null()) }.into()).map(drop)
}
