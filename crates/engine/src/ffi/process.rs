//! What the engine does to a process, kept in bounds: signal handlers and alternate stacks; and the system's
//! randomness.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use super::table::Table;

/// The handlers of a host for the signals that the engine takes over while it starts.
pub(crate) struct KeptSignals([(c_int, Option<libc::sigaction>); 3]);

impl KeptSignals {
    /// Notes the present handlers, and gives the engine a real-time signal that nobody uses for stopping its threads
    /// instead of `SIGUSR1`, where it can be told.
    pub(crate) fn note(table: &'static Table) -> Self {
        if let Some(configure) = table.configure_signal_for_gc {
            let unused = (libc::SIGRTMIN() + 1..=libc::SIGRTMAX()).rev().find(|&signal| {
                handler_of(signal).is_some_and(|action| action.sa_sigaction == libc::SIG_DFL)
            });
            if let Some(signal) = unused {
                // SAFETY: the table; takes a number; the engine has not started, so no thread relies on the old one.
                unsafe { configure(signal) };
            }
        }
        Self([libc::SIGUSR1, libc::SIGSEGV, libc::SIGBUS].map(|signal| (signal, handler_of(signal))))
    }

    /// Puts back every handler that was the host's own; where it had none the engine's stays.
    pub(crate) fn restore(self) {
        for (signal, action) in self.0 {
            let Some(action) = action.filter(|action| action.sa_sigaction != libc::SIG_DFL) else { continue };
            // SAFETY: `action` was read from the kernel for this signal in this process; the old one is not wanted.
            unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
        }
    }
}

fn handler_of(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a NULL action changes nothing; the present one is written to a variable of this frame.
    let read = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeroed, and written by the kernel when `read` is 0; either way a valid `sigaction`.
    (read == 0).then(|| unsafe { action.assume_init() })
}

/// Takes this thread off its alternate signal stack.
///
/// The collector stops a thread with a signal and waits for it to say so from its ordinary stack; on an alternate
/// one it waits for ever. Rust gives every thread that it starts an alternate stack, for a clearer message when the
/// ordinary one overflows; that message is given up on threads that run an engine.
pub(crate) fn retire_alternate_stack() {
    let disabled = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: reads a variable of this frame; the thread is not on the alternate stack, this is no signal handler.
    // Its owner frees the memory when the thread ends, as before.
    unsafe { libc::sigaltstack(&raw const disabled, ptr::null_mut()) };
}

/// Fills a buffer from the operating system's generator.
pub(crate) fn fill_random(buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let rest = &mut buffer[filled..];
        // SAFETY: pointer and length are those of `rest`, which nothing else uses.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        if let Ok(bytes) = usize::try_from(got) {
            filled += bytes;
            continue;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}
