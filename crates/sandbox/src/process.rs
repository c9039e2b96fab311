//! Layer 0: what the process is to its parent, to its descriptors and to the kernel's limits.

use std::error::Error;
use std::fmt;
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Resource, Rlimit, Signal, getppid, setsid, umask};

use crate::{Found, Missing, Mode, Request, sys};

/// Above zero, the kernel prefers this process when memory runs out; the value is of the order that browsers give their
/// renderers, so that a process that really holds the memory still comes first.
const OOM_SCORE: &str = "300";

/// Descriptor numbers below this are checked to be closed.
const CHECKED_DESCRIPTORS: u64 = 1024;

/// Why the process is not fit to be confined.
#[derive(Debug)]
pub(crate) enum ProcessError {
    /// There is more than one thread, or the memory is shared.
    Threads,
    /// No session of its own.
    Session(Errno),
    /// The kernel will not end this process with its parent.
    ParentDeath(Errno),
    /// The parent has gone, or is another process than the caller said.
    ParentGone { expected: i32, found: Option<i32> },
    /// Closing failed.
    Close(Errno),
    /// What is open could not be checked.
    CheckDescriptors(Errno),
    /// A descriptor that is not kept is open, or one that is kept is not.
    Descriptor { number: i32, open: bool },
    /// A signal could not be unblocked or given its default meaning.
    Signals(Errno),
    /// The execution domain could not be read or changed.
    Personality(Errno),
    /// Readable mappings are still executable.
    ReadImpliesExec,
    /// A limit could not be lowered.
    Limit { name: &'static str, error: Errno },
    /// A limit reads otherwise than it was set.
    LimitNotHeld { name: &'static str },
    /// The process could not be made undumpable.
    Dumpable(Errno),
    /// The process is still dumpable.
    StillDumpable,
}

/// Applies the layer. In [`Mode::Off`] the process stays dumpable, for a debugger.
///
/// # Safety
///
/// Nothing may use a descriptor outside [`Request::keep`] afterwards.
#[allow(unsafe_code, reason = "descriptors are closed whoever owns them")]
pub(crate) unsafe fn apply(request: &Request<'_>) -> Found<ProcessError> {
    if !has_one_thread() {
        return Err(ProcessError::Threads);
    }
    match setsid() {
        // A leader already, as one whose starter has made it.
        Err(Errno::PERM) if sys::leads_session() => {}
        other => drop(other.map_err(ProcessError::Session)?),
    }
    die_with_parent(request.parent)?;
    // SAFETY: passed on to the caller.
    unsafe { close_others(request) }?;
    reset_signals()?;
    umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    clear_read_implies_exec()?;
    // The score is a courtesy to the host: without /proc, or without leave to write there, the worker is as safe.
    let preferred = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE).is_ok();
    limit_resources(request)?;
    let mut detail = format!(
        "own session, ends with its parent, {} descriptors open, no core dumps, no files written, {} descriptors at \
         most",
        request.keep.len(),
        request.limits.open_files
    );
    if preferred {
        detail.push_str(", first to go when memory runs out");
    }
    if request.mode == Mode::Off {
        detail.push_str("; left dumpable for a debugger");
    } else {
        forbid_dumps()?;
        detail.push_str(", not dumpable");
    }
    Ok(detail)
}

/// Applies the layer to a fork of a template. The rest of the layer came with the fork: limits, signals that are ignored, the
/// execution domain, the file mode mask and the mark that forbids dumps, which is looked at again.
///
/// # Safety
///
/// Nothing may use a descriptor outside [`Request::keep`] afterwards.
#[allow(unsafe_code, reason = "descriptors are closed whoever owns them")]
pub(crate) unsafe fn apply_in_fork(request: &Request<'_>) -> Found<ProcessError> {
    setsid().map_err(ProcessError::Session)?;
    die_with_parent(request.parent)?;
    // SAFETY: passed on to the caller.
    unsafe { close_others(request) }?;
    limit("nofile", Resource::Nofile, request.limits.open_files)?;
    let mut detail = format!(
        "own session, ends with its template, {} descriptors open, {} descriptors at most, and what its template had",
        request.keep.len(),
        request.limits.open_files
    );
    if request.mode != Mode::Off {
        check_undumpable()?;
        detail.push_str(", not dumpable");
    }
    Ok(detail)
}

/// Whether this process has one thread. Asked without /proc, unless a container's filter keeps the question from the
/// kernel.
pub(crate) fn has_one_thread() -> bool {
    match sys::unshare_threads() {
        Ok(()) => true,
        Err(Errno::INVAL) => false,
        Err(_) => std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1),
    }
}

