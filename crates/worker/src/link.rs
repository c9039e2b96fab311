//! The worker's end of its socket.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use pydeno_wire::attention::Attention;
use pydeno_wire::frame::{FrameReader, encode_frame};
use pydeno_wire::message::{HostMessage, WorkerMessage};
use pydeno_wire::{Budget, EncodeError, Message};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

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
    /// Whether the host looks for what this process says before it sleeps.
    attentive: bool,
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
            attentive: false,
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

    /// The next message, waiting for it: a host that is attentive finds this process awake for a moment.
    pub(crate) fn receive(&mut self) -> io::Result<HostMessage> {
        let mut message = self.read_already()?;
        if self.attentive {
            let attention = Attention::begin();
            while message.is_none() && attention.goes_on() {
                self.fill(RecvFlags::DONTWAIT)?;
                message = self.decode()?;
            }
        }
        loop {
            if let Some(message) = message {
                return Ok(message);
            }
            self.fill(RecvFlags::empty())?;
            message = self.decode()?;
        }
    }

    /// The next message, if it is there.
    pub(crate) fn receive_at_once(&mut self) -> io::Result<Option<HostMessage>> {
        let message = self.read_already()?;
        if message.is_some() {
            return Ok(message);
        }
        self.fill(RecvFlags::DONTWAIT)?;
        self.decode()
    }

    fn read_already(&mut self) -> io::Result<Option<HostMessage>> {
        match self.early.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.decode(),
        }
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
        while let Some(message) = self.reader.next_message(&self.budget).map_err(io::Error::other)? {
            match message.map_err(io::Error::other)? {
                HostMessage::Attentive(attentive) => self.attentive = attentive,
                message => return Ok(Some(message)),
            }
        }
        Ok(None)
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

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    /// A link, and the host's end of it.
    fn link() -> (Link, OwnedFd) {
        let (socket, host) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        (Link::new(socket), host)
    }

    fn say(host: &OwnedFd, messages: &[HostMessage]) {
        let mut bytes = Vec::new();
        for message in messages {
            encode_frame(&mut bytes, message, &Budget::default()).unwrap();
        }
        assert_eq!(send(host, &bytes, SendFlags::NOSIGNAL), Ok(bytes.len()));
    }

    #[test]
    fn how_the_host_waits_is_for_the_link_alone_wherever_it_is_said() {
        let (mut link, host) = link();
        assert!(!link.attentive);
        say(&host, &[HostMessage::Attentive(true), HostMessage::Cancel { id: 1 }]);
        assert_eq!(link.receive().unwrap(), HostMessage::Cancel { id: 1 });
        assert!(link.attentive);
        say(&host, &[HostMessage::Cancel { id: 2 }, HostMessage::Attentive(false)]);
        assert!(link.is_cancelled(&[2]).unwrap());
        assert!(!link.attentive);
        assert_eq!(link.receive_at_once().unwrap(), Some(HostMessage::Cancel { id: 2 }));
        say(&host, &[HostMessage::Attentive(true)]);
        assert_eq!(link.receive_at_once().unwrap(), None);
        assert!(link.attentive);
    }

    #[test]
    fn what_comes_when_the_moment_of_attention_is_over_is_received_all_the_same() {
        let (mut link, host) = link();
        link.attentive = true;
        let speaker = thread::spawn(move || {
            for id in 0..20 {
                thread::sleep(Duration::from_micros(10 * id * id));
                say(&host, &[HostMessage::Cancel { id }]);
            }
            host
        });
        for id in 0..20 {
            assert_eq!(link.receive().unwrap(), HostMessage::Cancel { id });
        }
        speaker.join().unwrap();
    }
}
