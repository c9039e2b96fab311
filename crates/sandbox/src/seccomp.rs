//! Layer 5: the system-call filter, installed and then asked.

#![allow(unsafe_code, reason = "the filter is asked with raw calls that it must refuse")]

use std::error::Error;
use std::fmt;

use rustix::io::Errno;
use rustix::process::getpid;
use rustix::thread::{SecureComputingMode, secure_computing_mode};

use crate::filter::{Architecture, Role, compile_for};
use crate::{Found, Missing, sys};

/// Why the filter is not in force.
#[derive(Debug)]
pub(crate) enum SeccompError {
    /// The kernel did not take the filter.
    Install(Errno),
    /// Another thread did not take it.
    Thread(i64),
    /// The kernel would not say whether it filters.
    Mode(Errno),
    /// The kernel says that it does not filter.
    NotFiltering,
    /// A call that the table refuses was answered otherwise.
    Answer { call: &'static str, wanted: Errno, found: Result<usize, Errno> },
}

/// Installs the filter of this role on every thread and asks it two questions. A filter that is there already stays, and what
/// either refuses is refused.
pub(crate) fn apply(role: Role) -> Found<SeccompError> {
    let program = compile_for(role, Architecture::NATIVE, getpid().as_raw_pid().cast_unsigned());
    match sys::install_filter(&program).map_err(SeccompError::Install)? {
        None => {}
        Some(thread) => return Err(SeccompError::Thread(thread)),
    }
    match secure_computing_mode().map_err(SeccompError::Mode)? {
        SecureComputingMode::Filter => {}
        _ => return Err(SeccompError::NotFiltering),
    }
    let (call, number) = match role {
        // A template's filter allows it: the answer is this filter's own.
        Role::Worker => ("getppid", libc::SYS_getppid),
        Role::Template => ("times", libc::SYS_times),
    };
    // SAFETY: reads a number, if it were allowed; without an address nothing is written.
    let refused = unsafe { sys::call(number, [0; 5]) };
    expect(call, Errno::PERM, refused)?;
    // SAFETY: without arguments the call fails even if it were allowed.
    let absent = unsafe { sys::call(libc::SYS_clone3, [0; 5]) };
    expect("clone3", Errno::NOSYS, absent)?;
    Ok(format!(
        "{} instructions on every thread; a refused call answered EPERM, an absent one ENOSYS",
        program.len()
    ))
}

fn expect(call: &'static str, wanted: Errno, found: Result<usize, Errno>) -> Result<(), SeccompError> {
    if found == Err(wanted) { Ok(()) } else { Err(SeccompError::Answer { call, wanted, found }) }
}

impl fmt::Display for SeccompError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install(error) => write!(f, "the kernel did not take the filter: {error}"),
            Self::Thread(thread) => write!(f, "thread {thread} did not take the filter"),
            Self::Mode(error) => write!(f, "the kernel does not say whether it filters: {error}"),
            Self::NotFiltering => f.write_str("the kernel took the filter and does not filter"),
            Self::Answer { call, wanted, found: Ok(value) } => {
                write!(f, "{call} worked ({value}) where the filter answers: {wanted}")
            }
            Self::Answer { call, wanted, found: Err(error) } => {
                write!(f, "{call} failed ({error}) where the filter answers: {wanted}")
            }
        }
    }
}

impl Error for SeccompError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Install(error) | Self::Mode(error) | Self::Answer { found: Err(error), .. } => Some(error),
            Self::Thread(_) | Self::NotFiltering | Self::Answer { .. } => None,
        }
    }
}

impl Missing for SeccompError {
    fn fix(&self) -> String {
        match self {
            Self::Install(_) | Self::Mode(_) => {
                "use Linux 4.14 or newer with CONFIG_SECCOMP_FILTER, and let the container's system-call filter pass \
                 seccomp"
            }
            Self::Thread(_) => "confine the process before it starts threads",
            Self::NotFiltering | Self::Answer { .. } => {
                "run on a Linux kernel itself rather than on a layer that imitates one, and outside other system-call \
                 filters that answer in its place"
            }
        }
        .to_owned()
    }
}
