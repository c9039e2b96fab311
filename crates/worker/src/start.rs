//! How a worker begins: confined first, then with a world of its own, then as the host wants it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pydeno_engine::{Engine, Isolate, IsolateError, IsolateOptions, RandomSource, WebAssembly};
use pydeno_sandbox::{Layer, Refusal, Report, Request};
use pydeno_wire::Budget;
use pydeno_wire::message::{BUILD, HostMessage, Ready, SandboxMode, Start, WorkerMessage};
use rustix::process::Pid;

use crate::engine_descriptors::EngineDescriptors;
use crate::link::Link;
use crate::process;
use crate::sandbox_report;
use crate::template::Template;
use crate::worker::{FAILED, Worker};

/// The exit code of a worker that found itself in a state that cannot be.
const PANICKED: i32 = 101;

/// What the zygote knows about a worker that it forks, or about itself when it becomes a template.
pub(crate) struct Order<'a> {
    /// The process that forks or starts it.
    pub(crate) parent: Pid,
    /// What a missing layer means.
    pub(crate) sandbox: SandboxMode,
    /// Whether to enter an empty root.
    pub(crate) empty_root: bool,
    /// Whether the web interfaces are made before the host says what the guest is to have.
    pub(crate) web: bool,
    /// Who compiles WebAssembly.
    pub(crate) webassembly: WebAssembly,
    /// What became of a confined child that made a forbidden call; `None` where no sandbox is asked for.
    pub(crate) kill_proof: Option<&'a Layer>,
}

impl Order<'_> {
    /// What it asks of the sandbox.
    pub(crate) fn request<'k>(
        &self,
        keep: &'k [BorrowedFd<'k>],
        limits: pydeno_sandbox::Limits,
    ) -> Request<'k> {
        Request {
            mode: sandbox_report::mode(self.sandbox),
            empty_root: self.empty_root,
            parent: self.parent.as_raw_pid(),
            keep,
            limits,
        }
    }
}

/// What a worker begins with.
pub(crate) enum Origin {
    /// It makes a world itself.
    Nothing,
    /// A world that came with the fork and in which nothing has run.
    World(Isolate),
    /// A world that came with the fork and in which a bootstrap script has run.
    Template(Template),
}

impl Origin {
    /// The isolate that guest code may run in, once this process is confined.
    fn into_isolate(
        self,
        engine: &'static Engine,
        webassembly: WebAssembly,
    ) -> Result<Isolate, IsolateError> {
        let isolate = match self {
            Self::Nothing => {
                Isolate::new(engine, &IsolateOptions { webassembly, ..IsolateOptions::default() })?
            }
            Self::World(isolate) => {
                isolate.go_on_in_fork(Some(RandomSource::System))?;
                isolate
            }
            Self::Template(template) => return Ok(template.into_isolate()),
        };
        isolate.warm_up();
        Ok(isolate)
    }
}

/// Becomes a worker: never returns to the zygote's code.
pub(crate) fn run(
    engine: &'static Engine,
    descriptors: &mut EngineDescriptors,
    socket: OwnedFd,
    order: &Order<'_>,
    origin: Origin,
) -> ! {
    // A panic must not unwind into the zygote's code; that it happened is all that the host can be told.
    let served = AssertUnwindSafe(|| confine_and_serve(engine, descriptors, socket, order, origin));
    process::exit(match catch_unwind(served) {
        Ok(Ok(())) => 0,
        Ok(Err(_)) => FAILED,
        Err(_) => PANICKED,
    })
}

fn confine_and_serve(
    engine: &'static Engine,
    descriptors: &mut EngineDescriptors,
    socket: OwnedFd,
    order: &Order<'_>,
    origin: Origin,
) -> io::Result<()> {
    descriptors.separate()?;
    let keep: Vec<BorrowedFd<'_>> = descriptors.iter().chain([socket.as_fd()]).collect();
    let request = order.request(&keep, pydeno_sandbox::Limits::default());
    let applied = match &origin {
        Origin::Nothing | Origin::World(_) => process::confine(&request),
        Origin::Template(template) => process::confine_in_fork(&request, template.report()),
    };
    let mut link = Link::new(socket);
    let is_from_template = matches!(origin, Origin::Template(_));
    let make = || {
        let isolate = origin.into_isolate(engine, order.webassembly).map_err(io::Error::other)?;
        if order.web {
            isolate.install_web().map_err(io::Error::other)?;
        }
        Ok(isolate)
    };
    let Some((isolate, start)) = introduce(engine, &mut link, applied, order, make)? else {
        return Ok(());
    };
    let prepared = if is_from_template {
        prepare_in_fork(&isolate, &start)
    } else {
        prepare(&isolate, &start, order.web)
    };
    Worker::new(isolate, link, &start, prepared).serve()
}

