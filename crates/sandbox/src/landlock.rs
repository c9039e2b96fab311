//! Layer 4: no file, no TCP, no outside signals or abstract sockets; and the canary that shows it.

use std::error::Error;
use std::fmt;
use std::mem::offset_of;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::sys::LandlockRuleset;
use crate::{Found, Missing, sys};

/// The newest interface that this module knows what to ask of.
const NEWEST_ABI: u32 = 7;

/// `LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF`: without it every worker's canary would be a line in the audit log.
const QUIET: u32 = 1;

/// What the kernel is to refuse, by the interface that brought each group of rights.
const FILE_RIGHTS: [(u32, u64); 4] = [
    // Execute, write, read, list, remove (2), make (7).
    (1, 0x1fff),
    // Link or rename across directories.
    (2, 1 << 13),
    // Truncate.
    (3, 1 << 14),
    // ioctl on devices.
    (5, 1 << 15),
];
/// Bind and connect TCP sockets.
const NET_RIGHTS: [(u32, u64); 1] = [(4, 0b11)];
/// Abstract Unix sockets and signals outside.
const SCOPES: [(u32, u64); 1] = [(6, 0b11)];

/// Why Landlock is not in force.
#[derive(Debug)]
pub(crate) enum LandlockError {
    /// The kernel does not have it, or not enabled.
    Absent(Errno),
    /// The kernel made no ruleset.
    Create(Errno),
    /// The kernel did not apply the ruleset.
    Restrict(Errno),
    /// The canary could not be opened beforehand, so it would prove nothing.
    NoCanary(Errno),
    /// The canary can still be opened.
    NotEnforced,
    /// The canary fails for a reason that is not Landlock's.
    Doubtful(Errno),
}

/// Restricts the process to nothing and tries the canary.
pub(crate) fn apply() -> Found<LandlockError> {
    let Ruleset { abi, asked, descriptor } = Ruleset::new()?;
    canary().map_err(LandlockError::NoCanary)?;
    sys::landlock_restrict(&descriptor, flags(asked)).map_err(LandlockError::Restrict)?;
    match canary() {
        Ok(_) => Err(LandlockError::NotEnforced),
        Err(Errno::ACCESS) => Ok(describe(abi, asked)),
        Err(error) => Err(LandlockError::Doubtful(error)),
    }
}

/// Restricts a fork of a restricted process once more, to a domain of its own: it then counts its siblings among those
/// outside. There is nothing left whose refusal would be new, so that the canary is still refused is all that can be seen.
pub(crate) fn apply_in_fork() -> Found<LandlockError> {
    let Ruleset { abi, asked, descriptor } = Ruleset::new()?;
    sys::landlock_restrict(&descriptor, flags(asked)).map_err(LandlockError::Restrict)?;
    match canary() {
        Ok(_) => Err(LandlockError::NotEnforced),
        Err(_) => Ok(format!(
            "{}, and so it was in its template, whose domain is around its own",
            describe(abi, asked)
        )),
    }
}

/// What is made to restrict a process with.
struct Ruleset {
    /// The kernel's interface.
    abi: u32,
    /// The interface of what is asked for.
    asked: u32,
    descriptor: OwnedFd,
}

impl Ruleset {
    fn new() -> Result<Self, LandlockError> {
        let abi = sys::landlock_abi().map_err(LandlockError::Absent)?;
        let asked = abi.min(NEWEST_ABI);
        let rights = LandlockRuleset {
            handled_access_fs: rights(&FILE_RIGHTS, asked),
            handled_access_net: rights(&NET_RIGHTS, asked),
            scoped: rights(&SCOPES, asked),
        };
        let descriptor =
            sys::landlock_ruleset(&rights, ruleset_size(asked)).map_err(LandlockError::Create)?;
        Ok(Self { abi, asked, descriptor })
    }
}

fn flags(asked: u32) -> u32 {
    if asked >= 7 { QUIET } else { 0 }
}

/// The root directory exists everywhere, an empty root included.
fn canary() -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, "/", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn rights(table: &[(u32, u64)], abi: u32) -> u64 {
    table.iter().filter(|(since, _)| *since <= abi).fold(0, |all, (_, group)| all | group)
}

/// An older kernel refuses a structure with members it does not know.
fn ruleset_size(abi: u32) -> usize {
    match abi {
        0..=3 => offset_of!(LandlockRuleset, handled_access_net),
        4..=5 => offset_of!(LandlockRuleset, scoped),
        _ => size_of::<LandlockRuleset>(),
    }
}

fn describe(abi: u32, asked: u32) -> String {
    let mut covered = vec!["files"];
    if asked >= 4 {
        covered.push("TCP");
    }
    if asked >= 6 {
        covered.push("abstract sockets");
        covered.push("signals outside");
    }
    format!("ABI {abi}, nothing granted ({}); the canary was refused afterwards", covered.join(", "))
}

impl fmt::Display for LandlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(error) => write!(f, "the kernel has no Landlock: {error}"),
            Self::Create(error) => write!(f, "the kernel made no ruleset: {error}"),
            Self::Restrict(error) => write!(f, "the kernel did not apply the ruleset: {error}"),
            Self::NoCanary(error) => {
                write!(f, "the root directory could not be opened beforehand, so nothing is proved: {error}")
            }
            Self::NotEnforced => f.write_str(
                "the kernel accepted the ruleset and does not enforce it: the canary could be opened",
            ),
            Self::Doubtful(error) => write!(f, "the canary failed, but not as Landlock refuses: {error}"),
        }
    }
}

impl Error for LandlockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Absent(error)
            | Self::Create(error)
            | Self::Restrict(error)
            | Self::NoCanary(error)
            | Self::Doubtful(error) => Some(error),
            Self::NotEnforced => None,
        }
    }
}

impl Missing for LandlockError {
    fn fix(&self) -> String {
        match self {
            Self::Absent(Errno::OPNOTSUPP) => "add landlock to the kernel's lsm= boot parameter",
            Self::Absent(Errno::PERM) | Self::Create(Errno::PERM) | Self::Restrict(Errno::PERM) => {
                "let the container's system-call filter pass landlock_create_ruleset and landlock_restrict_self"
            }
            Self::Absent(_) => {
                "use Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK, and a container whose system-call filter knows \
                 the landlock calls (Docker 23 or newer)"
            }
            Self::Create(_) | Self::Restrict(_) | Self::NotEnforced | Self::Doubtful(_) => {
                "run on a Linux kernel itself rather than on a layer that imitates one"
            }
            Self::NoCanary(_) => "let the worker's user list the root directory",
        }
        .to_owned()
    }
}
