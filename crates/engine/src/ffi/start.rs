//! What has to be said to the engine before it starts.

use std::ffi::{CString, c_int, c_uint};

use super::table::Table;
use crate::tier::EngineOption;

/// Keeps the engine's allocator from starting a thread that gives memory back to the system.
pub(crate) fn disable_scavenger(table: &'static Table) {
    if let Some(disable) = table.fast_disable_scavenger {
        // SAFETY: the table; a C++ function without arguments or result, which the C convention covers.
        unsafe { disable() };
    }
}

/// Sets an option; tells whether this build knows it and can be told.
pub(crate) fn set_option(table: &'static Table, option: EngineOption) -> bool {
    let accepted = match option {
        EngineOption::Switch(name, value) => {
            CString::new(name).ok().zip(table.set_boolean_option).map(|(name, set)| {
                // SAFETY: the table; the name is a C string for the call; the engine has not started, so nothing reads
                // its options.
                unsafe { set(name.as_ptr(), c_int::from(value)) }
            })
        }
        EngineOption::Count(name, value) => {
            CString::new(name).ok().zip(table.set_unsigned_option).map(|(name, set)| {
                // SAFETY: the table; as above.
                unsafe { set(name.as_ptr(), value as c_uint) }
            })
        }
    };
    accepted.is_some_and(|accepted| accepted != 0)
}

/// Sets variables of the environment.
///
/// # Errors
///
/// With the number of threads when there is more than one, or 0 when it cannot be told: another thread could be reading
/// the environment.
pub(crate) fn set_environment(variables: &[(&str, &str)]) -> Result<(), usize> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads != 1 {
        return Err(threads);
    }
    for (name, value) in variables {
        // SAFETY: this is the process's only thread, so nobody reads the environment meanwhile.
        unsafe { std::env::set_var(name, value) };
    }
    Ok(())
}