/// Tells the host what has become of the sandbox, and takes the limits; `None` if the process must not go on.
pub(crate) fn introduce<T>(
    engine: &'static Engine,
    link: &mut Link,
    applied: Result<Report, Refusal>,
    order: &Order<'_>,
    make: impl FnOnce() -> io::Result<T>,
) -> io::Result<Option<(T, Start)>> {
    let (report, refused) = match applied {
        Ok(mut report) => {
            let proved = order.kill_proof.is_none_or(|proof| sandbox_report::include(&mut report, proof));
            (report, !proved && order.sandbox == SandboxMode::Require)
        }
        Err(refusal) => (refusal.report, true),
    };
    let report = sandbox_report::to_wire(&report);
    if refused {
        link.send(&WorkerMessage::Refused(report)).map_err(io::Error::other)?;
        return Ok(None);
    }
    let world = make()?;
    let ready = Ready { build: BUILD.to_owned(), engine: engine.library().to_owned(), sandbox: report };
    link.send(&WorkerMessage::Ready(ready)).map_err(io::Error::other)?;

    let HostMessage::Start(start) = link.receive()? else {
        return Err(io::Error::other("the first message is not the limits"));
    };
    link.set_budget(Budget::from(&start.limits));
    Ok(Some((world, start)))
}

/// Makes the guest's world as the host wants it, before any guest code. `has_web` says whether it has the web interfaces.
pub(crate) fn prepare(isolate: &Isolate, start: &Start, has_web: bool) -> Result<(), String> {
    if has_web && !start.web {
        return Err("this worker has the web interfaces, which were not asked for".to_owned());
    }
    if let Some(milliseconds) = start.clock {
        isolate.freeze_clock(milliseconds).map_err(|error| error.to_string())?;
    }
    if let Some(seed) = start.random_seed {
        isolate.seed_random(seed);
    }
    if has_web {
        isolate.begin_time().map_err(|error| error.to_string())?;
    } else if start.web {
        isolate.install_web().map_err(|error| error.to_string())?;
    }
    if start.strict_eval {
        isolate.forbid_eval().map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Makes the world of a template, which was prepared there, this worker's own.
fn prepare_in_fork(isolate: &Isolate, start: &Start) -> Result<(), String> {
    // Numbers that are to be the same each time go on where the bootstrap script has left them.
    let random = if start.random_seed.is_some() { None } else { Some(RandomSource::System) };
    isolate.go_on_in_fork(random).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use pydeno_engine::EvalLimits;
    use pydeno_wire::Text;
    use pydeno_wire::message::Limits;

    use super::*;

    fn prepared(has_web: bool, web: bool) -> (Result<(), String>, String) {
        let engine = Engine::load().expect("JavaScriptCore is installed");
        let isolate = Isolate::new(engine, &IsolateOptions::default()).expect("an isolate can be made");
        if has_web {
            isolate.install_web().expect("the interfaces can be made");
        }
        let limits = Limits {
            max_heap_bytes: 1 << 30,
            max_value_bytes: 1 << 20,
            max_value_nodes: 1 << 10,
            max_value_depth: 10,
            console: false,
        };
        let start = Start { limits, clock: None, random_seed: None, strict_eval: false, web };
        let outcome = prepare(&isolate, &start, has_web);
        let seen = isolate.eval(&Text::from("typeof URL"), "", &EvalLimits::default());
        (outcome, format!("{:?}", seen.expect("it evaluates")))
    }

    #[test]
    fn a_guest_has_the_web_interfaces_where_they_were_asked_for_and_else_a_worker_that_has_them_is_unusable()
    {
        for (has_web, web, seen) in
            [(false, false, "undefined"), (false, true, "function"), (true, true, "function")]
        {
            let (outcome, found) = prepared(has_web, web);
            assert_eq!(outcome, Ok(()));
            assert!(found.contains(seen), "{found}");
        }
        assert!(prepared(true, false).0.is_err());
    }
}
