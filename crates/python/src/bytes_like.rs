//! The bytes of objects that lend their memory: `bytearray`, `memoryview`, `array.array`, `mmap`, `NumPy` and Arrow.

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::hint;
use crate::unconverted::Unconverted;

/// The bytes of an object's elements, in the order of its indices; `None` where it has no buffer or is a single number.
///
/// # Errors
///
/// Where the elements are addresses of this process, which a guest must not see and could not use, or where the object
/// has a buffer and does not lend it.
pub(crate) fn bytes(object: &Bound<'_, PyAny>) -> Result<Option<Vec<u8>>, Unconverted> {
    let py = object.py();
    if hint::is_of_numpy(object) && hint::dimensions(object) == Some(0) {
        // A single date, for one, lends its bytes as if they were an array.
        return Ok(None);
    }
    let view = match PyMemoryView::from(object) {
        Ok(view) => view,
        Err(error) if error.is_instance_of::<PyTypeError>(py) => return Ok(None),
        Err(error)
            if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyBufferError>(py) =>
        {
            // NumPy has types that a buffer cannot describe, and single numbers of them.
            return if hint::is_of_numpy(object) {
                Ok(None)
            } else {
                Err(Unconverted::refused(format!("its bytes cannot be had: {}", error.value(py))))
            };
        }
        Err(error) => return Err(error.into()),
    };
    if view.getattr(intern!(py, "ndim"))?.extract::<usize>()? == 0 {
        return Ok(None);
    }
    let format: String = view.getattr(intern!(py, "format"))?.extract()?;
    if has_addresses(&format) {
        return Err(Unconverted::refused(
            "its elements are Python objects or addresses; convert them first, with tolist() for example",
        ));
    }
    let bytes = view.call_method0(intern!(py, "tobytes"))?;
    Ok(Some(bytes.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes().to_vec()))
}

/// Whether elements of this format (that of `struct`, as PEP 3118 extends it) are or contain addresses.
fn has_addresses(format: &str) -> bool {
    // Names of fields stand between colons.
    format.split(':').step_by(2).any(|types| types.contains(['O', 'P', '&', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_structures_and_not_in_names() {
        for format in ["O", "4O", "T{O:a:i:b:}", "&<i", "P", "T{T{i:x:P:y:}:z:}", "X{}"] {
            assert!(has_addresses(format), "{format}");
        }
        for format in ["B", "<d", "T{<i:O:<d:P&X:}", "?", "2w", "Zd"] {
            assert!(!has_addresses(format), "{format}");
        }
    }
}
