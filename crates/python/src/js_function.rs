//! Functions of a guest as Python objects, and where they and streams belong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pydeno_wire::{Function, Stream, StreamOwner, Text};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyWeakrefReference};

use crate::js_stream::JsStream;
use crate::to_python::text_to_python;

/// Where functions and streams of one guest belong.
#[derive(Default)]
pub(crate) struct Home {
    /// A weak reference to the Python runtime.
    owner: OnceLock<Py<PyWeakrefReference>>,
    /// The streams of the host that the guest may ask, once one has crossed: a `pydeno._streams.HostStreams`.
    streams: OnceLock<Py<PyAny>>,
    /// What lets streams of the host cross in the core, where that has to be told.
    streams_cross: OnceLock<Arc<AtomicBool>>,
    /// The functions and streams that nobody here holds any more.
    released: Mutex<Vec<u64>>,
}

impl Home {
    /// Says which Python object the functions are called through. Once.
    pub(crate) fn set_owner(&self, owner: &Bound<'_, PyAny>) -> PyResult<()> {
        let weak = PyWeakrefReference::new(owner)?;
        // A second owner would be a mistake of the Python front; the first stays.
        let _ = self.owner.set(weak.unbind());
        Ok(())
    }

    /// The Python object for a function.
    pub(crate) fn adopt<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        function: &Function,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = JsFunction {
            owner: self.owner(py)?,
            home: Arc::clone(self),
            handle: function.handle,
            name: function.name.clone(),
            open: AtomicBool::new(true),
        };
        Ok(Bound::new(py, function)?.into_any())
    }

    /// The Python object for a stream of the guest; one of the host's does not come back.
    pub(crate) fn adopt_stream<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        stream: Stream,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if stream.owner != StreamOwner::Guest {
            return Ok(None);
        }
        let stream = JsStream::new(self.owner(py)?, self, stream.handle);
        Ok(Some(Bound::new(py, stream)?.into_any()))
    }

    fn owner(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.owner.get() {
            Some(weak) => weak.bind(py).call0().map(Bound::unbind),
            None => Ok(py.None()),
        }
    }

    /// Has the core told when the first stream of the host is to cross. Once.
    pub(crate) fn set_streams_cross(&self, switch: Arc<AtomicBool>) {
        // A second core would be a mistake; the first stays.
        let _ = self.streams_cross.set(switch);
    }

    /// The streams of the host that the guest may ask, if any has crossed.
    pub(crate) fn streams(&self) -> Option<&Py<PyAny>> {
        self.streams.get()
    }

    /// The same for a first one; `None` where there is no Python runtime to ask them through, and none crosses.
    pub(crate) fn make_streams(&self, py: Python<'_>) -> PyResult<Option<&Py<PyAny>>> {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if let (None, Some(owner)) = (self.streams.get(), self.owner.get()) {
            let class = CLASS.import(py, "pydeno._streams", "HostStreams")?;
            // Another thread may have made one meanwhile; the first stays.
            let _ = self.streams.set(class.call1((owner.bind(py),))?.unbind());
            if let Some(streams_cross) = self.streams_cross.get() {
                streams_cross.store(true, Ordering::Relaxed);
            }
        }
        Ok(self.streams.get())
    }

    /// Remembers that nobody here holds a function or stream any more.
    pub(crate) fn release(&self, handle: u64) {
        self.released.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
    }

    /// What is to be told to the engine.
    pub(crate) fn take_released(&self) -> Vec<u64> {
        std::mem::take(&mut *self.released.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A function of a script, callable from Python.
///
/// A call runs in the script's runtime and under the limits of an evaluation. Arguments and result are converted as
/// `eval` converts; `this` is `undefined`. Passed back to its runtime, it is the same function again.
///
/// The script's side is held until `close()`, or until this object is gone.
#[pyclass(module = "pydeno", frozen, weakref)]
pub(crate) struct JsFunction {
    owner: Py<PyAny>,
    home: Arc<Home>,
    handle: u64,
    name: Text,
    open: AtomicBool,
}

impl JsFunction {
    /// The handle, if the function belongs here and has not been closed.
    pub(crate) fn handle(&self, home: &Arc<Home>) -> Result<u64, &'static str> {
        if !Arc::ptr_eq(&self.home, home) {
            return Err(
                "it is a function of another runtime; a function can be used only where it comes from",
            );
        }
        if !self.open.load(Ordering::Relaxed) {
            return Err("it is a function that has been closed; keep it open for as long as it is used");
        }
        Ok(self.handle)
    }
}

#[pymethods]
impl JsFunction {
    /// Call the function and return its value, as the runtime's `eval` does.
    ///
    /// On an `AsyncIsolatedRuntime` the call returns an awaitable.
    #[pyo3(signature = (*args))]
    fn __call__<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        slf.get().owner.bind(py).call_method1(intern!(py, "_call_function"), (slf, args))
    }

    /// Call the function on the running event loop; the awaitable gives its value.
    #[pyo3(signature = (*args))]
    fn call_async<'py>(slf: &Bound<'py, Self>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        slf.get().owner.bind(py).call_method1(intern!(py, "_call_function_async"), (slf, args))
    }

    /// Let go of the script's function; a second time does nothing.
    fn close(&self) {
        if self.open.swap(false, Ordering::Relaxed) {
            self.home.release(self.handle);
        }
    }

    /// Whether the function has been closed.
    #[getter]
    fn closed(&self) -> bool {
        !self.open.load(Ordering::Relaxed)
    }

    /// The function's name in the script, `""` when it has none.
    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        text_to_python(py, &self.name).map(Bound::into_any)
    }

    fn __repr__(&self) -> String {
        let name = self.name.display_safe().to_string();
        let name = if name.is_empty() { "(anonymous)".to_owned() } else { name };
        let closed = if self.closed() { ", closed" } else { "" };
        format!("<pydeno.JsFunction {name}{closed}>")
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    /// A copy would let go of the same function twice.
    #[expect(clippy::unused_self, reason = "Python calls it on the function")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(pyo3::exceptions::PyTypeError::new_err(
            "a JsFunction belongs to its runtime and can be neither copied nor pickled",
        ))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)
    }
}

impl Drop for JsFunction {
    fn drop(&mut self) {
        self.close();
    }
}
