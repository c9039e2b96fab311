//! A pool of workers behind a Python object.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pydeno_host::{Interrupted, Pool as HostPool, Spare, Ticket};
use pydeno_wire::{Budget, Text};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::errors;
use crate::from_python::text_from_python;
use crate::functions::{Callbacks, Escaped, run_signal_handlers};
use crate::isolated::{IsolatedRuntime, Socket, this_process};
use crate::options;

/// The core of `pydeno.SandboxPool`.
#[pyclass(module = "pydeno._pydeno", frozen)]
pub(crate) struct Pool {
    workers: HostPool,
    budget: Budget,
    /// In the order in which the pool numbers them.
    functions: Mutex<Vec<HostFunction>>,
}

struct HostFunction {
    object: Option<Text>,
    name: Text,
    function: Py<PyAny>,
}

#[pymethods]
impl Pool {
    #[new]
    fn new(
        py: Python<'_>,
        worker: PathBuf,
        options: &Bound<'_, PyDict>,
        bootstrap: Option<&Bound<'_, PyString>>,
        template: bool,
        size: usize,
        max_workers: usize,
    ) -> PyResult<Self> {
        let settings = options::isolated(options)?;
        let budget = options::budget(&settings);
        let bootstrap = bootstrap.map(text_from_python).transpose()?;
        let supervisor = this_process(py, worker)?;
        let workers = py
            .detach(|| HostPool::new(supervisor, settings, bootstrap, template, size, max_workers))
            .map_err(|error| errors::from_host(py, &error))?;
        Ok(Self { workers, budget, functions: Mutex::default() })
    }

    /// A worker that is ready, or `None`. What a runtime reports to is in its own `options`.
    fn take(&self, py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Option<IsolatedRuntime>> {
        // It takes a microsecond, for which giving up the interpreter's lock is not worth while.
        match self.workers.take() {
            Ok(spare) => spare.map(|spare| self.runtime(py, spare, options)).transpose(),
            Err(error) => Err(errors::from_host(py, &error)),
        }
    }

    /// A worker, waiting `timeout` seconds for it.
    fn checkout(
        &self,
        py: Python<'_>,
        options: &Bound<'_, PyDict>,
        timeout: f64,
    ) -> PyResult<IsolatedRuntime> {
        let patience = seconds(timeout)?;
        let mut raised = None;
        let outcome = py.detach(|| {
            self.workers.checkout(patience, || {
                run_signal_handlers().map_err(|exception| {
                    raised = Some(exception);
                    Interrupted
                })
            })
        });
        match (outcome, raised) {
            (Ok(spare), _) => self.runtime(py, spare, options),
            (Err(_), Some(exception)) => Err(exception),
            (Err(error), None) => Err(errors::from_host(py, &error)),
        }
    }

    /// Joins the queue.
    fn wait(&self, py: Python<'_>) -> PyResult<u64> {
        self.workers.wait().map(Ticket::number).map_err(|error| errors::from_host(py, &error))
    }

    /// What the ticket has brought, once.
    fn collect(
        &self,
        py: Python<'_>,
        ticket: u64,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Option<IsolatedRuntime>> {
        match self.workers.collect(Ticket::from_number(ticket)) {
            Ok(spare) => spare.map(|spare| self.runtime(py, spare, options)).transpose(),
            Err(error) => Err(errors::from_host(py, &error)),
        }
    }

    /// Leaves the queue.
    fn withdraw(&self, ticket: u64) {
        self.workers.withdraw(Ticket::from_number(ticket));
    }

    /// Leaves the queue after `waited` seconds in vain, and raises the error that says so.
    fn time_out(&self, py: Python<'_>, ticket: u64, waited: f64) -> PyResult<()> {
        let error = self.workers.time_out(Ticket::from_number(ticket), seconds(waited)?);
        Err(errors::from_host(py, &error))
    }

    /// Readable when a ticket has brought something.
    fn bell(&self) -> Socket {
        Socket(self.workers.bell())
    }

    /// Makes the bell silent until it rings again.
    fn hush(&self) {
        self.workers.hush();
    }

    /// Makes `functions` visible in workers that are checked out from now on, as `IsolatedRuntime.bind` does.
    fn bind(
        &self,
        py: Python<'_>,
        object: Option<&Bound<'_, PyString>>,
        names: Vec<Bound<'_, PyString>>,
        functions: Vec<Py<PyAny>>,
        asynchronous: Vec<bool>,
    ) -> PyResult<()> {
        let object = object.map(text_from_python).transpose()?;
        let names = names.iter().map(text_from_python).collect::<PyResult<Vec<_>>>()?;
        let bound = names.iter().zip(functions).map(|(name, function)| HostFunction {
            object: object.clone(),
            name: name.clone(),
            function,
        });
        let remember = || self.functions.lock().unwrap_or_else(PoisonError::into_inner).extend(bound);
        self.workers
            .bind(object.as_ref(), &names, &asynchronous, remember)
            .map_err(|error| errors::from_host(py, &error))
    }

    /// The fields of `PoolStats`, in order.
    #[expect(clippy::type_complexity, reason = "one number for each field")]
    fn stats(&self, py: Python<'_>) -> PyResult<(usize, usize, usize, usize, u64, u64, u64, u64, u64)> {
        let stats = self.workers.stats().map_err(|error| errors::from_host(py, &error))?;
        Ok((
            stats.ready,
            stats.in_use,
            stats.starting,
            stats.waiting,
            stats.created,
            stats.checkouts,
            stats.waits,
            stats.timeouts,
            stats.failures,
        ))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.workers.close());
    }

    fn is_closed(&self) -> bool {
        self.workers.is_closed()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(functions) = self.functions.try_lock() {
            for bound in &*functions {
                visit.call(&bound.function)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        self.workers.close();
        let functions = std::mem::take(&mut *self.functions.lock().unwrap_or_else(PoisonError::into_inner));
        drop(functions);
    }
}

impl Pool {
    /// Gives a worker what it calls in Python, and Python what the bootstrap script has said.
    fn runtime(
        &self,
        py: Python<'_>,
        spare: Spare,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<IsolatedRuntime> {
        let callbacks = Callbacks::new(options, self.budget)?;
        {
            let functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
            for HostFunction { object, name, function } in functions.iter().take(spare.functions) {
                let function = function.clone_ref(py);
                callbacks.bind(object.as_ref(), std::slice::from_ref(name), vec![function]);
            }
        }
        for (level, text) in &spare.console {
            callbacks.console(py, *level, text).map_err(|Escaped(exception)| exception)?;
        }
        for error in spare.unhandled {
            callbacks.unhandled_rejection(py, error).map_err(|Escaped(exception)| exception)?;
        }
        Ok(IsolatedRuntime::of_runtime(spare.runtime, callbacks))
    }
}

fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))
}
