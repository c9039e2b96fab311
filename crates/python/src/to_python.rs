//! Values as Python objects.

use std::sync::Arc;

use pydeno_wire::{BigInt, MAX_SAFE_INTEGER, Segment, Text, Value};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PySet, PyString};

use crate::js_function::Home;
use crate::unconverted::Unconverted;
use crate::undefined;

/// The Python object for a value.
///
/// # Errors
///
/// `ConversionError` where Python has no such object: a date before year 1 or after year 9999, a member of a set or a
/// key of a map that cannot be hashed.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    value: &Value,
    home: &Arc<Home>,
) -> PyResult<Bound<'py, PyAny>> {
    ToPython { py, home: Some(home), keys: Vec::new() }
        .convert(value, 0)
        .map_err(|unconverted| unconverted.into_exception(py))
}

/// As [`to_python`], for a value without functions and streams.
///
/// # Errors
///
/// As `to_python`, and `ConversionError` for a function.
pub(crate) fn data_to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    ToPython { py, home: None, keys: Vec::new() }
        .convert(value, 0)
        .map_err(|unconverted| unconverted.into_exception(py))
}

struct ToPython<'py, 'h, 'v> {
    py: Python<'py>,
    /// Whose the functions in the value are.
    home: Option<&'h Arc<Home>>,
    /// The keys of the last object at each depth: rows of a table share theirs.
    keys: Vec<Vec<(&'v Text, Bound<'py, PyString>)>>,
}

impl<'py, 'v> ToPython<'py, '_, 'v> {
    /// Recursion is bounded by the depth that the value was decoded under.
    fn convert(&mut self, value: &'v Value, depth: usize) -> Result<Bound<'py, PyAny>, Unconverted> {
        let py = self.py;
        Ok(match value {
            Value::Undefined => undefined::get(py)?.clone().into_any(),
            Value::Null => py.None().into_bound(py),
            Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
            Value::Number(value) => number_to_python(py, *value),
            Value::BigInt(value) => bigint_to_python(py, value)?,
            Value::String(text) => text_to_python(py, text)?.into_any(),
            Value::Function(function) => match self.home {
                Some(home) => home.adopt(py, function)?,
                None => return Err(Unconverted::refused("a function does not cross here")),
            },
            Value::Stream(stream) => {
                let adopted = self.home.map(|home| home.adopt_stream(py, *stream)).transpose()?;
                adopted.flatten().ok_or_else(|| Unconverted::refused("a stream does not cross here"))?
            }
            Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
            Value::Date(milliseconds) => date_to_python(py, *milliseconds)?,
            Value::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    let item = self.convert(item, depth + 1);
                    list.push(item.map_err(|fault| fault.inside(Segment::Index(index)))?);
                }
                PyList::new(py, list)?.into_any()
            }
            Value::Object(entries) => self.object(entries, depth)?,
            Value::Set(items) => {
                let set = PySet::empty(py)?;
                for (index, item) in items.iter().enumerate() {
                    self.convert(item, depth + 1)
                        .and_then(|item| {
                            set.add(item).map_err(|error| unhashable(py, error))?;
                            distinct(set.len() == index + 1)
                        })
                        .map_err(|fault| fault.inside(Segment::Member(index)))?;
                }
                set.into_any()
            }
            Value::Map(entries) => {
                let dict = PyDict::new(py);
                for (index, (key, item)) in entries.iter().enumerate() {
                    let item = self
                        .convert(item, depth + 1)
                        .map_err(|fault| fault.inside(Segment::MapValue(index)))?;
                    self.convert(key, depth + 1)
                        .and_then(|key| {
                            dict.set_item(key, item).map_err(|error| unhashable(py, error))?;
                            distinct(dict.len() == index + 1)
                        })
                        .map_err(|fault| fault.inside(Segment::MapKey(index)))?;
                }
                dict.into_any()
            }
        })
    }

    fn object(
        &mut self,
        entries: &'v [(Text, Value)],
        depth: usize,
    ) -> Result<Bound<'py, PyAny>, Unconverted> {
        let dict = PyDict::new(self.py);
        for (index, (key, item)) in entries.iter().enumerate() {
            let item =
                self.convert(item, depth + 1).map_err(|fault| fault.inside(Segment::Key(key.clone())))?;
            dict.set_item(self.key(key, index, depth)?, item)?;
        }
        Ok(dict.into_any())
    }

    /// The key at this place, made once for objects in a row that have the same.
    fn key(&mut self, key: &'v Text, index: usize, depth: usize) -> PyResult<&Bound<'py, PyString>> {
        if self.keys.len() <= depth {
            self.keys.resize_with(depth + 1, Vec::new);
        }
        let keys = &mut self.keys[depth];
        match keys.get(index) {
            Some((last, _)) if *last == key => {}
            Some(_) => keys[index] = (key, text_to_python(self.py, key)?),
            None => keys.push((key, text_to_python(self.py, key)?)),
        }
        Ok(&keys[index].1)
    }
}

