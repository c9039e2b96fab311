//! The tape that the prelude writes of a value, and the value that it stands for.

use std::rc::Rc;

use pydeno_wire::{BigInt, Function, Stream, StreamOwner, Text, Value};

use crate::conversion_error::ConversionError;
use crate::ffi::{Context, EngineString, Local, StackRoom};
use crate::held_functions::HeldFunctions;
use crate::pieces;
use crate::prelude::Prelude;

// Operations; flatten.js writes them.
const UNDEFINED: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const NUMBER: u8 = 4;
const STRING: u8 = 5;
const BIG_INT: u8 = 6;
const DATE: u8 = 7;
const BYTES: u8 = 8;
const ARRAY: u8 = 9;
const OBJECT: u8 = 10;
const OBJECT_AGAIN: u8 = 11;
const SET: u8 = 12;
const MAP: u8 = 13;
const FUNCTION: u8 = 14;
/// Several elements of a list: objects of one shape, property by property.
const ROWS: u8 = 15;
// How a list is written.
const NUMBERS: u8 = 16;
const STRINGS: u8 = 17;
const MIXED: u8 = 18;
/// 19 is for paths.
const STREAM: u8 = 20;
const BYTES_IN_PIECES: u8 = 21;

/// Reads a tape from its beginning. Every step says `None` where the tape is not what the prelude writes.
pub(crate) struct Reader<'c, 't> {
    context: &'c Context,
    lists: Lists<'c, 't>,
    /// How many functions and streams have been read; the list has them in the tape's order.
    functions: u32,
    tape: &'t [f64],
    text: TextReader<'t>,
    /// The names of the last object at each depth.
    shapes: Vec<Rc<[Text]>>,
}

/// What a tape has of a value that is no number and no text.
pub(crate) struct Lists<'c, 'h> {
    pub(crate) buffers: Local<'c>,
    pub(crate) functions: Local<'c>,
    /// Takes the functions.
    pub(crate) held: &'h HeldFunctions,
    pub(crate) stack: StackRoom,
    pub(crate) prelude: &'h Prelude,
}

/// Takes texts off the front of the one text that holds them all.
enum TextReader<'t> {
    /// Every code unit is a byte.
    Ascii(&'t str),
    Wide(&'t [u16]),
}

impl TextReader<'_> {
    fn take(&mut self, units: usize) -> Option<Text> {
        match self {
            Self::Ascii(rest) => {
                let (text, after) = rest.split_at_checked(units)?;
                *rest = after;
                Some(Text::from(text))
            }
            Self::Wide(rest) => {
                let (text, after) = rest.split_at_checked(units)?;
                *rest = after;
                Some(Text::from_utf16(text))
            }
        }
    }
}

/// The value that a tape stands for; `None` when it is no tape of the prelude's.
pub(crate) fn read<'c>(
    context: &'c Context,
    tape: &[f64],
    text: &EngineString,
    lists: Lists<'c, '_>,
) -> Result<Option<Value>, ConversionError<'c>> {
    let narrow = text.to_ascii();
    let text = match &narrow {
        Some(narrow) => TextReader::Ascii(narrow),
        None => TextReader::Wide(text.units()),
    };
    Reader { context, lists, functions: 0, tape, text, shapes: Vec::new() }.value(0)
}

