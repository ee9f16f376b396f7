//! Values of Python as bits, and back.

use crate::errors::invalid;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};
use weir_ir::Bits;

/// Widest value that Python code may give: wider ones do not exist in programs.
const MAX_WIDTH: u32 = 1 << 20;

/// A number as bits. Negative numbers are in two's complement.
pub fn bits(value: &Bound<'_, PyAny>, width: u32, what: &str) -> PyResult<Bits> {
    let number = value
        .cast::<PyInt>()
        .map_err(|_| invalid(format!("{what}: expected a number, found {}", kind(value))))?;
    if width > MAX_WIDTH {
        return Err(invalid(format!("{what}: {width} bits are too wide")));
    }
    let does_not_fit = || invalid(format!("{what}: {number} does not fit in {width} bits"));
    if let Ok(small) = number.extract::<u64>() {
        if width < 64 && small >> width != 0 {
            return Err(does_not_fit());
        }
        return Ok(Bits::new(width, small.into()));
    }
    let is_negative = number.lt(0)?;
    let length = width.div_ceil(8) as usize + usize::from(is_negative);
    let options = pyo3::types::PyDict::new(value.py());
    options.set_item("signed", is_negative)?;
    let bytes = number.call_method("to_bytes", (length, "big"), Some(&options));
    let bytes = bytes.map_err(|_| does_not_fit())?;
    let bytes: &[u8] = bytes.cast::<PyBytes>()?.as_bytes();
    let given = Bits::from_bytes(length as u32 * 8, bytes);
    let value = Bits::from_bytes(width, bytes);
    let again = if is_negative {
        value.sign_extend(given.width())
    } else {
        value.zero_extend(given.width())
    };
    if again == given { Ok(value) } else { Err(does_not_fit()) }
}

/// Bits as a number.
pub fn number<'py>(py: Python<'py>, bits: &Bits) -> PyResult<Bound<'py, PyAny>> {
    if let Some(small) = bits.to_u64() {
        return Ok(small.into_pyobject(py)?.into_any());
    }
    let bytes = PyBytes::new(py, &bits.to_bytes());
    py.get_type::<PyInt>().call_method1("from_bytes", (bytes, "big"))
}

/// The name of a value's type.
pub fn kind(value: &Bound<'_, PyAny>) -> String {
    value
        .get_type()
        .name()
        .map_or_else(|_| "something else".to_owned(), |n| n.to_string())
}
