//! Waiting for what a new process says first.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::clock::Nanos;
use crate::session::{Event, Session};

/// Why there was nothing to hear.
#[derive(Debug)]
pub(crate) enum StartError {
    /// It did not follow the protocol.
    Violation(String),
    /// It hung up, took too long, or the socket failed.
    Io(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(what) => write!(f, "it sent {what}"),
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("it ended without a word")
            }
            Self::Io(error) => error.fmt(f),
        }
    }
}

/// The first event of a session.
pub(crate) fn first_event(
    socket: &OwnedFd,
    session: &mut Session,
    patience: Duration,
) -> Result<Event, StartError> {
    let until = Nanos::now().plus(patience);
    loop {
        if let Some(event) = event_so_far(socket, session)? {
            return Ok(event);
        }
        let now = Nanos::now();
        let timeout = Timespec::try_from(until.since(now)).expect("a few seconds fit a timespec");
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(StartError::Io(Errno::TIMEDOUT.into())),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(StartError::Io(errno.into())),
        }
    }
}

/// The first event of a session if it has arrived; does not wait.
pub(crate) fn event_so_far(socket: &OwnedFd, session: &mut Session) -> Result<Option<Event>, StartError> {
    loop {
        match session.next_event(Nanos::now()) {
            Ok(None) => {}
            Ok(event) => return Ok(event),
            Err(violation) => return Err(StartError::Violation(violation.0)),
        }
        match session.reader().receive(1, |buffer| recv(socket, spare_capacity(buffer), RecvFlags::DONTWAIT))
        {
            Ok((0, _)) => return Err(StartError::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(StartError::Io(errno.into())),
        }
    }
}
