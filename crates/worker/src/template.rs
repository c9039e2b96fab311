//! A template: a zygote that has confined itself and evaluated a trusted bootstrap script, whose forks begin there.
//!
//! No thread watches its deadlines, so that none is lost in a fork: the host does, from outside. The filter keeps it from
//! everything that a worker is kept from but forking, and every fork takes that away from itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use pydeno_engine::{Engine, Isolate, IsolateOptions};
use pydeno_sandbox::{Limits, Report};
use pydeno_wire::message::SandboxMode;

use crate::engine_descriptors::EngineDescriptors;
use crate::link::Link;
use crate::process;
use crate::start::{Order, introduce, prepare};
use crate::worker::Worker;

/// What every fork begins with.
#[derive(Debug)]
pub(crate) struct Template {
    isolate: Isolate,
    report: Report,
    sandbox: SandboxMode,
    empty_root: bool,
}

impl Template {
    /// Confines this process and does on `socket` what the host asks of a worker, until it hangs up; `None` if a layer is
    /// missing that must not be. `keep` is what the process uses besides, and `world` what it has made so far.
    pub(crate) fn make(
        engine: &'static Engine,
        descriptors: &EngineDescriptors,
        keep: &[BorrowedFd<'_>],
        socket: OwnedFd,
        order: &Order<'_>,
        world: Option<Isolate>,
    ) -> io::Result<Option<Self>> {
        let keep: Vec<BorrowedFd<'_>> =
            descriptors.iter().chain(keep.iter().copied()).chain([socket.as_fd()]).collect();
        let applied = process::confine_as_template(&order.request(&keep, Limits::TEMPLATE));
        let report = applied.as_ref().map_or_else(|refusal| refusal.report.clone(), Report::clone);
        let mut link = Link::to_outlive(socket);
        let make = || {
            let options = IsolateOptions {
                webassembly: order.webassembly,
                for_forks: true,
                ..IsolateOptions::default()
            };
            world.map_or_else(|| Isolate::new(engine, &options).map_err(io::Error::other), Ok)
        };
        let Some((isolate, start)) = introduce(engine, &mut link, applied, order, make)? else {
            return Ok(None);
        };
        let prepared = prepare(&isolate, &start, order.web);
        let worker = Worker::new(isolate, link, &start, prepared);
        match worker.serve() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
            Ok(()) => {}
        }
        let worker = Rc::into_inner(worker)
            .ok_or_else(|| io::Error::other("something still refers to the bootstrap script's worker"))?;
        let (sandbox, empty_root) = (order.sandbox, order.empty_root);
        Ok(Some(Self { isolate: worker.into_isolate(), report, sandbox, empty_root }))
    }

    /// What the process found of its own sandbox.
    pub(crate) fn report(&self) -> &Report {
        &self.report
    }

    /// Whether a worker that is asked for so is what a fork can be.
    pub(crate) fn is_of(&self, sandbox: SandboxMode, empty_root: bool) -> bool {
        (self.sandbox, self.empty_root) == (sandbox, empty_root)
    }

    /// In a fork: the world to go on in.
    pub(crate) fn into_isolate(self) -> Isolate {
        self.isolate
    }
}
