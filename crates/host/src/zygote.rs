//! The host's end of a zygote: starting it, asking it for workers, and learning how they ended.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use pydeno_wire::message::BUILD;
use pydeno_wire::message::{ExitStatus, SandboxMode, ZygoteReply, ZygoteRequest};
use pydeno_wire::{Budget, Message};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType, recvmsg, sendmsg, shutdown,
    socketpair,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::cgroup::{Delegation, Group};
use crate::error::Error;
use crate::fork_generation;
use crate::monitor::Monitor;
use crate::options::Features;
use crate::process_usage;
use crate::watch::Watch;

/// How long a zygote may take to load the engine, on a machine that is busy and has cold caches.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How long one request may take.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// How long a zygote that is no longer needed may take to end its workers.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// The largest message of the control conversation; a reply is a few words.
const MAX_MESSAGE: usize = 64 << 10;

/// Where the worker's executable is and what it is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerBinary {
    /// The file. Never looked up in `PATH`.
    pub path: PathBuf,
    /// The engine's library, where the user named one with `PYDENO_JSC`.
    pub engine_library: Option<OsString>,
}

/// A running zygote. Dropping it ends it and, through their parent-death signal, every worker it forked.
pub(crate) struct Zygote {
    /// The engine's library, as the zygote found it.
    pub(crate) engine: String,
    /// Where its workers have their groups.
    pub(crate) delegation: Delegation,
    child: Mutex<Child>,
    control: Mutex<Control>,
    born: Instant,
    forked: AtomicU32,
    generation: u32,
    pid: Pid,
    pidfd: OwnedFd,
    /// Set once this is a template: it has run somebody's script, and is watched until it ends.
    template: OnceLock<Arc<Watch>>,
}

/// A worker as it comes from its zygote.
#[derive(Debug)]
pub(crate) struct ForkedWorker {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// The control socket, and the requests on it whose replies nobody has read yet, oldest first.
struct Control {
    socket: OwnedFd,
    unread: VecDeque<u64>,
    /// Replies that were read while looking for another one.
    early: Vec<(u64, ZygoteReply, Option<OwnedFd>)>,
    next_ticket: u64,
}

/// A request whose reply is still to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl fmt::Debug for Zygote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zygote")
            .field("engine", &self.engine)
            .field("forked", &self.forked)
            .finish_non_exhaustive()
    }
}

