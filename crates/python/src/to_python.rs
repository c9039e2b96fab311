//! Values as Python objects.

use std::sync::Arc;

use pydeno_wire::{BigInt, MAX_SAFE_INTEGER, Path, Segment, Text, Value};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PySet, PyString};

use crate::errors;
use crate::js_function::Home;
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
    ToPython { py, home: Some(home), path: Path::root() }.convert(value)
}

/// As [`to_python`], for a value without functions.
///
/// # Errors
///
/// As `to_python`, and `ConversionError` for a function.
pub(crate) fn data_to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    ToPython { py, home: None, path: Path::root() }.convert(value)
}

struct ToPython<'py, 'h> {
    py: Python<'py>,
    /// Whose the functions in the value are.
    home: Option<&'h Arc<Home>>,
    path: Path,
}

impl<'py> ToPython<'py, '_> {
    /// Recursion is bounded by the depth that the value was decoded under.
    fn convert(&mut self, value: &Value) -> PyResult<Bound<'py, PyAny>> {
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
                None => return Err(errors::conversion(py, &self.path, "a function does not cross here")),
            },
            Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
            Value::Date(milliseconds) => self.date(*milliseconds)?,
            Value::Array(items) => {
                let list = PyList::empty(py);
                for (index, item) in items.iter().enumerate() {
                    list.append(self.inside(Segment::Index(index), item)?)?;
                }
                list.into_any()
            }
            Value::Object(entries) => {
                let dict = PyDict::new(py);
                for (key, item) in entries {
                    let item = self.inside(Segment::Key(key.clone()), item)?;
                    dict.set_item(text_to_python(py, key)?, item)?;
                }
                dict.into_any()
            }
            Value::Set(items) => {
                let set = PySet::empty(py)?;
                for (index, item) in items.iter().enumerate() {
                    let item = self.inside(Segment::Index(index), item)?;
                    set.add(item).map_err(|error| self.unhashable(error))?;
                }
                set.into_any()
            }
            Value::Map(entries) => {
                let dict = PyDict::new(py);
                for (index, (key, item)) in entries.iter().enumerate() {
                    let key = self.inside(Segment::Index(index), key)?;
                    let item = self.inside(Segment::Index(index), item)?;
                    dict.set_item(key, item).map_err(|error| self.unhashable(error))?;
                }
                dict.into_any()
            }
        })
    }

    fn inside(&mut self, segment: Segment, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        self.path.push(segment);
        let converted = self.convert(value)?;
        self.path.pop();
        Ok(converted)
    }

    fn unhashable(&self, error: PyErr) -> PyErr {
        if error.is_instance_of::<PyTypeError>(self.py) {
            errors::conversion(
                self.py,
                &self.path,
                "a member of a set or a key of a map must be hashable in Python",
            )
        } else {
            error
        }
    }

    /// Exact to the millisecond: the epoch plus whole days, seconds and milliseconds.
    fn date(&self, milliseconds: i64) -> PyResult<Bound<'py, PyAny>> {
        static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static TIMEDELTA: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = self.py;
        let epoch = EPOCH.get_or_try_init(py, || epoch(py).map(Bound::unbind))?.bind(py);
        let seconds = milliseconds.div_euclid(1000);
        let microseconds = milliseconds.rem_euclid(1000) * 1000;
        let since = TIMEDELTA.import(py, "datetime", "timedelta")?.call1((0, seconds, microseconds))?;
        epoch.add(since).map_err(|error| {
            if error.is_instance_of::<PyOverflowError>(py) {
                errors::conversion(py, &self.path, "the date is outside the years 1 to 9999 that Python has")
            } else {
                error
            }
        })
    }
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
