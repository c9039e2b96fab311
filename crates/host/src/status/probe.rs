//! The throwaway processes: started, listened to, measured, killed and reaped within a second.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pydeno_wire::message::LayerReport;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

use crate::cgroup::{Containment, Delegation};
use crate::clock::Nanos;
use crate::first_words::{StartError, first_event};
use crate::options::Options;
use crate::oversight::{self, TERMINATION, in_force, missing};
use crate::session::{Event, Session};

/// How long the processes may take to report. They need milliseconds; this is for a machine that has stopped.
const PATIENCE: Duration = Duration::from_millis(800);
/// How long it may take to end afterwards. The kernel ends it at once, unless it waits for a disk.
const END_PATIENCE: Duration = Duration::from_millis(150);

/// What helps where the worker's executable does not work.
pub(super) const REINSTALL: &str = "install pydeno again";

/// Why nothing could be found out.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) reason: String,
    pub(super) fix: &'static str,
}

/// What the worker's executable finds when it confines itself, and what can be done from here to another one that has.
pub(super) fn examine(worker: &Path) -> Result<Vec<LayerReport>, Unknown> {
    let until = Nanos::now().plus(PATIENCE);
    let [reporting, measured] = [Probe::start(worker)?, Probe::start(worker)?];
    let defaults = Options::default();
    let containment = Containment::new(&Delegation::find())
        .limited(defaults.max_memory, defaults.jit.max_threads())
        .admitting(measured.pid);
    let mut layers = reporting.listen(worker, until)?;
    measured.listen(worker, until)?;
    layers.push(oversight::resource_probes(measured.pid, &containment));
    layers.push(measured.kill());
    drop(measured);
    Ok(layers)
}

/// A process in probe mode, which ends when `socket` closes. Dropping it ends and reaps it.
struct Probe {
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    socket: Option<OwnedFd>,
}

impl Probe {
    fn start(worker: &Path) -> Result<Self, Unknown> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| Unknown {
                reason: format!("a socket for the probe cannot be made: {error}"),
                fix: "let the host open three more descriptors",
            })?;
        let mut child = Command::new(worker)
            .arg("probe")
            .env_clear()
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .spawn()
            .map_err(|error| cannot_start(worker, &error))?;
        let pid = Pid::from_child(&child);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Self { child, pid, pidfd, socket: Some(ours) }),
            Err(error) => {
                // Fails only where somebody else has waited for it.
                let _ = child.kill();
                drop(ours);
                let _ = child.wait();
                Err(Unknown {
                    reason: format!("a descriptor for the probe cannot be had: {error}"),
                    fix: "use Linux 5.3 or newer, and let the host open another descriptor",
                })
            }
        }
    }

    fn listen(&self, worker: &Path, until: Nanos) -> Result<Vec<LayerReport>, Unknown> {
        let socket = self.socket.as_ref().expect("it is closed when the probe is dropped");
        match first_event(socket, &mut Session::new(), until.since(Nanos::now())) {
            Ok(Event::Ready(ready)) => Ok(ready.sandbox.layers),
            Ok(Event::Refused(report)) => Ok(report.layers),
            Ok(_) => unreachable!("a session starts with one of the two"),
            Err(StartError::Io(error)) if error.raw_os_error() == Some(Errno::TIMEDOUT.raw_os_error()) => {
                Err(Unknown {
                    reason: format!("the probe overran {} ms and was killed", PATIENCE.as_millis()),
                    fix: "look at what delays new processes here: another system-call filter, a tracer, a full machine",
                })
            }
            Err(error) => Err(Unknown {
                reason: format!("the probe {} failed: {error}", worker.display()),
                fix: REINSTALL,
            }),
        }
    }

    /// Kills the confined process and sees it end.
    fn kill(&self) -> LayerReport {
        let sent = pidfd_send_signal(&self.pidfd, Signal::KILL);
        if let Err(error) = sent {
            return oversight::cannot_kill(error);
        }
        if self.ends_within(END_PATIENCE) {
            in_force(TERMINATION, "SIGKILL ended a confined process".to_owned())
        } else {
            missing(
                TERMINATION,
                format!("SIGKILL did not end a confined process within {} ms", END_PATIENCE.as_millis()),
                "look at what keeps the process in the kernel: a tracer, a file system that does not answer",
            )
        }
    }

    fn ends_within(&self, patience: Duration) -> bool {
        let until = Nanos::now().plus(patience);
        loop {
            let left = Timespec::try_from(until.since(Nanos::now())).expect("a moment fits a timespec");
            match poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&left)) {
                Ok(ended) => return ended > 0,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

impl Drop for Probe {
    /// Where the signal is not permitted, the process ends by itself because its socket is closed.
    fn drop(&mut self) {
        // One that has ended answers ESRCH, and that is all that is wanted.
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        self.socket.take();
        if self.ends_within(END_PATIENCE) {
            // Fails only where somebody else has waited for it: a host that ignores SIGCHLD, or waits for any child.
            let _ = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
        } else {
            // What cannot be killed cannot be waited for. If it has just ended, this reaps it.
            let _ = self.child.try_wait();
        }
    }
}

fn cannot_start(worker: &Path, error: &io::Error) -> Unknown {
    let fix = match error.kind() {
        io::ErrorKind::NotFound => REINSTALL,
        io::ErrorKind::PermissionDenied => "make it executable, on a file system mounted without noexec",
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => "let the host start another process",
        _ => "install pydeno again, for this machine's architecture",
    };
    Unknown { reason: format!("cannot start {}: {error}", worker.display()), fix }
}
