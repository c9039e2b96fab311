//! `IsolatedRuntime`: a worker behind a Python object.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pydeno_host::{
    Error, HostFunctions, Interrupted, Options, Runtime, Supervisor, WorkerBinary, ZygoteRotation, supervisor,
};
use pydeno_wire::message::{ConsoleLevel, HostError};
use pydeno_wire::{Budget, Text, Value};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use std::sync::Arc;

use crate::errors;
use crate::from_python::text_from_python;
use crate::functions::{Callbacks, Escaped, Raised, run_signal_handlers};
use crate::options;
use crate::to_python::to_python;

/// The core of `pydeno.IsolatedRuntime`.
#[pyclass(module = "pydeno._pydeno", frozen)]
pub(crate) struct IsolatedRuntime {
    runtime: Runtime,
    functions: Functions,
    callbacks: Callbacks,
}

/// The bound functions, by the number that the worker knows them by.
#[derive(Default)]
struct Functions(Mutex<Vec<Py<PyAny>>>);

impl Functions {
    fn lock(&self) -> MutexGuard<'_, Vec<Py<PyAny>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn this_process(py: Python<'_>, worker: PathBuf) -> PyResult<&'static Arc<Supervisor>> {
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
        let redact = options.get_item("redact_host_errors")?.map_or(Ok(true), |value| value.extract())?;
        let on_console = options.get_item("on_console")?.filter(|value| !value.is_none()).map(Bound::unbind);
        let budget = Budget {
            bytes: usize::try_from(settings.max_value_bytes).unwrap_or(usize::MAX),
            nodes: usize::try_from(settings.max_value_nodes).unwrap_or(usize::MAX),
            depth: settings.max_value_depth,
        };
        let supervisor = this_process(py, worker)?;
        let runtime = py
            .detach(|| Runtime::new(supervisor, settings))
            .map_err(|error| errors::from_host(py, &error))?;
        Ok(Self {
            runtime,
            functions: Functions::default(),
            callbacks: Callbacks { budget, redact, on_console },
        })
    }

    /// Evaluates `source`; `name` stands for it in stacks.
    fn eval<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyString>,
        name: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let source = text_from_python(source)?;
        let mut host = Host { runtime: self, escaped: None, raised: None };
        let outcome = py.detach(|| self.runtime.eval(source, name, &mut host));
        let Host { escaped, raised, .. } = host;
        if let Some(Escaped(exception)) = escaped {
            return Err(exception);
        }
        match outcome {
            Ok(value) => to_python(py, &value),
            Err(error) => {
                let is_guest_error = matches!(error, Error::Js(_));
                let error = errors::from_host(py, &error);
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
        let names = names.iter().map(text_from_python).collect::<PyResult<Vec<_>>>()?;
        // The list's lock is taken inside the runtime's, as an evaluation takes them: another order could wait for ever.
        py.detach(|| {
            self.runtime.bind(object.as_ref(), &names, |first| {
                let mut bound = self.functions.lock();
                debug_assert_eq!(first as usize, bound.len(), "every binding goes through here");
                bound.extend(functions);
            })
        })
        .map_err(|error: Error| errors::from_host(py, &error))
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

    #[getter]
    fn worker_pid(&self) -> i32 {
        self.runtime.worker_pid()
    }

    #[getter]
    fn engine(&self) -> &str {
        self.runtime.engine()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(functions) = self.functions.0.try_lock() {
            for function in &*functions {
                visit.call(function)?;
            }
        }
        self.callbacks.on_console.as_ref().map_or(Ok(()), |on_console| visit.call(on_console))
    }

    fn __clear__(&self) {
        self.runtime.close();
        self.functions.lock().clear();
    }
}

/// One evaluation's view of Python.
struct Host<'a> {
    runtime: &'a IsolatedRuntime,
    escaped: Option<Escaped>,
    raised: Option<Raised>,
}

impl Host<'_> {
    fn escape(&mut self, exception: PyErr) -> Interrupted {
        self.escaped.get_or_insert(Escaped(exception));
        Interrupted
    }
}

impl HostFunctions for Host<'_> {
    fn call(
        &mut self,
        function: u32,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, HostError>, Interrupted> {
        Python::attach(|py| {
            let function = {
                let functions = self.runtime.functions.lock();
                functions[function as usize].clone_ref(py)
            };
            let called = self.runtime.callbacks.call(py, function.bind(py), &arguments, &mut self.raised);
            called.map_err(|Escaped(exception)| self.escape(exception))
        })
    }

    fn console(&mut self, level: ConsoleLevel, text: Text) {
        Python::attach(|py| self.runtime.callbacks.console(py, level, &text));
    }

    fn check_interrupt(&mut self) -> Result<(), Interrupted> {
        run_signal_handlers().map_err(|exception| self.escape(exception))
    }
}
