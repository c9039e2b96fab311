//! Layer 3: nothing that this process could execute gains privileges, and an unprivileged process may install a filter.

use std::error::Error;
use std::fmt;

use rustix::io::Errno;
use rustix::thread::{no_new_privs, set_no_new_privs};

use crate::{Found, Missing};

/// Why the flag is not in force.
#[derive(Debug)]
pub(crate) enum NoNewPrivsError {
    /// The kernel refused to set it.
    Set(Errno),
    /// The kernel refused to read it back.
    Read(Errno),
    /// It reads as clear after it was set.
    Clear,
}

/// Sets the flag and reads it back.
pub(crate) fn apply() -> Found<NoNewPrivsError> {
    set_no_new_privs(true).map_err(NoNewPrivsError::Set)?;
    if no_new_privs().map_err(NoNewPrivsError::Read)? {
        Ok("the flag is set".to_owned())
    } else {
        Err(NoNewPrivsError::Clear)
    }
}

impl fmt::Display for NoNewPrivsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(error) => write!(f, "PR_SET_NO_NEW_PRIVS failed: {error}"),
            Self::Read(error) => write!(f, "PR_GET_NO_NEW_PRIVS failed: {error}"),
            Self::Clear => f.write_str("the flag reads as clear after it was set"),
        }
    }
}

impl Error for NoNewPrivsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Set(error) | Self::Read(error) => Some(error),
            Self::Clear => None,
        }
    }
}

impl Missing for NoNewPrivsError {
    fn fix(&self) -> String {
        "use Linux 3.5 or newer, and let the container's system-call filter pass prctl".to_owned()
    }
}
