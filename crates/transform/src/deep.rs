//! Room for the recursion of the parser, and a limit for what it may be asked to do.
//!
//! The parser and the passes after it recurse with the nesting of the source and check nothing. So they run on a stack
//! that is large enough for the worst source of that length; it is address space, of which only what is used takes
//! memory. For long sources that would be too much, so brackets are counted beforehand.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Language;
use crate::error::{ErrorKind, TransformError};
use crate::nesting::check_nesting;
use crate::position::Position;

/// Stack for each byte of a source, more than the costliest nesting takes (5 bytes of `${` or one of `[`, measured).
const STACK_PER_BYTE: usize = if cfg!(debug_assertions) { 32 << 10 } else { 4 << 10 };
const MIN_STACK: usize = 1 << 20;
const MAX_STACK: usize = if cfg!(debug_assertions) { 2 << 30 } else { 512 << 20 };

/// Runs a transformation of a source: with enough stack, and with a panic as an error.
pub(crate) fn guard<T>(
    source: &str,
    language: Language,
    run: impl FnOnce() -> Result<T, TransformError>,
) -> Result<T, TransformError> {
    check_nesting(source, language)?;
    let size = source.len().saturating_mul(STACK_PER_BYTE).clamp(MIN_STACK, MAX_STACK);
    catch_unwind(AssertUnwindSafe(|| stacker::grow(size, run))).unwrap_or_else(|payload| {
        let reason = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("it gave no reason");
        Err(TransformError::new(
            ErrorKind::Internal,
            format!("the transformation failed: {reason}"),
            Position::START,
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let error =
            guard("", Language::JavaScript, || -> Result<(), _> { panic!("oh") }).expect_err("it panics");
        assert_eq!(error.kind, ErrorKind::Internal);
        assert!(error.message.ends_with("oh"), "{error}");
    }
}
