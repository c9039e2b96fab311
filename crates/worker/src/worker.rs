//! A worker: confined, then a loop over what the host asks.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use pydeno_engine::{Engine, EvalLimits, Isolate, IsolateOptions};
use pydeno_sandbox::{Layer, Request};
use pydeno_wire::message::BUILD;
use pydeno_wire::message::{
    Binding, Failure, HostError, HostMessage, JsError, Limits, Ready, SandboxMode, Start, WorkerMessage,
};
use pydeno_wire::{Budget, EncodeError, Text, Value};
use rustix::process::Pid;

use crate::engine_descriptors::EngineDescriptors;
use crate::link::Link;
use crate::process;
use crate::sandbox_report;

/// The exit code of a worker that could not go on.
const FAILED: i32 = 1;
/// The exit code of a worker that found itself in a state that cannot be.
const PANICKED: i32 = 101;

/// What the zygote knows about a worker that it forks.
pub(crate) struct Order<'a> {
    /// The zygote.
    pub(crate) parent: Pid,
    /// What a missing layer means.
    pub(crate) sandbox: SandboxMode,
    /// Whether to enter an empty root.
    pub(crate) empty_root: bool,
    /// What became of a confined child that made a forbidden call; `None` where no sandbox is asked for.
    pub(crate) kill_proof: Option<&'a Layer>,
}

/// Becomes a worker: never returns to the zygote's code.
pub(crate) fn run(
    engine: &'static Engine,
    descriptors: &mut EngineDescriptors,
    socket: OwnedFd,
    order: &Order<'_>,
) -> ! {
    // A panic must not unwind into the zygote's code; that it happened is all that the host can be told.
    let served = AssertUnwindSafe(|| confine_and_serve(engine, descriptors, socket, order));
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
) -> io::Result<()> {
    descriptors.separate()?;
    let keep: Vec<BorrowedFd<'_>> = descriptors.iter().chain([socket.as_fd()]).collect();
    let applied = process::confine(&Request {
        mode: sandbox_report::mode(order.sandbox),
        empty_root: order.empty_root,
        parent: order.parent.as_raw_pid(),
        keep: &keep,
        limits: pydeno_sandbox::Limits::default(),
    });
    let mut link = Link::new(socket);
    let (report, refused) = match applied {
        Ok(mut report) => {
            let proved = order.kill_proof.is_none_or(|proof| sandbox_report::include(&mut report, proof));
            (report, !proved && order.sandbox == SandboxMode::Require)
        }
        Err(refusal) => (refusal.report, true),
    };
    let report = sandbox_report::to_wire(&report);
    if refused {
        return link.send(&WorkerMessage::Refused(report)).map_err(io::Error::other);
    }
    let mut isolate = Isolate::new(engine, &IsolateOptions::default()).map_err(io::Error::other)?;
    let ready = Ready { build: BUILD.to_owned(), engine: engine.library().to_owned(), sandbox: report };
    link.send(&WorkerMessage::Ready(ready)).map_err(io::Error::other)?;

    let HostMessage::Start(Start { limits, .. }) = link.receive()? else {
        return Err(io::Error::other("the first message is not the limits"));
    };
    link.set_budget(Budget::from(&limits));
    let link = Rc::new(RefCell::new(link));
    if limits.console {
        let console = Rc::clone(&link);
        isolate.set_console(Box::new(move |level, text| {
            // A console line is cut to its bound, so it has no budget to pass.
            let _ = console.borrow_mut().send(&WorkerMessage::Console { level, text });
        }));
    }
    Worker { isolate, link, limits, calls: Rc::default(), refused_binding: None }.serve()
}

struct Worker {
    isolate: Isolate,
    link: Rc<RefCell<Link>>,
    limits: Limits,
    calls: Rc<RefCell<Calls>>,
    /// A binding that the guest's own globals forbid. Bindings are not answered, so the next evaluation says it.
    refused_binding: Option<Failure>,
}

/// What the host functions of one worker share.
#[derive(Default)]
struct Calls {
    last_id: u64,
    /// The evaluation that runs.
    evaluation: u64,
    /// Whether the host has asked for its end.
    cancelled: bool,
}

