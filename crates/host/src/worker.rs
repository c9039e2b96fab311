//! A worker between its fork and its first evaluation.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use pydeno_wire::message::{ExitStatus, Ready, SandboxMode, SandboxReport};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_send_buffer_size, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Pid;

use crate::cgroup::Containment;
use crate::clock::Nanos;
use crate::error::Error;
use crate::first_words::{StartError, event_so_far, first_event};
use crate::options::Options;
use crate::oversight;
use crate::session::{Event, Session};
use crate::watch::{MOMENT, Watch, WatchLimits};
use crate::zygote::{Ticket, Zygote};

/// How long a worker may take to confine itself and make a context, on a machine that is busy.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// What a socket may hold: a large value crosses in fewer turns. The kernel lowers it to what this user may have.
const SOCKET_BUFFER: usize = 1 << 20;
/// How long a call waits for its answer in one `recv` before it looks after other things. Nearly every call is over
/// sooner and costs no further system call.
pub(crate) const FIRST_WAIT: Duration = Duration::from_millis(10);

/// A worker that was asked for and may still be confining itself.
#[derive(Debug)]
pub(crate) struct Forthcoming {
    zygote: Arc<Zygote>,
    socket: OwnedFd,
    containment: Containment,
    ticket: Ticket,
}

/// A worker that has been forked and is confining itself.
#[derive(Debug)]
pub(crate) struct Confining {
    zygote: Arc<Zygote>,
    socket: OwnedFd,
    session: Session,
    watch: Arc<Watch>,
    containment: Containment,
    until: Nanos,
}

/// A worker that is confined and waits for its limits.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) zygote: Arc<Zygote>,
    pub(crate) socket: OwnedFd,
    pub(crate) session: Session,
    pub(crate) watch: Arc<Watch>,
    pub(crate) ready: Ready,
}

impl Forthcoming {
    /// Asks the zygote for a worker, without waiting for it.
    pub(crate) fn request(zygote: &Arc<Zygote>, options: &Options) -> io::Result<Self> {
        let (ours, theirs) = connection()?;
        let containment = Containment::new(&zygote.delegation);
        let Options { sandbox, empty_root, web, .. } = *options;
        let ticket = zygote.request_worker(&theirs, containment.group(), sandbox, empty_root, web)?;
        Ok(Self { zygote: Arc::clone(zygote), socket: ours, containment, ticket })
    }

    /// Waits until the worker has proved its sandbox.
    pub(crate) fn wait(self, options: &Options) -> Result<Worker, Error> {
        let mut worker = self.fork(options)?;
        let first = first_event(&worker.socket, &mut worker.session, START_PATIENCE);
        worker.judge(first, options)
    }

    /// Waits until the zygote has forked it, which takes no longer than a fork does.
    pub(crate) fn fork(self, options: &Options) -> Result<Confining, Error> {
        let Self { zygote, socket, containment, ticket } = self;
        let forked = zygote.receive_worker(ticket).map_err(|error| Error::WorkerUnavailable {
            reason: format!("the zygote could not fork a worker: {error}"),
        })?;
        Ok(Confining::new(zygote, socket, forked.pid, forked.pidfd, containment, options))
    }
}

/// Both ends of a worker's socket.
fn connection() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    for end in [&ours, &theirs] {
        set_socket_send_buffer_size(end, SOCKET_BUFFER)?;
    }
    set_socket_timeout(&ours, Timeout::Recv, Some(FIRST_WAIT))?;
    Ok((ours, theirs))
}

impl Confining {
    fn new(
        zygote: Arc<Zygote>,
        socket: OwnedFd,
        pid: Pid,
        pidfd: OwnedFd,
        containment: Containment,
        options: &Options,
    ) -> Self {
        let limits = WatchLimits {
            memory: options.max_memory,
            threads: options.jit.max_threads(),
            cpu: options.max_cpu(),
        };
        let containment = containment.limited(limits.memory, limits.threads);
        let watch = Arc::new(Watch::new(pid, pidfd, limits));
        let until = Nanos::now().plus(START_PATIENCE);
        Self { zygote, socket, session: Session::new(), watch, containment, until }
    }

