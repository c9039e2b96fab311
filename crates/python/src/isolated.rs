//! `IsolatedRuntime`: a worker behind a Python object.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pydeno_host::{
    Ended, Error, HostFunctions, Interrupted, Options, Runtime, Supervisor, WorkerBinary, ZygoteRotation,
    supervisor,
};
use pydeno_wire::message::{ConsoleLevel, HostError, JsError, Place, STREAMS, StreamRequest, WasmModule};
use pydeno_wire::{Text, Value};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::errors;
use crate::from_python::{from_python, text_from_python};
use crate::functions::{Callbacks, Escaped, run_signal_handlers};
use crate::js_function::JsFunction;
use crate::js_stream::JsStream;
use crate::loop_turn::{LoopTurn, Started};
use crate::options;
use crate::to_python::to_python;
use crate::wasm::{WasmOutline, import_names, remember};

/// The core of `pydeno.IsolatedRuntime`.
#[pyclass(module = "pydeno._pydeno", frozen)]
pub(crate) struct IsolatedRuntime {
    runtime: Runtime,
    callbacks: Callbacks,
    /// Asynchronous calls that the event loop has not been told of.
    started: Mutex<Vec<Started>>,
}

/// The host's end of a worker's socket, for an event loop to wait on. It stays open for as long as this object lives,
/// also when the runtime is closed, so that the loop never waits on a number that means something else by then.
#[pyclass(module = "pydeno._pydeno", frozen)]
pub(crate) struct Socket(pub(crate) Arc<OwnedFd>);

#[pymethods]
impl Socket {
    fn fileno(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

pub(crate) fn this_process(py: Python<'_>, worker: PathBuf) -> PyResult<&'static Arc<Supervisor>> {
    py.detach(|| {
        supervisor(|| {
            let engine_library: Option<OsString> =
                std::env::var_os("PYDENO_JSC").filter(|path| !path.is_empty());
            Ok(WorkerBinary { path: worker, engine_library })
        })
    })
    .map_err(|error| errors::from_host(py, &error))
}

/// Sets after how many workers and how many seconds a zygote of this process is replaced.
#[pyfunction]
pub(crate) fn set_zygote_rotation(
    py: Python<'_>,
    worker: PathBuf,
    max_workers: u32,
    max_age: f64,
) -> PyResult<()> {
    let max_age =
        Duration::try_from_secs_f64(max_age).map_err(|error| PyValueError::new_err(error.to_string()))?;
    this_process(py, worker)?.set_rotation(ZygoteRotation { max_workers, max_age });
    Ok(())
}

/// Closes every isolated runtime and ends every zygote; for the end of the process, after which nobody could wait for
/// their workers.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>, worker: PathBuf) -> PyResult<()> {
    let supervisor = this_process(py, worker)?;
    py.detach(|| supervisor.shut_down());
    Ok(())
}

#[pymethods]
impl IsolatedRuntime {
    #[new]
    fn new(py: Python<'_>, worker: PathBuf, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let settings: Options = options::isolated(options)?;
        let callbacks = Callbacks::new(options, options::budget(&settings))?;
        let supervisor = this_process(py, worker)?;
        let runtime = py
            .detach(|| Runtime::new(supervisor, settings))
            .map_err(|error| errors::from_host(py, &error))?;
        Ok(Self::of_runtime(runtime, callbacks))
    }

    /// Says through which Python object functions of the guest are called.
    fn set_owner(&self, owner: &Bound<'_, PyAny>) -> PyResult<()> {
        self.callbacks.home.set_owner(owner)
    }

    /// The streams of the host that the guest may ask, or `None` where none has crossed.
    fn streams(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.callbacks.home.streams().map(|streams| streams.clone_ref(py))
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
        self.callbacks.forget_raised();
        self.blocking(py, |host| self.runtime.eval(source, name, language, redeclare, host))
    }

    /// Evaluates a module; the value is a dict of its exports.
    fn eval_module<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyString>,
        name: &str,
        language: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let source = text_from_python(source)?;
        let language = options::language(language)?;
        self.callbacks.forget_raised();
        self.blocking(py, |host| self.runtime.eval_module(source, name, language, host))
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
        let module = outline.module(name, code, &functions)?;
        self.callbacks.forget_raised();
        let remember = self.remember_imports(&module, functions);
        self.blocking(py, |host| self.runtime.load_wasm(module, remember, host))
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
        let module = outline.module(name, code, &functions)?;
        self.tell_released();
        let remember = self.remember_imports(&module, functions);
        py.detach(|| self.runtime.begin_load_wasm(module, remember))
            .map_err(|error| errors::from_host(py, &error))
    }

    /// Calls a function of the guest.
    fn invoke<'py>(
        &self,
        py: Python<'py>,
        function: &Bound<'py, JsFunction>,
        arguments: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (function, arguments) = self.invocation(function, arguments)?;
        self.blocking(py, |host| self.runtime.invoke(function, arguments, host))
    }

