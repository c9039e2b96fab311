//! From a value to its bytes.

use super::error::EncodeError;
use super::head::{Major, head_length, simple, write_head};
use super::{duplicate_key, tag};
use crate::budget::Allowance;
use crate::path::{Path, Segment};
use crate::text::Text;
use crate::value::{BigInt, Function, MAX_DATE_MILLISECONDS, MAX_SAFE_INTEGER, Stream, StreamOwner, Value};

/// Appends a value and takes what it used from the allowance; `prefix` is where errors say the value stands.
///
/// After an error `out` is as it was and the allowance is of no use any more.
pub(super) fn value(
    value: &Value,
    out: &mut Vec<u8>,
    allowance: &mut Allowance,
    prefix: &[Segment],
) -> Result<(), EncodeError> {
    let start = out.len();
    let mut encoder =
        Encoder { end: start.saturating_add(allowance.bytes), out, allowance, open: Vec::new() };
    match encoder.run(value) {
        Ok(()) => {
            encoder.allowance.bytes -= encoder.out.len() - start;
            Ok(())
        }
        Err(fault) => {
            let inside = encoder.open.iter().map(Open::segment);
            let path = prefix.iter().cloned().chain(inside).collect();
            let error = fault.at(path, encoder.allowance);
            encoder.out.truncate(start);
            Err(error)
        }
    }
}

/// Appends a string of a message, which is under no budget.
pub(super) fn text(out: &mut Vec<u8>, text: &Text) {
    let bytes = text.to_wtf8();
    if text.is_well_formed() {
        write_head(out, Major::Text, bytes.len() as u64);
    } else {
        write_head(out, Major::Tag, tag::WTF8);
        write_head(out, Major::Bytes, bytes.len() as u64);
    }
    out.extend_from_slice(&bytes);
}

struct Encoder<'v, 'a> {
    out: &'a mut Vec<u8>,
    /// The length of `out` at which the budget for bytes is used up.
    end: usize,
    allowance: &'a mut Allowance,
    /// The containers that are being written, outermost first.
    open: Vec<Open<'v>>,
}

