//! `Runtime`: an engine in this process.

mod requests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pydeno_engine as engine;
use pydeno_engine::{
    Ended, Engine, EvalLimits, Features, HookTime, Isolate, IsolateOptions, Module, Script, Surface,
    WebAssembly,
};
use pydeno_host::{Error, fork_generation};
use pydeno_wire::Text;
use pydeno_wire::message::{Failure, Place, STREAMS};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::errors;
use crate::from_python::{from_python, text_from_python};
use crate::functions::{Callbacks, Escaped};
use crate::isolated::{stream_cannot_be_asked, stream_request};
use crate::js_function::JsFunction;
use crate::js_stream::JsStream;
use crate::loop_turn::LoopTurn;
use crate::options::{self, InProcessOptions};
use crate::thread_bound::{ThreadBound, detach_here};
use crate::to_python::to_python;
use crate::wasm::{WasmOutline, import_names, remember};
use requests::{Inner, NOBODY, Shared};

/// The core of `pydeno.Runtime`. It has the methods of the isolated one, and an event loop drives it in the same way; but
/// what is begun here runs at once, on the calling thread.
#[pyclass(module = "pydeno._pydeno", frozen)]
pub(crate) struct InProcessRuntime {
    inner: ThreadBound<Inner>,
    options: InProcessOptions,
    /// A fork must not use it.
    generation: u32,
}

#[pymethods]
impl InProcessRuntime {
    #[new]
    fn new(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let settings = options::in_process(options)?;
        let unavailable = |reason: String| errors::from_host(py, &Error::EngineUnavailable { reason });
        let engine = Engine::load().map_err(|error| unavailable(error.to_string()))?;
        let shared = Rc::new(Shared {
            callbacks: Callbacks::new(options, settings.budget)?,
            running: RefCell::default(),
            interrupted: Cell::default(),
            escaped: RefCell::default(),
            last_call: Cell::default(),
            in_flight: RefCell::default(),
            started: RefCell::default(),
            ended: RefCell::default(),
        });
        // For every runtime of the process, since the engine reads its options once.
        engine.configure(Features { webassembly: true, ..Features::default() });
        let settled = IsolateOptions {
            surface: Surface::Full,
            webassembly: WebAssembly::Host,
            ..IsolateOptions::default()
        };
        let isolate = Isolate::new(engine, &settled).map_err(|error| unavailable(error.to_string()))?;
        if settings.web {
            isolate.install_web().map_err(|error| unavailable(error.to_string()))?;
        }
        let streams = Rc::clone(&shared);
        isolate.set_host_streams(Box::new(move |request, arguments| {
            Ok(streams.start(request, STREAMS, arguments))
        }));
        if settings.console {
            let console = Rc::clone(&shared);
            let hook = Box::new(move |level, text: Text| {
                if let Err(escaped) = Python::attach(|py| console.callbacks.console(py, level, &text)) {
                    console.escape(console.running_now(), escaped);
                }
            });
            isolate.set_console(hook, HookTime::Host);
        }
        let inner =
            Inner { isolate: RefCell::new(Some(Rc::new(isolate))), shared, last_request: Cell::new(0) };
        Ok(Self { inner: ThreadBound::new(inner), options: settings, generation: fork_generation::current() })
    }

    /// Says through which Python object functions of the guest are called.
    fn set_owner(&self, py: Python<'_>, owner: &Bound<'_, PyAny>) -> PyResult<()> {
        self.enter(py)?.shared.callbacks.home.set_owner(owner)
    }

    /// The streams of the host that the guest may ask, or `None` where none has crossed.
    fn streams(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let inner = self.inner.get().filter(|_| !self.is_foreign())?;
        inner.shared.callbacks.home.streams().map(|streams| streams.clone_ref(py))
    }