    /// Asks a stream of the guest for its next item, or to end.
    fn pull<'py>(
        &self,
        py: Python<'py>,
        stream: &Bound<'py, JsStream>,
        ends: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.stream(stream)?;
        self.blocking(py, |host| self.runtime.pull(handle, stream_request(ends), host))
    }

    /// Begins to ask a stream, like `begin_eval`.
    fn begin_pull(&self, py: Python<'_>, stream: &Bound<'_, JsStream>, ends: bool) -> PyResult<u64> {
        let handle = self.stream(stream)?;
        self.tell_released();
        py.detach(|| self.runtime.begin_pull(handle, stream_request(ends)))
            .map_err(|error| errors::from_host(py, &error))
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
        self.tell_released();
        py.detach(|| self.runtime.begin_eval(source, name, language, redeclare))
            .map_err(|error| errors::from_host(py, &error))
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
        self.tell_released();
        py.detach(|| self.runtime.begin_eval_module(source, name, language))
            .map_err(|error| errors::from_host(py, &error))
    }

    /// Begins a call of a guest's function, like `begin_eval`.
    fn begin_invoke(
        &self,
        py: Python<'_>,
        function: &Bound<'_, JsFunction>,
        arguments: &Bound<'_, PyTuple>,
    ) -> PyResult<u64> {
        let (function, arguments) = self.invocation(function, arguments)?;
        self.tell_released();
        py.detach(|| self.runtime.begin_invoke(function, arguments))
            .map_err(|error| errors::from_host(py, &error))
    }

    /// One turn of the event loop.
    fn advance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut host = Host { runtime: self, escaped: HashMap::new() };
        let progress = py.detach(|| self.runtime.advance(&mut host));
        let mut escaped = host.escaped;
        let progress = match progress {
            Ok(progress) => progress,
            // What a host function raised matters more than that its evaluation could not go on.
            Err(error) => {
                let raised = escaped.drain().next().map(|(_, Escaped(exception))| exception);
                return Err(raised.unwrap_or_else(|| errors::from_host(py, &error)));
            }
        };
        let mut turn = LoopTurn::default();
        for Ended { request, outcome, given_up } in progress.ended {
            let outcome = match (escaped.remove(&request), outcome) {
                (Some(Escaped(exception)), _) => Err(exception),
                (None, Ok(value)) => to_python(py, &value, &self.callbacks.home),
                (None, Err(error)) => Err(self.exception(py, &error)),
            };
            turn.ended(py, request, outcome, given_up)?;
        }
        // A function that was interrupted in an evaluation that has not ended yet.
        turn.escaped.extend(escaped.into_iter().map(|(request, Escaped(exception))| (request, exception)));
        let started = std::mem::take(&mut *self.started.lock().unwrap_or_else(PoisonError::into_inner));
        turn.started(py, &self.callbacks, started, |call, error| {
            self.runtime.answer(call, Err(error)).is_ok()
        })?;
        turn.into_python(py, progress.wants_to_write, progress.look_again)
    }

    /// Answers an asynchronous call with a value; a value that cannot cross becomes the guest's error.
    fn answer(
        &self,
        py: Python<'_>,
        call: u64,
        function: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match self.callbacks.result(value) {
            Ok(value) => self.tell_answer(py, call, Ok(value)),
            Err(error) => {
                self.answer_error(py, call, function, PyErr::into_value(error, py).into_bound(py).into_any())
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
        let shown = self.callbacks.failed(py, function, PyErr::from_value(exception));
        match shown {
            Ok(shown) => self.tell_answer(py, call, Err(shown)),
            Err(Escaped(exception)) => Err(exception),
        }
    }

    /// Asks for a request's end.
    fn cancel(&self, py: Python<'_>, request: u64) -> PyResult<()> {
        py.detach(|| self.runtime.cancel(request)).map_err(|error| errors::from_host(py, &error))
    }

    /// The socket to wait on, or `None` once closed.
    fn socket(&self) -> Option<Socket> {
        self.runtime.socket().map(Socket)
    }

    /// Whether this thread runs a host function for the guest.
    fn is_calling(&self) -> bool {
        self.runtime.is_calling()
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
    fn revoke(&self, object: Option<&Bound<'_, PyString>>, name: &Bound<'_, PyString>) -> PyResult<bool> {
        let object = object.map(text_from_python).transpose()?;
        Ok(self.callbacks.revoke(object.as_ref(), &text_from_python(name)?))
    }

    fn close(&self) {
        self.runtime.close();
    }

    fn terminate(&self) {
        self.runtime.terminate();
    }

    fn is_closed(&self) -> bool {
        self.runtime.is_closed()
    }

    /// The sandbox's layers as a list of `(name, applied, detail, fix)`.
    fn layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        errors::layers_to_python(py, &self.runtime.sandbox().layers)
    }

    /// Whether no layer that is required is missing; `layers` says which.
    fn is_complete(&self) -> bool {
        self.runtime.sandbox().layers.iter().all(|layer| layer.applied || layer.name == "empty_root")
    }

    #[getter]
    fn worker_pid(&self) -> i32 {
        self.runtime.worker_pid()
    }

    #[getter]
    fn engine(&self) -> &str {
        self.runtime.engine()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callbacks.traverse(&visit)
    }

    fn __clear__(&self) {
        self.runtime.close();
        self.callbacks.clear();
    }
}

impl IsolatedRuntime {
    pub(crate) fn of_runtime(runtime: Runtime, callbacks: Callbacks) -> Self {
        callbacks.home.set_streams_cross(runtime.streams());
        Self { runtime, callbacks, started: Mutex::default() }
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
        py.detach(|| {
            self.runtime.bind_in(place, &names, asynchronous, |first| {
                let remembered = self.callbacks.bind(place.holder(), &names, functions);
                debug_assert_eq!(first, remembered);
            })
        })
        .map_err(|error| errors::from_host(py, &error))
    }

    /// Remembers what a module imports when it has got its number.
    fn remember_imports(
        &self,
        module: &WasmModule,
        functions: Vec<Py<PyAny>>,
    ) -> impl FnOnce(u32) + Send + use<'_> {
        let (name, imports) = (module.name.to_string_lossy().into_owned(), import_names(module));
        move |first| {
            let remembered = remember(&self.callbacks, &name, imports, functions);
            debug_assert_eq!(first, remembered);
        }
    }

    fn blocking<'py>(
        &self,
        py: Python<'py>,
        run: impl FnOnce(&mut dyn HostFunctions) -> Result<Value, Error> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.tell_released();
        if !self.runtime.is_calling() {
            // Calls that an evaluation has left behind: nobody waits for them any more.
            self.started.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        let mut host = Host { runtime: self, escaped: HashMap::new() };
        let outcome = py.detach(|| run(&mut host));
        if let Some((_, Escaped(exception))) = host.escaped.drain().next() {
            return Err(exception);
        }
        match outcome {
            Ok(value) => to_python(py, &value, &self.callbacks.home),
            Err(error) => Err(self.exception(py, &error)),
        }
    }

    fn exception(&self, py: Python<'_>, error: &Error) -> PyErr {
        let exception = errors::from_host(py, error);
        if matches!(error, Error::Js(_)) {
            self.callbacks.explain(py, &exception);
        }
        exception
    }

    fn invocation(
        &self,
        function: &Bound<'_, JsFunction>,
        arguments: &Bound<'_, PyTuple>,
    ) -> PyResult<(u64, Vec<Value>)> {
        let py = function.py();
        let home = &self.callbacks.home;
        let handle = function.get().handle(home).map_err(|reason| {
            errors::from_host(
                py,
                &Error::InvalidInput { what: format!("the function cannot be called: {reason}") },
            )
        })?;
        let arguments = arguments.iter().map(|argument| from_python(&argument, &self.callbacks.budget, home));
        Ok((handle, arguments.collect::<PyResult<_>>()?))
    }

    fn stream(&self, stream: &Bound<'_, JsStream>) -> PyResult<u64> {
        let handle = stream.get().handle(&self.callbacks.home);
        handle.map_err(|reason| stream_cannot_be_asked(stream.py(), reason))
    }

    fn tell_released(&self) {
        let released = self.callbacks.home.take_released();
        if !released.is_empty() {
            self.runtime.release(&released);
        }
    }

    /// An answer that comes too late, to a runtime that is closed, is nobody's concern.
    fn tell_answer(&self, py: Python<'_>, call: u64, outcome: Result<Value, HostError>) -> PyResult<()> {
        match py.detach(|| self.runtime.answer(call, outcome)) {
            Ok(()) | Err(Error::Closed | Error::Terminated) => Ok(()),
            Err(error) => Err(errors::from_host(py, &error)),
        }
    }
}

