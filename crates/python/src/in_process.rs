//! `Runtime`: an engine in this process.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pydeno_engine::{Engine, EvalLimits, Isolate, IsolateOptions, Surface};
use pydeno_host::Error;
use pydeno_wire::message::{Failure, HostError};
use pydeno_wire::{Text, Value};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::errors;
use crate::from_python::text_from_python;
use crate::functions::{Callbacks, Escaped, Raised, run_signal_handlers};
use crate::options::{self, InProcessOptions};
use crate::thread_bound::{ThreadBound, detach_here};
use crate::to_python::to_python;

/// The core of `pydeno.Runtime`.
#[pyclass(module = "pydeno._pydeno", frozen)]
pub(crate) struct InProcessRuntime {
    inner: ThreadBound<Inner>,
    options: InProcessOptions,
    process: u32,
}

struct Inner {
    /// Empty once closed.
    isolate: RefCell<Option<Isolate>>,
    shared: Rc<Shared>,
}

/// What the bound functions of one isolate share.
struct Shared {
    callbacks: Callbacks,
    escaped: RefCell<Option<Escaped>>,
    raised: RefCell<Option<Raised>>,
    interrupted: Cell<bool>,
}

#[pymethods]
impl InProcessRuntime {
    #[new]
    fn new(py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let settings = options::in_process(options)?;
        let redact = options.get_item("redact_host_errors")?.map_or(Ok(true), |value| value.extract())?;
        let on_console = options.get_item("on_console")?.filter(|value| !value.is_none()).map(Bound::unbind);
        let engine = Engine::load().map_err(|error| {
            errors::from_host(py, &Error::EngineUnavailable { reason: error.to_string() })
        })?;
        let shared = Rc::new(Shared {
            callbacks: Callbacks { budget: settings.budget, redact, on_console },
            escaped: RefCell::default(),
            raised: RefCell::default(),
            interrupted: Cell::default(),
        });
        let mut isolate =
            Isolate::new(engine, &IsolateOptions { surface: Surface::Full, ..IsolateOptions::default() })
                .map_err(|error| {
                    errors::from_host(py, &Error::EngineUnavailable { reason: error.to_string() })
                })?;
        if settings.console {
            let console = Rc::clone(&shared);
            isolate.set_console(Box::new(move |level, text: Text| {
                Python::attach(|py| console.callbacks.console(py, level, &text));
            }));
        }
        let inner = Inner { isolate: RefCell::new(Some(isolate)), shared };
        Ok(Self { inner: ThreadBound::new(inner), options: settings, process: std::process::id() })
    }

    /// Evaluates `source`; `name` stands for it in stacks.
    fn eval<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyString>,
        name: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let source = text_from_python(source)?;
        let inner = self.enter(py)?;
        let mut isolate =
            inner.isolate.try_borrow_mut().map_err(|_| errors::from_host(py, &Error::Reentrant))?;
        let isolate = isolate.as_mut().ok_or_else(|| errors::from_host(py, &Error::Closed))?;
        let shared = &inner.shared;
        shared.interrupted.set(false);
        let outcome = self.run(py, isolate, shared, &source, name);
        if let Some(Escaped(exception)) = shared.escaped.take() {
            return Err(exception);
        }
        let raised = shared.raised.take();
        match outcome {
            Ok(value) => to_python(py, &value),
            Err(failure) => {
                let is_guest_error = matches!(failure, Failure::Js(_));
                let error = errors::from_failure(py, failure, &self.options);
                if let Some(raised) = raised.filter(|_| is_guest_error) {
                    raised.explain(py, &error);
                }
                Err(error)
            }
        }
    }

    /// Makes `functions` visible under `names`, global or as properties of the global `object`.
    fn bind(
        &self,
        py: Python<'_>,
        object: Option<&Bound<'_, PyString>>,
        names: Vec<Bound<'_, PyString>>,
        functions: Vec<Py<PyAny>>,
    ) -> PyResult<()> {
        let object = object.map(text_from_python).transpose()?;
        let inner = self.enter(py)?;
        let mut isolate =
            inner.isolate.try_borrow_mut().map_err(|_| errors::from_host(py, &Error::Reentrant))?;
        let isolate = isolate.as_mut().ok_or_else(|| errors::from_host(py, &Error::Closed))?;
        for (name, function) in names.iter().zip(functions) {
            let shared = Rc::clone(&inner.shared);
            let call = move |arguments: Vec<Value>| shared.call(&function, &arguments);
            isolate
                .bind(object.as_ref(), &text_from_python(name)?, Box::new(call))
                .map_err(|error| errors::from_host(py, &Error::InvalidInput { what: error.to_string() }))?;
        }
        Ok(())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.enter(py)?;
        let mut isolate =
            inner.isolate.try_borrow_mut().map_err(|_| errors::from_host(py, &Error::Reentrant))?;
        isolate.take();
        Ok(())
    }

    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.enter(py)?.isolate.try_borrow().is_ok_and(|isolate| isolate.is_none()))
    }
}

impl InProcessRuntime {
    fn enter(&self, py: Python<'_>) -> PyResult<&Inner> {
        if self.process != std::process::id() {
            return Err(errors::from_host(py, &Error::ForeignProcess));
        }
        self.inner.get().ok_or_else(|| {
            PyRuntimeError::new_err(
                "a Runtime can be used only by the thread that made it; make one in each thread, or use \
                 IsolatedRuntime, which any thread may use",
            )
        })
    }

    fn run(
        &self,
        py: Python<'_>,
        isolate: &mut Isolate,
        shared: &Shared,
        source: &Text,
        name: &str,
    ) -> Result<Value, Failure> {
        let cancelled = || shared.is_interrupted();
        let limits = EvalLimits {
            timeout: self.options.timeout,
            cancelled: &cancelled,
            max_heap_bytes: self.options.max_heap_size,
            budget: self.options.budget,
        };
        detach_here(py, || isolate.eval(source, name, &limits))
    }
}

impl Shared {
    fn call(&self, function: &Py<PyAny>, arguments: &[Value]) -> Result<Value, HostError> {
        Python::attach(|py| {
            let mut raised = None;
            let called = self.callbacks.call(py, function.bind(py), arguments, &mut raised);
            if raised.is_some() {
                self.raised.replace(raised);
            }
            called.unwrap_or_else(|escaped| {
                self.escape(escaped);
                Err(HostError { name: "Error".into(), message: "the evaluation is being stopped".into() })
            })
        })
    }

    fn escape(&self, escaped: Escaped) {
        self.interrupted.set(true);
        self.escaped.borrow_mut().get_or_insert(escaped);
    }

    /// Whether Python wants the evaluation to end: a host function let an exception escape, or Ctrl-C was pressed.
    fn is_interrupted(&self) -> bool {
        if self.interrupted.get() {
            return true;
        }
        match run_signal_handlers() {
            Ok(()) => false,
            Err(exception) => {
                self.escape(Escaped(exception));
                true
            }
        }
    }
}