    /// Evaluates `source`; `name` stands for it in stacks. With `redeclare`, what its top level declares can be declared again.
    fn eval<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyString>,
        name: &str,
        language: &str,
        redeclare: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let source = text_from_python(source)?;
        let language = options::language(language)?;
        let inner = self.enter(py)?;
        if !inner.shared.running.borrow().is_empty() {
            return Err(errors::from_host(py, &Error::Reentrant));
        }
        inner.shared.callbacks.forget_raised();
        let request = self.begin(py, inner, |isolate, request, limits| {
            isolate.begin_script(request, &Script { source: &source, name, language, redeclare }, limits);
        })?;
        self.finish(py, inner, request)
    }

    /// Evaluates a module; the value is a dict of its exports.
    fn eval_module<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyString>,
        name: &str,
        language: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py)?.shared.callbacks.forget_raised();
        let request = self.begin_eval_module(py, source, name, language)?;
        self.finish(py, self.enter(py)?, request)
    }

    /// Loads a WebAssembly module; the value is a dict of its exports. `functions` are what it imports.
    fn load_wasm<'py>(
        &self,
        py: Python<'py>,
        name: &Bound<'py, PyString>,
        code: &[u8],
        outline: &WasmOutline,
        functions: Vec<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.enter(py)?.shared.callbacks.forget_raised();
        let request = self.begin_load_wasm(py, name, code, outline, functions)?;
        self.finish(py, self.enter(py)?, request)
    }

    /// Begins to load a WebAssembly module, like `begin_eval`.
    fn begin_load_wasm(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyString>,
        code: &[u8],
        outline: &WasmOutline,
        functions: Vec<Py<PyAny>>,
    ) -> PyResult<u64> {
        let inner = self.enter(py)?;
        if !inner.shared.running.borrow().is_empty() {
            return Err(errors::from_host(py, &Error::Reentrant));
        }
        let module = outline.module(name, code, &functions)?;
        let holder = module.name.to_string_lossy();
        let first = remember(&inner.shared.callbacks, &holder, import_names(&module), functions);
        let functions = (first..).take(module.imports.len()).map(|number| inner.shared.synchronous(number));
        let functions: Vec<engine::HostFunction> = functions.collect();
        self.begin(py, inner, |isolate, request, limits| {
            isolate.begin_load_wasm(request, &module, functions, limits);
        })
    }

    /// Calls a function of the guest, also from inside a host function.
    fn invoke<'py>(
        &self,
        py: Python<'py>,
        function: &Bound<'py, JsFunction>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let inner = self.enter(py)?;
        let request = self.invocation(py, inner, function, arguments)?;
        self.finish(py, inner, request)
    }

    /// Asks a stream of the guest for its next item, or to end.
    fn pull<'py>(
        &self,
        py: Python<'py>,
        stream: &Bound<'py, JsStream>,
        ends: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let request = self.begin_pull(py, stream, ends)?;
        let inner = self.enter(py)?;
        self.finish(py, inner, request)
    }

    /// Begins to ask a stream, like `begin_eval`.
    fn begin_pull(&self, py: Python<'_>, stream: &Bound<'_, JsStream>, ends: bool) -> PyResult<u64> {
        let inner = self.enter(py)?;
        if !inner.shared.running.borrow().is_empty() {
            return Err(errors::from_host(py, &Error::Reentrant));
        }
        let handle = stream.get().handle(&inner.shared.callbacks.home);
        let handle = handle.map_err(|reason| stream_cannot_be_asked(py, reason))?;
        self.begin(py, inner, |isolate, request, limits| {
            isolate.begin_pull(request, handle, stream_request(ends), limits);
        })
    }

    /// Begins an evaluation and returns its number; `advance` tells of its end.
    fn begin_eval(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyString>,
        name: &str,
        language: &str,
        redeclare: bool,
    ) -> PyResult<u64> {
        let source = text_from_python(source)?;
        let language = options::language(language)?;
        let inner = self.enter(py)?;
        if !inner.shared.running.borrow().is_empty() {
            return Err(errors::from_host(py, &Error::Reentrant));
        }
        self.begin(py, inner, |isolate, request, limits| {
            isolate.begin_script(request, &Script { source: &source, name, language, redeclare }, limits);
        })
    }

    /// Begins to evaluate a module, like `begin_eval`.
    fn begin_eval_module(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyString>,
        name: &str,
        language: &str,
    ) -> PyResult<u64> {
        let source = text_from_python(source)?;
        let language = options::language(language)?;
        let inner = self.enter(py)?;
        if !inner.shared.running.borrow().is_empty() {
            return Err(errors::from_host(py, &Error::Reentrant));
        }
        self.begin(py, inner, |isolate, request, limits| {
            isolate.begin_module(request, &Module { source: &source, name, language }, limits);
        })
    }

    /// Begins a call of a guest's function, like `begin_eval`.
    fn begin_invoke(
        &self,
        py: Python<'_>,
        function: &Bound<'_, JsFunction>,
        arguments: &Bound<'_, PyTuple>,
    ) -> PyResult<u64> {
        let inner = self.enter(py)?;
        self.invocation(py, inner, function, arguments)
    }

    /// One turn of the event loop.
    fn advance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let inner = self.enter(py)?;
        // Where it is closed, so that whoever waits is told.
        inner.isolate(py)?;
        let shared = &inner.shared;
        let mut turn = LoopTurn::default();
        for ended in shared.ended.take() {
            let request = ended.request;
            let given_up = shared.give_up(request);
            turn.ended(py, request, self.outcome(py, inner, ended), given_up)?;
        }
        let started = shared.started.take();
        turn.started(py, &shared.callbacks, started, |call, refusal| {
            inner.settle(py, call, Err(refusal));
            true
        })?;
        let stray = shared.escaped.borrow_mut().remove(&NOBODY);
        turn.escaped.extend(stray.map(|Escaped(exception)| (NOBODY, exception)));
        // Answering may have ended more, or called more.
        let more = !shared.ended.borrow().is_empty() || !shared.started.borrow().is_empty();
        turn.into_python(py, false, more.then_some(std::time::Duration::ZERO))
    }

    /// Answers an asynchronous call with a value; a value that cannot cross becomes the guest's error.
    fn answer(
        &self,
        py: Python<'_>,
        call: u64,
        function: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let inner = self.enter(py)?;
        match inner.shared.callbacks.result(value) {
            Ok(value) => {
                inner.settle(py, call, Ok(value));
                Ok(())
            }
            Err(error) => {
                let exception = error.into_value(py).into_bound(py).into_any();
                self.answer_error(py, call, function, exception)
            }
        }
    }

    /// Answers an asynchronous call with an exception, as much of it as the guest may see.
    fn answer_error(
        &self,
        py: Python<'_>,
        call: u64,
        function: &Bound<'_, PyAny>,
        exception: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let inner = self.enter(py)?;
        match inner.shared.callbacks.failed(py, function, PyErr::from_value(exception)) {
            Ok(shown) => {
                inner.settle(py, call, Err(shown));
                Ok(())
            }
            Err(Escaped(exception)) => Err(exception),
        }
    }

    /// Asks for a request's end.
    fn cancel(&self, py: Python<'_>, request: u64) -> PyResult<()> {
        let inner = self.enter(py)?;
        if let Ok(isolate) = inner.isolate(py) {
            isolate.cancel(request);
            inner.shared.collect(py, &isolate);
        }
        Ok(())
    }

    /// There is nothing to wait on: what can happen has happened when a method returns.
    #[expect(clippy::unused_self, reason = "the isolated runtime has one")]
    fn socket(&self) -> Option<Py<PyAny>> {
        None
    }

    /// Whether this thread runs a host function for the guest.
    fn is_calling(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(!self.enter(py)?.shared.running.borrow().is_empty())
    }

    /// Makes `functions` visible under `names`, global or as properties of the global `object`.
    fn bind(
        &self,
        py: Python<'_>,
        object: Option<&Bound<'_, PyString>>,
        names: Vec<Bound<'_, PyString>>,
        functions: Vec<Py<PyAny>>,
        asynchronous: Vec<bool>,
    ) -> PyResult<()> {
        let object = object.map(text_from_python).transpose()?;
        self.bind_in(py, &Place::from(object.as_ref()), &names, functions, &asynchronous)
    }

    /// Makes `functions` the exports with these names of the module that `bind_import`'s function says has them.
    fn bind_exports(
        &self,
        py: Python<'_>,
        module: &Bound<'_, PyString>,
        names: Vec<Bound<'_, PyString>>,
        functions: Vec<Py<PyAny>>,
        asynchronous: Vec<bool>,
    ) -> PyResult<()> {
        let place = Place::Module(text_from_python(module)?);
        self.bind_in(py, &place, &names, functions, &asynchronous)
    }

    /// Makes `function` the one that the guest's imports ask.
    fn bind_import(&self, py: Python<'_>, function: Py<PyAny>, asynchronous: bool) -> PyResult<()> {
        let name = PyString::intern(py, "import");
        self.bind_in(py, &Place::Import, &[name], vec![function], &[asynchronous])
    }

    /// Takes a function away from the guest; whether there was one.
    fn revoke(
        &self,
        py: Python<'_>,
        object: Option<&Bound<'_, PyString>>,
        name: &Bound<'_, PyString>,
    ) -> PyResult<bool> {
        let object = object.map(text_from_python).transpose()?;
        Ok(self.enter(py)?.shared.callbacks.revoke(object.as_ref(), &text_from_python(name)?))
    }

    /// Ends everything at once; what was under way is for whoever drives it to end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_foreign() {
            // It is the parent's to close, and a `with` block that ends in a forked child is no error.
            return Ok(());
        }
        let inner = self.enter(py)?;
        if !inner.shared.running.borrow().is_empty() {
            return Err(errors::from_host(py, &Error::Reentrant));
        }
        let isolate = inner.isolate.take();
        drop(isolate);
        inner.shared.callbacks.clear();
        Ok(())
    }

    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.enter(py)?.isolate.borrow().is_none())
    }

    /// On another thread nothing is visited, so that nothing is collected there.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.inner.get() {
            Some(inner) if !self.is_foreign() => inner.shared.callbacks.traverse(&visit),
            _ => Ok(()),
        }
    }

    fn __clear__(&self) {
        if let Some(inner) = self.inner.get().filter(|_| !self.is_foreign()) {
            drop(inner.isolate.take());
            inner.shared.callbacks.clear();
        }
    }
}

