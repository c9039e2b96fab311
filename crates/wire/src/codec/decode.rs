//! From bytes to the value that they are.

use std::mem;
use std::ops::Range;

use super::encode::{CANONICAL_NAN, STREAM_OF_GUEST, STREAM_OF_HOST, safe_integer};
use super::error::DecodeError;
use super::head::{Major, Reader, simple};
use super::{duplicate_key, tag};
use crate::budget::Allowance;
use crate::text::Text;
use crate::value::{BigInt, Function, MAX_DATE_MILLISECONDS, MAX_SAFE_INTEGER, Stream, StreamOwner, Value};

/// Reads a value and takes what it used from the allowance, which is of no use any more after an error.
pub(super) fn value(reader: &mut Reader<'_>, allowance: &mut Allowance) -> Result<Value, DecodeError> {
    value_or_place(reader, allowance, usize::MAX).map(|(value, _)| value)
}

/// As [`value`], but bytes that are the whole value are not copied where there are more than `most_copied` of them: the value
/// has none then, and where they are comes with it.
pub(super) fn value_or_place(
    reader: &mut Reader<'_>,
    allowance: &mut Allowance,
    most_copied: usize,
) -> Result<(Value, Option<Range<usize>>), DecodeError> {
    let limit = allowance.budget.bytes;
    let is_cut = allowance.bytes < reader.remaining();
    let window = reader.window(allowance.bytes);
    let mut decoder =
        Decoder { reader: window, allowance, open: Vec::new(), owed: 1, most_copied, place: None };
    let result = decoder.run();
    let (window, place) = (decoder.reader, decoder.place);
    match result {
        Ok(value) => {
            allowance.bytes -= window.position() - reader.position();
            reader.skip_to(&window);
            Ok((value, place))
        }
        // It was the budget that ended the bytes.
        Err(DecodeError::Truncated { .. } | DecodeError::TooFewBytes { .. }) if is_cut => {
            Err(DecodeError::Bytes { limit })
        }
        Err(error) => Err(error),
    }
}

/// Reads a string: a text string, or tag 273.
///
/// The bound is on its bytes and is checked before they are copied; `field` names the string in the error.
pub(super) fn text(reader: &mut Reader<'_>, field: &'static str, limit: usize) -> Result<Text, DecodeError> {
    let offset = reader.position();
    let (major, argument) = reader.head()?;
    let (is_wtf8, length) = match (major, argument) {
        (Major::Text, length) => (false, length),
        (Major::Tag, tag::WTF8) => (true, reader.expect(Major::Bytes, "a byte string")?),
        _ => return Err(DecodeError::Unexpected { offset, expected: "a string" }),
    };
    if length > limit as u64 {
        return Err(DecodeError::FieldTooLong { field, length, limit });
    }
    let offset = reader.position();
    let bytes = reader.take(length)?;
    if is_wtf8 { ill_formed_text(bytes, offset) } else { well_formed_text(bytes, offset) }
}

struct Decoder<'b, 'a> {
    reader: Reader<'b>,
    allowance: &'a mut Allowance,
    /// The containers that are being read, outermost first.
    open: Vec<Open>,
    /// How many items the open containers still claim; each takes a byte at least.
    owed: usize,
    /// How many bytes are copied where they are the whole value.
    most_copied: usize,
    /// Where those are that were not.
    place: Option<Range<usize>>,
}

/// A container that lacks some of its parts.
struct Open {
    parts: Parts,
    missing: usize,
}

enum Parts {
    Array(Vec<Value>),
    Set(Vec<Value>),
    /// With the key whose value comes next.
    Object(Vec<(Text, Value)>, Text),
    /// With the key whose value comes next, unless it is the key that does.
    Map(Vec<(Value, Value)>, Option<Value>),
}

impl Open {
    fn accept(&mut self, part: Value) {
        self.missing -= 1;
        match &mut self.parts {
            Parts::Array(items) | Parts::Set(items) => items.push(part),
            Parts::Object(entries, key) => entries.push((mem::take(key), part)),
            Parts::Map(entries, key) => match key.take() {
                Some(key) => entries.push((key, part)),
                None => *key = Some(part),
            },
        }
    }
}

/// What an item turned out to be.
enum Begun {
    Whole(Value),
    Container(Parts, usize),
}

impl Decoder<'_, '_> {
    fn run(&mut self) -> Result<Value, DecodeError> {
        self.take_nodes(1, self.reader.position())?;
        loop {
            let mut whole = match self.item()? {
                Begun::Whole(value) => value,
                Begun::Container(parts, 0) => self.close(parts)?,
                Begun::Container(parts, missing) => {
                    self.open.push(Open { parts, missing });
                    self.key()?;
                    continue;
                }
            };
            // Hands what is whole to its container, which that may make whole.
            loop {
                let Some(open) = self.open.last_mut() else { return Ok(whole) };
                open.accept(whole);
                match self.open.pop_if(|open| open.missing == 0) {
                    Some(open) => whole = self.close(open.parts)?,
                    None => break,
                }
            }
            self.key()?;
        }
    }

