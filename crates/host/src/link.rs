//! A worker's socket with the conversation on it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::Pid;

use crate::affinity::Placement;
use crate::clock::Nanos;
use crate::rhythm::Rhythm;
use crate::session::Session;
use crate::watch::Watch;

/// The host's end of one worker.
#[derive(Debug)]
pub(crate) struct Link {
    /// Shared with an event loop that waits on it.
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) session: Session,
    pub(crate) placement: Placement,
    pub(crate) rhythm: Rhythm,
    /// How much of the session's output has been written.
    written: usize,
    /// The number under which the monitor knows what runs, and whether something does.
    busy: u64,
    is_busy: bool,
}

/// The worker has hung up.
#[derive(Debug)]
pub(crate) struct HungUp;

impl Link {
    pub(crate) fn new(socket: OwnedFd, session: Session) -> Self {
        Self {
            socket: Arc::new(socket),
            session,
            placement: Placement::default(),
            rhythm: Rhythm::default(),
            written: 0,
            busy: 0,
            is_busy: false,
        }
    }

    /// Tells the monitor what the session expects of the worker now. False when the worker was killed.
    pub(crate) fn watched_by(&mut self, watch: &Watch) -> bool {
        match (self.is_busy, !self.session.is_idle()) {
            (false, true) => {
                self.busy += 1;
                self.is_busy = watch.begin(self.busy, self.session.deadline());
                self.is_busy
            }
            (true, true) => {
                watch.set_deadline(self.session.deadline());
                true
            }
            (true, false) => {
                self.is_busy = false;
                watch.end(self.busy)
            }
            (false, false) => true,
        }
    }

    /// A request has ended and others go on: what it used is not held against them.
    pub(crate) fn renew(&mut self, watch: &Watch) -> bool {
        if self.is_busy && !self.session.is_idle() {
            self.busy += 1;
            return watch.renew(self.busy - 1, self.busy);
        }
        true
    }

    /// Before the calling thread says something and waits: puts the worker where its answer comes soonest. Whether it is best
    /// looked for before sleeping.
    pub(crate) fn meet(&mut self, worker: Pid) -> bool {
        let mut attentive = self.rhythm.begin(Nanos::now());
        if attentive && !self.placement.apart(worker) {
            self.rhythm.has_one_core();
            attentive = false;
        }
        if !attentive {
            self.placement.together(worker);
        }
        self.session.set_attentive(attentive);
        attentive
    }

    /// Lets worker and caller go their own ways.
    pub(crate) fn part(&mut self, worker: Pid) {
        self.placement.release(worker);
        self.rhythm.sleep();
        self.session.set_attentive(false);
    }

    /// Writes what the session has to say, as far as the socket takes it at once; true when all was written.
    pub(crate) fn write(&mut self) -> Result<bool, HungUp> {
        while let output @ [_, ..] = &self.session.output()[self.written..] {
            match send(&self.socket, output, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(_) => return Err(HungUp),
            }
        }
        self.session.output().clear();
        self.written = 0;
        Ok(true)
    }

    /// Reads what the worker has written; how many bytes, or the error number.
    pub(crate) fn read(&mut self, flags: RecvFlags) -> Result<Result<usize, Errno>, HungUp> {
        match self.session.reader().receive(1, |buffer| recv(&self.socket, spare_capacity(buffer), flags)) {
            Ok((0, _)) => Err(HungUp),
            Ok((received, _)) => Ok(Ok(received)),
            Err(errno @ (Errno::AGAIN | Errno::INTR)) => Ok(Err(errno)),
            Err(_) => Err(HungUp),
        }
    }
}