    /// A zygote that is to be a template: until it is one it is watched, limited and spoken to as a worker. The ticket is for
    /// [`Zygote::receive_template`].
    pub(crate) fn template(zygote: Arc<Zygote>, options: &Options) -> io::Result<(Self, Ticket)> {
        let (ours, theirs) = connection()?;
        let pid = zygote.pid();
        let pidfd = zygote.pidfd().try_clone()?;
        let containment = Containment::new(&zygote.delegation).admitting(pid);
        let ticket = zygote.request_template(&theirs, options.sandbox, options.empty_root)?;
        Ok((Self::new(zygote, ours, pid, pidfd, containment, options), ticket))
    }

    /// The socket on which it reports.
    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// When it has taken too long.
    pub(crate) fn until(&self) -> Nanos {
        self.until
    }

    /// The worker if it has reported, or itself; does not wait for a report.
    pub(crate) fn advance(
        mut self: Box<Self>,
        options: &Options,
    ) -> Result<Result<Worker, Error>, Box<Self>> {
        match event_so_far(&self.socket, &mut self.session) {
            Ok(None) if Nanos::now() < self.until => Err(self),
            Ok(None) => Ok(self.judge(Err(StartError::Io(Errno::TIMEDOUT.into())), options)),
            Ok(Some(event)) => Ok(self.judge(Ok(event), options)),
            Err(error) => Ok(self.judge(Err(error), options)),
        }
    }

    fn judge(self, first: Result<Event, StartError>, options: &Options) -> Result<Worker, Error> {
        let Self { zygote, socket, session, watch, containment, .. } = self;
        match first {
            Ok(Event::Ready(mut ready)) => {
                let overseen = oversee(watch.pid(), &containment, &mut ready.sandbox, options.sandbox);
                if let Containment::Group(group) = containment {
                    watch.contain(group);
                }
                match overseen {
                    Ok(()) => Ok(Worker { zygote, socket, session, watch, ready }),
                    // It reported and was killed while it waited to be needed.
                    Err(_) if watch.ends_within(MOMENT) => {
                        Err(Error::WorkerCrashed { status: zygote.collect(watch.pid()) })
                    }
                    Err(refusal) => Err(refusal),
                }
            }
            Ok(Event::Refused(report)) => Err(Error::SandboxUnavailable { report }),
            Ok(other) => Err(Error::ProtocolViolation { what: format!("{other:?} before it was ready") }),
            Err(StartError::Violation(what)) => Err(Error::ProtocolViolation { what }),
            Err(StartError::Io(error)) => {
                watch.put_to_rest();
                let status = zygote.collect(watch.pid());
                Err(match status {
                    ExitStatus::Signal(signal) if signal == libc::SIGSYS => Error::SandboxViolation,
                    _ if error.kind() == io::ErrorKind::UnexpectedEof => Error::WorkerCrashed { status },
                    _ => Error::WorkerUnavailable { reason: format!("a worker did not start: {error}") },
                })
            }
        }
    }
}

/// Adds to the worker's own report what the host must be able to do to it. One that cannot be killed must not start in
/// any mode; one that cannot be measured must not start when everything is required.
fn oversee(
    worker: Pid,
    containment: &Containment,
    report: &mut SandboxReport,
    mode: SandboxMode,
) -> Result<(), Error> {
    let probes = oversight::resource_probes(worker, containment);
    let termination = oversight::termination(worker);
    let refused = !termination.applied || (!probes.applied && mode == SandboxMode::Require);
    report.layers.extend([probes, termination]);
    if refused { Err(Error::SandboxUnavailable { report: std::mem::take(report) }) } else { Ok(()) }
}