    /// Reads the next key, if it is an object that is open.
    fn key(&mut self) -> Result<(), DecodeError> {
        if let Some(Open { parts: Parts::Object(_, key), .. }) = self.open.last_mut() {
            self.owed -= 1;
            *key = text(&mut self.reader, "a key", usize::MAX)?;
        }
        Ok(())
    }

    /// Makes a value of a container that has all its parts.
    fn close(&self, parts: Parts) -> Result<Value, DecodeError> {
        Ok(match parts {
            Parts::Array(items) => Value::Array(items),
            Parts::Set(items) => Value::Set(items),
            Parts::Map(entries, _) => Value::Map(entries),
            Parts::Object(entries, _) => {
                if let Some(key) = duplicate_key(&entries) {
                    let key = key.shortened(64).into_owned();
                    return Err(DecodeError::DuplicateKey { offset: self.reader.position(), key });
                }
                Value::Object(entries)
            }
        })
    }

    /// Reads a scalar, or a container's head.
    fn item(&mut self) -> Result<Begun, DecodeError> {
        self.owed -= 1;
        let offset = self.reader.position();
        let initial = self.reader.peek()?;
        let scalar = match initial {
            simple::UNDEFINED => Value::Undefined,
            simple::NULL => Value::Null,
            simple::FALSE => Value::Bool(false),
            simple::TRUE => Value::Bool(true),
            simple::FLOAT64 => return Ok(Begun::Whole(self.float(offset)?)),
            _ => {
                let (major, argument) = self.reader.head()?;
                return self.item_with_argument(offset, major, argument);
            }
        };
        self.reader.skip_initial();
        Ok(Begun::Whole(scalar))
    }

    fn item_with_argument(
        &mut self,
        offset: usize,
        major: Major,
        argument: u64,
    ) -> Result<Begun, DecodeError> {
        let whole = match major {
            Major::Unsigned => Value::Number(safe(argument, MAX_SAFE_INTEGER, offset)? as f64),
            Major::Negative => Value::Number(!safe(argument, MAX_SAFE_INTEGER - 1, offset)? as f64),
            Major::Bytes => Value::Bytes(self.bytes(argument)?),
            Major::Text => {
                let offset = self.reader.position();
                Value::String(well_formed_text(self.reader.take(argument)?, offset)?)
            }
            Major::Array => {
                let count = self.claim(offset, argument, 1)?;
                self.take_nodes(count, offset)?;
                return Ok(Begun::Container(Parts::Array(Vec::with_capacity(count)), count));
            }
            Major::Map => {
                let count = self.claim(offset, argument, 2)?;
                self.take_nodes(count, offset)?;
                return Ok(Begun::Container(
                    Parts::Object(Vec::with_capacity(count), Text::default()),
                    count,
                ));
            }
            Major::Tag => return self.tagged(offset, argument),
        };
        Ok(Begun::Whole(whole))
    }

    fn tagged(&mut self, offset: usize, tag: u64) -> Result<Begun, DecodeError> {
        let whole = match tag {
            tag::POSITIVE_BIGNUM => self.big_int(false)?,
            tag::NEGATIVE_BIGNUM => self.big_int(true)?,
            tag::EXTENDED_TIME => self.date(offset)?,
            tag::IDENTIFIER => self.function_or_stream(offset)?,
            tag::WTF8 => {
                let length = self.reader.expect(Major::Bytes, "a byte string")?;
                let offset = self.reader.position();
                Value::String(ill_formed_text(self.reader.take(length)?, offset)?)
            }
            tag::SET => {
                let claimed = self.reader.expect(Major::Array, "an array")?;
                let count = self.claim(offset, claimed, 1)?;
                self.take_nodes(count, offset)?;
                return Ok(Begun::Container(Parts::Set(Vec::with_capacity(count)), count));
            }
            tag::MAP => {
                let claimed = self.reader.expect(Major::Map, "a map")?;
                let count = self.claim(offset, claimed, 2)?;
                self.take_nodes(count * 2, offset)?;
                return Ok(Begun::Container(Parts::Map(Vec::with_capacity(count), None), count * 2));
            }
            tag => return Err(DecodeError::UnknownTag { offset, tag }),
        };
        Ok(Begun::Whole(whole))
    }

    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, DecodeError> {
        let start = self.reader.position();
        let bytes = self.reader.take(length)?;
        if self.open.is_empty() && bytes.len() > self.most_copied {
            self.place = Some(start..self.reader.position());
            return Ok(Vec::new());
        }
        Ok(bytes.to_vec())
    }

    /// Checks a container's depth and that its claimed entries, of so many items each, can be there at all.
    fn claim(&mut self, offset: usize, entries: u64, items_each: usize) -> Result<usize, DecodeError> {
        let limit = self.allowance.budget.effective_depth();
        if self.open.len() >= limit as usize {
            return Err(DecodeError::Depth { offset, limit });
        }
        let available = self.reader.remaining().saturating_sub(self.owed);
        let claimed = entries.saturating_mul(items_each as u64);
        if claimed > available as u64 {
            return Err(DecodeError::TooFewBytes { offset, claimed, available });
        }
        self.owed += claimed as usize;
        Ok(entries as usize)
    }

