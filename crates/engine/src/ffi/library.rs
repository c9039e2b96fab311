//! A shared library of the system, opened for good.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// A library that stays loaded until the process ends: the engine has threads, thread-local values and signal
/// handlers, none of which survives an unloading.
pub(crate) struct Library(NonNull<c_void>);

impl Library {
    /// Opens the library of this name or path.
    ///
    /// # Errors
    ///
    /// With the dynamic linker's own words.
    pub(crate) fn open(name: &CStr) -> Result<Self, String> {
        // SAFETY: `name` is a C string for the length of the call. The library's initialisers run; this crate opens
        // only what is named as the system's engine, or what the user named.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(Self).ok_or_else(last_error)
    }

    /// The address of a symbol.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle came from `dlopen` and is never closed; `name` is a C string for the call.
        NonNull::new(unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) })
    }
}

fn last_error() -> String {
    // SAFETY: takes nothing; the text it returns belongs to this thread until its next call of the linker.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the dynamic linker gave no reason".to_owned();
    }
    // SAFETY: a non-null result is a C string of the linker, valid until this thread's next call of it.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
