//! Python objects as values.

use std::sync::Arc;

use pydeno_wire::{BigInt, Budget, Function, MAX_SAFE_INTEGER, Segment, Stream, StreamOwner, Text, Value};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple};

use crate::js_function::{Home, JsFunction};
use crate::js_stream::JsStream;
use crate::to_python::epoch;
use crate::unconverted::Unconverted;
use crate::undefined::UndefinedType;
use crate::{bytes_like, hint};

/// The value of a Python object.
///
/// # Errors
///
/// `ConversionError`, with the path to what cannot cross and what to do instead.
pub(crate) fn from_python(object: &Bound<'_, PyAny>, budget: &Budget, home: &Arc<Home>) -> PyResult<Value> {
    let mut conversion = FromPython {
        around: Vec::new(),
        depth: budget.effective_depth(),
        nodes: budget.nodes,
        home,
        opened: Vec::new(),
    };
    let converted = conversion.convert(object);
    if converted.is_err() {
        conversion.forget_streams(object.py());
    }
    converted.map_err(|unconverted| unconverted.into_exception(object.py()))
}

struct FromPython<'py, 'h> {
    /// The containers around the current object, to see one that contains itself.
    around: Vec<Bound<'py, PyAny>>,
    depth: u32,
    nodes: usize,
    home: &'h Arc<Home>,
    /// The streams of the host that have been opened for this value.
    opened: Vec<u64>,
}

impl<'py> FromPython<'py, '_> {
    /// Recursion is bounded by `depth`.
    fn convert(&mut self, object: &Bound<'py, PyAny>) -> Result<Value, Unconverted> {
        if self.nodes == 0 {
            return Err(refuse(object, "the value has more parts than `max_serialization_bytes` allows"));
        }
        self.nodes -= 1;
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Value::String(text_from_python(text)?));
        }
        if object.is_none() {
            return Ok(Value::Null);
        }
        if let Ok(value) = object.cast::<PyBool>() {
            return Ok(Value::Bool(value.is_true()));
        }
        if let Ok(value) = object.cast::<PyInt>() {
            return Ok(integer(value)?);
        }
        if let Ok(value) = object.cast::<PyFloat>() {
            return Ok(Value::Number(value.value()));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            return self.within(object, |this| this.object(dict));
        }
        if let Ok(list) = object.cast::<PyList>() {
            return self.within(object, |this| this.items(list.iter(), Segment::Index).map(Value::Array));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return self.within(object, |this| this.items(tuple.iter(), Segment::Index).map(Value::Array));
        }
        if object.is_instance_of::<UndefinedType>() {
            return Ok(Value::Undefined);
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
        }
        self.convert_rarer(object)
    }

    fn convert_rarer(&mut self, object: &Bound<'py, PyAny>) -> Result<Value, Unconverted> {
        if let Ok(set) = object.cast::<PySet>() {
            return self.within(object, |this| this.items(set.iter(), Segment::Member).map(Value::Set));
        }
        if let Ok(set) = object.cast::<PyFrozenSet>() {
            return self.within(object, |this| this.items(set.iter(), Segment::Member).map(Value::Set));
        }
        if let Ok(function) = object.cast::<JsFunction>() {
            let handle = function.get().handle(self.home).map_err(Unconverted::refused)?;
            return Ok(Value::Function(Function { handle, name: Text::default() }));
        }
        if let Ok(stream) = object.cast::<JsStream>() {
            let handle = stream.get().handle(self.home).map_err(Unconverted::refused)?;
            return Ok(Value::Stream(Stream { handle, owner: StreamOwner::Guest }));
        }
        if object.is_instance(datetime_class(object.py())?)? {
            return date(object);
        }
        if let Some(bytes) = bytes_like::bytes(object)? {
            return Ok(Value::Bytes(bytes));
        }
        if let Some(number) = number_of_an_array_library(object)? {
            return self.convert(&number);
        }
        // Whatever else says that it is exactly an integer.
        if let Ok(index) = object.call_method0(intern!(object.py(), "__index__")) {
            return Ok(integer(index.cast::<PyInt>().map_err(PyErr::from)?)?);
        }
        if let Some(handle) = self.open_stream(object)? {
            return Ok(Value::Stream(Stream { handle, owner: StreamOwner::Host }));
        }
        Err(refuse(object, hint::for_object(object)))
    }

    /// Opens a stream of the host for an async iterable or a generator; `None` for anything else, and where none crosses.
    fn open_stream(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<u64>> {
        let py = object.py();
        let is_async = object.get_type().hasattr(intern!(py, "__aiter__"))?;
        if !is_async && !object.is_instance(generator_class(py)?)? {
            return Ok(None);
        }
        let Some(streams) = self.home.make_streams(py)? else { return Ok(None) };
        let handle = streams.bind(py).call_method1(intern!(py, "open"), (object, is_async))?;
        let handle: u64 = handle.extract()?;
        self.opened.push(handle);
        Ok(Some(handle))
    }

    /// Forgets the streams of a value that does not cross after all.
    fn forget_streams(&mut self, py: Python<'py>) {
        let Some(streams) = self.home.streams() else { return };
        for handle in self.opened.drain(..) {
            // What is left then is closed with the runtime.
            let _ = streams.bind(py).call_method1(intern!(py, "forget"), (handle,));
        }
    }

    fn within<T>(
        &mut self,
        container: &Bound<'py, PyAny>,
        convert: impl FnOnce(&mut Self) -> Result<T, Unconverted>,
    ) -> Result<T, Unconverted> {
        if self.around.iter().any(|outer| outer.is(container)) {
            return Err(refuse(container, "it contains itself; pass data without cycles"));
        }
        if self.around.len() >= self.depth as usize {
            return Err(refuse(container, "it is nested deeper than `max_serialization_depth` allows"));
        }
        self.around.push(container.clone());
        let converted = convert(self)?;
        self.around.pop();
        Ok(converted)
    }

    fn items(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        step: fn(usize) -> Segment,
    ) -> Result<Vec<Value>, Unconverted> {
        let mut values = Vec::with_capacity(items.size_hint().0.min(self.nodes));
        for (index, item) in items.enumerate() {
            values.push(self.convert(&item).map_err(|fault| fault.inside(step(index)))?);
        }
        Ok(values)
    }

    fn object(&mut self, dict: &Bound<'py, PyDict>) -> Result<Value, Unconverted> {
        let mut entries = Vec::with_capacity(dict.len().min(self.nodes));
        for (key, item) in dict {
            let Ok(key) = key.cast::<PyString>() else {
                return Err(refuse(&key, "keys must be str; convert them first"));
            };
            let key = text_from_python(key)?;
            match self.convert(&item) {
                Ok(item) => entries.push((key, item)),
                Err(fault) => return Err(fault.inside(Segment::Key(key))),
            }
        }
        Ok(Value::Object(entries))
    }
}

