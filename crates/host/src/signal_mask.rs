//! Starting threads that never receive the host's signals.

#![allow(unsafe_code, reason = "a thread's signal mask is set by a C call")]

use std::mem::MaybeUninit;

/// Runs `action` with every signal blocked on the calling thread. A thread started by it inherits the blocked mask.
///
/// Python runs its signal handlers when a system call of the main thread is interrupted, so a thread of ours must
/// not be the one that the kernel hands the signal to.
pub(crate) fn with_all_blocked<T>(action: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is a local that the call only writes to.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` was filled by the line above; `before` is a local that the call only writes to. Both outlive it,
    // and only the calling thread's mask changes.
    let blocked = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    assert_eq!(blocked, 0, "pthread_sigmask fails only for an unknown operation");
    let result = action();
    // SAFETY: `before` was filled by the successful call above; nothing is written back.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result
}