impl Zygote {
    /// Starts a zygote and waits until it has loaded the engine.
    pub(crate) fn start(binary: &WorkerBinary, features: Features, monitor: &Monitor) -> Result<Self, Error> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|errno| unavailable("a socket for the zygote cannot be made", &errno))?;
        let mut command = Command::new(&binary.path);
        command
            .arg("zygote")
            .arg(features.jit.name())
            .args(features.webassembly.argument())
            .env_clear()
            // Without a locale in the environment the engine formats numbers and dates for none at all.
            .env("LANG", "en_US.UTF-8")
            .env("TZ", "UTC")
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/");
        if let Some(library) = &binary.engine_library {
            command.env("PYDENO_JSC", library);
        }
        let mut child = monitor
            .run(move || command.spawn())
            .ok_or_else(|| unavailable("the monitor thread is gone", &Errno::SRCH))?
            .map_err(|error| {
                let path = binary.path.display();
                let hint = if error.kind() == io::ErrorKind::NotFound {
                    "; the installation is incomplete: install pydeno again"
                } else {
                    "; it must be executable, on a file system mounted without noexec"
                };
                Error::WorkerUnavailable { reason: format!("cannot start {path}: {error}{hint}") }
            })?;
        // Only this process can reap it, so the number is still its own.
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| {
            // It may have ended by itself.
            let _ = child.kill().and_then(|()| child.wait());
            unavailable("a descriptor for the zygote cannot be had", &errno)
        })?;
        let mut zygote = Self {
            engine: String::new(),
            delegation: Delegation::find().tidy(),
            pid,
            pidfd,
            template: OnceLock::new(),
            child: Mutex::new(child),
            control: Mutex::new(Control {
                socket: ours,
                unread: VecDeque::new(),
                early: Vec::new(),
                next_ticket: 0,
            }),
            born: Instant::now(),
            forked: AtomicU32::new(0),
            generation: fork_generation::current(),
        };
        let first = {
            let control = lock(&zygote.control);
            receive(control.socket.as_fd(), START_PATIENCE)
        };
        match first {
            Ok((ZygoteReply::Listening { build, engine }, _)) if build == BUILD => {
                zygote.engine = engine;
                Ok(zygote)
            }
            Ok((ZygoteReply::Listening { build, .. }, _)) => Err(Error::WorkerUnavailable {
                reason: format!(
                    "{} is of build {build} and this is build {BUILD}; install pydeno again",
                    binary.path.display()
                ),
            }),
            Ok((ZygoteReply::EngineUnavailable { reason }, _)) => Err(Error::EngineUnavailable { reason }),
            Ok((other, _)) => Err(unavailable(
                "the zygote did not introduce itself",
                &io::Error::other(format!("{other:?}")),
            )),
            Err(error) => Err(unavailable(
                &format!("{} ended or hung while it loaded the engine", binary.path.display()),
                &error,
            )),
        }
    }

    /// Asks for a worker that will hold `socket` and enter `group`, without waiting for it. With `web` it has the web
    /// interfaces before anybody asks for them; the workers of a template have what it has.
    pub(crate) fn request_worker(
        &self,
        socket: &OwnedFd,
        group: Option<&Group>,
        sandbox: SandboxMode,
        empty_root: bool,
        web: bool,
    ) -> io::Result<Ticket> {
        self.forked.fetch_add(1, Ordering::Relaxed);
        let web = web && self.template.get().is_none();
        let request = ZygoteRequest::Spawn { sandbox, empty_root, web };
        match group {
            Some(group) => lock(&self.control).send(request, &[socket.as_fd(), group.entrance()]),
            None => lock(&self.control).send(request, &[socket.as_fd()]),
        }
    }

    /// The worker that [`Self::request_worker`] asked for.
    pub(crate) fn receive_worker(&self, ticket: Ticket) -> io::Result<ForkedWorker> {
        match lock(&self.control).wait_for(ticket)? {
            (ZygoteReply::Spawned { pid }, Some(pidfd)) => {
                let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("the zygote named process 0"))?;
                if self.template.get().is_some() {
                    check_child(pid, &pidfd, self.pid)?;
                }
                Ok(ForkedWorker { pid, pidfd })
            }
            (ZygoteReply::SpawnFailed { reason }, _) => Err(io::Error::other(reason)),
            (other, _) => Err(io::Error::other(format!("the zygote answered {other:?}"))),
        }
    }

    /// Asks the zygote, which must not have forked anything, to confine itself and to be a template whose conversation is
    /// on `socket`.
    pub(crate) fn request_template(
        &self,
        socket: &OwnedFd,
        sandbox: SandboxMode,
        empty_root: bool,
    ) -> io::Result<Ticket> {
        lock(&self.control).send(ZygoteRequest::BecomeTemplate { sandbox, empty_root }, &[socket.as_fd()])
    }

    /// Waits until the template forks: its conversation is over, and both ends of its socket are closed. From then on what it
    /// says of a worker is checked, and `watch` is its own.
    pub(crate) fn receive_template(&self, ticket: Ticket, watch: Arc<Watch>) -> io::Result<()> {
        match lock(&self.control).wait_for(ticket)? {
            (ZygoteReply::TemplateReady, _) => {
                // It is only ever asked for once.
                let _ = self.template.set(watch);
                Ok(())
            }
            (ZygoteReply::SpawnFailed { reason }, _) => Err(io::Error::other(reason)),
            (other, _) => Err(io::Error::other(format!("the template answered {other:?}"))),
        }
    }

    /// The zygote's own process.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Readable when the zygote has ended, which its workers do not survive: the kernel has sent each its signal by then,
    /// and they may take a moment to heed it.
    pub(crate) fn pidfd(&self) -> &OwnedFd {
        &self.pidfd
    }

    /// How a worker, or the zygote itself, ended; waits for its end.
    pub(crate) fn collect(&self, pid: Pid) -> ExitStatus {
        if pid == self.pid {
            return match lock(&self.child).wait() {
                Ok(status) => match (status.code(), status.signal()) {
                    (Some(code), _) => ExitStatus::Code(code),
                    (None, Some(signal)) => ExitStatus::Signal(signal),
                    (None, None) => ExitStatus::Unknown,
                },
                Err(_) => ExitStatus::Unknown,
            };
        }
        let mut control = lock(&self.control);
        let reply = control
            .send(ZygoteRequest::Collect { pid: pid.as_raw_pid() }, &[])
            .and_then(|ticket| control.wait_for(ticket));
        match reply {
            Ok((ZygoteReply::Exited { status, .. }, _)) => status,
            _ => ExitStatus::Unknown,
        }
    }

    /// Hangs up, upon which the zygote ends its workers, waits for them and exits: killed at once, it would leave
    /// them to whoever reaps orphans here, and in a container that may be nobody.
    pub(crate) fn end(&self) {
        if self.generation != fork_generation::current() {
            return;
        }
        // Fails only when the zygote has hung up first.
        let _ = shutdown(&lock(&self.control).socket, Shutdown::Both);
        let mut child = lock(&self.child);
        if matches!(child.try_wait(), Ok(None)) && !ends_within(&self.pidfd, END_PATIENCE) {
            let _ = child.kill();
        }
        // Fails only when somebody else has waited for it.
        let _ = child.wait();
    }

    /// How long ago the zygote was started.
    pub(crate) fn age(&self) -> Duration {
        self.born.elapsed()
    }

    /// How many workers it was asked for.
    pub(crate) fn forked(&self) -> u32 {
        self.forked.load(Ordering::Relaxed)
    }

    /// Whether it still runs and belongs to this process.
    pub(crate) fn is_usable(&self) -> bool {
        self.generation == fork_generation::current() && matches!(lock(&self.child).try_wait(), Ok(None))
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.end();
    }
}

