//! What can cross between a guest and its host.

use crate::text::Text;

/// A JavaScript value outside any engine: the JSON-like types and what JavaScript adds to them.
///
/// Numbers are always `f64`, as in JavaScript; whether an integral one becomes an integer is for the side that
/// reads it. Promises and symbols do not cross.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `undefined`.
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; NaN, the infinities and `-0` are kept.
    Number(f64),
    /// A `BigInt` of any size.
    BigInt(BigInt),
    /// A string of UTF-16 code units, lone surrogates and NUL included.
    String(Text),
    /// The bytes of an `ArrayBuffer`, typed array or `DataView`; towards a guest, a `Uint8Array`.
    Bytes(Vec<u8>),
    /// A `Date`, in milliseconds since 1970-01-01T00:00:00Z, within ±8.64e15.
    Date(i64),
    /// An `Array`; holes read as `undefined`.
    Array(Vec<Value>),
    /// An object's own enumerable string keys, in JavaScript's order.
    Object(Vec<(Text, Value)>),
    /// A `Set`, in insertion order.
    Set(Vec<Value>),
    /// A `Map`, in insertion order.
    Map(Vec<(Value, Value)>),
    /// A function of the guest, which stays with it.
    Function(Function),
    /// Something that gives one value after the other when it is asked, and stays where it is.
    Stream(Stream),
}

/// The host's name for a function of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Chosen by the worker and never used for another function.
    pub handle: u64,
    /// Its `name`, for a person to read; of no meaning towards the guest.
    pub name: Text,
}

/// The name of a stream, for the side that does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Chosen by the side that has it and never used for another: among the guest's, no function has it either.
    pub handle: u64,
    /// Which side that is.
    pub owner: StreamOwner,
}

/// Which side has a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamOwner {
    /// The guest: an object that can be iterated asynchronously.
    Guest,
    /// The host. It only goes towards the guest.
    Host,
}

/// The largest magnitude of a `Date`, in milliseconds (ECMA-262, "Time Values and Time Range").
pub const MAX_DATE_MILLISECONDS: i64 = 8_640_000_000_000_000;

/// The largest integer that every integral `f64` up to it is exact for, 2^53 - 1 (`Number.MAX_SAFE_INTEGER`).
pub const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// An integer of any size as sign and magnitude.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BigInt {
    negative: bool,
    magnitude: Vec<u8>,
}

impl BigInt {
    /// An integer from its sign and its big-endian magnitude. Leading zero bytes are dropped and zero is never
    /// negative, so equal integers compare equal.
    pub fn new(negative: bool, mut magnitude: Vec<u8>) -> Self {
        let zeros = magnitude.iter().take_while(|&&byte| byte == 0).count();
        magnitude.drain(..zeros);
        Self { negative: negative && !magnitude.is_empty(), magnitude }
    }

    /// Whether the integer is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The magnitude, big-endian, without leading zero bytes; empty for zero.
    pub fn magnitude(&self) -> &[u8] {
        &self.magnitude
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::String(text)
    }
}

impl From<&str> for Value {
    fn from(string: &str) -> Self {
        Self::String(string.into())
    }
}

impl From<BigInt> for Value {
    fn from(integer: BigInt) -> Self {
        Self::BigInt(integer)
    }
}
