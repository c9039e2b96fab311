//! What to do with a Python object that has no one form in JavaScript.

use pyo3::intern;
use pyo3::prelude::*;

const ANYTHING_ELSE: &str = "pass None, bool, int, float, str, bytes or another buffer, an aware datetime, list, \
                             tuple, dict, set, a generator or async iterable, a function of this runtime or pydeno.undefined, or \
                             convert it first";

/// A sentence's end for an object that does not cross.
pub(crate) fn for_object(object: &Bound<'_, PyAny>) -> &'static str {
    let class = object.get_type();
    let name = class.name().map_or_else(|_| String::new(), |name| name.to_string());
    match (module(object).as_str(), name.as_str()) {
        ("decimal", "Decimal") => "pass str(value) to keep its digits, or float(value)",
        ("fractions", "Fraction") => "pass str(value) to keep it exact, or float(value)",
        ("datetime", "date") => {
            "it has no time and no zone; pass a datetime with tzinfo, or value.isoformat()"
        }
        ("datetime", "time") => "it has no date; pass a datetime with tzinfo, or value.isoformat()",
        ("datetime", "timedelta") => "pass value.total_seconds()",
        ("builtins", "generator" | "map" | "filter" | "zip" | "range" | "enumerate") => {
            "pass list(value), which reads it to its end"
        }
        ("builtins", "dict_keys" | "dict_values" | "dict_items") => "pass list(value)",
        ("builtins", "complex") => "pass its real and imaginary parts",
        ("uuid", "UUID") => "pass str(value)",
        _ if is_of_numpy(object) => {
            "it has no exact form in JavaScript; pass value.tolist(), or a view of it as bytes or integers"
        }
        _ if class.hasattr(intern!(object.py(), "__dataclass_fields__")).unwrap_or(false) => {
            "pass dataclasses.asdict(value)"
        }
        _ if class.hasattr(intern!(object.py(), "__members__")).unwrap_or(false) => {
            "pass its value or its name"
        }
        _ => ANYTHING_ELSE,
    }
}

/// Whether an object's class is one of `NumPy`'s, told without importing it.
pub(crate) fn is_of_numpy(object: &Bound<'_, PyAny>) -> bool {
    let module = module(object);
    module == "numpy" || module.starts_with("numpy.")
}

/// The number of an array's dimensions, as it says itself.
pub(crate) fn dimensions(object: &Bound<'_, PyAny>) -> Option<usize> {
    object.getattr(intern!(object.py(), "ndim")).ok()?.extract().ok()
}

fn module(object: &Bound<'_, PyAny>) -> String {
    let module = object.get_type().getattr(intern!(object.py(), "__module__"));
    module.and_then(|module| module.extract::<String>()).unwrap_or_default()
}