/// Applies again what the kernel undoes when credentials change, and looks once more for the parent.
pub(crate) fn hold(request: &Request<'_>) -> Result<(), ProcessError> {
    forbid_dumps()?;
    die_with_parent(request.parent)
}

/// Lets other processes of the same user, and this one's own files in /proc, look into it; or no longer.
pub(crate) fn set_dumpable(dumpable: bool) -> Result<(), ProcessError> {
    let behavior = if dumpable { DumpableBehavior::Dumpable } else { DumpableBehavior::NotDumpable };
    rustix::process::set_dumpable_behavior(behavior).map_err(ProcessError::Dumpable)
}

fn forbid_dumps() -> Result<(), ProcessError> {
    set_dumpable(false)?;
    check_undumpable()
}

fn check_undumpable() -> Result<(), ProcessError> {
    match rustix::process::dumpable_behavior() {
        Ok(DumpableBehavior::NotDumpable) => Ok(()),
        Ok(_) => Err(ProcessError::StillDumpable),
        Err(error) => Err(ProcessError::Dumpable(error)),
    }
}

/// Asks for the signal first and looks for the parent afterwards: one that died in between is then noticed.
fn die_with_parent(expected: i32) -> Result<(), ProcessError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(ProcessError::ParentDeath)?;
    if rustix::process::parent_process_death_signal().map_err(ProcessError::ParentDeath)?
        != Some(Signal::KILL)
    {
        return Err(ProcessError::ParentDeath(Errno::NOTSUP));
    }
    let found = getppid().map(Pid::as_raw_pid);
    if found == Some(expected) { Ok(()) } else { Err(ProcessError::ParentGone { expected, found }) }
}

/// # Safety
///
/// Nothing may use a descriptor outside [`Request::keep`] afterwards.
#[allow(unsafe_code, reason = "descriptors are closed whoever owns them")]
unsafe fn close_others(request: &Request<'_>) -> Result<(), ProcessError> {
    let mut kept: Vec<u32> = request.keep.iter().map(|fd| fd.as_raw_fd() as u32).collect();
    kept.sort_unstable();
    kept.dedup();
    let mut next = 0;
    for &fd in &kept {
        if next < fd {
            // SAFETY: the range lies between kept descriptors; the caller gives up all others.
            unsafe { sys::close_range(next, fd - 1) }.map_err(ProcessError::Close)?;
        }
        next = fd + 1;
    }
    // SAFETY: above the last kept descriptor; the caller gives up all others.
    unsafe { sys::close_range(next, u32::MAX) }.map_err(ProcessError::Close)?;

    let limit = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(CHECKED_DESCRIPTORS);
    let checked = limit.min(CHECKED_DESCRIPTORS) as i32;
    let open = sys::open_descriptors(checked).map_err(ProcessError::CheckDescriptors)?;
    let wrong = (0..checked).find(|fd| open.contains(fd) != kept.contains(&(*fd as u32)));
    wrong.map_or(Ok(()), |number| Err(ProcessError::Descriptor { number, open: open.contains(&number) }))
}

/// Nothing blocked, and nothing ignored but a broken pipe and a file that would grow, which a write reports by itself.
/// Handlers stay: they are the engine's, because `execve` has removed all others.
fn reset_signals() -> Result<(), ProcessError> {
    for signal in 1..=libc::SIGRTMAX() {
        let wanted = [libc::SIGPIPE, libc::SIGXFSZ].contains(&signal);
        if sys::is_ignored(signal).map_err(ProcessError::Signals)? != wanted {
            sys::set_ignored(signal, wanted).map_err(ProcessError::Signals)?;
        }
    }
    sys::unblock_signals().map_err(ProcessError::Signals)
}

