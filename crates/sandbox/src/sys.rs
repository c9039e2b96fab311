//! The raw system calls that no safe wrapper exists for. Each function states in full what it may do to the process.

#![allow(unsafe_code, reason = "system calls without a safe wrapper in libc or rustix")]

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;

/// The calling thread's last error.
fn last_error() -> Errno {
    Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Turns a C result, negative on error, into a [`Result`].
fn check(result: c_long) -> Result<c_long, Errno> {
    if result < 0 { Err(last_error()) } else { Ok(result) }
}

/// A call whose arguments are numbers only.
///
/// # Safety
///
/// The kernel must not take any of `arguments` for an address that it writes to, nor do anything with this `number`
/// and these arguments that the rest of the program relies on not happening.
pub(crate) unsafe fn call(number: c_long, arguments: [usize; 5]) -> Result<usize, Errno> {
    let [first, second, third, fourth, fifth] = arguments;
    // SAFETY: numbers by value; the caller vouches for their meaning.
    let result = unsafe { libc::syscall(number, first, second, third, fourth, fifth) };
    check(result).map(|value| value as usize)
}

/// Whether this process leads its session. The leader of a session that began outside this process's PID namespace has the
/// number 0 here, which the safe wrapper takes for impossible.
pub(crate) fn leads_session() -> bool {
    // SAFETY: asks about the calling process and touches no memory.
    let session = unsafe { libc::getsid(0) };
    session == rustix::process::getpid().as_raw_pid()
}

/// Closes the descriptors `first..=last`.
///
/// # Safety
///
/// Nothing may use a descriptor in that range, or rely on its number, afterwards.
pub(crate) unsafe fn close_range(first: c_uint, last: c_uint) -> Result<(), Errno> {
    // SAFETY: three numbers; the caller gives up the descriptors.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    check(result).map(drop)
}

/// Which of the descriptors `0..count` are open. `count` must not exceed the limit on open files.
pub(crate) fn open_descriptors(count: c_int) -> Result<Vec<c_int>, Errno> {
    let mut asked: Vec<libc::pollfd> =
        (0..count).map(|fd| libc::pollfd { fd, events: 0, revents: 0 }).collect();
    // SAFETY: `asked` holds exactly `count` entries and outlives the call, which does not wait.
    let result = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, 0) };
    check(result.into())?;
    Ok(asked.iter().filter(|entry| entry.revents & libc::POLLNVAL == 0).map(|entry| entry.fd).collect())
}

/// Fails with `EINVAL` if this process has more than one thread, or shares its memory with another process.
pub(crate) fn unshare_threads() -> Result<(), Errno> {
    let flags = libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM;
    // SAFETY: for a process with one thread the kernel defines this as doing nothing; for another it fails.
    check(unsafe { libc::unshare(flags) }.into()).map(drop)
}

/// Reads the execution domain, or replaces it.
pub(crate) fn personality(new: Option<c_int>) -> Result<c_int, Errno> {
    const READ_ONLY: libc::c_ulong = 0xffff_ffff;
    let wanted = new.map_or(READ_ONLY, |value| value as libc::c_ulong);
    // SAFETY: one number; changes how later mappings are made, which the caller asks for.
    check(unsafe { libc::personality(wanted) }.into()).map(|value| value as c_int)
}

/// The kernel's `struct sigaction` on 64-bit machines. The C library's own refuses the two signals that it uses itself.
#[repr(C)]
#[derive(Default)]
struct SignalAction {
    handler: usize,
    flags: libc::c_ulong,
    restorer: usize,
    mask: u64,
}

/// Whether the signal is ignored.
pub(crate) fn is_ignored(signal: c_int) -> Result<bool, Errno> {
    let none = ptr::null::<SignalAction>();
    let mut current = SignalAction::default();
    // SAFETY: no new action; the kernel writes `current`, whose layout and mask size are its own.
    let result = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, none, &raw mut current, size_of_val(&current.mask))
    };
    check(result).map(|_| current.handler == libc::SIG_IGN)
}

/// Ignores a signal, or gives it its default meaning.
pub(crate) fn set_ignored(signal: c_int, ignored: bool) -> Result<(), Errno> {
    let handler = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    let action = SignalAction { handler, ..SignalAction::default() };
    let none = ptr::null_mut::<SignalAction>();
    // SAFETY: `action` lives on this stack and names no function; the old action is not asked for.
    let result = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, &raw const action, none, size_of_val(&action.mask))
    };
    check(result).map(drop)
}

/// Unblocks every signal.
pub(crate) fn unblock_signals() -> Result<(), Errno> {
    // SAFETY: all zeroes is the empty `sigset_t` on Linux.
    let none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `none` lives on this stack; the old mask is not asked for.
    check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) }.into()).map(drop)
}

/// The real, effective and saved user.
pub(crate) fn users() -> Result<[u32; 3], Errno> {
    let [mut real, mut effective, mut saved] = [0; 3];
    // SAFETY: three numbers on this stack, which the kernel writes.
    check(unsafe { libc::getresuid(&raw mut real, &raw mut effective, &raw mut saved) }.into())?;
    Ok([real, effective, saved])
}

