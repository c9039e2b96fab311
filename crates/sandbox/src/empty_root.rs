//! Layer 1: namespaces of its own, an empty read-only root, and the kernel's limit on tasks.

use std::error::Error;
use std::fmt;
use std::io;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags,
};
use rustix::process::{Resource, Rlimit, getegid, geteuid};
use rustix::thread::UnshareFlags;

use crate::privileges::NOBODY;
use crate::process::{self, ProcessError};
use crate::{Found, Missing, Request, sys};

/// Why the process is not in an empty root.
#[derive(Debug)]
pub(crate) enum EmptyRootError {
    /// The kernel made no namespaces.
    Unshare(Errno),
    /// This process's files in /proc could not be opened to itself, or closed again.
    Dumpable(ProcessError),
    /// A file of the new user namespace could not be written.
    Map { file: &'static str, error: io::Error },
    /// Mounts could not be cut off from the host's.
    Private(Errno),
    /// The empty file system could not be made.
    Create(Errno),
    /// The empty file system could not be attached, or entered.
    Attach(Errno),
    /// The roots could not be exchanged.
    Pivot(Errno),
    /// The old root could not be detached.
    Detach(Errno),
    /// The new root could not be looked at.
    Look(Errno),
    /// The new root is writable.
    Writable,
    /// The new root has something in it.
    NotEmpty(String),
}

/// Enters the namespaces, exchanges the roots and looks at what is left.
pub(crate) fn apply(request: &Request<'_>) -> Found<EmptyRootError> {
    enter_namespaces()?;
    exchange_roots()?;
    look_around()?;
    let tasks = cap_tasks(request.limits.tasks);
    Ok(format!(
        "own user, mount, network, IPC, UTS and cgroup namespaces; the root is empty and read-only; {tasks}"
    ))
}

#[allow(unsafe_code, reason = "unshare is unsafe for CLONE_FILES alone")]
fn enter_namespaces() -> Result<(), EmptyRootError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let namespaces = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    // SAFETY: without CLONE_FILES no descriptor table is exchanged; namespaces change what names mean, not memory.
    unsafe { rustix::thread::unshare_unsafe(namespaces) }.map_err(EmptyRootError::Unshare)?;
    // The files below belong to root while the process is not dumpable.
    process::set_dumpable(true).map_err(EmptyRootError::Dumpable)?;
    let mapped = map("/proc/self/setgroups", "deny")
        .and_then(|()| map("/proc/self/uid_map", &format!("{NOBODY} {user} 1")))
        .and_then(|()| map("/proc/self/gid_map", &format!("{NOBODY} {group} 1")));
    process::set_dumpable(false).map_err(EmptyRootError::Dumpable)?;
    mapped
}

fn map(file: &'static str, text: &str) -> Result<(), EmptyRootError> {
    std::fs::write(file, text).map_err(|error| EmptyRootError::Map { file, error })
}

/// The new file system is attached over the old root, which works wherever the host's directories are, and entered
/// through its descriptor; the roots are then exchanged in place and the old one, now on top, is taken away.
fn exchange_roots() -> Result<(), EmptyRootError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(EmptyRootError::Private)?;
    let root = empty_file_system().map_err(EmptyRootError::Create)?;
    rustix::mount::move_mount(&root, "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .and_then(|()| rustix::process::fchdir(&root))
        .map_err(EmptyRootError::Attach)?;
    rustix::process::pivot_root(".", ".").map_err(EmptyRootError::Pivot)?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(EmptyRootError::Detach)?;
    rustix::process::chdir("/").map_err(EmptyRootError::Look)
}