fn clear_read_implies_exec() -> Result<(), ProcessError> {
    let current = sys::personality(None).map_err(ProcessError::Personality)?;
    if current & libc::READ_IMPLIES_EXEC == 0 {
        return Ok(());
    }
    sys::personality(Some(current & !libc::READ_IMPLIES_EXEC)).map_err(ProcessError::Personality)?;
    match sys::personality(None).map_err(ProcessError::Personality)? & libc::READ_IMPLIES_EXEC {
        0 => Ok(()),
        _ => Err(ProcessError::ReadImpliesExec),
    }
}

fn limit_resources(request: &Request<'_>) -> Result<(), ProcessError> {
    let limits = [
        ("core", Resource::Core, 0),
        ("fsize", Resource::Fsize, 0),
        ("nofile", Resource::Nofile, request.limits.open_files),
        ("memlock", Resource::Memlock, 0),
        ("msgqueue", Resource::Msgqueue, 0),
        ("rtprio", Resource::Rtprio, 0),
        ("nice", Resource::Nice, 0),
    ];
    limits.into_iter().try_for_each(|(name, resource, value)| limit(name, resource, value))
}

/// Sets soft and hard limit to `value`, or leaves a hard limit that is lower already, and reads both back.
pub(crate) fn limit(name: &'static str, resource: Resource, value: u64) -> Result<(), ProcessError> {
    let value = rustix::process::getrlimit(resource).maximum.map_or(value, |hard| hard.min(value));
    let wanted = Rlimit { current: Some(value), maximum: Some(value) };
    rustix::process::setrlimit(resource, wanted).map_err(|error| ProcessError::Limit { name, error })?;
    if rustix::process::getrlimit(resource) == wanted {
        Ok(())
    } else {
        Err(ProcessError::LimitNotHeld { name })
    }
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads => f.write_str("the process has more than one thread"),
            Self::Session(error) => write!(f, "setsid failed: {error}"),
            Self::ParentDeath(error) => write!(f, "PR_SET_PDEATHSIG failed: {error}"),
            Self::ParentGone { expected, found: Some(found) } => {
                write!(f, "the parent is process {found}, not {expected}: it has ended")
            }
            Self::ParentGone { expected, found: None } => {
                write!(f, "the parent is outside this process's namespace, not {expected}")
            }
            Self::Close(error) => write!(f, "close_range failed: {error}"),
            Self::CheckDescriptors(error) => write!(f, "the open descriptors could not be checked: {error}"),
            Self::Descriptor { number, open: true } => write!(f, "descriptor {number} is still open"),
            Self::Descriptor { number, open: false } => write!(f, "descriptor {number} was to stay open"),
            Self::Signals(error) => write!(f, "the signals could not be reset: {error}"),
            Self::Personality(error) => write!(f, "personality failed: {error}"),
            Self::ReadImpliesExec => f.write_str("READ_IMPLIES_EXEC could not be cleared"),
            Self::Limit { name, error } => write!(f, "the limit {name} could not be set: {error}"),
            Self::LimitNotHeld { name } => write!(f, "the limit {name} reads otherwise than it was set"),
            Self::Dumpable(error) => write!(f, "PR_SET_DUMPABLE failed: {error}"),
            Self::StillDumpable => f.write_str("the process is still dumpable"),
        }
    }
}

impl Error for ProcessError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Session(error)
            | Self::ParentDeath(error)
            | Self::Close(error)
            | Self::CheckDescriptors(error)
            | Self::Signals(error)
            | Self::Personality(error)
            | Self::Limit { error, .. }
            | Self::Dumpable(error) => Some(error),
            Self::Threads
            | Self::ParentGone { .. }
            | Self::Descriptor { .. }
            | Self::ReadImpliesExec
            | Self::LimitNotHeld { .. }
            | Self::StillDumpable => None,
        }
    }
}

impl Missing for ProcessError {
    fn fix(&self) -> String {
        match self {
            Self::Threads => "confine the process before it starts threads",
            Self::ParentGone { .. } => "start the worker again: its parent ended meanwhile",
            Self::Close(_) => {
                "use Linux 5.9 or newer, and let the container's system-call filter pass close_range"
            }
            Self::Descriptor { .. } | Self::CheckDescriptors(_) => "keep only descriptors that are open",
            _ => "let the container's system-call filter pass setsid, prctl, personality and prlimit64",
        }
        .to_owned()
    }
}
