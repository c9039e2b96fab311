//! Streams of a guest as Python objects. What is asked of one, and when it ends, is decided by `pydeno._streams`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::PyTraverseError;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use crate::js_function::Home;

/// A stream of a script: an async generator, or another object that can be iterated asynchronously.
///
/// `async for item in stream` takes one item after the other; on a `Runtime` or an `IsolatedRuntime` so does
/// `for item in stream`. Nothing of the script runs before it is asked for an item, and each time is under the limits of
/// an evaluation. Items are converted as `eval` converts. An error ends the stream, as its last item does.
///
/// Leaving the loop early ends the stream: the script's `return()` is called. Passed back to its runtime, it is the same
/// object again. The script's side is held until the stream has ended, or until this object is gone.
#[pyclass(module = "pydeno", frozen, weakref)]
pub(crate) struct JsStream {
    owner: Py<PyAny>,
    home: Arc<Home>,
    handle: u64,
    /// Whether the script's object is still held.
    open: AtomicBool,
    /// Whether it has ended, or does.
    ended: AtomicBool,
    busy: AtomicBool,
    taken: AtomicU64,
    max_items: AtomicU64,
}

impl JsStream {
    pub(crate) fn new(owner: Py<PyAny>, home: &Arc<Home>, handle: u64) -> Self {
        Self {
            owner,
            home: Arc::clone(home),
            handle,
            open: AtomicBool::new(true),
            ended: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            max_items: AtomicU64::new(u64::MAX),
        }
    }

    /// The handle, if the stream belongs here and has not ended.
    pub(crate) fn handle(&self, home: &Arc<Home>) -> Result<u64, &'static str> {
        if !Arc::ptr_eq(&self.home, home) {
            return Err("it is a stream of another runtime; a stream can be used only where it comes from");
        }
        if !self.open.load(Ordering::Relaxed) {
            return Err("it is a stream that has ended; the script's object is no longer held");
        }
        Ok(self.handle)
    }

    /// Has a function of `pydeno._streams` do something with this stream and its runtime.
    fn with<'py>(slf: &Bound<'py, Self>, function: &str) -> PyResult<Bound<'py, PyAny>> {
        static STREAMS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
        let py = slf.py();
        let module = STREAMS.get_or_try_init(py, || py.import("pydeno._streams").map(Bound::unbind))?;
        module.bind(py).getattr(function)?.call1((slf.get().owner.bind(py), slf))
    }
}

#[pymethods]
impl JsStream {
    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::with(slf, "items_async")
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::with(slf, "next_async")
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::with(slf, "items")
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::with(slf, "next_blocking")
    }

    /// End the stream: call the script's `return()`, under the limits of an evaluation, and let go of it. A second time does
    /// nothing.
    ///
    /// A host function that the script waits for cannot run the script: there it only lets go.
    fn close<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::with(slf, "close")
    }

    /// The same on the running event loop.
    fn aclose<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::with(slf, "close_async")
    }

    /// Allow at most so many items. One more ends the stream and is `StreamLimitExceeded`.
    ///
    /// Returns the stream itself: `for item in stream.limit(1000)`.
    fn limit(slf: Py<Self>, max_items: u64) -> Py<Self> {
        slf.get().max_items.store(max_items, Ordering::Relaxed);
        slf
    }

    /// Whether the stream has ended.
    #[getter]
    fn closed(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Marks the stream as ended; whether it was not before. Whoever it was tells the script and releases it.
    fn _end(&self) -> bool {
        !self.ended.swap(true, Ordering::Relaxed)
    }

    /// Marks the stream as being asked; false where it is already. `_finish` undoes it.
    fn _begin(&self) -> bool {
        !self.busy.swap(true, Ordering::Acquire)
    }

    fn _finish(&self) {
        self.busy.store(false, Ordering::Release);
    }

    /// Counts an item; whether it is within the limit.
    fn _count(&self) -> bool {
        self.taken.fetch_add(1, Ordering::Relaxed) < self.max_items.load(Ordering::Relaxed)
    }

    /// Lets go of the script's object without running any of it.
    #[pyo3(name = "_release")]
    fn release(&self) {
        self.ended.store(true, Ordering::Relaxed);
        if self.open.swap(false, Ordering::Relaxed) {
            self.home.release(self.handle);
        }
    }

    fn __repr__(&self) -> &'static str {
        if self.closed() { "<pydeno.JsStream closed>" } else { "<pydeno.JsStream>" }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        Self::with(slf, "close").map(drop)
    }

    fn __aenter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::with(slf, "itself_async")
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        slf: &Bound<'py, Self>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::with(slf, "close_async")
    }

    /// A copy would let go of the same stream twice.
    #[expect(clippy::unused_self, reason = "Python calls it on the stream")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a JsStream belongs to its runtime and can be neither copied nor pickled"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)
    }
}

impl Drop for JsStream {
    fn drop(&mut self) {
        self.release();
    }
}
