//! What could not be converted, and the way to it.

use pydeno_wire::{Path, Segment};
use pyo3::prelude::*;

use crate::errors;

/// Why a conversion ended. The way to the place is put together on the way back, so that what is converted without a
/// fault pays nothing for it.
pub(crate) struct Unconverted(Box<Fault>);

struct Fault {
    /// Innermost first.
    steps: Vec<Segment>,
    reason: Reason,
}

enum Reason {
    /// It does not cross.
    Refused(String),
    /// Python raised.
    Raised(PyErr),
}

impl Unconverted {
    /// Something that does not cross.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self(Box::new(Fault { steps: Vec::new(), reason: Reason::Refused(reason.into()) }))
    }

    /// The same, one step further out.
    pub(crate) fn inside(mut self, step: Segment) -> Self {
        self.0.steps.push(step);
        self
    }

    /// The exception to raise.
    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        let Fault { steps, reason } = *self.0;
        match reason {
            Reason::Refused(reason) => {
                let path: Path = steps.into_iter().rev().collect();
                errors::conversion(py, &path, &reason)
            }
            Reason::Raised(exception) => exception,
        }
    }
}

impl From<PyErr> for Unconverted {
    fn from(exception: PyErr) -> Self {
        Self(Box::new(Fault { steps: Vec::new(), reason: Reason::Raised(exception) }))
    }
}