fn refuse(object: &Bound<'_, PyAny>, hint: &str) -> Unconverted {
    let class = object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    Unconverted::refused(format!("it is a Python {class}; {hint}"))
}

/// Whole milliseconds since the epoch; what is finer is cut off towards the past, as JavaScript has nothing finer.
fn date(object: &Bound<'_, PyAny>) -> Result<Value, Unconverted> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static MILLISECOND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    if object.call_method0(intern!(py, "utcoffset"))?.is_none() {
        let hint = "it has no time zone; give it one: value.replace(tzinfo=timezone.utc)";
        return Err(refuse(object, hint));
    }
    let epoch = EPOCH.get_or_try_init(py, || epoch(py).map(Bound::unbind))?.bind(py);
    let millisecond = MILLISECOND.get_or_try_init(py, || {
        let timedelta = py.import(intern!(py, "datetime"))?.getattr(intern!(py, "timedelta"))?;
        timedelta.call1((0, 0, 1000)).map(Bound::unbind)
    })?;
    Ok(Value::Date(object.sub(epoch)?.floor_div(millisecond)?.extract()?))
}

/// The `bool`, `int` or `float` that a `NumPy` scalar is, where Python's types hold it exactly.
fn number_of_an_array_library<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if !hint::is_of_numpy(object) {
        return Ok(None);
    }
    let Ok(dtype) = object.getattr(intern!(py, "dtype")) else { return Ok(None) };
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let size: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    // The widest float has more digits than Python's; dates and the rest are no numbers.
    if hint::dimensions(object) != Some(0) || size > 8 || !matches!(kind.as_str(), "b" | "i" | "u" | "f") {
        return Ok(None);
    }
    object.call_method0(intern!(py, "item")).map(Some)
}

fn generator_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static GENERATOR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GENERATOR.import(py, "types", "GeneratorType")
}

fn datetime_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static DATETIME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    DATETIME.import(py, "datetime", "datetime")
}

/// A number where JavaScript's are exact, else a `BigInt`.
fn integer(value: &Bound<'_, PyInt>) -> PyResult<Value> {
    if let Ok(small) = value.extract::<i64>()
        && small.unsigned_abs() <= MAX_SAFE_INTEGER as u64
    {
        return Ok(Value::Number(small as f64));
    }
    let py = value.py();
    let magnitude = value.abs()?;
    let bits: usize = magnitude.call_method0(intern!(py, "bit_length"))?.extract()?;
    let bytes = magnitude.call_method1(intern!(py, "to_bytes"), (bits.div_ceil(8), intern!(py, "big")))?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes().to_vec();
    Ok(Value::BigInt(BigInt::new(value.lt(0)?, bytes)))
}

/// A JavaScript string; lone surrogates are kept.
pub(crate) fn text_from_python(text: &Bound<'_, PyString>) -> PyResult<Text> {
    if let Ok(text) = text.to_str() {
        return Ok(Text::from(text));
    }
    let py = text.py();
    let bytes =
        text.call_method1(intern!(py, "encode"), (intern!(py, "utf-8"), intern!(py, "surrogatepass")))?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes().to_vec();
    Text::from_wtf8(bytes).map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
}