impl InProcessRuntime {
    /// Whether this process is a fork of the one that it belongs to.
    fn is_foreign(&self) -> bool {
        self.generation != fork_generation::current()
    }

    fn enter(&self, py: Python<'_>) -> PyResult<&Inner> {
        if self.is_foreign() {
            return Err(errors::from_host(py, &Error::ForeignProcess));
        }
        self.inner.get().ok_or_else(|| {
            PyRuntimeError::new_err(
                "a Runtime can be used only by the thread that made it; make one in each thread, or use \
                 IsolatedRuntime, which any thread may use",
            )
        })
    }

    fn bind_in(
        &self,
        py: Python<'_>,
        place: &Place,
        names: &[Bound<'_, PyString>],
        functions: Vec<Py<PyAny>>,
        asynchronous: &[bool],
    ) -> PyResult<()> {
        let names = names.iter().map(text_from_python).collect::<PyResult<Vec<_>>>()?;
        let inner = self.enter(py)?;
        let isolate = inner.isolate(py)?;
        let first = inner.shared.callbacks.bind(place.holder(), &names, functions);
        for (number, (name, &asynchronous)) in (first..).zip(names.iter().zip(asynchronous)) {
            let function = if asynchronous {
                let shared = Rc::clone(&inner.shared);
                engine::Bound::Asynchronous(Box::new(move |request, arguments| {
                    Ok(shared.start(request, number, arguments))
                }))
            } else {
                engine::Bound::Synchronous(inner.shared.synchronous(number))
            };
            isolate
                .bind_in(place, name, function)
                .map_err(|error| errors::from_host(py, &Error::InvalidInput { what: error.to_string() }))?;
        }
        Ok(())
    }

    /// Begins a request, which runs until nothing is left to run.
    fn begin(
        &self,
        py: Python<'_>,
        inner: &Inner,
        begin: impl FnOnce(&Isolate, u64, &EvalLimits<'_>),
    ) -> PyResult<u64> {
        let isolate = inner.isolate(py)?;
        let shared = &inner.shared;
        let released = shared.callbacks.home.take_released();
        if !released.is_empty() {
            isolate.release(&released);
        }
        let request = inner.last_request.get() + 1;
        inner.last_request.set(request);
        shared.running_for(request, || {
            let limits = EvalLimits {
                timeout: self.options.timeout,
                cancelled: &|| shared.is_interrupted(),
                max_heap_bytes: self.options.max_heap_size,
                budget: self.options.budget,
            };
            detach_here(py, || begin(&isolate, request, &limits));
        });
        shared.collect(py, &isolate);
        inner.fire_timers(py, &isolate);
        Ok(request)
    }

    fn invocation(
        &self,
        py: Python<'_>,
        inner: &Inner,
        function: &Bound<'_, JsFunction>,
        arguments: &Bound<'_, PyTuple>,
    ) -> PyResult<u64> {
        let callbacks = &inner.shared.callbacks;
        let handle = function.get().handle(&callbacks.home).map_err(|reason| {
            let what = format!("the function cannot be called: {reason}");
            errors::from_host(py, &Error::InvalidInput { what })
        })?;
        let arguments =
            arguments.iter().map(|argument| from_python(&argument, &callbacks.budget, &callbacks.home));
        let arguments = arguments.collect::<PyResult<Vec<_>>>()?;
        self.begin(py, inner, |isolate, request, limits| {
            isolate.begin_invoke(request, handle, &arguments, limits);
        })
    }

    /// The outcome of a request that nothing is left to wait for.
    fn finish<'py>(&self, py: Python<'py>, inner: &Inner, request: u64) -> PyResult<Bound<'py, PyAny>> {
        if inner.shared.running.borrow().is_empty() {
            inner.serve_streams(py, request)?;
        }
        let mut all = inner.shared.ended.borrow_mut();
        let mine = all.iter().position(|ended| ended.request == request).map(|index| all.remove(index));
        drop(all);
        if let Some(ended) = mine {
            return self.outcome(py, inner, ended);
        }
        inner.isolate(py)?.cancel(request);
        inner.shared.give_up(request);
        let what = "an asynchronous host function was called; await eval_async".to_owned();
        Err(errors::from_host(py, &Error::InvalidInput { what }))
    }

    fn outcome<'py>(&self, py: Python<'py>, inner: &Inner, ended: Ended) -> PyResult<Bound<'py, PyAny>> {
        let shared = &inner.shared;
        let escaped = shared.escaped.borrow_mut().remove(&ended.request);
        if let Some(Escaped(exception)) = escaped {
            return Err(exception);
        }
        match ended.outcome {
            Ok(value) => to_python(py, &value, &shared.callbacks.home),
            Err(failure) => {
                let is_guest_error = matches!(failure, Failure::Js(_));
                let error = errors::from_failure(py, failure, &self.options);
                if is_guest_error {
                    shared.callbacks.explain(py, &error);
                }
                Err(error)
            }
        }
    }
}