fn empty_file_system() -> Result<rustix::fd::OwnedFd, Errno> {
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_flag(&context, "ro")?;
    rustix::mount::fsconfig_set_string(&context, "mode", "0555")?;
    rustix::mount::fsconfig_set_string(&context, "size", "4096")?;
    rustix::mount::fsconfig_set_string(&context, "nr_inodes", "1")?;
    rustix::mount::fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// The root must be read-only, hold nothing, and be its own parent.
fn look_around() -> Result<(), EmptyRootError> {
    let flags = rustix::fs::statvfs("/").map_err(EmptyRootError::Look)?.f_flag;
    if !flags.contains(StatVfsMountFlags::RDONLY) {
        return Err(EmptyRootError::Writable);
    }
    let directory = rustix::fs::openat(CWD, "/", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
        .map_err(EmptyRootError::Look)?;
    let root = rustix::fs::fstat(&directory).map_err(EmptyRootError::Look)?;
    let above = rustix::fs::statat(&directory, "..", AtFlags::empty()).map_err(EmptyRootError::Look)?;
    if (root.st_dev, root.st_ino) != (above.st_dev, above.st_ino) {
        return Err(EmptyRootError::NotEmpty("..".to_owned()));
    }
    for entry in Dir::read_from(&directory).map_err(EmptyRootError::Look)? {
        let name = entry.map_err(EmptyRootError::Look)?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            return Err(EmptyRootError::NotEmpty(name));
        }
    }
    Ok(())
}

/// Limits the tasks of the new user namespace, if the kernel counts them there (Linux 5.14) and for this user. Tried
/// out first: at a limit of one a second task must be refused, and at two it must not, or the count is of tasks
/// elsewhere.
fn cap_tasks(tasks: u64) -> String {
    let before = rustix::process::getrlimit(Resource::Nproc);
    let second_task_at = |limit: u64| {
        let tried = Rlimit { current: Some(limit), maximum: before.maximum };
        rustix::process::setrlimit(Resource::Nproc, tried)?;
        sys::try_task(0)
    };
    let counted = matches!((second_task_at(1), second_task_at(2)), (Err(Errno::AGAIN), Ok(())));
    let capped = match rustix::process::setrlimit(Resource::Nproc, before) {
        Ok(()) if counted => process::limit("nproc", Resource::Nproc, tasks),
        Ok(()) => return "the kernel does not cap its tasks: it does not count them by namespace".to_owned(),
        Err(error) => Err(ProcessError::Limit { name: "nproc", error }),
    };
    match capped {
        Ok(()) => format!("the kernel caps its tasks at {tasks}, as tried out"),
        Err(error) => format!("the kernel does not cap its tasks: {error}"),
    }
}

impl fmt::Display for EmptyRootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unshare(error) => write!(f, "the kernel made no namespaces: {error}"),
            Self::Dumpable(error) => write!(f, "the namespace could not be set up: {error}"),
            Self::Map { file, error } => write!(f, "{file} could not be written: {error}"),
            Self::Private(error) => write!(f, "the mounts could not be made private: {error}"),
            Self::Create(error) => write!(f, "an empty file system could not be made: {error}"),
            Self::Attach(error) => write!(f, "the empty file system could not be attached: {error}"),
            Self::Pivot(error) => write!(f, "pivot_root failed: {error}"),
            Self::Detach(error) => write!(f, "the old root could not be detached: {error}"),
            Self::Look(error) => write!(f, "the new root could not be looked at: {error}"),
            Self::Writable => f.write_str("the new root is writable"),
            Self::NotEmpty(name) => write!(f, "the new root is not empty: it leads to {name:?}"),
        }
    }
}

impl Error for EmptyRootError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unshare(error)
            | Self::Private(error)
            | Self::Create(error)
            | Self::Attach(error)
            | Self::Pivot(error)
            | Self::Detach(error)
            | Self::Look(error) => Some(error),
            Self::Dumpable(error) => Some(error),
            Self::Map { error, .. } => Some(error),
            Self::Writable | Self::NotEmpty(_) => None,
        }
    }
}

impl Missing for EmptyRootError {
    fn fix(&self) -> String {
        match self {
            Self::Unshare(Errno::NOSPC | Errno::USERS) => {
                "raise the sysctls user.max_user_namespaces, user.max_net_namespaces and user.max_mnt_namespaces"
            }
            Self::Unshare(Errno::INVAL | Errno::NOSYS) => {
                "use a kernel with CONFIG_USER_NS, CONFIG_NET_NS and CONFIG_CGROUPS"
            }
            Self::Unshare(_) => {
                "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1 where it exists), let \
                 the container's system-call filter pass unshare, and do not run the host in a chroot"
            }
            Self::Map { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                "run the host as an ordinary user, or leave CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN to its container"
            }
            Self::Map { .. } => "mount /proc, readable and writable, where the host runs",
            Self::Create(Errno::NOSYS) | Self::Attach(Errno::NOSYS) => "use Linux 5.2 or newer",
            Self::Private(_) | Self::Create(_) | Self::Attach(_) => {
                "let user namespaces mount: on Ubuntu an AppArmor profile with `userns` for pydeno-worker, or sysctl \
                 kernel.apparmor_restrict_unprivileged_userns=0; in a container a system-call filter that passes \
                 fsopen, fsmount, move_mount and pivot_root"
            }
            Self::Pivot(_) | Self::Detach(_) => "run the host on a mounted root, not in a chroot or an initial ramfs",
            Self::Dumpable(_) | Self::Look(_) | Self::Writable | Self::NotEmpty(_) => {
                "report it: the kernel made the namespaces and did not give them an empty root"
            }
        }
        .to_owned()
    }
}
