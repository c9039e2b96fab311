//! What one turn of an event loop brings, as Python objects.

use std::time::Duration;

use pydeno_wire::Value;
use pydeno_wire::message::HostError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::functions::{Callbacks, Escaped, error_of_host};

/// An asynchronous call that a guest has made.
pub(crate) struct Started {
    pub(crate) request: u64,
    pub(crate) call: u64,
    pub(crate) function: u32,
    pub(crate) arguments: Vec<Value>,
}

/// Collects the parts of one turn: `(ended, started, escaped, wants_to_write, look_again)`, where `ended` has
/// `(request, is_value, value or exception, given_up)`, `started` has `(request, call, function, arguments)`, `escaped` has
/// `(request, exception)` and `look_again` is in seconds or `None`.
#[derive(Default)]
pub(crate) struct LoopTurn {
    ended: Vec<Py<PyAny>>,
    started: Vec<Py<PyAny>>,
    pub(crate) escaped: Vec<(u64, PyErr)>,
}

impl LoopTurn {
    pub(crate) fn ended(
        &mut self,
        py: Python<'_>,
        request: u64,
        outcome: PyResult<Bound<'_, PyAny>>,
        given_up: Vec<u64>,
    ) -> PyResult<()> {
        let is_value = outcome.is_ok();
        let payload = outcome.unwrap_or_else(|error| error.into_value(py).into_bound(py).into_any());
        let entry = (request, is_value, payload, given_up).into_pyobject(py)?;
        self.ended.push(entry.into_any().unbind());
        Ok(())
    }

    /// Adds calls to start. One whose function is revoked, or whose arguments Python has no form for, is answered at once.
    pub(crate) fn started(
        &mut self,
        py: Python<'_>,
        callbacks: &Callbacks,
        started: Vec<Started>,
        mut answer: impl FnMut(u64, HostError) -> bool,
    ) -> PyResult<()> {
        for Started { request, call, function, arguments } in started {
            let function = match callbacks.function(py, function) {
                Ok(function) => function.into_bound(py),
                Err(refusal) => {
                    answer(call, refusal);
                    continue;
                }
            };
            match callbacks.arguments(py, &arguments) {
                Ok(arguments) => {
                    let entry = (request, call, function, arguments).into_pyobject(py)?;
                    self.started.push(entry.into_any().unbind());
                }
                Err(error) => match callbacks.failed(py, &function, error) {
                    Ok(refusal) => {
                        answer(call, refusal);
                    }
                    Err(Escaped(exception)) => {
                        answer(call, error_of_host("the evaluation is being stopped"));
                        self.escaped.push((request, exception));
                    }
                },
            }
        }
        Ok(())
    }

    pub(crate) fn into_python(
        self,
        py: Python<'_>,
        wants_to_write: bool,
        look_again: Option<Duration>,
    ) -> PyResult<Bound<'_, PyTuple>> {
        let escaped: Vec<(u64, Py<PyAny>)> = self
            .escaped
            .into_iter()
            .map(|(request, exception)| (request, exception.into_value(py).into_any()))
            .collect();
        let look_again = look_again.map(|duration| duration.as_secs_f64());
        let parts = (
            PyList::new(py, self.ended)?,
            PyList::new(py, self.started)?,
            PyList::new(py, escaped)?,
            wants_to_write,
            look_again,
        );
        parts.into_pyobject(py)
    }
}
