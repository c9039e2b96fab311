//! How much of a thread's stack is left.

use std::cell::Cell;
use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;

/// Where the stack of the present thread ends.
///
/// The engine watches the stack for the guest's sake, but leaves little for a host function that a guest calls at the
/// very end of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackRoom {
    lowest: usize,
}

thread_local! {
    /// Asked once a thread: for a process's first thread the answer is in a file that a confined fork cannot open.
    static LOWEST: Cell<Option<usize>> = const { Cell::new(None) };
}

impl StackRoom {
    /// What is left for a call between guest and host, the host function included.
    const FOR_A_CALL: usize = 512 << 10;

    /// What is left for one more level of a value that is read by recursion, and for dropping what was read.
    const FOR_A_LEVEL: usize = 128 << 10;

    /// Where the end is not known it is taken to be this far away.
    const ASSUMED: usize = 1 << 20;

    /// The stack of this thread. Call it first where the thread's stack can be asked for.
    pub(crate) fn of_this_thread() -> Self {
        let lowest = LOWEST.get().unwrap_or_else(|| {
            let lowest = lowest_address().unwrap_or_else(|| here().saturating_sub(Self::ASSUMED));
            LOWEST.set(Some(lowest));
            lowest
        });
        Self { lowest }
    }

    /// Whether there is enough for one more call between guest and host.
    pub(crate) fn is_enough_for_a_call(self) -> bool {
        here().saturating_sub(self.lowest) >= Self::FOR_A_CALL
    }

    /// Whether there is enough for going one level deeper into a value.
    pub(crate) fn is_enough_for_a_level(self) -> bool {
        here().saturating_sub(self.lowest) >= Self::FOR_A_LEVEL
    }
}

fn here() -> usize {
    let mark = 0_u8;
    ptr::from_ref(black_box(&mark)).addr()
}

#[cfg(target_os = "linux")]
fn lowest_address() -> Option<usize> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: takes no pointer; names the calling thread.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: `this` is the calling thread, which is alive; the attributes are written to a variable of this frame.
    if unsafe { libc::pthread_getattr_np(this, attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut lowest: *mut c_void = ptr::null_mut();
    let mut size = 0;
    // SAFETY: the attributes were initialised by the call before; both results go to variables of this frame.
    let read = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut size) };
    // SAFETY: undoes the initialisation, once.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (read == 0 && !lowest.is_null()).then(|| lowest.addr())
}

#[cfg(target_os = "macos")]
fn lowest_address() -> Option<usize> {
    // SAFETY: takes no pointer; names the calling thread.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: the calling thread is alive.
    let highest = unsafe { libc::pthread_get_stackaddr_np(this) };
    // SAFETY: as above.
    let size = unsafe { libc::pthread_get_stacksize_np(this) };
    highest.addr().checked_sub(size)
}
