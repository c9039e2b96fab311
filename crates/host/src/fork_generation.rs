//! Knowing that this process is a fork of the one that made something.
//!
//! A worker belongs to the process that started it: a forked copy of the host holds the same sockets and must neither
//! write to them nor kill the worker when its copies are dropped.

#![allow(unsafe_code, reason = "registering a handler for fork is a C call")]

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static REGISTERED: Once = Once::new();

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// How many forks lie between the process that first asked and this one, along this line of descent. Unlike the process's
/// number it is known without asking the kernel.
///
/// # Panics
///
/// Where the C library has no memory to note a handler.
pub fn current() -> u32 {
    REGISTERED.call_once(|| {
        // SAFETY: `in_child` is a function of this module with the C ABI. It lives as long as the code does, and in a
        // new child it only adds to an atomic, which is allowed there.
        let code = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        assert_eq!(code, 0, "pthread_atfork has no memory for one handler");
    });
    GENERATION.load(Ordering::Relaxed)
}
