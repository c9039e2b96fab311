//! What the sandbox can be on this machine, found out in a throwaway process.

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use pydeno_wire::message::SandboxReport;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::error::Error;
use crate::first_words::first_event;
use crate::session::{Event, Session};
use crate::zygote::WorkerBinary;

/// How long a probe may take; it needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// Starts the worker's executable in probe mode: it confines itself with the code that a worker uses, loads no engine,
/// reports, and is killed. The calling process is left as it was.
pub fn probe_sandbox(binary: &WorkerBinary) -> Result<SandboxReport, Error> {
    let unavailable = |reason: String| Error::WorkerUnavailable { reason };
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| unavailable(format!("a socket for the probe cannot be made: {errno}")))?;
    let mut child = Command::new(&binary.path)
        .arg("probe")
        .env_clear()
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .spawn()
        .map_err(|error| unavailable(format!("cannot start {}: {error}", binary.path.display())))?;
    let report = read_report(&ours);
    // Both fail only when the probe has ended by itself and somebody else has waited for it.
    let _ = child.kill();
    let _ = child.wait();
    report.map_err(unavailable)
}

fn read_report(socket: &OwnedFd) -> Result<SandboxReport, String> {
    match first_event(socket, &mut Session::new(), PATIENCE) {
        Ok(Event::Ready(ready)) => Ok(ready.sandbox),
        Ok(Event::Refused(report)) => Ok(report),
        Ok(other) => Err(format!("the sandbox probe said {other:?}")),
        Err(error) => Err(format!("the sandbox probe failed: {error}")),
    }
}