fn ends_within(pidfd: &OwnedFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).expect("a second fits a timespec");
    matches!(poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&timeout)), Ok(1))
}

impl Control {
    /// Sends a request with at most two descriptors.
    fn send(&mut self, request: ZygoteRequest, fds: &[BorrowedFd<'_>]) -> io::Result<Ticket> {
        let mut bytes = Vec::with_capacity(32);
        request.encode(&mut bytes, &Budget::default()).map_err(io::Error::other)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.unread.push_back(ticket);
        Ok(Ticket(ticket))
    }

    /// Replies come in the order of the requests; those of others on the way are kept for them.
    fn wait_for(&mut self, Ticket(wanted): Ticket) -> io::Result<(ZygoteReply, Option<OwnedFd>)> {
        if let Some(at) = self.early.iter().position(|(ticket, ..)| *ticket == wanted) {
            let (_, reply, fd) = self.early.swap_remove(at);
            return Ok((reply, fd));
        }
        while let Some(ticket) = self.unread.pop_front() {
            let (reply, fd) = receive(self.socket.as_fd(), REQUEST_PATIENCE)?;
            if ticket == wanted {
                return Ok((reply, fd));
            }
            self.early.push((ticket, reply, fd));
        }
        Err(io::Error::other("the reply was read before"))
    }
}

fn receive(socket: BorrowedFd<'_>, patience: Duration) -> io::Result<(ZygoteReply, Option<OwnedFd>)> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(Errno::TIMEDOUT.into()),
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    let mut bytes = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut fd = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            fd = fds.last().or(fd);
        }
    }
    let reply =
        ZygoteReply::decode(&bytes[..received.bytes], &Budget::default()).map_err(io::Error::other)?;
    Ok((reply, fd))
}

/// Whether this is a pidfd of the live process `pid`, and that a child of `parent`. A process that has run somebody's script
/// may say anything; the host measures and kills what it is told of.
fn check_child(pid: Pid, pidfd: &OwnedFd, parent: Pid) -> io::Result<()> {
    let pid = pid.as_raw_pid();
    let stranger = || io::Error::other(format!("the template named process {pid}, which is not its worker"));
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    let meant = info.lines().find_map(|line| line.strip_prefix("Pid:")).ok_or_else(stranger)?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let found = process_usage::parse_parent(&stat).ok_or_else(stranger)?;
    if meant.trim().parse() != Ok(pid) || found != parent.as_raw_pid() {
        return Err(stranger());
    }
    // As long as it lives the number is its own, and the parent that was read is its parent.
    let ended = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&Timespec::default()))?;
    if ended == 0 { Ok(()) } else { Err(io::Error::other("the worker ended at once")) }
}

fn unavailable(what: &str, error: &dyn std::error::Error) -> Error {
    Error::WorkerUnavailable { reason: format!("{what}: {error}") }
}

/// A poisoned lock means that another thread panicked between two whole operations on it; the data are consistent.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> (Child, Pid, OwnedFd) {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        (child, pid, pidfd)
    }

    #[test]
    fn only_a_live_child_of_the_template_under_its_own_number_passes_for_a_worker() {
        let own = rustix::process::getpid();
        let (mut first, first_pid, first_pidfd) = sleeper();
        let (mut second, second_pid, _second_pidfd) = sleeper();
        assert!(check_child(first_pid, &first_pidfd, own).is_ok(), "a control");
        assert!(check_child(second_pid, &first_pidfd, own).is_err(), "the pidfd is of another process");
        assert!(check_child(first_pid, &first_pidfd, second_pid).is_err(), "the child is somebody else's");
        let no_pidfd: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        assert!(check_child(first_pid, &no_pidfd, own).is_err(), "it is no pidfd");
        first.kill().unwrap();
        assert!(
            rustix::event::poll(&mut [PollFd::new(&first_pidfd, PollFlags::IN)], None).is_ok(),
            "the end is seen"
        );
        assert!(check_child(first_pid, &first_pidfd, own).is_err(), "it has ended");
        first.wait().unwrap();
        assert!(
            check_child(first_pid, &first_pidfd, own).is_err(),
            "its number may be somebody else's by now"
        );
        second.kill().unwrap();
        second.wait().unwrap();
    }
}
