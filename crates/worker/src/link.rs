//! The worker's end of its socket.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use pydeno_wire::frame::{FrameReader, encode_frame};
use pydeno_wire::message::{HostMessage, WorkerMessage};
use pydeno_wire::{Budget, EncodeError, Message};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::sched_yield;

use crate::process;

/// Messages to and from the host. When the host hangs up the process ends at once, because there is nobody left to work for,
/// unless it is a template, for which that is how its bootstrap script ends.
pub(crate) struct Link {
    socket: OwnedFd,
    reader: FrameReader,
    output: Vec<u8>,
    budget: Budget,
    /// Messages that were read while looking for another one.
    early: VecDeque<HostMessage>,
    outlived: bool,
}

impl Link {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        let budget = Budget::default();
        Self {
            socket,
            reader: FrameReader::new(HostMessage::max_encoded_bytes(&budget)),
            output: Vec::new(),
            budget,
            early: VecDeque::new(),
            outlived: false,
        }
    }

    /// One whose end the process outlives: receiving then fails with [`io::ErrorKind::UnexpectedEof`].
    pub(crate) fn to_outlive(socket: OwnedFd) -> Self {
        Self { outlived: true, ..Self::new(socket) }
    }

    pub(crate) fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
        self.reader.set_limit(HostMessage::max_encoded_bytes(&budget));
    }

    /// Adds a message to what goes out with the next [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// A value in it is over the budget; nothing was added.
    pub(crate) fn queue(&mut self, message: &WorkerMessage) -> Result<(), EncodeError> {
        encode_frame(&mut self.output, message, &self.budget)
    }

    /// Sends what was queued.
    pub(crate) fn flush(&mut self) {
        let mut rest = &self.output[..];
        while !rest.is_empty() {
            match send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                Err(_) => hung_up(),
            }
        }
        self.output.clear();
    }

    /// Sends one message, after what was queued.
    ///
    /// # Errors
    ///
    /// A value in it is over the budget; it was not sent.
    pub(crate) fn send(&mut self, message: &WorkerMessage) -> Result<(), EncodeError> {
        self.queue(message)?;
        self.flush();
        Ok(())
    }

    /// The next message, waiting for it.
    pub(crate) fn receive(&mut self) -> io::Result<HostMessage> {
        loop {
            if let Some(message) = self.early.pop_front() {
                return Ok(message);
            }
            if let Some(message) = self.decode()? {
                return Ok(message);
            }
            self.fill(RecvFlags::empty())?;
        }
    }

    /// The next message, for which the core is given up once before this process sleeps if `hands_over`: a host on the same
    /// core that does so, too, answers before anybody has to be woken.
    pub(crate) fn receive_soon(&mut self, hands_over: bool) -> io::Result<HostMessage> {
        if hands_over {
            if let Some(message) = self.receive_at_once()? {
                return Ok(message);
            }
            sched_yield();
        }
        self.receive()
    }

    /// The next message, if it is there.
    pub(crate) fn receive_at_once(&mut self) -> io::Result<Option<HostMessage>> {
        if let Some(message) = self.early.pop_front() {
            return Ok(Some(message));
        }
        if let Some(message) = self.decode()? {
            return Ok(Some(message));
        }
        self.fill(RecvFlags::DONTWAIT)?;
        self.decode()
    }

    /// Looks, without waiting, whether the host wants one of these requests stopped.
    pub(crate) fn is_cancelled(&mut self, requests: &[u64]) -> io::Result<bool> {
        self.fill(RecvFlags::DONTWAIT)?;
        while let Some(message) = self.decode()? {
            self.early.push_back(message);
        }
        Ok(self
            .early
            .iter()
            .any(|message| matches!(message, HostMessage::Cancel { id } if requests.contains(id))))
    }

    fn decode(&mut self) -> io::Result<Option<HostMessage>> {
        match self.reader.next_frame().map_err(io::Error::other)? {
            Some(payload) => HostMessage::decode(payload, &self.budget).map(Some).map_err(io::Error::other),
            None => Ok(None),
        }
    }

    fn fill(&mut self, flags: RecvFlags) -> io::Result<()> {
        loop {
            match self.reader.receive(1, |buffer| recv(&self.socket, spare_capacity(buffer), flags)) {
                Ok((0, _)) if self.outlived => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((0, _)) => hung_up(),
                Ok(_) | Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

fn hung_up() -> ! {
    process::exit(0)
}
