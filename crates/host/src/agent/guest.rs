//! A session's guest: the runtime it lives in, what it can tell of the session's options, what it tells its host.

use std::sync::Arc;
use std::time::Duration;

use pydeno_wire::message::{ConsoleLevel, HostError, JsError, Language};
use pydeno_wire::{Text, Value};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sha2::{Digest as _, Sha256};

use crate::agent::digest::Digest;
use crate::agent::session::{Hooks, Mode, Turn};
use crate::agent::surface::Surface;
use crate::error::Error;
use crate::host_functions::{HostFunctions, Interrupted};
use crate::options::Options;
use crate::runtime::Runtime;
use crate::supervisor::Supervisor;

/// A fresh worker with everything in it that is there before a program is.
pub(crate) fn make_runtime(
    supervisor: &Arc<Supervisor>,
    options: &Options,
    bootstrap: Option<&Text>,
    surface: &Surface,
) -> Result<Runtime, Error> {
    let runtime = Runtime::new(supervisor, options.clone())?;
    if let Some(bootstrap) = bootstrap {
        let mut host = Collector { calls: Vec::new(), hooks: &mut Silent };
        runtime.eval(bootstrap.clone(), "bootstrap.js", Language::JavaScript, false, &mut host)?;
    }
    let names = surface.names();
    if !names.is_empty() {
        runtime.bind(surface.namespace.as_ref(), &names, &vec![true; names.len()], |_| {})?;
    }
    Ok(runtime)
}

/// A digest of what a guest can tell apart.
pub(crate) fn fingerprint(
    options: &Options,
    surface: &Surface,
    mode: (Mode, bool),
    bootstrap: Option<&Text>,
) -> Digest {
    let said = (
        (options.jit, options.max_heap_size, options.console, options.strict_eval, options.web),
        (options.max_value_bytes, options.max_value_nodes, options.max_value_depth),
        (mode, bootstrap, &surface.namespace, surface.names()),
    );
    Sha256::digest(format!("{said:?}")).into()
}

/// Waits for the worker, up to a tenth of a second.
pub(crate) fn wait_for(runtime: &Runtime, turn: &Turn) {
    const LONGEST: Duration = Duration::from_millis(100);
    let Some(socket) = runtime.socket() else { return };
    let flags = if turn.wants_to_write { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let longest = turn.look_again.map_or(LONGEST, |after| after.min(LONGEST));
    let timeout = Timespec::try_from(longest).expect("a tenth of a second fits a timespec");
    // What it says, `advance` sees.
    let _ = poll(&mut [PollFd::new(&socket, flags)], Some(&timeout));
}

/// The guest's side of one turn. Every function is asynchronous.
pub(crate) struct Collector<'h> {
    pub(crate) calls: Vec<(u64, u32, Vec<Value>)>,
    pub(crate) hooks: &'h mut dyn Hooks,
}

impl HostFunctions for Collector<'_> {
    fn call(&mut self, _: u64, _: u32, _: Vec<Value>) -> Result<Result<Value, HostError>, Interrupted> {
        Err(Interrupted)
    }

    fn start(&mut self, _request: u64, call: u64, function: u32, arguments: Vec<Value>) {
        self.calls.push((call, function, arguments));
    }

    fn console(&mut self, level: ConsoleLevel, text: Text) -> Result<(), Interrupted> {
        self.hooks.console(level, text);
        Ok(())
    }

    fn unhandled_rejection(&mut self, error: JsError) -> Result<(), Interrupted> {
        self.hooks.unhandled_rejection(error);
        Ok(())
    }

    fn check_interrupt(&mut self) -> Result<(), Interrupted> {
        Ok(())
    }
}

/// Nobody is told again what was told when it happened.
pub(crate) struct Silent;

impl Hooks for Silent {
    fn console(&mut self, _: ConsoleLevel, _: Text) {}
    fn unhandled_rejection(&mut self, _: JsError) {}
}
