//! Records: arrays of a number, which says what it is, and fields. Messages and the choices inside them are records.

use std::ops::Range;

use super::bounds::SENTENCE_BYTES;
use super::error::{DecodeError, EncodeError};
use super::head::{Major, Reader, simple, write_head};
use super::{decode, encode};
use crate::budget::{Allowance, Budget};
use crate::path::Segment;
use crate::text::Text;
use crate::value::Value;

/// More than the heads of a record and of all its fields but those in lists.
pub(super) const RECORD_OVERHEAD: usize = 128;

/// Appends what `write` writes, or after an error nothing.
pub(super) fn write_message(
    out: &mut Vec<u8>,
    budget: &Budget,
    write: impl FnOnce(&mut RecordWriter<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    let mut writer = RecordWriter { out, allowance: Allowance::new(budget) };
    let result = write(&mut writer);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Gives what `read` reads, which must be all of the bytes.
pub(super) fn read_message<T>(
    bytes: &[u8],
    budget: &Budget,
    read: impl FnOnce(&mut RecordReader<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut reader = RecordReader {
        reader: Reader::new(bytes),
        allowance: Allowance::new(budget),
        most_copied: usize::MAX,
        values: 0,
        left: None,
    };
    let message = read(&mut reader)?;
    reader.reader.finish()?;
    Ok(message)
}

/// As [`read_message`], of a message that begins at `start` of a buffer and ends it. A value of bytes that is most of the message
/// gets the buffer, and no memory of its own; `values` are the message's.
pub(super) fn take_message<T>(
    mut buffer: Vec<u8>,
    start: usize,
    budget: &Budget,
    read: impl FnOnce(&mut RecordReader<'_>) -> Result<T, DecodeError>,
    values: impl FnOnce(&mut T) -> &mut [Value],
) -> Result<T, DecodeError> {
    let bytes = &buffer[start..];
    let mut reader = RecordReader {
        reader: Reader::new(bytes),
        allowance: Allowance::new(budget),
        most_copied: bytes.len() / 2,
        values: 0,
        left: None,
    };
    let mut message = read(&mut reader)?;
    reader.reader.finish()?;
    if let Some((index, place)) = reader.left
        && let Some(value) = values(&mut message).get_mut(index)
    {
        buffer.truncate(start + place.end);
        buffer.drain(..start + place.start);
        *value = Value::Bytes(buffer);
    }
    Ok(message)
}

/// Writes one message.
pub(super) struct RecordWriter<'o> {
    out: &'o mut Vec<u8>,
    /// For all values of the message together.
    allowance: Allowance,
}

impl RecordWriter<'_> {
    /// Begins a record, whose fields come next.
    pub(super) fn record(&mut self, number: u64, fields: u64) {
        write_head(self.out, Major::Array, fields + 1);
        self.unsigned(number);
    }

    /// Begins a list, whose items come next.
    pub(super) fn list(
        &mut self,
        field: &'static str,
        length: usize,
        limit: usize,
    ) -> Result<(), EncodeError> {
        within(field, length, limit)?;
        write_head(self.out, Major::Array, length as u64);
        Ok(())
    }

    pub(super) fn unsigned(&mut self, integer: u64) {
        write_head(self.out, Major::Unsigned, integer);
    }

    pub(super) fn signed(&mut self, integer: i32) {
        match u64::try_from(integer) {
            Ok(unsigned) => self.unsigned(unsigned),
            Err(_) => write_head(self.out, Major::Negative, u64::from(!integer as u32)),
        }
    }

    pub(super) fn unsigned_or_null(&mut self, integer: Option<u64>) {
        match integer {
            Some(integer) => self.unsigned(integer),
            None => self.null(),
        }
    }

    pub(super) fn signed_or_null(&mut self, integer: Option<i64>) {
        match integer {
            Some(integer) if integer < 0 => write_head(self.out, Major::Negative, !integer as u64),
            Some(integer) => self.unsigned(integer as u64),
            None => self.null(),
        }
    }

    pub(super) fn boolean(&mut self, boolean: bool) {
        self.out.push(if boolean { simple::TRUE } else { simple::FALSE });
    }

    pub(super) fn null(&mut self) {
        self.out.push(simple::NULL);
    }

    /// Writes a text that must be whole.
    pub(super) fn text(&mut self, field: &'static str, text: &Text, limit: usize) -> Result<(), EncodeError> {
        within(field, text.len_bytes(), limit)?;
        encode::text(self.out, text);
        Ok(())
    }

    /// Writes bytes, all of them.
    pub(super) fn bytes(
        &mut self,
        field: &'static str,
        bytes: &[u8],
        limit: usize,
    ) -> Result<(), EncodeError> {
        within(field, bytes.len(), limit)?;
        write_head(self.out, Major::Bytes, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes a string that must be whole.
    pub(super) fn string(
        &mut self,
        field: &'static str,
        string: &str,
        limit: usize,
    ) -> Result<(), EncodeError> {
        within(field, string.len(), limit)?;
        write_head(self.out, Major::Text, string.len() as u64);
        self.out.extend_from_slice(string.as_bytes());
        Ok(())
    }

    /// Writes a text for a person, cut to its bound.
    pub(super) fn explanation(&mut self, text: &Text, limit: usize) {
        encode::text(self.out, &text.shortened(limit));
    }

    /// Writes a sentence for a person, cut to its bound.
    pub(super) fn sentence(&mut self, sentence: &str) {
        self.explanation(&Text::from(sentence), SENTENCE_BYTES);
    }

    /// Writes a list of those items that can be written.
    pub(super) fn what_fits<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        write: impl Fn(&mut Self, T) -> Result<(), EncodeError>,
    ) {
        let start = self.out.len();
        let mut length = 0;
        for item in items {
            let before = self.out.len();
            match write(self, item) {
                Ok(()) => length += 1,
                Err(_) => self.out.truncate(before),
            }
        }
        let written = self.out.split_off(start);
        write_head(self.out, Major::Array, length);
        self.out.extend_from_slice(&written);
    }

    /// Writes a value, which errors say to stand at `prefix`.
    pub(super) fn value(&mut self, value: &Value, prefix: &[Segment]) -> Result<(), EncodeError> {
        encode::value(value, self.out, &mut self.allowance, prefix)
    }
}

fn within(field: &'static str, length: usize, limit: usize) -> Result<(), EncodeError> {
    if length <= limit { Ok(()) } else { Err(EncodeError::FieldTooLong { field, length, limit }) }
}

/// A record's beginning.
pub(super) struct Record {
    offset: usize,
    expected: &'static str,
    /// The number that says what it is.
    pub(super) number: u64,
    /// How many fields come next.
    pub(super) fields: u64,
}

impl Record {
    /// The error for a number that nothing has, or not with so many fields.
    pub(super) fn unknown(&self) -> DecodeError {
        let Self { offset, expected, number, fields } = *self;
        DecodeError::UnknownRecord { offset, expected, number, fields }
    }
}

/// Reads one message.
pub(super) struct RecordReader<'b> {
    reader: Reader<'b>,
    /// For all values of the message together.
    allowance: Allowance,
    /// More bytes than these are left where they are, if they are one of the message's values.
    most_copied: usize,
    /// How many of the message's values were read.
    values: usize,
    /// Which of them was left where it is, and where.
    left: Option<(usize, Range<usize>)>,
}

impl RecordReader<'_> {
    /// Reads a record's beginning; `expected` names the record in errors.
    pub(super) fn record(&mut self, expected: &'static str) -> Result<Record, DecodeError> {
        let offset = self.reader.position();
        match self.reader.expect(Major::Array, expected)?.checked_sub(1) {
            Some(fields) => Ok(Record { offset, expected, number: self.unsigned()?, fields }),
            None => Err(DecodeError::Unexpected { offset, expected }),
        }
    }

    /// Reads a list of as many items as `item` can read, `limit` at most.
    pub(super) fn list<T>(
        &mut self,
        field: &'static str,
        limit: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let length = self.list_of(field, limit)?;
        (0..length).map(|_| item(self)).collect()
    }

    /// Reads a list's beginning and returns how many items come next, `limit` at most.
    pub(super) fn list_of(&mut self, field: &'static str, limit: usize) -> Result<usize, DecodeError> {
        let offset = self.reader.position();
        let length = self.reader.expect(Major::Array, "a list")?;
        if length > limit as u64 {
            return Err(DecodeError::FieldTooLong { field, length, limit });
        }
        let available = self.reader.remaining();
        if length > available as u64 {
            return Err(DecodeError::TooFewBytes { offset, claimed: length, available });
        }
        Ok(length as usize)
    }

    /// How many bytes have been read.
    pub(super) fn position(&self) -> usize {
        self.reader.position()
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, DecodeError> {
        self.reader.expect(Major::Unsigned, "an unsigned integer")
    }

    pub(super) fn unsigned_32(&mut self) -> Result<u32, DecodeError> {
        let offset = self.reader.position();
        u32::try_from(self.unsigned()?).map_err(|_| DecodeError::IntegerOutOfRange { offset })
    }

    pub(super) fn signed(&mut self) -> Result<i32, DecodeError> {
        let offset = self.reader.position();
        let (major, argument) = self.reader.head()?;
        let magnitude = i32::try_from(argument).map_err(|_| DecodeError::IntegerOutOfRange { offset });
        match major {
            Major::Unsigned => magnitude,
            Major::Negative => magnitude.map(|magnitude| !magnitude),
            _ => Err(DecodeError::Unexpected { offset, expected: "an integer" }),
        }
    }

    pub(super) fn unsigned_or_null(&mut self) -> Result<Option<u64>, DecodeError> {
        if self.is_null()? { Ok(None) } else { self.unsigned().map(Some) }
    }

    pub(super) fn signed_or_null(&mut self) -> Result<Option<i64>, DecodeError> {
        if self.is_null()? {
            return Ok(None);
        }
        let offset = self.reader.position();
        let (major, argument) = self.reader.head()?;
        let magnitude = i64::try_from(argument).map_err(|_| DecodeError::IntegerOutOfRange { offset });
        match major {
            Major::Unsigned => magnitude.map(Some),
            Major::Negative => magnitude.map(|magnitude| Some(!magnitude)),
            _ => Err(DecodeError::Unexpected { offset, expected: "an integer" }),
        }
    }

    /// Skips a null, and tells whether there was one.
    fn is_null(&mut self) -> Result<bool, DecodeError> {
        let is_null = self.reader.peek()? == simple::NULL;
        if is_null {
            self.reader.skip_initial();
        }
        Ok(is_null)
    }

    pub(super) fn boolean(&mut self) -> Result<bool, DecodeError> {
        let offset = self.reader.position();
        let boolean = match self.reader.peek()? {
            simple::FALSE => false,
            simple::TRUE => true,
            _ => return Err(DecodeError::Unexpected { offset, expected: "a boolean" }),
        };
        self.reader.skip_initial();
        Ok(boolean)
    }

    pub(super) fn text(&mut self, field: &'static str, limit: usize) -> Result<Text, DecodeError> {
        decode::text(&mut self.reader, field, limit)
    }

    pub(super) fn bytes(&mut self, field: &'static str, limit: usize) -> Result<Vec<u8>, DecodeError> {
        let length = self.reader.expect(Major::Bytes, "a byte string")?;
        if length > limit as u64 {
            return Err(DecodeError::FieldTooLong { field, length, limit });
        }
        Ok(self.reader.take(length)?.to_vec())
    }

    pub(super) fn string(&mut self, field: &'static str, limit: usize) -> Result<String, DecodeError> {
        let offset = self.reader.position();
        self.text(field, limit)?.into_string().map_err(|_| DecodeError::InvalidText { offset })
    }

    pub(super) fn sentence(&mut self, field: &'static str) -> Result<String, DecodeError> {
        self.string(field, SENTENCE_BYTES)
    }

    /// Reads the number of one of these choices; `expected` names them in errors.
    pub(super) fn choice<T: Copy>(
        &mut self,
        expected: &'static str,
        choices: &[T],
    ) -> Result<T, DecodeError> {
        let offset = self.reader.position();
        let number = self.unsigned()?;
        let choice = usize::try_from(number).ok().and_then(|index| choices.get(index));
        choice.copied().ok_or(DecodeError::UnknownRecord { offset, expected, number, fields: 0 })
    }

    pub(super) fn value(&mut self) -> Result<Value, DecodeError> {
        decode::value(&mut self.reader, &mut self.allowance)
    }

    /// Reads one of the message's values, those that errors carry not among them.
    pub(super) fn value_of_message(&mut self) -> Result<Value, DecodeError> {
        let (value, place) = decode::value_or_place(&mut self.reader, &mut self.allowance, self.most_copied)?;
        // Most of a message is there once.
        if let Some(place) = place {
            self.left = Some((self.values, place));
        }
        self.values += 1;
        Ok(value)
    }

    /// Reads a list of the message's values, of which each is a node of the budget at least.
    pub(super) fn values(&mut self, field: &'static str) -> Result<Vec<Value>, DecodeError> {
        self.list(field, self.allowance.budget.nodes, Self::value_of_message)
    }
}