/// What JavaScript tells apart and Python does not, such as `1`, `1n` and `true`, would get lost.
fn distinct(is_distinct: bool) -> Result<(), Unconverted> {
    if is_distinct {
        return Ok(());
    }
    Err(Unconverted::refused("it equals an earlier member or key in Python; return an array of them"))
}

fn unhashable(py: Python<'_>, error: PyErr) -> Unconverted {
    if error.is_instance_of::<PyTypeError>(py) {
        Unconverted::refused("a member of a set or a key of a map must be hashable in Python")
    } else {
        error.into()
    }
}

/// Exact to the millisecond: the epoch plus whole days, seconds and milliseconds.
fn date_to_python(py: Python<'_>, milliseconds: i64) -> Result<Bound<'_, PyAny>, Unconverted> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static TIMEDELTA: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let epoch = EPOCH.get_or_try_init(py, || epoch(py).map(Bound::unbind))?.bind(py);
    let seconds = milliseconds.div_euclid(1000);
    let microseconds = milliseconds.rem_euclid(1000) * 1000;
    let since = TIMEDELTA.import(py, "datetime", "timedelta")?.call1((0, seconds, microseconds))?;
    epoch.add(since).map_err(|error| {
        if error.is_instance_of::<PyOverflowError>(py) {
            Unconverted::refused("the date is outside the years 1 to 9999 that Python has")
        } else {
            error.into()
        }
    })
}

pub(crate) fn epoch(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let datetime = py.import(intern!(py, "datetime"))?;
    let utc = datetime.getattr(intern!(py, "timezone"))?.getattr(intern!(py, "utc"))?;
    datetime.getattr(intern!(py, "datetime"))?.call1((1970, 1, 1, 0, 0, 0, 0, utc))
}

/// An `int` when the number is integral and safe, else a `float`; `-0` stays a float.
fn number_to_python(py: Python<'_>, value: f64) -> Bound<'_, PyAny> {
    let is_integer = value.trunc() == value && value.abs() <= MAX_SAFE_INTEGER as f64;
    if is_integer && !(value == 0.0 && value.is_sign_negative()) {
        PyInt::new(py, value as i64).into_any()
    } else {
        PyFloat::new(py, value).into_any()
    }
}

fn bigint_to_python<'py>(py: Python<'py>, value: &BigInt) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyBytes::new(py, value.magnitude());
    let magnitude =
        py.get_type::<PyInt>().call_method1(intern!(py, "from_bytes"), (bytes, intern!(py, "big")))?;
    if value.is_negative() { magnitude.neg() } else { Ok(magnitude) }
}

/// A `str`, in which lone surrogates are kept.
pub(crate) fn text_to_python<'py>(py: Python<'py>, text: &Text) -> PyResult<Bound<'py, PyString>> {
    if let Some(text) = text.as_str() {
        return Ok(PyString::new(py, text));
    }
    let bytes = PyBytes::new(py, &text.to_wtf8());
    let decoded =
        bytes.call_method1(intern!(py, "decode"), (intern!(py, "utf-8"), intern!(py, "surrogatepass")))?;
    Ok(decoded.cast_into::<PyString>()?)
}