/// The real, effective and saved group.
pub(crate) fn groups() -> Result<[u32; 3], Errno> {
    let [mut real, mut effective, mut saved] = [0; 3];
    // SAFETY: three numbers on this stack, which the kernel writes.
    check(unsafe { libc::getresgid(&raw mut real, &raw mut effective, &raw mut saved) }.into())?;
    Ok([real, effective, saved])
}

/// Whether `capability` is in the bounding set; `EINVAL` beyond the kernel's last one.
pub(crate) fn is_in_bounding_set(capability: c_int) -> Result<bool, Errno> {
    // SAFETY: reads one flag; numbers only.
    check(unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) }.into()).map(|value| value == 1)
}

/// Takes `capability` out of the bounding set.
pub(crate) fn drop_from_bounding_set(capability: c_int) -> Result<(), Errno> {
    // SAFETY: gives up a privilege; numbers only.
    check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }.into()).map(drop)
}

/// The kernel's `landlock_ruleset_attr`, as of ABI 6.
#[repr(C)]
pub(crate) struct LandlockRuleset {
    pub(crate) handled_access_fs: u64,
    pub(crate) handled_access_net: u64,
    pub(crate) scoped: u64,
}

/// The version of the kernel's Landlock interface.
pub(crate) fn landlock_abi() -> Result<u32, Errno> {
    const VERSION: c_uint = 1;
    // SAFETY: with no attributes and this flag the call answers a number and makes nothing.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<c_void>(), 0_usize, VERSION) };
    check(result).map(|version| version as u32)
}

/// Makes a ruleset from the first `size` bytes of `rules`.
pub(crate) fn landlock_ruleset(rules: &LandlockRuleset, size: usize) -> Result<OwnedFd, Errno> {
    assert!(size <= size_of::<LandlockRuleset>(), "a ruleset has no more bytes than its type");
    // SAFETY: the kernel reads `size` bytes of `rules`, which is at least as large and borrowed for the call.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::from_ref(rules), size, 0_u32) };
    let descriptor = check(result)? as c_int;
    // SAFETY: the kernel made the descriptor for this call, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Restricts this thread and what it starts to the ruleset.
pub(crate) fn landlock_restrict(ruleset: &OwnedFd, flags: u32) -> Result<(), Errno> {
    let ruleset = ruleset.as_raw_fd();
    // SAFETY: two numbers; takes rights away from this thread, which the caller asks for.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, flags) }).map(drop)
}

/// Installs a filter on every thread of this process; the id of a thread that could not take it, if any.
pub(crate) fn install_filter(program: &[libc::sock_filter]) -> Result<Option<c_long>, Errno> {
    let header = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?,
        filter: program.as_ptr().cast_mut(),
    };
    let operation = c_long::from(libc::SECCOMP_SET_MODE_FILTER);
    // SAFETY: `header` and the `len` instructions it points to live until the call returns; the kernel copies them and
    // does not write to them.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, operation, libc::SECCOMP_FILTER_FLAG_TSYNC, &raw const header)
    };
    check(result).map(|thread| (thread != 0).then_some(thread))
}

/// Tries to make a task with these `clone` flags that ends at once: `Ok` if the kernel made one. It shares this
/// process's memory and this thread waits for its end, so it is cheap and leaves nothing behind.
pub(crate) fn try_task(flags: c_int) -> Result<(), Errno> {
    const STACK: usize = 16 * 1024;
    extern "C" fn end_at_once(_: *mut c_void) -> c_int {
        // SAFETY: ends the task without running any destructor or handler of the process it shares memory with.
        unsafe { libc::_exit(0) }
    }
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let top = stack.as_mut_ptr_range().end;
    let flags = flags | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: `top` ends a 16-byte aligned stack that is large enough for a function that only makes one call, and that
    // lives until the task has ended, because `CLONE_VFORK` suspends this thread until then.
    let task = check(unsafe { libc::clone(end_at_once, top.cast(), flags, ptr::null_mut()) }.into())?;
    // SAFETY: waits for the task made above; its status is not asked for.
    check(unsafe { libc::waitpid(task as c_int, ptr::null_mut(), libc::__WALL) }.into()).map(drop)
}

/// Copies this process; the child's id in the parent, zero in the child.
///
/// # Safety
///
/// If the process has other threads, the child may only make async-signal-safe calls.
pub(crate) unsafe fn fork() -> Result<c_int, Errno> {
    // SAFETY: the caller keeps to what `fork` allows in the child.
    check(unsafe { libc::fork() }.into()).map(|child| child as c_int)
}

/// Ends this process without running destructors or exit handlers.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Tries to map a fresh page with this protection and sharing, and to change it to `then`. Nothing stays mapped.
pub(crate) fn try_mapping(protection: c_int, sharing: c_int, then: Option<c_int>) -> Result<(), Errno> {
    const PAGE: usize = 4096;
    let flags = sharing | libc::MAP_ANONYMOUS;
    // SAFETY: an anonymous mapping at an address of the kernel's choice replaces nothing.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(last_error());
    }
    let changed = match then {
        // SAFETY: the page was mapped above and nothing points into it.
        Some(protection) => check(unsafe { libc::mprotect(page, PAGE, protection) }.into()).map(drop),
        None => Ok(()),
    };
    // SAFETY: as above.
    check(unsafe { libc::munmap(page, PAGE) }.into())?;
    changed
}