    fn take_nodes(&mut self, count: usize, offset: usize) -> Result<(), DecodeError> {
        if self.allowance.take_nodes(count) {
            return Ok(());
        }
        Err(DecodeError::Nodes { offset, limit: self.allowance.budget.nodes })
    }

    fn float(&mut self, offset: usize) -> Result<Value, DecodeError> {
        let bits = self.reader.float_after_initial()?;
        let number = f64::from_bits(bits);
        if number.is_nan() && bits != CANONICAL_NAN {
            return Err(DecodeError::NotCanonical { offset, what: "a NaN with a payload" });
        }
        if safe_integer(number).is_some() {
            return Err(DecodeError::NotCanonical { offset, what: "an integer written as a float" });
        }
        Ok(Value::Number(number))
    }

    fn big_int(&mut self, negative: bool) -> Result<Value, DecodeError> {
        let offset = self.reader.position();
        let length = self.reader.expect(Major::Bytes, "a byte string")?;
        let bytes = self.reader.take(length)?;
        if bytes.first() == Some(&0) {
            return Err(DecodeError::NotCanonical { offset, what: "a bignum with leading zeros" });
        }
        if !negative {
            return Ok(Value::BigInt(BigInt::new(false, bytes.to_vec())));
        }
        // A negative bignum holds -1 - n; the zero in front takes the carry.
        let mut magnitude = Vec::with_capacity(bytes.len() + 1);
        magnitude.push(0);
        magnitude.extend_from_slice(bytes);
        for digit in magnitude.iter_mut().rev() {
            let carries;
            (*digit, carries) = digit.overflowing_add(1);
            if !carries {
                break;
            }
        }
        Ok(Value::BigInt(BigInt::new(true, magnitude)))
    }

    fn date(&mut self, offset: usize) -> Result<Value, DecodeError> {
        let expected = "the map {1: seconds, -3: milliseconds}";
        let unexpected = DecodeError::Unexpected { offset, expected };
        let out_of_range = DecodeError::DateOutOfRange { offset };
        if self.reader.head()? != (Major::Map, 2) || self.reader.head()? != (Major::Unsigned, 1) {
            return Err(unexpected);
        }
        let seconds = match self.reader.head()? {
            (Major::Unsigned, seconds) => i64::try_from(seconds).ok(),
            (Major::Negative, seconds) => i64::try_from(seconds).ok().map(|seconds| !seconds),
            _ => return Err(unexpected),
        };
        if self.reader.head()? != (Major::Negative, 2) {
            return Err(unexpected);
        }
        let milliseconds = match self.reader.head()? {
            (Major::Unsigned, milliseconds @ 0..=999) => milliseconds as i64,
            _ => return Err(unexpected),
        };
        let date = seconds
            .and_then(|seconds| seconds.checked_mul(1000)?.checked_add(milliseconds))
            .filter(|date| date.unsigned_abs() <= MAX_DATE_MILLISECONDS.unsigned_abs());
        date.map(Value::Date).ok_or(out_of_range)
    }

    fn function_or_stream(&mut self, offset: usize) -> Result<Value, DecodeError> {
        let expected = "an array of a function's handle and name, or of a stream's handle and owner";
        let (Major::Array, 2) = self.reader.head()? else {
            return Err(DecodeError::Unexpected { offset, expected });
        };
        let (Major::Unsigned, handle) = self.reader.head()? else {
            return Err(DecodeError::Unexpected { offset, expected });
        };
        let owner = match self.reader.peek()? {
            number if u64::from(number) == STREAM_OF_GUEST => Some(StreamOwner::Guest),
            number if u64::from(number) == STREAM_OF_HOST => Some(StreamOwner::Host),
            _ => None,
        };
        if let Some(owner) = owner {
            self.reader.skip_initial();
            return Ok(Value::Stream(Stream { handle, owner }));
        }
        let name = text(&mut self.reader, "a function's name", usize::MAX)?;
        Ok(Value::Function(Function { handle, name }))
    }
}

/// An argument as the integer that it is, up to a maximum.
fn safe(argument: u64, max: i64, offset: usize) -> Result<i64, DecodeError> {
    match i64::try_from(argument) {
        Ok(integer) if integer <= max => Ok(integer),
        _ => Err(DecodeError::IntegerOutOfRange { offset }),
    }
}

fn well_formed_text(bytes: &[u8], offset: usize) -> Result<Text, DecodeError> {
    match std::str::from_utf8(bytes) {
        Ok(string) => Ok(Text::from(string)),
        Err(_) => Err(DecodeError::InvalidText { offset }),
    }
}

fn ill_formed_text(bytes: &[u8], offset: usize) -> Result<Text, DecodeError> {
    let text = Text::from_wtf8(bytes.to_vec()).map_err(|_| DecodeError::InvalidText { offset })?;
    if text.is_well_formed() || *text.to_wtf8() != *bytes {
        let what = "a string that is well-formed or has a surrogate pair in two parts, as WTF-8";
        return Err(DecodeError::NotCanonical { offset, what });
    }
    Ok(text)
}
