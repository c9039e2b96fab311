//! Values as JSON text that is safe to show on a terminal.

use std::fmt;

use pydeno_wire::{Path, Segment, Text, Value};

/// A value has no JSON form.
#[derive(Debug)]
pub(crate) struct NoJson {
    path: String,
    what: &'static str,
}

impl fmt::Display for NoJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, which has no JSON form", self.path, self.what)
    }
}

/// The JSON text of a value. A `Date` becomes its ISO 8601 text, as `Date.prototype.toJSON` would; whatever JSON would
/// lose is an error instead.
pub(crate) fn to_json(value: &Value) -> Result<String, NoJson> {
    let mut writer = Writer { out: String::new(), path: Path::root() };
    writer.value(value)?;
    Ok(writer.out)
}

/// The JSON text of a string: what a terminal would act on, or not show, is escaped.
pub(crate) fn quote(text: &Text) -> String {
    let mut out = String::from("\"");
    for unit in char::decode_utf16(text.to_utf16()) {
        match unit {
            Ok('"') => out.push_str("\\\""),
            Ok('\\') => out.push_str("\\\\"),
            Ok('\n') => out.push_str("\\n"),
            Ok('\r') => out.push_str("\\r"),
            Ok('\t') => out.push_str("\\t"),
            Ok(character) if is_shown(character) => out.push(character),
            Ok(character) => {
                character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escape(&mut out, *unit));
            }
            Err(lone) => escape(&mut out, lone.unpaired_surrogate()),
        }
    }
    out.push('"');
    out
}

/// JSON text with what a terminal would act on escaped; outside strings JSON has nothing of that kind.
pub(crate) fn safe(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if is_shown(character) {
            out.push(character);
        } else {
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escape(&mut out, *unit));
        }
    }
    out
}

fn is_shown(character: char) -> bool {
    let text = Text::from(character.to_string());
    !character.is_control() && !text.display_safe().is_empty()
}

fn escape(out: &mut String, unit: u16) {
    use fmt::Write as _;
    write!(out, "\\u{unit:04x}").expect("a String takes everything");
}

struct Writer {
    out: String,
    path: Path,
}

impl Writer {
    /// Recursion is bounded by the depth that the value was decoded under.
    fn value(&mut self, value: &Value) -> Result<(), NoJson> {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Number(value) => self.number(*value)?,
            Value::String(text) => self.out.push_str(&quote(text)),
            Value::Date(milliseconds) => self.out.push_str(&format!("\"{}\"", iso8601(*milliseconds))),
            Value::Array(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.separate(index);
                    self.inside(Segment::Index(index), item)?;
                }
                self.out.push(']');
            }
            Value::Object(entries) => {
                self.out.push('{');
                for (index, (key, item)) in entries.iter().enumerate() {
                    self.separate(index);
                    self.out.push_str(&quote(key));
                    self.out.push_str(": ");
                    self.inside(Segment::Key(key.clone()), item)?;
                }
                self.out.push('}');
            }
            Value::Undefined => return Err(self.none("undefined")),
            Value::BigInt(_) => return Err(self.none("a BigInt")),
            Value::Bytes(_) => return Err(self.none("binary data")),
            Value::Set(_) => return Err(self.none("a Set")),
            Value::Map(_) => return Err(self.none("a Map")),
            Value::Function(_) => return Err(self.none("a function")),
            Value::Stream(_) => return Err(self.none("a stream")),
        }
        Ok(())
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.out.push_str(", ");
        }
    }

    fn inside(&mut self, segment: Segment, value: &Value) -> Result<(), NoJson> {
        self.path.push(segment);
        self.value(value)?;
        self.path.pop();
        Ok(())
    }

    fn number(&mut self, value: f64) -> Result<(), NoJson> {
        if value.is_nan() {
            return Err(self.none("NaN"));
        }
        match serde_json::Number::from_f64(value) {
            // An integral number is printed as one, as JavaScript does.
            Some(_)
                if value.trunc() == value
                    && value.abs() < 1e21
                    && !(value == 0.0 && value.is_sign_negative()) =>
            {
                self.out.push_str(&format!("{value:.0}"));
            }
            Some(number) => self.out.push_str(&number.to_string()),
            None => return Err(self.none("an infinity")),
        }
        Ok(())
    }

    fn none(&self, what: &'static str) -> NoJson {
        NoJson { path: self.path.to_string(), what }
    }
}

/// `YYYY-MM-DDTHH:mm:ss.sssZ`, with a signed six-digit year outside 0 to 9999, as ECMA-262 writes dates.
fn iso8601(milliseconds: i64) -> String {
    let days = milliseconds.div_euclid(86_400_000);
    let in_day = milliseconds.rem_euclid(86_400_000);
    let (year, month, day) = civil_from_days(days);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{}{:06}", if year < 0 { '-' } else { '+' }, year.abs()),
    };
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, millisecond) = (in_day / 1000 % 60, in_day % 1000);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
}

/// The proleptic Gregorian date of a day counted from 1970-01-01. Years are counted from March, so that the leap day is
/// the last of a year and month lengths follow one line; 146,097 days are 400 years.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_data_is_plain_json() {
        let value = Value::Object(vec![
            ("a".into(), Value::Array(vec![Value::Number(1.0), Value::Number(2.5), Value::Null])),
            ("b".into(), Value::Bool(true)),
        ]);
        assert_eq!(to_json(&value).unwrap(), r#"{"a": [1, 2.5, null], "b": true}"#);
    }

    #[test]
    fn numbers_keep_what_javascript_would_print() {
        for (value, text) in [(1e20, "100000000000000000000"), (-0.0, "-0.0"), (0.1, "0.1"), (-7.0, "-7")] {
            assert_eq!(to_json(&Value::Number(value)).unwrap(), text);
        }
    }

    #[test]
    fn what_json_would_lose_is_named_with_its_place() {
        for (value, what) in [
            (Value::Undefined, "undefined"),
            (Value::Number(f64::NAN), "NaN"),
            (Value::Number(f64::INFINITY), "infinity"),
            (Value::Bytes(vec![1]), "binary"),
            (Value::Set(vec![]), "Set"),
        ] {
            let error = to_json(&Value::Object(vec![("x".into(), value)])).unwrap_err().to_string();
            assert!(error.starts_with("$.x is ") && error.contains(what), "{error}");
        }
    }

    #[test]
    fn text_cannot_talk_to_the_terminal() {
        assert_eq!(
            quote(&"a\u{1b}[31m\u{202e}\u{9b}\u{0}é😀".into()),
            "\"a\\u001b[31m\\u202e\\u009b\\u0000é😀\""
        );
        assert_eq!(quote(&Text::from_utf16(&[0x61, 0xd800])), "\"a\\ud800\"");
    }

    #[test]
    fn dates_are_written_as_javascript_writes_them() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (-62_198_755_200_000, "-000001-01-01T00:00:00.000Z"),
            (8_640_000_000_000_000, "+275760-09-13T00:00:00.000Z"),
        ] {
            assert_eq!(iso8601(milliseconds), text);
        }
    }
}
