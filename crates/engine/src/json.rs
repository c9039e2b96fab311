//! Values as JSON text for the engine to read, and where JSON falls short.

use std::fmt::Write as _;

use pydeno_wire::{MAX_SAFE_INTEGER, Text, Value};

use crate::import::Branch;

/// The way to a value that JSON cannot say: positions from the root.
pub(crate) type Special = Box<[u32]>;

/// The text of a tree, and the places in it, in order, where `null` stands for something else.
pub(crate) fn write(branch: Branch<'_>) -> (String, Vec<Special>) {
    let mut writer = Writer { out: String::new(), path: Vec::new(), specials: Vec::new() };
    match branch {
        Branch::Value(value) => writer.value(value),
        Branch::List(items) => writer.array(items.iter().copied()),
    }
    (writer.out, writer.specials)
}

/// A string as JSON text.
pub(crate) fn string(text: &str) -> String {
    let mut writer =
        Writer { out: String::with_capacity(text.len() + 2), path: Vec::new(), specials: Vec::new() };
    writer.string(&Text::from(text));
    writer.out
}

struct Writer {
    out: String,
    path: Vec<u32>,
    specials: Vec<Special>,
}

impl Writer {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) if number.is_finite() => self.number(*number),
            Value::String(text) => self.string(text),
            Value::Array(items) => self.array(items.iter()),
            Value::Object(properties) => {
                self.out.push('{');
                self.children(properties.iter(), |writer, (key, value)| {
                    writer.string(key);
                    writer.out.push(':');
                    writer.value(value);
                });
                self.out.push('}');
            }
            Value::Undefined
            | Value::Number(_)
            | Value::BigInt(_)
            | Value::Bytes(_)
            | Value::Date(_)
            | Value::Set(_)
            | Value::Map(_)
            | Value::Function(_)
            | Value::Stream(_) => {
                self.out.push_str("null");
                self.specials.push(self.path.as_slice().into());
            }
        }
    }

    fn array<'v>(&mut self, items: impl Iterator<Item = &'v Value>) {
        self.out.push('[');
        self.children(items, Self::value);
        self.out.push(']');
    }

    fn children<T>(&mut self, children: impl Iterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.path.push(0);
        for (position, child) in children.enumerate() {
            if position > 0 {
                self.out.push(',');
            }
            if let Some(last) = self.path.last_mut() {
                *last = position as u32;
            }
            write(self, child);
        }
        self.path.pop();
    }

    fn number(&mut self, number: f64) {
        if number.trunc() == number && number.abs() <= MAX_SAFE_INTEGER as f64 {
            if number.is_sign_negative() {
                self.out.push('-');
            }
            self.integer(number.abs() as u64);
        } else {
            // Writing to a `String` does not fail.
            let _ = write!(self.out, "{number:e}");
        }
    }

    /// The general way to write a number costs more than all the rest of a table.
    fn integer(&mut self, mut rest: u64) {
        let mut digits = [0; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.out.push_str(std::str::from_utf8(&digits[start..]).unwrap_or_default());
    }

    fn string(&mut self, text: &Text) {
        self.out.push('"');
        match text.as_str() {
            Some(string) => self.escaped(string),
            None => {
                for decoded in char::decode_utf16(text.to_utf16()) {
                    match decoded {
                        Ok(character) => self.escaped(character.encode_utf8(&mut [0; 4])),
                        Err(lone) => self.escape(lone.unpaired_surrogate()),
                    }
                }
            }
        }
        self.out.push('"');
    }

    fn escaped(&mut self, string: &str) {
        let mut plain = 0;
        for (index, byte) in string.bytes().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.out.push_str(&string[plain..index]);
            self.escape(u16::from(byte));
            plain = index + 1;
        }
        self.out.push_str(&string[plain..]);
    }

    fn escape(&mut self, unit: u16) {
        let _ = write!(self.out, "\\u{unit:04x}");
    }
}

/// A magnitude as a literal that `BigInt` reads.
pub(crate) fn hexadecimal(magnitude: &[u8]) -> String {
    let mut text = String::with_capacity(2 + 2 * magnitude.len());
    text.push_str("0x");
    for byte in magnitude {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(value: &Value) -> String {
        write(Branch::Value(value)).0
    }

    #[test]
    fn numbers_are_written_so_that_they_read_back_the_same() {
        for number in
            [0.0, -0.0, 1.0, -75.0, 0.1, 1e300, -1e-300, f64::MAX, f64::MIN_POSITIVE, 9_007_199_254_740_991.0]
        {
            let text = text_of(&Value::Array(vec![Value::Number(number)]));
            let read: f64 = text[1..text.len() - 1].parse().unwrap();
            assert_eq!(read.to_bits(), number.to_bits(), "{text}");
        }
    }

    #[test]
    fn a_string_may_hold_anything() {
        let units = [0x22, 0x5c, 0x0a, 0x00, 0xd800, 0x61, 0xd83d, 0xde00];
        let value = Value::Array(vec![Value::String(Text::from_utf16(&units))]);
        assert_eq!(text_of(&value), "[\"\\u0022\\u005c\\u000a\\u0000\\ud800a\u{1f600}\"]");
    }

    #[test]
    fn the_places_of_what_json_cannot_say_are_in_order() {
        let value = Value::Object(vec![
            ("a".into(), Value::Undefined),
            ("b".into(), Value::Array(vec![Value::Null, Value::Number(f64::NAN)])),
            ("c".into(), Value::Date(0)),
        ]);
        let (text, specials) = write(Branch::Value(&value));
        assert_eq!(text, r#"{"a":null,"b":[null,null],"c":null}"#);
        assert_eq!(specials, [[0].as_slice().into(), [1, 1].as_slice().into(), Box::<[u32]>::from([2])]);
    }
}
