//! Layer 2: root becomes nobody, and every capability is gone for good.

use std::error::Error;
use std::fmt;

use rustix::io::Errno;
use rustix::process::{Gid, Uid, getgroups};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    set_capabilities, set_capabilities_secure_bits, set_keep_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::{Found, Missing, sys};

/// The user and group that by convention own nothing.
pub(crate) const NOBODY: u32 = 65534;

/// No capability through root's identity, none kept over a change of ids, none ambient; all of it locked.
const SECURE_BITS: CapabilitiesSecureBits = CapabilitiesSecureBits::NO_ROOT
    .union(CapabilitiesSecureBits::NO_ROOT_LOCKED)
    .union(CapabilitiesSecureBits::NO_SETUID_FIXUP)
    .union(CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED)
    .union(CapabilitiesSecureBits::KEEP_CAPS_LOCKED)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE)
    .union(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED);

/// Why the process still has privileges.
#[derive(Debug)]
pub(crate) enum PrivilegesError {
    /// Supplementary groups could not be dropped.
    Groups(Errno),
    /// The group could not be changed.
    Group(Errno),
    /// The user could not be changed.
    User(Errno),
    /// The capabilities could not be kept over the change, or raised again after it.
    Keep(Errno),
    /// The ids are not nobody's afterwards.
    StillRoot,
    /// A capability could not be taken out of the bounding set.
    Bounding { capability: i32, error: Errno },
    /// The secure bits could not be locked.
    SecureBits(Errno),
    /// The ambient set could not be cleared.
    Ambient(Errno),
    /// The capability sets could not be emptied, or read.
    Capabilities(Errno),
    /// Capabilities are left after they were dropped.
    StillCapable,
    /// The bounding set is not empty after it was emptied.
    StillBounding { capability: i32 },
}

/// What became of root's identity.
#[derive(Debug)]
pub(crate) enum Identity {
    /// The process was not root, but this user.
    User(u32),
    /// The process was root and is nobody; the capabilities are kept until [`apply`].
    LeftRoot,
    /// The process is still root.
    StillRoot(PrivilegesError),
}

/// Turns root into nobody, keeping the capabilities for the layers that need them.
pub(crate) fn leave_root() -> Identity {
    match sys::users() {
        Ok(users) if !users.contains(&0) => Identity::User(users[1]),
        Ok(_) => become_nobody().map_or_else(Identity::StillRoot, |()| Identity::LeftRoot),
        Err(error) => Identity::StillRoot(PrivilegesError::User(error)),
    }
}

fn become_nobody() -> Result<(), PrivilegesError> {
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_keep_capabilities(true).map_err(PrivilegesError::Keep)?;
    set_thread_groups(&[]).map_err(PrivilegesError::Groups)?;
    set_thread_res_gid(group, group, group).map_err(PrivilegesError::Group)?;
    set_thread_res_uid(user, user, user).map_err(PrivilegesError::User)?;
    let kept = capabilities(None).map_err(PrivilegesError::Keep)?;
    set_capabilities(None, CapabilitySets { effective: kept.permitted, ..kept })
        .map_err(PrivilegesError::Keep)?;
    let is_nobody = sys::users() == Ok([NOBODY; 3]) && sys::groups() == Ok([NOBODY; 3]);
    let is_alone = getgroups().is_ok_and(|groups| groups.is_empty());
    if is_nobody && is_alone { Ok(()) } else { Err(PrivilegesError::StillRoot) }
}

/// Empties every capability set, whatever became of root's identity and of the rest, and then judges all of it.
pub(crate) fn apply(identity: Identity) -> Found<PrivilegesError> {
    let bounding = give_up_regaining();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(PrivilegesError::Capabilities)?;
    if capabilities(None).map_err(PrivilegesError::Capabilities)? != none {
        return Err(PrivilegesError::StillCapable);
    }
    let bounding = bounding?;
    let who = match identity {
        Identity::User(user) => format!("user {user}, not root"),
        Identity::LeftRoot => format!("root became nobody ({NOBODY})"),
        Identity::StillRoot(error) => return Err(error),
    };
    Ok(format!("{who}; all capability sets empty; {bounding}"))
}

/// Closes the ways to capabilities that are not held: the bounding set, root's identity, the ambient set.
fn give_up_regaining() -> Result<&'static str, PrivilegesError> {
    match clear_ambient_capability_set() {
        // A kernel without ambient capabilities has none to clear.
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(PrivilegesError::Ambient(error)),
    }
    let held = capabilities(None).map_err(PrivilegesError::Capabilities)?.effective;
    if !held.contains(CapabilitySet::SETPCAP) {
        return Ok("bounding set left, for want of CAP_SETPCAP, and without effect under no_new_privs");
    }
    set_capabilities_secure_bits(SECURE_BITS).map_err(PrivilegesError::SecureBits)?;
    empty_bounding_set()?;
    Ok("bounding set emptied and secure bits locked")
}

fn empty_bounding_set() -> Result<(), PrivilegesError> {
    for capability in 0.. {
        match sys::is_in_bounding_set(capability) {
            Ok(true) => {
                sys::drop_from_bounding_set(capability)
                    .map_err(|error| PrivilegesError::Bounding { capability, error })?;
                if sys::is_in_bounding_set(capability) != Ok(false) {
                    return Err(PrivilegesError::StillBounding { capability });
                }
            }
            Ok(false) => {}
            // Beyond the last capability that this kernel knows.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(PrivilegesError::Bounding { capability, error }),
        }
    }
    Ok(())
}

impl fmt::Display for PrivilegesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Groups(error) => write!(f, "root's supplementary groups could not be dropped: {error}"),
            Self::Group(error) => write!(f, "root's group could not be changed: {error}"),
            Self::User(error) => write!(f, "root's user could not be changed: {error}"),
            Self::Keep(error) => write!(f, "root's identity could not be changed safely: {error}"),
            Self::StillRoot => f.write_str("the process still has root's ids or groups"),
            Self::Bounding { capability, error } => {
                write!(f, "capability {capability} could not be taken out of the bounding set: {error}")
            }
            Self::SecureBits(error) => write!(f, "the secure bits could not be locked: {error}"),
            Self::Ambient(error) => write!(f, "the ambient capabilities could not be cleared: {error}"),
            Self::Capabilities(error) => write!(f, "the capabilities could not be dropped: {error}"),
            Self::StillCapable => f.write_str("capabilities are left after they were dropped"),
            Self::StillBounding { capability } => {
                write!(f, "capability {capability} is still in the bounding set after it was dropped")
            }
        }
    }
}

impl Error for PrivilegesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Groups(error)
            | Self::Group(error)
            | Self::User(error)
            | Self::Keep(error)
            | Self::Bounding { error, .. }
            | Self::SecureBits(error)
            | Self::Ambient(error)
            | Self::Capabilities(error) => Some(error),
            Self::StillRoot | Self::StillCapable | Self::StillBounding { .. } => None,
        }
    }
}

impl Missing for PrivilegesError {
    fn fix(&self) -> String {
        match self {
            Self::Groups(_) | Self::Group(_) | Self::User(_) | Self::Keep(_) | Self::StillRoot => {
                "run the host as an ordinary user, or leave CAP_SETUID and CAP_SETGID to its container \
                 (docker run --cap-add=SETUID --cap-add=SETGID)"
            }
            _ => "let the container's system-call filter pass prctl and capset",
        }
        .to_owned()
    }
}