/// A container with how many of its parts have been begun.
enum Open<'v> {
    Array(&'v [Value], usize),
    Set(&'v [Value], usize),
    Object(&'v [(Text, Value)], usize),
    /// Keys and values counted apart.
    Map(&'v [(Value, Value)], usize),
}

impl Open<'_> {
    /// Where the part that was begun last stands in its container.
    fn segment(&self) -> Segment {
        match *self {
            Self::Array(_, begun) => Segment::Index(begun - 1),
            Self::Set(_, begun) => Segment::Member(begun - 1),
            Self::Object(entries, begun) => Segment::Key(entries[begun - 1].0.clone()),
            Self::Map(_, begun) if begun % 2 == 1 => Segment::MapKey(begun / 2),
            Self::Map(_, begun) => Segment::MapValue(begun / 2 - 1),
        }
    }
}

/// An error whose place is yet to be named.
enum Fault {
    Bytes,
    Nodes,
    Depth,
    DuplicateKey(Text),
    Date(i64),
}

impl Fault {
    fn at(self, mut path: Path, allowance: &Allowance) -> EncodeError {
        let budget = &allowance.budget;
        match self {
            Self::Bytes => EncodeError::Bytes { path, limit: budget.bytes },
            Self::Nodes => EncodeError::Nodes { path, limit: budget.nodes },
            Self::Depth => EncodeError::Depth { path, limit: budget.effective_depth() },
            Self::DuplicateKey(key) => {
                path.push(Segment::Key(key));
                EncodeError::DuplicateKey { path }
            }
            Self::Date(milliseconds) => EncodeError::DateOutOfRange { path, milliseconds },
        }
    }
}

impl<'v> Encoder<'v, '_> {
    fn run(&mut self, root: &'v Value) -> Result<(), Fault> {
        self.take_nodes(1)?;
        self.begin(root)?;
        while let Some(open) = self.open.last_mut() {
            let (part, key) = match open {
                Open::Array(items, begun) | Open::Set(items, begun) => {
                    *begun += 1;
                    (items.get(*begun - 1), None)
                }
                Open::Object(entries, begun) => {
                    *begun += 1;
                    entries.get(*begun - 1).map_or((None, None), |(key, value)| (Some(value), Some(key)))
                }
                Open::Map(entries, begun) => {
                    *begun += 1;
                    let entry = entries.get((*begun - 1) / 2);
                    (entry.map(|(key, value)| if *begun % 2 == 1 { key } else { value }), None)
                }
            };
            if let Some(key) = key {
                self.text(key)?;
            }
            match part {
                Some(value) => self.begin(value)?,
                None => drop(self.open.pop()),
            }
        }
        Ok(())
    }

    /// Writes a scalar, or a container's head and leaves the container open.
    fn begin(&mut self, value: &'v Value) -> Result<(), Fault> {
        match value {
            Value::Undefined => self.byte(simple::UNDEFINED),
            Value::Null => self.byte(simple::NULL),
            Value::Bool(false) => self.byte(simple::FALSE),
            Value::Bool(true) => self.byte(simple::TRUE),
            Value::Number(number) => self.number(*number),
            Value::BigInt(integer) => self.big_int(integer),
            Value::String(text) => self.text(text),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Date(milliseconds) => self.date(*milliseconds),
            Value::Function(function) => self.function(function),
            Value::Stream(stream) => self.stream(*stream),
            Value::Array(items) => {
                self.container(items.len())?;
                self.head(Major::Array, items.len() as u64)?;
                self.open.push(Open::Array(items, 0));
                Ok(())
            }
            Value::Set(items) => {
                self.container(items.len())?;
                self.head(Major::Tag, tag::SET)?;
                self.head(Major::Array, items.len() as u64)?;
                self.open.push(Open::Set(items, 0));
                Ok(())
            }
            Value::Object(entries) => {
                self.container(entries.len())?;
                if let Some(key) = duplicate_key(entries) {
                    return Err(Fault::DuplicateKey(key.clone()));
                }
                self.head(Major::Map, entries.len() as u64)?;
                self.open.push(Open::Object(entries, 0));
                Ok(())
            }
            Value::Map(entries) => {
                self.container(entries.len().saturating_mul(2))?;
                self.head(Major::Tag, tag::MAP)?;
                self.head(Major::Map, entries.len() as u64)?;
                self.open.push(Open::Map(entries, 0));
                Ok(())
            }
        }
    }

    /// Checks the depth of one container more and takes its nodes.
    fn container(&mut self, nodes: usize) -> Result<(), Fault> {
        if self.open.len() >= self.allowance.budget.effective_depth() as usize {
            return Err(Fault::Depth);
        }
        self.take_nodes(nodes)
    }

    fn take_nodes(&mut self, count: usize) -> Result<(), Fault> {
        if self.allowance.take_nodes(count) { Ok(()) } else { Err(Fault::Nodes) }
    }

    /// Checks that this many bytes more are within the budget.
    fn reserve(&self, length: usize) -> Result<(), Fault> {
        if length <= self.end - self.out.len() { Ok(()) } else { Err(Fault::Bytes) }
    }

    fn byte(&mut self, byte: u8) -> Result<(), Fault> {
        self.reserve(1)?;
        self.out.push(byte);
        Ok(())
    }

    fn head(&mut self, major: Major, argument: u64) -> Result<(), Fault> {
        self.reserve(head_length(argument))?;
        write_head(self.out, major, argument);
        Ok(())
    }

    /// Writes a head and the bytes that it announces.
    fn string(&mut self, major: Major, bytes: &[u8]) -> Result<(), Fault> {
        let length = bytes.len() as u64;
        self.reserve(head_length(length) + bytes.len())?;
        write_head(self.out, major, length);
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.string(Major::Bytes, bytes)
    }

    fn text(&mut self, text: &Text) -> Result<(), Fault> {
        if text.is_well_formed() {
            return self.string(Major::Text, &text.to_wtf8());
        }
        self.reserve(text.len_bytes())?;
        self.head(Major::Tag, tag::WTF8)?;
        self.bytes(&text.to_wtf8())
    }

    fn number(&mut self, number: f64) -> Result<(), Fault> {
        if let Some(integer) = safe_integer(number) {
            return self.integer(integer);
        }
        self.reserve(1 + size_of::<f64>())?;
        let bits = if number.is_nan() { CANONICAL_NAN } else { number.to_bits() };
        self.out.push(simple::FLOAT64);
        self.out.extend_from_slice(&bits.to_be_bytes());
        Ok(())
    }

    fn integer(&mut self, integer: i64) -> Result<(), Fault> {
        match u64::try_from(integer) {
            Ok(unsigned) => self.head(Major::Unsigned, unsigned),
            Err(_) => self.head(Major::Negative, !integer as u64),
        }
    }

    fn big_int(&mut self, integer: &BigInt) -> Result<(), Fault> {
        let magnitude = integer.magnitude();
        self.reserve(magnitude.len())?;
        if !integer.is_negative() {
            self.head(Major::Tag, tag::POSITIVE_BIGNUM)?;
            return self.bytes(magnitude);
        }
        // A negative bignum holds -1 - n.
        let mut less_one = magnitude.to_vec();
        for digit in less_one.iter_mut().rev() {
            let borrows;
            (*digit, borrows) = digit.overflowing_sub(1);
            if !borrows {
                break;
            }
        }
        let leading_zeros = less_one.iter().take_while(|&&digit| digit == 0).count();
        self.head(Major::Tag, tag::NEGATIVE_BIGNUM)?;
        self.bytes(&less_one[leading_zeros..])
    }

    fn date(&mut self, milliseconds: i64) -> Result<(), Fault> {
        if milliseconds.unsigned_abs() > MAX_DATE_MILLISECONDS.unsigned_abs() {
            return Err(Fault::Date(milliseconds));
        }
        self.head(Major::Tag, tag::EXTENDED_TIME)?;
        self.head(Major::Map, 2)?;
        self.integer(1)?;
        self.integer(milliseconds.div_euclid(1000))?;
        self.integer(-3)?;
        self.integer(milliseconds.rem_euclid(1000))
    }

    fn function(&mut self, function: &Function) -> Result<(), Fault> {
        self.head(Major::Tag, tag::IDENTIFIER)?;
        self.head(Major::Array, 2)?;
        self.head(Major::Unsigned, function.handle)?;
        self.text(&function.name)
    }

    fn stream(&mut self, stream: Stream) -> Result<(), Fault> {
        self.head(Major::Tag, tag::IDENTIFIER)?;
        self.head(Major::Array, 2)?;
        self.head(Major::Unsigned, stream.handle)?;
        self.head(
            Major::Unsigned,
            match stream.owner {
                StreamOwner::Guest => STREAM_OF_GUEST,
                StreamOwner::Host => STREAM_OF_HOST,
            },
        )
    }
}

/// How the owner of a stream is written.
pub(super) const STREAM_OF_GUEST: u64 = 0;
pub(super) const STREAM_OF_HOST: u64 = 1;

/// The one NaN that is written.
pub(super) const CANONICAL_NAN: u64 = 0x7FF8_0000_0000_0000;

/// The number as the integer that it is encoded as, if it is.
pub(super) fn safe_integer(number: f64) -> Option<i64> {
    let integer = number as i64;
    // As bits, since 0 and -0 are equal as numbers.
    let is_same = (integer as f64).to_bits() == number.to_bits();
    (is_same && integer.unsigned_abs() <= MAX_SAFE_INTEGER.unsigned_abs()).then_some(integer)
}