impl Worker {
    fn serve(mut self) -> io::Result<()> {
        loop {
            let message = self.link.borrow_mut().receive()?;
            match message {
                HostMessage::Bind(bindings) => bindings.into_iter().for_each(|binding| self.bind(binding)),
                HostMessage::Eval { id, source, name, timeout_ms } => {
                    let outcome = match self.refused_binding.take() {
                        Some(failure) => Err(failure),
                        None => self.eval(id, &source, &name, timeout_ms),
                    };
                    self.done(id, outcome).map_err(io::Error::other)?;
                }
                // It crossed the end of its evaluation on the way.
                HostMessage::Cancel { .. } => {}
                HostMessage::Start(_)
                | HostMessage::Answer { .. }
                | HostMessage::Invoke { .. }
                | HostMessage::Release(_) => {
                    return Err(io::Error::other("an answer or limits that nobody asked for"));
                }
            }
        }
    }

    fn eval(&mut self, id: u64, source: &Text, name: &str, timeout_ms: u64) -> Result<Value, Failure> {
        {
            let mut calls = self.calls.borrow_mut();
            calls.evaluation = id;
            calls.cancelled = false;
        }
        let link = Rc::clone(&self.link);
        let calls = Rc::clone(&self.calls);
        let cancelled =
            move || calls.borrow().cancelled || link.borrow_mut().is_cancelled(id).unwrap_or(true);
        let limits = EvalLimits {
            timeout: Duration::from_millis(timeout_ms),
            cancelled: &cancelled,
            max_heap_bytes: self.limits.max_heap_bytes,
            budget: Budget::from(&self.limits),
        };
        self.isolate.eval(source, name, &limits)
    }

    /// Sends the outcome, or why it cannot cross after all.
    fn done(&self, id: u64, outcome: Result<Value, Failure>) -> Result<(), EncodeError> {
        let mut link = self.link.borrow_mut();
        link.send(&WorkerMessage::Done { id, outcome, unhandled: Vec::new() }).or_else(|error| {
            let failure = conversion_failure(&error);
            link.send(&WorkerMessage::Done { id, outcome: Err(failure), unhandled: Vec::new() })
        })
    }

    fn bind(&mut self, binding: Binding) {
        let Binding { function, object, name, .. } = binding;
        let link = Rc::clone(&self.link);
        let calls = Rc::clone(&self.calls);
        let call = Box::new(move |arguments| call_host(&link, &calls, function, arguments));
        if let Err(error) = self.isolate.bind(object.as_ref(), &name, call) {
            let message = error.to_string().as_str().into();
            let error = JsError { name: "TypeError".into(), message, ..JsError::default() };
            self.refused_binding.get_or_insert(Failure::Js(error));
        }
    }
}

/// One call of a host function: the guest stands still until the answer is there.
fn call_host(
    link: &RefCell<Link>,
    calls: &RefCell<Calls>,
    function: u32,
    arguments: Vec<Value>,
) -> Result<Value, HostError> {
    let (id, evaluation) = {
        let mut calls = calls.borrow_mut();
        calls.last_id += 1;
        (calls.last_id, calls.evaluation)
    };
    let mut link = link.borrow_mut();
    if let Err(error) = link.send(&WorkerMessage::Call { id, request: evaluation, function, arguments }) {
        let message = format!("the arguments cannot cross: {error}");
        return Err(HostError { name: "TypeError".into(), message: message.into() });
    }
    loop {
        match link.receive() {
            Ok(HostMessage::Answer { id: answered, outcome }) if answered == id => return outcome,
            Ok(HostMessage::Cancel { id }) => calls.borrow_mut().cancelled |= id == evaluation,
            // The host is gone or talks nonsense; either way there is nothing to go on with.
            Ok(_) | Err(_) => process::exit(FAILED),
        }
    }
}

fn conversion_failure(error: &EncodeError) -> Failure {
    let path = error.path().map_or_else(|| "$".to_owned(), ToString::to_string);
    Failure::Conversion { path, reason: error.to_string() }
}
