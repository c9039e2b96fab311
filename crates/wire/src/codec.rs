//! Values and messages as CBOR (RFC 8949), in exactly one form each.
//!
//! | value | encoding |
//! |---|---|
//! | `undefined`, `null`, booleans | simple values 23, 22, 20 and 21 |
//! | number, integral and within ±(2^53 - 1), not `-0` | integer |
//! | any other number | 64-bit float; NaN with the payload `7ff8000000000000` |
//! | `BigInt` | bignum, tags 2 and 3, whatever its size |
//! | string | text string; with a lone surrogate, tag 273 and its WTF-8 as a byte string |
//! | bytes | byte string |
//! | Date | tag 1001 (RFC 9581): `{1: seconds, -3: milliseconds}`, the milliseconds from 0 to 999 |
//! | Array | array |
//! | object | map with string keys, in the object's order |
//! | Set | tag 258 and an array |
//! | Map | tag 259 and a map |
//! | function | tag 39 and an array of its handle and its name |
//! | stream | tag 39 and an array of its handle and 0 for the guest's, 1 for the host's |
//!
//! A message is an array: its number, then its fields.
//!
//! Nothing else is accepted: no indefinite lengths, no lengths or integers in more bytes than they need, no other
//! tag, no integer beyond ±(2^53 - 1), no float that the table writes as an integer, no bignum with leading
//! zeros, no tag 273 around what is well-formed. Both directions refuse an object with a key twice, for which
//! readers would disagree. Members of a `Set` and keys of a `Map` are not compared: two objects may look the same.
//!
//! Neither direction recurses. The decoder allocates for a claimed number of items only when as many bytes and as
//! many nodes of the budget are there, so what it holds is bounded by the bytes it was given.
//!
//! CBOR's heads are read and written here and not by a library, since a library's reader is made to accept most
//! of what this one must refuse; the tests read what is written here with a library.

pub mod bounds;
mod decode;
mod encode;
mod error;
mod head;
mod host_message;
mod js_error;
mod record;
mod wasm_module;
mod worker_message;
mod zygote_message;

use std::collections::HashSet;

pub use error::{DecodeError, EncodeError};

use crate::budget::{Allowance, Budget};
use crate::text::Text;
use crate::value::Value;

/// Tags beside the bignums' 2 and 3, by their names in the IANA registry.
mod tag {
    pub(super) const POSITIVE_BIGNUM: u64 = 2;
    pub(super) const NEGATIVE_BIGNUM: u64 = 3;
    pub(super) const IDENTIFIER: u64 = 39;
    pub(super) const SET: u64 = 258;
    pub(super) const MAP: u64 = 259;
    pub(super) const WTF8: u64 = 273;
    pub(super) const EXTENDED_TIME: u64 = 1001;
}

/// One step of a conversation that can be put into bytes.
pub trait Message: Sized {
    /// Appends the encoding, the values inside it within `budget`.
    ///
    /// Texts that only explain something to a person (error messages, stacks, console lines, reports) are cut to
    /// their [bound](bounds) with an ellipsis, and so is a stack's number of frames; everything else over a bound
    /// is an error.
    ///
    /// # Errors
    ///
    /// When a value is over the budget or a field over its bound. Then `out` is as it was.
    fn encode(&self, out: &mut Vec<u8>, budget: &Budget) -> Result<(), EncodeError>;

    /// Reads a message that is exactly `bytes`, the values inside it within `budget`.
    ///
    /// # Errors
    ///
    /// When the bytes are anything but the one encoding of a message within all bounds.
    fn decode(bytes: &[u8], budget: &Budget) -> Result<Self, DecodeError>;

    /// As [`decode`](Self::decode), of a message that begins at `start` of a buffer and ends it. Where most of it are the bytes of
    /// one value, that value gets the buffer: there is no second copy of them.
    ///
    /// # Errors
    ///
    /// As `decode`.
    ///
    /// # Panics
    ///
    /// When the buffer ends before `start`.
    fn take(buffer: Vec<u8>, start: usize, budget: &Budget) -> Result<Self, DecodeError> {
        Self::decode(&buffer[start..], budget)
    }

    /// A length that no encoding under this budget passes: the limit for the frames of these messages.
    fn max_encoded_bytes(budget: &Budget) -> usize;
}

impl Value {
    /// Appends the value's encoding.
    ///
    /// # Errors
    ///
    /// When the value is over the budget, has an object with a key twice or a date out of range. Then `out` is as
    /// it was.
    pub fn encode(&self, out: &mut Vec<u8>, budget: &Budget) -> Result<(), EncodeError> {
        encode::value(self, out, &mut Allowance::new(budget), &[])
    }

    /// Reads a value that is exactly `bytes`.
    ///
    /// # Errors
    ///
    /// When the bytes are anything but the one encoding of a value within the budget.
    pub fn decode(bytes: &[u8], budget: &Budget) -> Result<Self, DecodeError> {
        let mut reader = head::Reader::new(bytes);
        let value = decode::value(&mut reader, &mut Allowance::new(budget))?;
        reader.finish()?;
        Ok(value)
    }
}

/// The first entry whose key an earlier one has.
fn duplicate_key(entries: &[(Text, Value)]) -> Option<&Text> {
    /// Up to here comparing all pairs is faster than hashing.
    const FEW: usize = 8;

    let mut keys = entries.iter().map(|(key, _)| key);
    if entries.len() <= FEW {
        return (1..entries.len()).map(|index| &entries[index].0).zip(1..).find_map(|(key, before)| {
            entries[..before].iter().any(|(earlier, _)| earlier == key).then_some(key)
        });
    }
    let mut seen = HashSet::with_capacity(entries.len());
    keys.find(|&key| !seen.insert(key))
}
