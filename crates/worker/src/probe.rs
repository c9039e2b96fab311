//! The sandbox without an engine or a guest: what would a worker be able to apply here?

use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::time::Duration;

use pydeno_sandbox::Request;
use pydeno_wire::Budget;
use pydeno_wire::message::BUILD;
use pydeno_wire::message::{Ready, WorkerMessage};
use rustix::process::getppid;

use crate::{process, sandbox_report};

/// How long the proof that the filter kills may take: less than the host waits, so that nothing is left of it.
const PROOF_PATIENCE: Duration = Duration::from_millis(500);

/// Proves that the filter kills, confines this process as far as the host allows, reports on standard input's socket, and waits for the other end to
/// hang up, so that it can be measured and killed meanwhile.
pub(crate) fn run() -> io::Result<()> {
    let stdin = io::stdin();
    let socket = stdin.as_fd();
    let proof = pydeno_sandbox::kill_is_enforced(PROOF_PATIENCE);
    let mut report = match process::confine(&Request {
        mode: pydeno_sandbox::Mode::Auto,
        empty_root: true,
        parent: getppid().map_or(0, rustix::process::Pid::as_raw_pid),
        keep: &[socket],
        limits: pydeno_sandbox::Limits::default(),
    }) {
        Ok(report) => report,
        Err(refusal) => refusal.report,
    };
    sandbox_report::include(&mut report, &proof);
    let ready =
        Ready { build: BUILD.to_owned(), engine: String::new(), sandbox: sandbox_report::to_wire(&report) };
    let mut frame = Vec::new();
    pydeno_wire::frame::encode_frame(&mut frame, &WorkerMessage::Ready(ready), &Budget::default())
        .map_err(io::Error::other)?;
    let mut rest = &frame[..];
    while !rest.is_empty() {
        let sent = rustix::net::send(socket, rest, rustix::net::SendFlags::NOSIGNAL)?;
        rest = &rest[sent..];
    }
    stdin.lock().read_to_end(&mut Vec::new()).map(drop)
}