impl<'c> Reader<'c, '_> {
    fn number(&mut self) -> Option<f64> {
        let (&number, rest) = self.tape.split_first()?;
        self.tape = rest;
        Some(number)
    }

    fn count(&mut self) -> Option<usize> {
        self.number().map(|count| count as usize)
    }

    fn text(&mut self) -> Option<Text> {
        let units = self.count()?;
        self.text.take(units)
    }

    fn value(&mut self, depth: usize) -> Result<Option<Value>, ConversionError<'c>> {
        let Some(operation) = self.number() else { return Ok(None) };
        Ok(match operation as u8 {
            UNDEFINED => Some(Value::Undefined),
            NULL => Some(Value::Null),
            FALSE => Some(Value::Bool(false)),
            TRUE => Some(Value::Bool(true)),
            NUMBER => self.number().map(Value::Number),
            STRING => self.text().map(Value::String),
            BIG_INT => {
                self.text().as_ref().and_then(Text::as_str).and_then(big_int_of_hex).map(Value::BigInt)
            }
            DATE => self.number().map(|milliseconds| Value::Date(milliseconds as i64)),
            BYTES => match self.count().map(u32::try_from) {
                Some(Ok(index)) => {
                    let buffer = self.context.get_index(self.lists.buffers, index)?;
                    Some(Value::Bytes(self.context.copy_bytes(buffer)?))
                }
                _ => None,
            },
            BYTES_IN_PIECES => match self.count().map(u32::try_from) {
                Some(Ok(index)) => {
                    let bytes = self.context.get_index(self.lists.buffers, index)?;
                    Some(Value::Bytes(pieces::take(self.context, self.lists.prelude, bytes)?))
                }
                _ => None,
            },
            ARRAY | MIXED => self.mixed(depth)?.map(Value::Array),
            NUMBERS => self.numbers().map(Value::Array),
            STRINGS => self.strings().map(Value::Array),
            SET => self.list(depth)?.map(Value::Set),
            MAP => self.list(depth)?.map(|contents| Value::Map(pairs(contents))),
            OBJECT => match self.names(depth) {
                Some(names) => self.object(&names, depth)?,
                None => None,
            },
            OBJECT_AGAIN => match self.shapes.get(depth).cloned() {
                Some(names) => self.object(&names, depth)?,
                None => None,
            },
            FUNCTION => match self.text() {
                Some(name) => {
                    let function = self.next_held()?;
                    let handle = self.lists.held.hold(self.context, function);
                    Some(Value::Function(Function { handle, name }))
                }
                None => None,
            },
            STREAM => {
                let record = self.next_held()?;
                let handle = self.lists.held.hold_stream(self.context, record);
                Some(Value::Stream(Stream { handle, owner: StreamOwner::Guest }))
            }
            _ => None,
        })
    }

    fn next_held(&mut self) -> Result<Local<'c>, ConversionError<'c>> {
        let held = self.context.get_index(self.lists.functions, self.functions)?;
        self.functions += 1;
        Ok(held)
    }

    /// A guest may have its value read at the very end of the stack.
    fn check_stack(&self) -> Result<(), ConversionError<'c>> {
        if self.lists.stack.is_enough_for_a_level() { Ok(()) } else { Err(ConversionError::NoStack) }
    }

    /// The contents of a list, however it is written.
    fn list(&mut self, depth: usize) -> Result<Option<Vec<Value>>, ConversionError<'c>> {
        Ok(match self.number().map(|kind| kind as u8) {
            Some(NUMBERS) => self.numbers(),
            Some(STRINGS) => self.strings(),
            Some(MIXED) => self.mixed(depth)?,
            _ => None,
        })
    }

    fn numbers(&mut self) -> Option<Vec<Value>> {
        let count = self.count()?;
        let (numbers, rest) = self.tape.split_at_checked(count)?;
        self.tape = rest;
        Some(numbers.iter().copied().map(Value::Number).collect())
    }

    fn strings(&mut self) -> Option<Vec<Value>> {
        let count = self.count()?;
        let (lengths, rest) = self.tape.split_at_checked(count)?;
        self.tape = rest;
        lengths.iter().map(|&units| self.text.take(units as usize).map(Value::String)).collect()
    }

    fn mixed(&mut self, depth: usize) -> Result<Option<Vec<Value>>, ConversionError<'c>> {
        self.check_stack()?;
        let Some(count) = self.count() else { return Ok(None) };
        // What is announced costs no memory before it is there.
        let mut values = Vec::with_capacity(count.min(self.tape.len()));
        while values.len() < count {
            if self.tape.first().is_some_and(|&operation| operation as u8 == ROWS) {
                if self.rows(depth + 1, count - values.len(), &mut values)?.is_none() {
                    return Ok(None);
                }
                continue;
            }
            let Some(value) = self.value(depth + 1)? else { return Ok(None) };
            values.push(value);
        }
        Ok(Some(values))
    }

    /// Reads objects of one shape, at least one and at most `most`.
    fn rows(
        &mut self,
        depth: usize,
        most: usize,
        values: &mut Vec<Value>,
    ) -> Result<Option<()>, ConversionError<'c>> {
        self.check_stack()?;
        let (Some(_), Some(count), Some(width)) = (self.number(), self.count(), self.count()) else {
            return Ok(None);
        };
        if count == 0 || count > most {
            return Ok(None);
        }
        let Some(names) = (0..width.min(self.tape.len())).map(|_| self.text()).collect::<Option<Vec<_>>>()
        else {
            return Ok(None);
        };
        let mut columns = Vec::with_capacity(names.len());
        for _ in &names {
            match self.list(depth)? {
                Some(column) if column.len() == count => columns.push(column.into_iter()),
                _ => return Ok(None),
            }
        }
        values.extend((0..count).map(|_| {
            let cells = columns.iter_mut().filter_map(Iterator::next);
            Value::Object(names.iter().cloned().zip(cells).collect())
        }));
        Ok(Some(()))
    }

    fn names(&mut self, depth: usize) -> Option<Rc<[Text]>> {
        let count = self.count()?;
        let names: Rc<[Text]> =
            (0..count.min(self.tape.len())).map(|_| self.text()).collect::<Option<_>>()?;
        if self.shapes.len() <= depth {
            self.shapes.resize_with(depth + 1, || Rc::from([]));
        }
        self.shapes[depth] = Rc::clone(&names);
        Some(names)
    }

    fn object(&mut self, names: &[Text], depth: usize) -> Result<Option<Value>, ConversionError<'c>> {
        self.check_stack()?;
        let mut properties = Vec::with_capacity(names.len());
        for name in names {
            let Some(value) = self.value(depth + 1)? else { return Ok(None) };
            properties.push((name.clone(), value));
        }
        Ok(Some(Value::Object(properties)))
    }
}

fn pairs(contents: Vec<Value>) -> Vec<(Value, Value)> {
    let mut pairs = Vec::with_capacity(contents.len() / 2);
    let mut contents = contents.into_iter();
    while let (Some(key), Some(value)) = (contents.next(), contents.next()) {
        pairs.push((key, value));
    }
    pairs
}

/// The integer that `BigInt.prototype.toString(16)` wrote.
pub(crate) fn big_int_of_hex(text: &str) -> Option<BigInt> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let nibbles = digits.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<u32>>>()?;
    let (odd, whole) = nibbles.split_at(nibbles.len() % 2);
    let first = odd.iter().map(|&nibble| nibble as u8);
    let rest = whole.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8);
    Some(BigInt::new(negative, first.chain(rest).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_text_of_any_length_and_sign_is_read() {
        assert_eq!(big_int_of_hex("0"), Some(BigInt::new(false, vec![])));
        assert_eq!(big_int_of_hex("-1"), Some(BigInt::new(true, vec![1])));
        assert_eq!(big_int_of_hex("1ff"), Some(BigInt::new(false, vec![1, 0xff])));
        assert_eq!(big_int_of_hex("-deadbeef01"), Some(BigInt::new(true, vec![0xde, 0xad, 0xbe, 0xef, 1])));
        assert_eq!(big_int_of_hex("xyz"), None);
    }
}
