//! Digests of what crosses between guest and host.

use pydeno_wire::{Budget, Value};
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// A SHA-256 digest.
pub(crate) type Digest = [u8; 32];

/// What was decoded within a worker's budget is encoded within this one.
const WHATEVER: Budget = Budget { bytes: usize::MAX, nodes: usize::MAX, depth: Budget::MAX_DEPTH };

/// The digest of values, or `None` where they have no encoding: they are nested too deeply.
pub(crate) fn of_values<'v>(label: &str, values: impl IntoIterator<Item = &'v Value>) -> Option<Digest> {
    let mut digest = Sha256::new_with_prefix(label.as_bytes());
    let mut bytes = Vec::new();
    for value in values {
        bytes.clear();
        value.encode(&mut bytes, &WHATEVER).ok()?;
        digest.update((bytes.len() as u64).to_be_bytes());
        digest.update(&bytes);
    }
    Some(digest.finalize().into())
}

/// The digest of how a run ended; `None` for an end that depends on more than the program and its answers.
pub(crate) fn of_outcome(outcome: &Result<Value, Error>) -> Option<Digest> {
    match outcome {
        Ok(value) => of_values("value", [value]),
        Err(Error::Js(error)) => {
            let parts = [Value::String(error.name.clone()), Value::String(error.message.clone())];
            of_values("error", &parts)
        }
        Err(Error::Conversion { path, reason }) => {
            of_values("conversion", &[path.as_str().into(), reason.as_str().into()])
        }
        Err(Error::NeverSettles) => of_values("never settles", []),
        Err(_) => None,
    }
}

/// The encoding of a value on its own.
pub(crate) fn encoded(value: &Value) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes, &WHATEVER).ok()?;
    Some(bytes)
}