pub(crate) fn stream_request(ends: bool) -> StreamRequest {
    if ends { StreamRequest::Return } else { StreamRequest::Next }
}

pub(crate) fn stream_cannot_be_asked(py: Python<'_>, reason: &str) -> PyErr {
    let what = format!("the stream cannot be asked: {reason}");
    errors::from_host(py, &Error::InvalidInput { what })
}

/// One evaluation's, or one turn's, view of Python.
struct Host<'a> {
    runtime: &'a IsolatedRuntime,
    /// What host functions raised that no guest may catch, by request; 0 for what came while nothing was called.
    escaped: HashMap<u64, Escaped>,
}

impl Host<'_> {
    fn escape(&mut self, request: u64, escaped: Escaped) -> Interrupted {
        self.escaped.entry(request).or_insert(escaped);
        Interrupted
    }
}

impl HostFunctions for Host<'_> {
    fn call(
        &mut self,
        request: u64,
        function: u32,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, HostError>, Interrupted> {
        Python::attach(|py| {
            let called = self.runtime.callbacks.call(py, function, &arguments);
            called.map_err(|escaped| self.escape(request, escaped))
        })
    }

    fn start(&mut self, request: u64, call: u64, function: u32, arguments: Vec<Value>) {
        let mut started = self.runtime.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.push(Started { request, call, function, arguments });
    }

    fn take_stream_call(&mut self) -> Option<(u64, u64, Vec<Value>)> {
        let mut started = self.runtime.started.lock().unwrap_or_else(PoisonError::into_inner);
        let index = started.iter().position(|started| started.function == STREAMS)?;
        let Started { request, call, arguments, .. } = started.remove(index);
        Some((request, call, arguments))
    }

    fn console(&mut self, level: ConsoleLevel, text: Text) -> Result<(), Interrupted> {
        Python::attach(|py| {
            let taken = self.runtime.callbacks.console(py, level, &text);
            taken.map_err(|escaped| self.escape(0, escaped))
        })
    }

    fn unhandled_rejection(&mut self, error: JsError) -> Result<(), Interrupted> {
        Python::attach(|py| {
            let taken = self.runtime.callbacks.unhandled_rejection(py, error);
            taken.map_err(|escaped| self.escape(0, escaped))
        })
    }

    fn check_interrupt(&mut self) -> Result<(), Interrupted> {
        run_signal_handlers().map_err(|exception| self.escape(0, Escaped(exception)))
    }
}
